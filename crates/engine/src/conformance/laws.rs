// SPDX-License-Identifier: Apache-2.0
//! The laws that an engine must keep, each as a function of a trial.

use turboflow_merge::{Layout, MicroflowRecord, TWO_WAY_WORDS};
use turboflow_record::{Packet, Rejected, TCP_ACK, TCP_FIN, TCP_RST, TCP_SYN};

use super::cells::Moment;
use super::runs::{Flow, Flows};
use super::{Arrival, Aspect, Lane, LeftOut, Observed, Outcome, Record, Setup, Told};

/// The output of a subject for one sequence, prepared for the checks.
pub(super) struct Trial<'a> {
    pub(super) setup: &'a Setup,
    /// The frames, with the timestamps that the engine gave them.
    pub(super) arrivals: &'a [Arrival],
    pub(super) observed: &'a Observed,
    pub(super) flows: &'a Flows<'a>,
    /// The state of the clock at each arrival.
    pub(super) moments: Vec<Moment>,
    pub(super) left_out: &'a [LeftOut],
    pub(super) is_ordered: bool,
}

impl Trial<'_> {
    pub(super) fn why_left_out(&self, what: Aspect) -> Option<&'static str> {
        let left_out = self.left_out.iter().find(|left_out| left_out.what == what);
        left_out.map(|left_out| left_out.why)
    }

    pub(super) fn packet(&self, number: usize) -> &Packet {
        match &self.arrivals[number].packet {
            Ok((packet, _)) => packet,
            Err(_) => unreachable!("flows contain packets only"),
        }
    }

    /// The record that results from one pass over these packets.
    pub(super) fn one_pass(&self, numbers: &[usize]) -> Option<Record> {
        let layout = &self.setup.layout;
        let mut total: Option<Record> = None;
        for number in numbers {
            let Ok((packet, values)) = &self.arrivals[*number].packet else {
                continue;
            };
            let record: Record = layout.open(packet, values);
            match &mut total {
                Some(total) => merge(total, &record, layout),
                None => total = Some(record),
            }
        }
        total
    }

    /// The records of a flow, merged as the aggregator merges them.
    pub(super) fn merged(&self, flow: &Flow<'_>) -> Option<Record> {
        let mut records = flow.runs.iter().map(|run| run.record);
        let mut total = *records.next()?;
        records.for_each(|record| merge(&mut total, record, &self.setup.layout));
        Some(total)
    }

    /// Whether all packets are in one cell of the clock.
    pub(super) fn is_of_one_cell(&self) -> bool {
        self.moments.windows(2).all(|pair| pair[0] == pair[1])
    }
}

/// Merges a record whose packets arrived later. Records in the two-way form merge as
/// [`TWO_WAY_WORDS`] state words.
fn merge(total: &mut Record, later: &Record, layout: &Layout) {
    if !layout.is_two_way() {
        return total.merge(later, layout.plan());
    }
    let [mut to, from] = [&*total, later].map(|record| MicroflowRecord {
        key: record.key,
        base: record.base,
        state: std::array::from_fn::<_, TWO_WAY_WORDS, _>(|word| record.state[word]),
    });
    to.merge(&from, layout.plan());
    total.base = to.base;
    total.state[..TWO_WAY_WORDS].copy_from_slice(&to.state);
}

impl Lane {
    /// The table that a packet belongs to.
    pub(super) fn of(layout: &Layout, packet: &Packet) -> Self {
        match (layout.key_widths(), packet.tuple.family()) {
            (turboflow_merge::KeyWidths::Wide, _) => Self::Wide,
            (_, turboflow_record::Family::V4) => Self::V4,
            (_, turboflow_record::Family::V6) => Self::V6,
        }
    }
}

fn equal<T: PartialEq + std::fmt::Debug>(what: &str, expected: T, actual: T) -> Result<(), String> {
    match expected == actual {
        true => Ok(()),
        false => Err(format!("{what}: {expected:?} expected, {actual:?} found")),
    }
}

/// Law 1: every frame is counted. Every packet and its bytes are in exactly one record, or counted
/// as dropped.
pub(super) fn conservation(trial: &Trial<'_>) -> Outcome {
    conserves(trial).into()
}

fn conserves(trial: &Trial<'_>) -> Result<(), String> {
    let counters = &trial.observed.counters;
    let mut rejected = [0; Rejected::COUNT];
    let (mut packets, mut bytes, mut wire_bytes) = (0, 0, 0);
    for arrival in trial.arrivals {
        wire_bytes += arrival.wire_bytes();
        match &arrival.packet {
            Ok((packet, _)) => {
                packets += 1;
                bytes += u64::from(packet.ip_length_bytes);
            }
            Err(reason) => rejected[reason.index()] += 1,
        }
    }
    let received = trial.arrivals.len() as u64;
    equal("frames received", received, counters.packets_received)?;
    equal("bytes received", wire_bytes, counters.bytes_received)?;
    equal(
        "frames rejected, by reason",
        rejected,
        counters.rejected_packets,
    )?;
    equal("packets metered", packets, counters.packets_metered)?;
    equal("bytes metered", bytes, counters.bytes_metered)?;
    let records = || trial.observed.records().map(|(_, _, record)| record);
    let in_records: u64 = records().map(|record| record.base.packets).sum();
    let dropped = counters.packets_dropped;
    equal(
        "packets in records and dropped",
        packets,
        in_records + dropped,
    )?;
    let in_records: u64 = records().map(|record| record.base.bytes).sum();
    let dropped = counters.bytes_dropped;
    equal("bytes in records and dropped", bytes, in_records + dropped)?;
    let handed_over = records().count() as u64 + counters.microflows_dropped;
    equal("records evicted", counters.evicted.total(), handed_over)?;
    equal(
        "records with a key that no packet has",
        0,
        trial.flows.unknown_records.len(),
    )?;
    for flow in trial.flows.iter() {
        let (own, found) = (flow.packets.len() as u64, flow.packets_in_records());
        if found > own {
            return Err(format!("a flow of {own} packets has records with {found}"));
        }
    }
    Ok(())
}

/// Law 2: a record equals the result of one pass over its packets. The merged records of a flow
/// equal the result of one pass over the flow's packets.
pub(super) fn exactness(trial: &Trial<'_>) -> Outcome {
    is_exact(trial).into()
}

fn is_exact(trial: &Trial<'_>) -> Result<(), String> {
    for flow in trial.flows.iter() {
        let (expected, merged) = (trial.one_pass(&flow.packets), trial.merged(flow));
        let differs = match (&expected, &merged) {
            (Some(expected), Some(merged)) => first_difference(expected, merged),
            _ => Some("it has no record".to_owned()),
        };
        if let Some(differs) = differs {
            let packets = flow.packets.len();
            let records = flow.runs.len();
            return Err(format!(
                "a flow of {packets} packets in {records} records: {differs}"
            ));
        }
        for (number, run) in flow.runs.iter().enumerate() {
            let expected = trial.one_pass(flow.arrivals_of(run)).unwrap_or_default();
            if let Some(differs) = first_difference(&expected, run.record) {
                return Err(format!("record {number} of a flow: {differs}"));
            }
        }
    }
    Ok(())
}

/// The first difference between two records, in words.
pub(super) fn first_difference<const K: usize, const N: usize>(
    expected: &MicroflowRecord<K, N>,
    actual: &MicroflowRecord<K, N>,
) -> Option<String> {
    if expected.key != actual.key {
        return Some(format!("key {:x?}, not {:x?}", actual.key, expected.key));
    }
    if expected.base != actual.base {
        return Some(format!("{:?}, not {:?}", actual.base, expected.base));
    }
    let words = expected.state.iter().zip(&actual.state).enumerate();
    let mut differing = words.filter(|(_, (expected, actual))| expected != actual);
    let (word, (expected, actual)) = differing.next()?;
    Some(format!(
        "word {word} of its state is {actual}, not {expected}"
    ))
}

/// Law 3: the records of a flow are handed over in time order.
pub(super) fn order(trial: &Trial<'_>) -> Outcome {
    if !trial.is_ordered {
        return Outcome::LeftOut("records of a flow may overlap, as the engine's abilities say");
    }
    for flow in trial.flows.iter() {
        let times: Vec<u64> = flow
            .packets
            .iter()
            .map(|number| trial.packet(*number).timestamp_ns)
            .collect();
        // With late packets, only the order of arrival matters. Exactness and cuts check it.
        if !times.is_sorted() {
            continue;
        }
        for pair in flow.runs.windows(2) {
            let (before, after) = (&pair[0].record.base, &pair[1].record.base);
            if before.last_ns > after.first_ns {
                return Outcome::Broken(format!(
                    "a record up to {} came before one from {}",
                    before.last_ns, after.first_ns
                ));
            }
        }
    }
    Outcome::Held
}

/// Law 4: a watermark is the end of a cell. Packets before the watermark are handed over before it,
/// and later packets after it.
pub(super) fn bounded_age(trial: &Trial<'_>) -> Outcome {
    is_of_bounded_age(trial).into()
}

fn is_of_bounded_age(trial: &Trial<'_>) -> Result<(), String> {
    let events = &trial.observed.events;
    for (number, (place, _, record)) in trial.observed.records().enumerate() {
        let next = events[place..].iter().find_map(|event| match event.told {
            Told::Complete(complete_ns) => Some(complete_ns),
            Told::StartsOver => Some(u64::MAX),
            Told::Record(..) => None,
        });
        if next.is_some_and(|complete_ns| record.base.last_ns >= complete_ns) {
            return Err(format!(
                "record {number} is of a later cell than the one it was handed over in"
            ));
        }
    }
    let (mut before_ns, mut epoch) = (None, 0);
    for (place, event) in events.iter().enumerate() {
        match event.told {
            Told::Complete(complete_ns) => {
                equal(
                    "the end of a cell",
                    trial.setup.cell_of(complete_ns),
                    complete_ns,
                )?;
                if before_ns.is_some_and(|before_ns| before_ns > complete_ns) {
                    return Err(format!("watermark {complete_ns} follows a later one"));
                }
                before_ns = Some(complete_ns);
                let told = Moment {
                    epoch,
                    cell_start_ns: complete_ns,
                };
                has_no_overdue_packet(trial, place, event.given, told)?;
            }
            Told::StartsOver => (before_ns, epoch) = (None, epoch + 1),
            Told::Record(..) => {}
        }
    }
    Ok(())
}

/// No packet that was given before the event at `place`, and whose timestamp is before that event's
/// watermark, is handed over after the event. Packets that arrived when the clock had already
/// reached the watermark are exempt: the engine may have known the watermark before it was asked
/// for it.
fn has_no_overdue_packet(
    trial: &Trial<'_>,
    place: usize,
    given: usize,
    told: Moment,
) -> Result<(), String> {
    for flow in trial.flows.iter() {
        for run in flow.runs.iter().filter(|run| run.event > place) {
            let is_overdue = |number: &usize| {
                let is_earlier = trial.packet(*number).timestamp_ns < told.cell_start_ns;
                *number < given && is_earlier && trial.moments[*number] < told
            };
            if let Some(number) = flow
                .arrivals_of(run)
                .iter()
                .find(|number| is_overdue(number))
            {
                return Err(format!(
                    "packet {number} was handed over after the watermark {}",
                    told.cell_start_ns
                ));
            }
        }
    }
    Ok(())
}

/// What the rules need to know of a record's packets to decide whether another packet may join.
pub(super) struct Joined {
    first_ns: u64,
    epoch: u32,
    has_ended: bool,
}

impl Joined {
    pub(super) const fn new(packet: &Packet, moment: Moment) -> Self {
        Self {
            first_ns: packet.timestamp_ns,
            epoch: moment.epoch,
            has_ended: is_end(packet),
        }
    }

    pub(super) const fn join(&mut self, packet: &Packet) {
        self.has_ended |= is_end(packet);
    }

    /// The rule that forbids a packet to join, if there is one.
    pub(super) fn cut_before(
        &self,
        packet: &Packet,
        moment: Moment,
        ends_cut: bool,
    ) -> Option<&'static str> {
        let rules = [
            (self.epoch != moment.epoch, "the clock was set back"),
            (self.first_ns < moment.cell_start_ns, "the cell had ended"),
            (packet.timestamp_ns < self.first_ns, "the packet is late"),
            (is_syn(packet), "the SYN may begin a connection"),
            (ends_cut && self.has_ended, "the connection had ended"),
        ];
        rules
            .into_iter()
            .find_map(|(applies, why)| applies.then_some(why))
    }
}

const fn is_syn(packet: &Packet) -> bool {
    packet.tcp_flags & (TCP_SYN | TCP_ACK) == TCP_SYN
}

const fn is_end(packet: &Packet) -> bool {
    packet.tcp_flags & (TCP_FIN | TCP_RST) != 0
}

/// Law 5: no record joins packets of two cells, a late packet, or a SYN without ACK that follows
/// another packet. If FIN and RST end records, no packet joins after either of them.
pub(super) fn cuts(trial: &Trial<'_>) -> Outcome {
    for flow in trial.flows.iter() {
        for run in &flow.runs {
            let mut joined: Option<Joined> = None;
            for number in flow.arrivals_of(run) {
                let (packet, moment) = (trial.packet(*number), trial.moments[*number]);
                let Some(joined) = &mut joined else {
                    joined = Some(Joined::new(packet, moment));
                    continue;
                };
                if let Some(why) = joined.cut_before(packet, moment, trial.setup.ends_cut) {
                    return Outcome::Broken(format!(
                        "packet {number} has joined the record of an earlier one, but {why}"
                    ));
                }
                joined.join(packet);
            }
        }
    }
    Outcome::Held
}

/// Law 6: a table never has more records than slots.
pub(super) fn bounded_memory(trial: &Trial<'_>) -> Outcome {
    if trial.setup.look_every != 1 {
        return Outcome::LeftOut(
            "the number of resident records is known only if every frame is followed by a look",
        );
    }
    if let Some(why) = trial.why_left_out(Aspect::HandsOverAtOnce)
        && !trial.is_of_one_cell()
    {
        return Outcome::LeftOut(why);
    }
    for lane in [Lane::V4, Lane::V6, Lane::Wide] {
        // +1 when a packet opens a record, -1 when the record is handed over.
        let mut changes = vec![0i64; trial.arrivals.len() + 2];
        for flow in trial.flows.iter().filter(|flow| flow.lane == lane) {
            for run in &flow.runs {
                if let Some(first) = flow.arrivals_of(run).first() {
                    let opened = first + 1;
                    changes[opened] += 1;
                    changes[run.given.max(opened)] -= 1;
                }
            }
        }
        let mut resident = 0;
        for (given, change) in changes.iter().enumerate() {
            resident += change;
            if resident > i64::from(trial.setup.slots) {
                return Outcome::Broken(format!("{resident} records after {given} frames"));
            }
        }
    }
    Outcome::Held
}
