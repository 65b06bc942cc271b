// SPDX-License-Identifier: Apache-2.0
//! Counters that probes report: packets that are in no record, and losses. They go into the ledger
//! of the collector that merges the probes' records, separately for each probe.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use turboflow_engine::{EngineCounters, OwnCount, Port, PortCounters, PortState};
use turboflow_record::Rejected;

use crate::exporters::Sender;
use crate::heard::{Heard, Hearing};

/// Maximum number of probes whose counters are kept. Records of further probes are still merged.
const MOST_PROBES: usize = 1_024;
/// A probe cannot have counted more than this, and neither can its earlier starts together: so sums
/// over all probes do not overflow.
const MOST_COUNTED: u64 = 1 << 50;

/// Identifies a probe, also after it has connected again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ProbeId {
    host: Option<IpAddr>,
    engine_id: u32,
}

impl ProbeId {
    pub(crate) fn new(address: Option<SocketAddr>, engine_id: u32) -> Self {
        let host = address.map(|address| address.ip().to_canonical());
        Self { host, engine_id }
    }

    fn name(self) -> String {
        let Self { host, engine_id } = self;
        match host {
            Some(host) => format!("probe {host} {engine_id}"),
            None => format!("probe {engine_id}"),
        }
    }
}

/// The state of a probe.
#[derive(Clone, Copy, Debug, Default)]
struct Probe {
    id: ProbeId,
    /// Sums of its earlier starts.
    before: Sums,
    /// Its counters since it last started.
    counters: EngineCounters,
    /// The counters that it reported first, if it had already reported to another collector: what
    /// it had counted until then belongs to that one.
    not_ours: Option<EngineCounters>,
    has_told: bool,
    /// What arrived since it last started.
    packets: u64,
    bytes: u64,
    /// Whether it has reported its end.
    is_ended: bool,
    heard: Heard,
}

/// A message of counters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Telling {
    pub(crate) counters: EngineCounters,
    /// Whether the probe has not reported any before.
    pub(crate) is_first: bool,
    pub(crate) is_end: bool,
    pub(crate) is_datagram: bool,
}

/// The result of a message of counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Taken,
    /// No probe can have counted that much.
    Implausible,
    /// There is no room for another probe.
    Unknown,
}

/// What a probe reports in addition to its records.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    /// Packets in records that arrived.
    packets: u64,
    bytes: u64,
    pub(crate) rejected_packets: [u64; Rejected::COUNT],
    pub(crate) rejected_bytes: [u64; Rejected::COUNT],
    /// Packets dropped by the probe's capture.
    pub(crate) source_dropped: u64,
    /// Packets in records that did not arrive here.
    pub(crate) packets_lost: u64,
    /// Microflow records that were lost before they were sent.
    pub(crate) microflows_unsent: u64,
    /// Microflow records missing in the sequence numbers.
    pub(crate) microflows_lost: u64,
    /// Those of them before the first message that arrived.
    pub(crate) microflows_before: u64,
    /// Those of them whose number of packets is unknown.
    pub(crate) microflows_unweighed: u64,
    /// Microflow records that were sent before this run listened.
    pub(crate) microflows_earlier: u64,
}

impl Sums {
    fn add(&mut self, other: &Self) {
        let Self {
            packets,
            bytes,
            rejected_packets,
            rejected_bytes,
            source_dropped,
            packets_lost,
            microflows_unsent,
            microflows_lost,
            microflows_before,
            microflows_unweighed,
            microflows_earlier,
        } = other;
        let mine = self
            .rejected_packets
            .iter_mut()
            .chain(&mut self.rejected_bytes);
        for (sum, more) in mine.zip(rejected_packets.iter().chain(rejected_bytes)) {
            *sum = sum.saturating_add(*more);
        }
        for (sum, more) in [
            (&mut self.packets, packets),
            (&mut self.bytes, bytes),
            (&mut self.source_dropped, source_dropped),
            (&mut self.packets_lost, packets_lost),
            (&mut self.microflows_unsent, microflows_unsent),
            (&mut self.microflows_lost, microflows_lost),
            (&mut self.microflows_before, microflows_before),
            (&mut self.microflows_unweighed, microflows_unweighed),
            (&mut self.microflows_earlier, microflows_earlier),
        ] {
            *sum = sum.saturating_add(*more);
        }
    }

    fn rejected(&self) -> u64 {
        self.rejected_packets.iter().sum()
    }

    /// The sum of all reported amounts that are not in records.
    fn counted(&self) -> u64 {
        let rejected = self.rejected_packets.iter().chain(&self.rejected_bytes);
        saturating_sum(rejected.chain([
            &self.source_dropped,
            &self.packets_lost,
            &self.microflows_unsent,
        ]))
    }

    fn dropped(&self) -> u64 {
        self.source_dropped.saturating_add(self.packets_lost)
    }
}

fn saturating_sum<'a>(counts: impl Iterator<Item = &'a u64>) -> u64 {
    counts.fold(0, |sum, count| sum.saturating_add(*count))
}

impl Probe {
    fn new(id: ProbeId) -> Self {
        Self {
            id,
            ..Self::default()
        }
    }

    fn state(&self, now_ns: Option<u64>, cell_ns: u64) -> PortState {
        match self.is_ended {
            true => PortState::Up,
            false => self.heard.state(now_ns, cell_ns),
        }
    }

    fn told(&self) -> Sums {
        let is_weighed = self.is_ended && self.not_ours.is_none() && !self.heard.began_earlier();
        let (counters, not_ours) = (&self.counters, self.not_ours.unwrap_or_default());
        let packets_lost = match is_weighed {
            // Everything metered that did not arrive was lost, there or on the way.
            true => counters.packets_metered.saturating_sub(self.packets),
            // Other packets may still be in its table, or at another collector.
            false => counters
                .packets_dropped
                .saturating_sub(not_ours.packets_dropped),
        };
        let ours = |now: &[u64; Rejected::COUNT], then: &[u64; Rejected::COUNT]| {
            std::array::from_fn(|at| now[at].saturating_sub(then[at]))
        };
        let mut told = self.before;
        told.add(&Sums {
            packets: self.packets,
            bytes: self.bytes,
            rejected_packets: ours(&counters.rejected_packets, &not_ours.rejected_packets),
            rejected_bytes: ours(&counters.rejected_bytes, &not_ours.rejected_bytes),
            source_dropped: counters
                .source_dropped
                .saturating_sub(not_ours.source_dropped),
            packets_lost,
            microflows_unsent: counters
                .microflows_dropped
                .saturating_sub(not_ours.microflows_dropped),
            microflows_lost: self.heard.lost,
            microflows_before: self.heard.missing_before(),
            microflows_unweighed: if is_weighed { 0 } else { self.heard.lost },
            microflows_earlier: self.heard.earlier(),
        });
        told
    }

    /// Its counters start at 0 again. What it has reported is added to the sums of earlier starts,
    /// unless the result is more than any probe can count.
    fn begin_anew(&mut self) {
        let told = self.told();
        let before = match told.counted() <= MOST_COUNTED {
            true => told,
            false => Sums {
                packets: told.packets,
                bytes: told.bytes,
                microflows_lost: told.microflows_lost,
                microflows_before: told.microflows_before,
                microflows_unweighed: told.microflows_unweighed,
                microflows_earlier: told.microflows_earlier,
                ..self.before
            },
        };
        let mut heard = self.heard;
        heard.begin_anew();
        *self = Self {
            before,
            heard,
            ..Self::new(self.id)
        };
    }
}

/// The name of a counter, what it counts, and the count.
type Named = (&'static str, &'static str, u64);

fn own_count(is_gauge: bool, (name, about, count): Named) -> OwnCount {
    OwnCount {
        name,
        about,
        is_gauge,
        count,
    }
}

/// Counters that do not decrease, except that what is late is taken back.
fn totals(told: &Sums) -> [Named; 6] {
    [
        (
            "engine_collector_probe_packets_dropped",
            "packets that the captures of probes dropped, as the probes report",
            told.source_dropped,
        ),
        (
            "engine_collector_probe_packets_lost",
            "packets of probes whose microflow records did not arrive",
            told.packets_lost,
        ),
        (
            "engine_collector_probe_microflows_unsent",
            "microflow records that probes could not send, as the probes report",
            told.microflows_unsent,
        ),
        (
            "engine_collector_probe_microflows_lost",
            "microflow records of probes that are missing in the sequence numbers",
            told.microflows_lost,
        ),
        (
            "engine_collector_probe_microflows_before",
            "those of them before the first message of a probe that arrived",
            told.microflows_before,
        ),
        (
            "engine_collector_probe_microflows_earlier",
            "microflow records that probes sent before this run listened",
            told.microflows_earlier,
        ),
    ]
}

/// All probes, in the order of their first messages.
#[derive(Debug, Default)]
pub(crate) struct Probes {
    all: Vec<Probe>,
    /// The place of each probe in `all`.
    places: HashMap<ProbeId, usize>,
}

impl Probes {
    fn find(&mut self, id: ProbeId) -> Option<&mut Probe> {
        if let Some(&place) = self.places.get(&id) {
            return self.all.get_mut(place);
        }
        if self.all.len() < MOST_PROBES {
            self.places.insert(id, self.all.len());
            self.all.push(Probe::new(id));
            return self.all.last_mut();
        }
        let place = self.place_to_continue(id)?;
        let probe = &mut self.all[place];
        probe.begin_anew();
        probe.heard = Heard::default();
        self.places.remove(&probe.id);
        self.places.insert(id, place);
        probe.id = id;
        Some(probe)
    }

    /// Each start of a probe has its own id. If there is no room, a new start continues an ended
    /// one of the same host.
    fn place_to_continue(&self, id: ProbeId) -> Option<usize> {
        let is_over = |it: &Probe| it.is_ended && it.id.host == id.host;
        self.all.iter().position(is_over)
    }

    /// Whether nothing of this probe has arrived before, and there is room for it.
    pub(crate) fn is_new(&self, id: ProbeId) -> bool {
        let has_room = || self.all.len() < MOST_PROBES || self.place_to_continue(id).is_some();
        !self.places.contains_key(&id) && has_room()
    }

    /// Whether a message is late, and before the first one of its probe that arrived.
    pub(crate) fn is_before_first(&self, id: ProbeId, sequence: u32, records: u32) -> bool {
        let place = self.places.get(&id);
        let probe = place.and_then(|&place| self.all.get(place));
        probe.is_some_and(|probe| probe.heard.is_before_first(sequence, records))
    }

    /// Notes that a message of a probe has arrived. Returns how many records are not missing any
    /// more.
    pub(crate) fn hear(&mut self, id: ProbeId, hearing: &Hearing) -> u64 {
        let probe = self.find(id);
        probe.map_or(0, |probe| probe.heard.hear(hearing))
    }

    /// Notes when a probe started. Messages are received since `since_ns`; `None` for files.
    /// Returns how many records before its first message are missing.
    pub(crate) fn decide(
        &mut self,
        id: ProbeId,
        started_ns: Option<u64>,
        since_ns: Option<u64>,
    ) -> u64 {
        let probe = self.find(id);
        probe.map_or(0, |probe| probe.heard.decide(started_ns, since_ns))
    }

    /// The connection of a sender has ended.
    pub(crate) fn disconnect(&mut self, sender: Sender) {
        let probes = self.all.iter_mut();
        probes.for_each(|probe| probe.heard.disconnect(sender));
    }

    /// Nothing more can arrive.
    pub(crate) fn disconnect_all(&mut self) {
        let probes = self.all.iter_mut();
        probes.for_each(|probe| probe.heard.end());
    }

    /// Counts the packets and bytes of records that arrived from a probe.
    pub(crate) fn arrive(&mut self, id: ProbeId, packets: u64, bytes: u64) {
        if let Some(probe) = self.find(id) {
            probe.packets += packets;
            probe.bytes += bytes;
        }
    }

    /// The sequence numbers of a probe started again.
    pub(crate) fn begin_anew(&mut self, id: ProbeId) {
        if let Some(probe) = self.find(id) {
            probe.begin_anew();
        }
    }

    /// Takes the counters that a probe reports. Over a connection nothing is late, so counters that
    /// have decreased belong to another start.
    pub(crate) fn tell(&mut self, id: ProbeId, telling: &Telling) -> Told {
        let counters = &telling.counters;
        let rejected = counters.rejected_packets.iter();
        let all = rejected.chain(&counters.rejected_bytes).chain([
            &counters.packets_received,
            &counters.packets_metered,
            &counters.source_dropped,
            &counters.packets_dropped,
            &counters.microflows_dropped,
        ]);
        if saturating_sum(all) > MOST_COUNTED {
            return Told::Implausible;
        }
        let Some(probe) = self.find(id) else {
            return Told::Unknown;
        };
        if counters.packets_received < probe.counters.packets_received {
            if telling.is_datagram {
                return Told::Taken;
            }
            probe.begin_anew();
        }
        // If it had counted nothing by then, all that it counts is ours.
        let had_told = !probe.has_told && !telling.is_first && !probe.heard.is_whole_ours();
        if had_told && *counters != EngineCounters::default() {
            probe.not_ours = Some(*counters);
        }
        probe.has_told = true;
        probe.counters = *counters;
        probe.is_ended |= telling.is_end;
        Told::Taken
    }

    /// Sums over all probes.
    pub(crate) fn told(&self) -> Sums {
        let mut sum = Sums::default();
        self.all.iter().for_each(|probe| sum.add(&probe.told()));
        sum
    }

    /// Counters in addition to the ledger. Everything that arrived before `now_ns` has been read.
    pub(crate) fn own_counts(&self, now_ns: Option<u64>, cell_ns: u64) -> Vec<OwnCount> {
        let told = self.told();
        let unended = || self.all.iter().filter(|probe| !probe.is_ended);
        let unheard = unended().filter(|probe| probe.state(now_ns, cell_ns).is_unheard());
        let gauges = [
            (
                "engine_collector_probes",
                "probes that are known",
                self.all.len() as u64,
            ),
            (
                "engine_collector_probes_unended",
                "probes that have not reported their end",
                unended().count() as u64,
            ),
            (
                "engine_collector_probes_unheard",
                "those of them that fell silent or were disconnected",
                unheard.count() as u64,
            ),
            (
                "engine_collector_probe_microflows_unweighed",
                "microflow records of probes whose number of packets is not known",
                told.microflows_unweighed,
            ),
        ];
        let gauges = gauges.map(|its| own_count(true, its));
        let totals = totals(&told).map(|its| own_count(false, its));
        gauges.into_iter().chain(totals).collect()
    }

    /// A port for each probe, after one for all other senders, which has the rest of these packets
    /// and bytes. Everything that arrived before `now_ns` has been read.
    pub(crate) fn ports(
        &self,
        others: String,
        [packets, bytes]: [u64; 2],
        now_ns: Option<u64>,
        cell_ns: u64,
    ) -> Vec<Port> {
        let told = self.told();
        let port = |name, state, delivered: u64, delivered_bytes, dropped: u64| Port {
            name,
            state,
            interface_index: None,
            counters: PortCounters {
                seen: delivered.saturating_add(dropped),
                dropped,
                delivered,
                delivered_bytes,
                ..PortCounters::default()
            },
        };
        // Records that wait for older ones have arrived, but are not in these sums.
        let their_packets = packets.saturating_sub(told.packets);
        let their_bytes = bytes.saturating_sub(told.bytes);
        let others = port(others, PortState::Up, their_packets, their_bytes, 0);
        let theirs = self.all.iter().map(|probe| {
            let told = probe.told();
            let delivered = told.packets.saturating_add(told.rejected());
            let (name, state) = (probe.id.name(), probe.state(now_ns, cell_ns));
            port(name, state, delivered, told.bytes, told.dropped())
        });
        std::iter::once(others).chain(theirs).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(counters: EngineCounters, is_end: bool, is_datagram: bool) -> Telling {
        Telling {
            counters,
            is_first: true,
            is_end,
            is_datagram,
        }
    }

    #[test]
    fn what_a_probe_claims_is_bounded_however_often_it_starts() {
        let id = ProbeId::new(None, 1);
        let mut probes = Probes::default();
        let lie = EngineCounters {
            source_dropped: u64::MAX,
            ..EngineCounters::default()
        };
        assert_eq!(
            probes.tell(id, &first(lie, false, false)),
            Told::Implausible
        );
        for packets_received in (1..2_000).rev() {
            let much = EngineCounters {
                packets_received,
                source_dropped: MOST_COUNTED / 2,
                ..EngineCounters::default()
            };
            assert_eq!(probes.tell(id, &first(much, false, false)), Told::Taken);
        }
        let dropped = probes.told().source_dropped;
        assert!((MOST_COUNTED / 2..=2 * MOST_COUNTED).contains(&dropped));
        // Probes beyond the limit change nothing.
        for engine_id in 0..2_000 {
            probes.arrive(ProbeId::new(None, engine_id), 1, 1);
        }
        assert_eq!(probes.all.len(), MOST_PROBES);
        assert_eq!(probes.told().source_dropped, dropped);
    }

    #[test]
    fn counters_that_come_late_say_nothing_and_those_of_another_start_are_added() {
        let id = ProbeId::new(None, 1);
        let counters = |packets_received, source_dropped| EngineCounters {
            packets_received,
            source_dropped,
            ..EngineCounters::default()
        };
        let mut probes = Probes::default();
        probes.tell(id, &first(counters(100, 7), false, true));
        probes.tell(id, &first(counters(90, 5), false, true));
        assert_eq!(probes.told().source_dropped, 7);
        // Over a connection nothing is late.
        probes.tell(id, &first(counters(10, 1), true, false));
        assert_eq!(probes.told().source_dropped, 8);
    }

    #[test]
    fn a_start_beyond_the_limit_goes_on_where_another_of_its_host_ended() {
        let id = |engine_id| ProbeId::new(Some(([192, 0, 2, 1], 9).into()), engine_id);
        let counters = EngineCounters {
            packets_received: 9,
            source_dropped: 1,
            ..EngineCounters::default()
        };
        let mut probes = Probes::default();
        for engine_id in 0..MOST_PROBES as u32 {
            probes.tell(id(engine_id), &first(counters, engine_id == 5, false));
        }
        let more = |probes: &mut Probes, engine_id| {
            probes.tell(id(engine_id), &first(counters, false, false))
        };
        assert!(probes.is_new(id(10_000)) && !probes.is_new(id(5)));
        assert_eq!(more(&mut probes, 10_000), Told::Taken);
        assert!(!probes.is_new(id(10_000)) && !probes.is_new(id(10_001)));
        assert_eq!(more(&mut probes, 10_001), Told::Unknown);
        assert_eq!(probes.all.len(), MOST_PROBES);
        assert_eq!(probes.told().source_dropped, MOST_PROBES as u64 + 1);
    }
}
