// SPDX-License-Identifier: Apache-2.0
//! Decodes messages into flow records of one direction, and keeps the state of all exporters.

use std::hash::{DefaultHasher, Hash, Hasher};

use turboflow_record::InputSet;

use crate::bytes::{split, two};
use crate::counts::Counts;
use crate::domain::{Domain, WaitingSet};
use crate::exporter_numbers::Place;
use crate::exporters::{
    DomainId, Exporters, Known, MOST_SOURCES, MOST_TEMPLATE_FIELDS, MOST_WAITING_BYTES, Sender,
};
use crate::flow::{Flow, Side};
use crate::header::{Header, V5_RECORD_BYTES, Version};
use crate::sflow::{self, Datagram, MOST_SOURCES_OF_AGENT, Sampled};
use crate::slot::{Slot, TimeForm, Way};
use crate::template::{FIRST_ID, Template, Unreadable};
use crate::times::{MessageClock, Stamp};

/// Octets of a set's header.
const SET_HEADER_BYTES: usize = 4;
/// How far an exporter's clock may be ahead of the receiver's before its times are shifted.
const CLOCK_TOLERANCE_NS: u64 = 60_000_000_000;
/// How far a record may end after its export time: some clocks have whole seconds, and the cards of
/// a router may have different clocks.
const FUTURE_TOLERANCE_NS: u64 = 60_000_000_000;
/// If a record began longer than this before its end, its start is wrong.
const LONGEST_NS: u64 = 50 * 86_400 * 1_000_000_000;

/// A message of an exporter.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The sender.
    pub from: Sender,
    /// Whether it arrived as a datagram, which may be lost, late or duplicated.
    pub is_datagram: bool,
    /// Time of arrival, in nanoseconds since 1970; `None` for files.
    pub received_ns: Option<u64>,
    /// The message.
    pub bytes: &'a [u8],
}

/// One direction of a flow record, with its times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Directed<'a> {
    /// Key, inputs and protocol.
    pub(crate) flow: &'a Flow,
    pub(crate) side: &'a Side,
    pub(crate) is_reverse: bool,
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
    /// One packet out of this many was sampled; 1 if all were observed.
    pub(crate) one_of: u32,
}

/// Receives the flow records of a message.
pub(crate) trait TakeFlow {
    fn flow(&mut self, flow: &Directed<'_>, counts: &mut Counts);
}

/// Decodes the messages of many exporters.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    exporters: Exporters,
    wanted: InputSet,
    flow: Flow,
    sampled: Sampled,
    pub(crate) counts: Counts,
}

/// The state of reading one message.
struct Reading<'a, T> {
    domain: &'a mut Domain,
    fields: &'a mut usize,
    waiting_bytes: &'a mut usize,
    flow: &'a mut Flow,
    counts: &'a mut Counts,
    taker: &'a mut T,
    wanted: InputSet,
    clock: MessageClock,
    version: Version,
    sampling: u32,
    /// Number of records read so far, including records of options, and number of records of
    /// options.
    records: u32,
    options: u32,
    /// Number of records of earlier messages whose template came with this message.
    waited: u64,
    /// Whether the message has a set without a template.
    has_unread: bool,
}

impl Decoder {
    /// A decoder that reads these inputs in addition to what every record has.
    pub(crate) fn new(wanted: InputSet) -> Self {
        Self {
            wanted,
            sampled: Sampled::new(wanted),
            ..Self::default()
        }
    }

    /// Decodes a message. Returns its export time, which advances the collector's clock; `None` if
    /// the bytes are not a message, or the message is a repetition.
    pub(crate) fn decode(
        &mut self,
        message: &Message<'_>,
        taker: &mut impl TakeFlow,
    ) -> Option<u64> {
        self.counts.messages += 1;
        if sflow::is_datagram(message.bytes) {
            return self.sampled(message, taker);
        }
        let Some(header) = Header::of(message.bytes) else {
            self.counts.messages_malformed += 1;
            return None;
        };
        let id = (header.version, header.domain);
        let Known {
            fields,
            waiting_bytes,
            domain,
            ..
        } = self.exporters.find(message.from, id, &mut self.counts);
        if message.is_datagram && domain.repeats.is_repeated(print(message.bytes)) {
            self.counts.messages_repeated += 1;
            return None;
        }
        let clock = clock_of(domain, &header, message.received_ns, &mut self.counts);
        let mut reading = Reading {
            domain,
            fields,
            waiting_bytes,
            flow: &mut self.flow,
            counts: &mut self.counts,
            taker,
            wanted: self.wanted,
            clock,
            version: header.version,
            sampling: header.sampling,
            records: 0,
            options: 0,
            waited: 0,
            has_unread: false,
        };
        let body = &message.bytes[header.start..header.end];
        let is_whole = match header.version {
            Version::Netflow5 => {
                reading.netflow5(body);
                true
            }
            _ => reading.sets(body),
        };
        let numbered = [reading.records, reading.options];
        let (waited, has_unread) = (reading.waited, reading.has_unread);
        if !is_whole {
            self.counts.add_damaged(header.version);
        }
        let counts = &mut self.counts;
        // IPFIX and v5 number records. How many this message has is only known now.
        match header.version {
            Version::Ipfix => {
                place_records(domain, header.sequence, numbered, has_unread, counts);
                counts.take_back(domain.record_numbers.found(waited));
            }
            Version::Netflow9 => {
                place(domain, header.version, header.sequence, 1, counts);
            }
            version => {
                place(domain, version, header.sequence, numbered[0], counts);
            }
        }
        Some(header.export_ns.saturating_sub(clock.shift_ns))
    }

    /// Reads an sFlow datagram. It has no time of day, so its packets get the time of its arrival.
    fn sampled(&mut self, message: &Message<'_>, taker: &mut impl TakeFlow) -> Option<u64> {
        let datagram = Datagram::of(message.bytes);
        let (Some(datagram), Some(received_ns)) = (datagram, message.received_ns) else {
            self.counts.messages_malformed += 1;
            return None;
        };
        let id = (Version::Sflow, datagram.agent);
        let Known {
            sources, domain, ..
        } = self.exporters.find(message.from, id, &mut self.counts);
        if message.is_datagram && domain.repeats.is_repeated(print(message.bytes)) {
            self.counts.messages_repeated += 1;
            return None;
        }
        let kept = (&mut self.flow, &mut self.counts);
        let known = &mut domain.sources;
        let before = known.len();
        known.most = (MOST_SOURCES - *sources + before).min(MOST_SOURCES_OF_AGENT);
        let is_whole = self
            .sampled
            .read(&datagram, received_ns, known, kept, taker);
        *sources += known.len() - before;
        if !is_whole {
            self.counts.messages_malformed += 1;
        }
        Some(received_ns)
    }

    /// Notes a message with `records` numbered records from a domain. `print` is the fingerprint of
    /// a datagram. `is_before_first`: whether it is late, and before the first that arrived.
    /// Returns its place; `None` if the message is a repetition.
    pub(crate) fn place_message(
        &mut self,
        from: Sender,
        id: DomainId,
        sequence: u32,
        records: u32,
        print: Option<u64>,
        is_before_first: bool,
    ) -> Option<Place> {
        let Known { domain, .. } = self.exporters.find(from, id, &mut self.counts);
        if print.is_some_and(|print| domain.repeats.is_repeated(print)) {
            self.counts.messages_repeated += 1;
            return None;
        }
        let counts = &mut self.counts;
        if is_before_first {
            counts.messages_late += 1;
            return Some(Place::Late(0));
        }
        Some(place(domain, id.0, sequence, records, counts))
    }

    /// Forgets the state of a sender whose connection has ended.
    pub(crate) fn forget(&mut self, sender: Sender) {
        self.exporters.forget(sender, &mut self.counts);
    }

    /// The counters. Sets that still wait for their template count as lost.
    pub(crate) fn final_counts(&self) -> Counts {
        Counts {
            sets_waiting_lost: self.counts.sets_waiting_lost + self.exporters.waiting_sets(),
            ..self.counts
        }
    }

    /// Numbers of known exporters and domains.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        self.exporters.sizes()
    }
}

/// A fingerprint that tells a datagram from others of its exporter; never 0.
pub(crate) fn print(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    // Only both ends: hashing the whole datagram would cost as much as reading its records.
    let ends = bytes.len().min(64);
    (bytes.len(), &bytes[..ends], &bytes[bytes.len() - ends..]).hash(&mut hasher);
    hasher.finish() | 1
}

/// Counts losses by the sequence number of a message that uses `steps` numbers.
fn place(
    domain: &mut Domain,
    version: Version,
    sequence: u32,
    steps: u32,
    counts: &mut Counts,
) -> Place {
    let lost = match version {
        Version::Netflow9 => &mut counts.messages_lost,
        _ => &mut counts.records_lost,
    };
    let place = domain.numbers.place(sequence, steps);
    let is_late = matches!(place, Place::Late(_));
    counts.messages_late += u64::from(is_late);
    counts.sequence_restarts += u64::from(place == Place::Restart);
    *lost = place.adds_to(*lost);
    place
}

/// Counts losses by the sequence number of an IPFIX message with `records` data records, of which
/// `options` are records of options. Records of sets without a template are not among them: they
/// are missing before the next message, or before this one if numbers include it.
fn place_records(
    domain: &mut Domain,
    sequence: u32,
    [records, options]: [u32; 2],
    has_unread: bool,
    counts: &mut Counts,
) {
    let is_unread = std::mem::replace(&mut domain.had_unread, has_unread) || has_unread;
    let flows = records - options;
    let found = domain.record_numbers.place(sequence, records, flows);
    let is_late = matches!(found.place, Place::Late(_));
    counts.messages_late += u64::from(is_late);
    counts.sequence_restarts += u64::from(found.place == Place::Restart);
    counts.numbered_through += u64::from(found.is_found_through);
    if let Place::Gap(missing) = found.place
        && is_unread
    {
        counts.records_unread += u64::from(missing);
    }
    let lost = counts.records_lost.saturating_add_signed(found.correction);
    counts.records_lost = found.place.adds_to(lost);
}

/// The clock of a message.
fn clock_of(
    domain: &mut Domain,
    header: &Header,
    received_ns: Option<u64>,
    counts: &mut Counts,
) -> MessageClock {
    let uptime = match header.version {
        Version::Netflow5 => Some((header.export_ns, header.uptime_ms)),
        Version::Netflow9 => {
            let moment_ns = domain.boot.moment_ns(header.export_ns, header.uptime_ms);
            Some((moment_ns, header.uptime_ms))
        }
        Version::Sflow | Version::Microflows => None,
        Version::Ipfix => domain.told_boot_ns().map(|boot_ns| {
            let uptime_ms = header.export_ns.saturating_sub(boot_ns) / 1_000_000;
            (boot_ns + uptime_ms * 1_000_000, uptime_ms as u32)
        }),
    };
    let ahead_ns = received_ns.map_or(0, |now_ns| header.export_ns.saturating_sub(now_ns));
    let is_ahead = ahead_ns > CLOCK_TOLERANCE_NS;
    counts.clocks_ahead += u64::from(is_ahead);
    let shift_ns = if is_ahead { ahead_ns } else { 0 };
    // Records may come under a header of another time, for instance when they are sent again.
    let exported_ns = header.export_ns.saturating_sub(shift_ns);
    MessageClock {
        export_ns: header.export_ns,
        uptime,
        shift_ns,
        latest_ns: exported_ns
            .max(received_ns.unwrap_or(0))
            .saturating_add(FUTURE_TOLERANCE_NS),
    }
}

impl<T: TakeFlow> Reading<'_, T> {
    /// Reads the sets of a message. False if one does not fit.
    fn sets(&mut self, mut rest: &[u8]) -> bool {
        // A rest shorter than a set header is padding.
        while rest.len() >= SET_HEADER_BYTES {
            let (Some(id), Some(length)) = (two(rest, 0), two(rest, 2)) else {
                return false;
            };
            let length = usize::from(length);
            if length < SET_HEADER_BYTES {
                // Some exporters pad with more zeros than a set header has.
                return rest.iter().all(|byte| *byte == 0);
            }
            let Some(set) = split(&mut rest, length) else {
                return false;
            };
            let content = &set[SET_HEADER_BYTES..];
            let is_well = match (self.version, id) {
                (Version::Ipfix, 2) | (Version::Netflow9, 0) => self.templates(content, false),
                (Version::Ipfix, 3) | (Version::Netflow9, 1) => self.templates(content, true),
                (_, FIRST_ID..) => self.data_set(id, content),
                _ => true,
            };
            if !is_well {
                return false;
            }
        }
        true
    }

    /// Learns the templates of a set. False if one does not fit in the set.
    fn templates(&mut self, mut rest: &[u8], is_options: bool) -> bool {
        while let Some(next) = Template::next(&mut rest, self.version, is_options, self.wanted) {
            match next {
                Ok(learned) => match learned.template {
                    Some(template) => self.learn(learned.id, template),
                    None => self.withdraw(learned.id, is_options),
                },
                Err(Unreadable::Short) => return false,
                Err(Unreadable::Refused) => self.counts.templates_refused += 1,
            }
        }
        true
    }

    fn learn(&mut self, id: u16, template: Template) {
        self.withdraw(id, template.is_options);
        if *self.fields + template.fields() > MOST_TEMPLATE_FIELDS {
            self.counts.templates_refused += 1;
            return;
        }
        *self.fields += template.fields();
        self.domain.learn(id, template);
        let before = self.domain.size().1;
        let waiting = self.domain.waited_for(id);
        *self.waiting_bytes -= before - self.domain.size().1;
        let (clock, records, options) = (self.clock, self.records, self.options);
        for set in waiting {
            self.clock = set.clock;
            self.data_set(id, &set.octets);
        }
        // These records are numbered before this message, and were counted as missing.
        self.waited += u64::from(self.records - records);
        (self.clock, self.records, self.options) = (clock, records, options);
    }

    fn withdraw(&mut self, id: u16, is_options: bool) {
        let before = self.domain.size().0;
        self.domain.withdraw(id, is_options);
        *self.fields -= before - self.domain.size().0;
    }

    /// Reads the records of a set, or keeps it until its template comes.
    fn data_set(&mut self, id: u16, mut rest: &[u8]) -> bool {
        let Some(template) = self.domain.template(id) else {
            self.wait(id, rest);
            return true;
        };
        while template.read_record(&mut rest, self.flow) {
            self.records = self.records.saturating_add(1);
            if template.is_options {
                self.options = self.options.saturating_add(1);
                self.domain.learn_options(self.flow);
            } else {
                self.record();
            }
        }
        true
    }

    fn wait(&mut self, id: u16, octets: &[u8]) {
        self.has_unread = true;
        let set = WaitingSet {
            id,
            clock: self.clock,
            octets: octets.into(),
        };
        let has_room = *self.waiting_bytes + octets.len() <= MOST_WAITING_BYTES;
        if has_room && self.domain.wait(set) {
            *self.waiting_bytes += octets.len();
        } else {
            self.counts.sets_waiting_lost += 1;
        }
    }

    /// The records of NetFlow v5.
    fn netflow5(&mut self, mut rest: &[u8]) {
        const FIELDS: [(Slot, usize, usize); 13] = [
            (Slot::SourceV4, 0, 4),
            (Slot::DestinationV4, 4, 4),
            (
                Slot::Input(turboflow_record::Input::IngressInterface),
                12,
                2,
            ),
            (Slot::Input(turboflow_record::Input::EgressInterface), 14, 2),
            (Slot::Packets(Way::Forward), 16, 4),
            (Slot::Bytes(Way::Forward), 20, 4),
            (Slot::Start(Way::Forward, TimeForm::Uptime), 24, 4),
            (Slot::End(Way::Forward, TimeForm::Uptime), 28, 4),
            (Slot::SourcePort, 32, 2),
            (Slot::DestinationPort, 34, 2),
            (Slot::TcpFlags(Way::Forward), 37, 1),
            (Slot::Protocol, 38, 1),
            (Slot::Tos(Way::Forward), 39, 1),
        ];
        while let Some(record) = split(&mut rest, V5_RECORD_BYTES) {
            self.flow.clear();
            for (slot, at, length) in FIELDS {
                self.flow.take(slot, &record[at..at + length]);
            }
            self.records += 1;
            self.record();
        }
    }

    /// Hands over the directions of the record that was just read.
    #[inline(always)]
    fn record(&mut self) {
        let flow = &*self.flow;
        let has_any = flow.sides[0].packets > 0 || flow.sides[1].packets > 0;
        if flow.family == 0 || !has_any {
            self.counts.records_not_flows += 1;
            return;
        }
        let one_of = self.domain.sampling(flow, self.sampling);
        for way in 0..2 {
            let side = &flow.sides[way];
            if side.packets == 0 {
                continue;
            }
            let [first_ns, last_ns] = times(flow, way, &self.clock, self.counts);
            let directed = Directed {
                flow,
                side,
                is_reverse: way == 1,
                first_ns,
                last_ns,
                one_of,
            };
            self.taker.flow(&directed, self.counts);
        }
    }
}

/// First and last time of a direction. If the exporter gives none, or impossible ones, they are
/// made consistent, and that is counted.
#[inline(always)]
fn times(flow: &Flow, way: usize, clock: &MessageClock, counts: &mut Counts) -> [u64; 2] {
    let own = &flow.sides[way];
    let both = &flow.sides[0];
    let or_both = |own: Stamp, both: Stamp| match own {
        Stamp::None => both,
        own => own,
    };
    let mut clock = *clock;
    if let (Some(boot_ms), None) = (flow.boot_ms, clock.uptime) {
        let boot_ns = boot_ms.saturating_mul(1_000_000);
        let uptime_ms = clock.export_ns.saturating_sub(boot_ns) / 1_000_000;
        let moment_ns = boot_ns.saturating_add(uptime_ms.saturating_mul(1_000_000));
        clock.uptime = Some((moment_ns, uptime_ms as u32));
    }
    let mut first = clock.resolve(or_both(own.start, both.start));
    let mut last = clock.resolve(or_both(own.end, both.end));
    if let Some(duration_ns) = flow.duration_ns {
        first = first.or(last.map(|last_ns| last_ns.saturating_sub(duration_ns)));
        last = last.or(first.map(|first_ns| first_ns.saturating_add(duration_ns)));
    }
    let export_ns = clock.export_ns.saturating_sub(clock.shift_ns);
    let is_told = first.is_some() && last.is_some();
    let mut last_ns = last.or(first).unwrap_or(export_ns);
    let mut first_ns = first.unwrap_or(last_ns);
    if last_ns > clock.latest_ns {
        counts.times_in_future += 1;
        last_ns = export_ns;
        first_ns = first_ns.min(last_ns);
    }
    let is_wrong = first_ns > last_ns || last_ns - first_ns > LONGEST_NS;
    if is_wrong {
        first_ns = last_ns;
    }
    counts.times_wrong += u64::from(is_wrong || !is_told);
    [first_ns, last_ns]
}
