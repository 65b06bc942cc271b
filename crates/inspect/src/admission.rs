// SPDX-License-Identifier: Apache-2.0
//! Decides which packets are inspected: the meter's side of the limits.

use std::collections::VecDeque;

use turboflow_record::{Packet, TCP_ACK, TCP_FIN, TCP_RST, TCP_SYN};

use crate::config::{InspectConfig, PacketLimits};
use crate::flow_table::{FlowTable, Found, Spot};
use crate::message::InspectionId;
use crate::{Confidence, FlowKey, Progress};

/// If there are too many inspections, one in this many is dropped.
const DROPPED_PART: usize = 64;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// What the meter knows about the inspection of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Admission {
    number: u64,
    since_ns: u64,
    packets: u8,
    phase: Phase,
    is_named: bool,
    /// Whether a FIN or RST was seen.
    has_ended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// More packets are to be inspected.
    Open,
    /// The last packet was sent, but the answer has not arrived.
    Closing,
    /// The inspection is over.
    Done,
}

const EMPTY: Admission = Admission {
    number: 0,
    since_ns: 0,
    packets: 0,
    phase: Phase::Done,
    is_named: false,
    has_ended: false,
};

/// Bytes of a table for that many flows.
pub(crate) fn memory_bytes(places: usize) -> usize {
    FlowTable::<Admission>::memory_bytes(places)
}

/// How many inspections began, and how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) opened: u64,
    pub(crate) decided: u64,
    pub(crate) gave_up: u64,
    pub(crate) dropped: u64,
}

/// What to do with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// Do not inspect it.
    No,
    /// Inspect it.
    Yes(Wanted),
    /// Inspect it, but another inspection has to be dropped first.
    Pressed,
}

/// A packet that is to be inspected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) id: InspectionId,
    pub(crate) is_reversed: bool,
    pub(crate) is_last: bool,
}

/// The flows that are or were under inspection.
pub(crate) struct Admissions {
    table: FlowTable<Admission>,
    limits: PacketLimits,
    idle_ns: u64,
    max_open: usize,
    /// Inspections in the order in which they began. Some may have ended.
    order: VecDeque<InspectionId>,
    open: usize,
    next_number: u64,
    /// Inspections that the process should end.
    pub(crate) to_close: Vec<InspectionId>,
    /// Flows whose stored verdict belongs to an earlier flow with the same key.
    pub(crate) to_forget: Vec<FlowKey>,
    /// Flows whose inspection has ended, if the caller asked for them.
    ended: Option<Vec<(FlowKey, bool)>>,
    pub(crate) ends: Ends,
}

impl Admissions {
    pub(crate) fn new(config: &InspectConfig) -> Self {
        Self {
            table: FlowTable::new(config.remembered_flows(), config.seed, EMPTY),
            limits: config.packets,
            idle_ns: config.idle_ns,
            max_open: config.max_flows.max(1),
            order: VecDeque::new(),
            open: 0,
            next_number: 1,
            to_close: Vec::new(),
            to_forget: Vec::new(),
            ended: config.tells_ends.then(Vec::new),
            ends: Ends::default(),
        }
    }

    /// Whether the inspection of a flow is over, so that no more packets are needed. `None` if the
    /// flow is not known.
    pub(crate) fn is_over(&self, key: &FlowKey) -> Option<bool> {
        let spot = self.table.find(key)?;
        Some(self.table.get(spot).phase == Phase::Done)
    }

    /// The flows whose inspection has ended since the last call, each with whether the payload
    /// revealed its application. A new inspection of the flow may have begun since.
    pub(crate) fn take_ended(&mut self) -> Vec<(FlowKey, bool)> {
        self.ended.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn tell_end(&mut self, spot: Spot) {
        if let Some(ended) = &mut self.ended {
            ended.push((*self.table.key(spot), self.table.get(spot).is_named));
        }
    }

    /// The number of the next inspection.
    pub(crate) const fn next_number(&self) -> u64 {
        self.next_number
    }

    /// Decides whether to inspect a packet. `has_content` is only called if the packet would be
    /// inspected: a later fragment has nothing to inspect. Without `may_press`, no other inspection
    /// is dropped for this one.
    #[inline]
    pub(crate) fn want(
        &mut self,
        packet: &Packet,
        may_press: bool,
        has_content: impl FnOnce() -> bool,
    ) -> Want {
        let (key, is_reversed) = FlowKey::of(&packet.tuple);
        let now_ns = packet.timestamp_ns;
        let Some(spot) = self.table.find(&key) else {
            return match has_content() {
                true => self.begin(&key, packet, is_reversed, may_press),
                false => Want::No,
            };
        };
        let silent_ns = now_ns.saturating_sub(self.table.seen_ns(spot));
        let admission = self.table.get_mut(spot);
        if begins_anew(admission, packet, silent_ns > self.idle_ns) {
            return match has_content() {
                true => self.begin_anew(spot, packet, is_reversed),
                false => Want::No,
            };
        }
        admission.has_ended |= is_end(packet);
        let is_wanted = admission.phase == Phase::Open && has_content();
        self.table.touch(spot, now_ns);
        match is_wanted {
            true => Want::Yes(self.count(spot, is_reversed)),
            false => Want::No,
        }
    }

    /// Handles the first packet of a flow.
    fn begin(
        &mut self,
        key: &FlowKey,
        packet: &Packet,
        is_reversed: bool,
        may_press: bool,
    ) -> Want {
        let now_ns = packet.timestamp_ns;
        let leaves = self.table.leaves_for(key);
        let presses = leaves.is_some_and(|value| value.phase != Phase::Done);
        if !may_press && (presses || self.open >= self.max_open) {
            return Want::Pressed;
        }
        if self.ended.is_some()
            && let Some(leaves) = self.table.spot_that_leaves_for(key)
        {
            self.tell_end(leaves);
        }
        let Found::New(spot, left) = self.table.find_or_insert(key, now_ns, EMPTY) else {
            return Want::No;
        };
        if let Some(left) = left {
            let number = left.number;
            self.end_of(
                &left,
                InspectionId {
                    spot: spot.0,
                    number,
                },
            );
        }
        self.open(spot, now_ns, is_end(packet));
        Want::Yes(self.count(spot, is_reversed))
    }

    /// Handles the first packet of a flow whose key belonged to an earlier flow.
    fn begin_anew(&mut self, spot: Spot, packet: &Packet, is_reversed: bool) -> Want {
        self.end_with_flow(spot);
        // Without connections, a flow that was merely silent may be the same flow.
        if packet.tuple.protocol() == TCP {
            self.to_forget.push(*self.table.key(spot));
        }
        self.table.touch(spot, packet.timestamp_ns);
        self.open(spot, packet.timestamp_ns, is_end(packet));
        Want::Yes(self.count(spot, is_reversed))
    }

    /// Counts a packet that is inspected.
    fn count(&mut self, spot: Spot, is_reversed: bool) -> Wanted {
        let limit = match self.table.key(spot).protocol() {
            TCP => self.limits.tcp,
            UDP => self.limits.udp,
            _ => self.limits.other,
        };
        let admission = self.table.get_mut(spot);
        admission.packets = admission.packets.saturating_add(1);
        let is_last = admission.packets >= limit;
        if is_last {
            admission.phase = Phase::Closing;
        }
        Wanted {
            id: InspectionId {
                spot: spot.0,
                number: admission.number,
            },
            is_reversed,
            is_last,
        }
    }

    fn open(&mut self, spot: Spot, since_ns: u64, has_ended: bool) {
        let number = self.next_number;
        self.next_number += 1;
        *self.table.get_mut(spot) = Admission {
            number,
            since_ns,
            phase: Phase::Open,
            has_ended,
            ..EMPTY
        };
        self.ends.opened += 1;
        self.open += 1;
        self.order.push_back(InspectionId {
            spot: spot.0,
            number,
        });
        if self.open > self.max_open {
            // Drops several at once, so that a flood does not cause a drop for each new flow.
            let kept = self.max_open - self.max_open / DROPPED_PART;
            while self.open > kept && self.drop_oldest() {}
        }
        // Inspections that are over leave `order` when they are the oldest. They must not pile up
        // behind an inspection that stays open.
        if self.order.len() > 2 * self.max_open {
            let table = &self.table;
            self.order.retain(|id| is_open(table, *id));
        }
    }

    /// Drops the oldest open inspection. Returns false if there is none.
    fn drop_oldest(&mut self) -> bool {
        while let Some(id) = self.order.pop_front() {
            if is_open(&self.table, id) {
                self.leave(Spot(id.spot));
                return true;
            }
        }
        false
    }

    /// The flow at a spot is over: ends its inspection with what is known, if it is still open.
    fn end_with_flow(&mut self, spot: Spot) {
        let Admission { number, phase, .. } = *self.table.get(spot);
        if phase != Phase::Done {
            self.to_close.push(InspectionId {
                spot: spot.0,
                number,
            });
            self.finish(spot);
        }
    }

    /// Drops the open inspection at a spot.
    fn leave(&mut self, spot: Spot) {
        let admission = *self.table.get(spot);
        self.tell_end(spot);
        self.table.get_mut(spot).phase = Phase::Done;
        let number = admission.number;
        self.end_of(
            &admission,
            InspectionId {
                spot: spot.0,
                number,
            },
        );
    }

    fn end_of(&mut self, admission: &Admission, id: InspectionId) {
        if admission.phase != Phase::Done {
            self.open -= 1;
            self.ends.dropped += 1;
            self.to_close.push(id);
        }
    }

    /// The flow of an answer and the start of its inspection, if the answer is about the flow's
    /// current inspection.
    pub(crate) fn flow_of(&self, id: InspectionId) -> Option<(&FlowKey, u64)> {
        let spot = self.table.spot(id.spot)?;
        let admission = self.table.get(spot);
        (admission.number == id.number).then(|| (self.table.key(spot), admission.since_ns))
    }

    /// Takes note of a verdict from the process.
    pub(crate) fn told(&mut self, id: InspectionId, progress: Progress, confidence: Confidence) {
        let Some(spot) = self.table.spot(id.spot) else {
            return;
        };
        let admission = self.table.get_mut(spot);
        if admission.number != id.number || admission.phase == Phase::Done {
            return;
        }
        admission.is_named |= confidence > Confidence::Address;
        if progress == Progress::Complete {
            self.finish(spot);
        }
    }

    fn finish(&mut self, spot: Spot) {
        self.tell_end(spot);
        let admission = self.table.get_mut(spot);
        admission.phase = Phase::Done;
        self.open -= 1;
        match admission.is_named {
            true => self.ends.decided += 1,
            false => self.ends.gave_up += 1,
        }
    }

    /// The last packet of an inspection did not reach the process, so the inspection ends with what
    /// is known.
    pub(crate) fn give_up(&mut self, id: InspectionId) {
        if is_open(&self.table, id) {
            self.to_close.push(id);
            self.finish(Spot(id.spot));
        }
    }

    /// The process has dropped an inspection.
    pub(crate) fn dropped(&mut self, id: InspectionId) {
        if is_open(&self.table, id) {
            self.tell_end(Spot(id.spot));
            self.table.get_mut(Spot(id.spot)).phase = Phase::Done;
            self.open -= 1;
            self.ends.dropped += 1;
        }
    }

    /// Ends all inspections. With `closing_alone`, ends only those whose last packet was sent,
    /// because the process that had it is gone.
    pub(crate) fn end_all(&mut self, closing_alone: bool) {
        let order = std::mem::take(&mut self.order);
        for id in order {
            if !is_open(&self.table, id) {
                continue;
            }
            let spot = Spot(id.spot);
            if closing_alone && self.table.get(spot).phase != Phase::Closing {
                self.order.push_back(id);
            } else {
                self.finish(spot);
            }
        }
    }

    /// Open inspections, oldest first.
    pub(crate) fn open_ids(&self) -> impl Iterator<Item = InspectionId> + use<'_> {
        let table = &self.table;
        self.order.iter().copied().filter(|id| is_open(table, *id))
    }
}

/// Whether an inspection is open.
fn is_open(table: &FlowTable<Admission>, id: InspectionId) -> bool {
    table.spot(id.spot).is_some_and(|spot| {
        let admission = table.get(spot);
        admission.number == id.number && admission.phase != Phase::Done
    })
}

fn is_end(packet: &Packet) -> bool {
    packet.tcp_flags & (TCP_FIN | TCP_RST) != 0
}

/// Whether a packet begins a new flow with the same key. For TCP: a SYN after the end of a
/// connection or after a silence. For other protocols: any packet after a silence.
fn begins_anew(admission: &Admission, packet: &Packet, was_silent: bool) -> bool {
    if packet.tuple.protocol() != TCP {
        return was_silent;
    }
    packet.tcp_flags & (TCP_SYN | TCP_ACK) == TCP_SYN && (admission.has_ended || was_silent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;
    use turboflow_record::FiveTuple;

    fn packet(port: u16, protocol: u8, tcp_flags: u16, time_s: u64) -> Packet {
        let [a, b] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
        Packet {
            tuple: FiveTuple::new(a, b, port, 443, protocol),
            timestamp_ns: time_s * 1_000_000_000,
            ip_length_bytes: 40,
            frame_length_bytes: 54,
            tcp_flags,
            ttl: 64,
            tos: 0,
            is_echo_reply: false,
        }
    }

    fn admissions(max_flows: usize) -> Admissions {
        Admissions::new(&InspectConfig {
            max_flows,
            packets: PacketLimits {
                tcp: 3,
                udp: 2,
                other: 1,
            },
            ..InspectConfig::default()
        })
    }

    /// The number of the inspection to which a packet belongs, and whether it is the last packet.
    fn number(admissions: &mut Admissions, packet: &Packet) -> Option<(u64, bool)> {
        match admissions.want(packet, true, || true) {
            Want::Yes(wanted) => Some((wanted.id.number, wanted.is_last)),
            Want::No | Want::Pressed => None,
        }
    }

    #[test]
    fn packets_are_wanted_up_to_the_limit_of_their_protocol() {
        let mut admissions = admissions(100);
        for (protocol, limit) in [(TCP, 3), (UDP, 2), (47, 1)] {
            let wanted: Vec<bool> = (0..5)
                .filter_map(|_| number(&mut admissions, &packet(1, protocol, 0, 0)))
                .map(|(_, is_last)| is_last)
                .collect();
            let mut expected = vec![false; limit];
            expected[limit - 1] = true;
            assert_eq!(wanted, expected);
        }
        assert_eq!(admissions.ends.opened, 3);
    }

    #[test]
    fn a_packet_without_content_begins_nothing() {
        let mut admissions = admissions(100);
        let want = admissions.want(&packet(1, UDP, 0, 0), true, || false);
        assert_eq!((want, admissions.ends.opened), (Want::No, 0));
    }

    #[test]
    fn a_syn_behind_the_end_and_a_packet_behind_a_silence_begin_anew() {
        let mut admissions = admissions(100);
        let syn = |time| packet(1, TCP, TCP_SYN, time);
        assert_eq!(number(&mut admissions, &syn(0)), Some((1, false)));
        // A retransmitted SYN.
        assert_eq!(number(&mut admissions, &syn(1)), Some((1, false)));
        assert_eq!(
            number(&mut admissions, &packet(1, TCP, TCP_FIN, 2)),
            Some((1, true))
        );
        assert_eq!(number(&mut admissions, &syn(3)), Some((2, false)));
        assert_eq!(admissions.to_forget.len(), 1);
        // A connection may be silent for long; with other protocols, the flow is then a new one.
        assert_eq!(
            number(&mut admissions, &packet(1, TCP, 0, 500)),
            Some((2, false))
        );
        assert_eq!(number(&mut admissions, &syn(900)), Some((3, false)));
        assert_eq!(
            number(&mut admissions, &packet(2, UDP, 0, 900)),
            Some((4, false))
        );
        assert_eq!(
            number(&mut admissions, &packet(2, UDP, 0, 1000)),
            Some((5, false))
        );
        assert_eq!(admissions.to_forget.len(), 2);
        // Each inspection ended with its flow, about which nothing was known.
        let ends = admissions.ends;
        assert_eq!((ends.gave_up, ends.dropped), (3, 0));
        assert_eq!(admissions.to_close.len(), 3);
    }

    #[test]
    fn the_oldest_leave_and_are_counted() {
        let mut admissions = admissions(4);
        for port in 1..=4 {
            number(&mut admissions, &packet(port, UDP, 0, 0));
        }
        let fifth = packet(5, UDP, 0, 0);
        assert_eq!(admissions.want(&fifth, false, || true), Want::Pressed);
        assert!(number(&mut admissions, &fifth).is_some());
        let closed: Vec<u64> = admissions.to_close.iter().map(|id| id.number).collect();
        assert_eq!((closed, admissions.ends.dropped), (vec![1], 1));
        // What the process had sent is known; no further packet of the flow is wanted.
        assert_eq!(number(&mut admissions, &packet(1, UDP, 0, 0)), None);
        admissions.end_all(false);
        let ends = admissions.ends;
        assert_eq!(ends.opened, ends.dropped + ends.decided + ends.gave_up);
    }

    #[test]
    fn answers_of_another_inspection_change_nothing() {
        let mut admissions = admissions(4);
        let Want::Yes(wanted) = admissions.want(&packet(1, UDP, 0, 0), true, || true) else {
            panic!("it is the first");
        };
        let stale = InspectionId {
            number: 77,
            ..wanted.id
        };
        let beyond = InspectionId {
            spot: u32::MAX,
            ..wanted.id
        };
        for id in [stale, beyond] {
            admissions.told(id, Progress::Complete, Confidence::Payload);
            admissions.dropped(id);
            assert_eq!(admissions.flow_of(id), None);
        }
        assert_eq!(admissions.open_ids().count(), 1);
        admissions.told(wanted.id, Progress::Complete, Confidence::Payload);
        admissions.told(wanted.id, Progress::Complete, Confidence::Payload);
        assert_eq!((admissions.ends.decided, admissions.open), (1, 0));
    }
}
