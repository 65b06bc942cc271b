// SPDX-License-Identifier: Apache-2.0
//! The packets of a short time, generated flow by flow and read in order of time.
//!
//! A turn has [`TICKS`] ticks, so short that few hold two packets. Packets within a tick keep the
//! order in which they were written, and each time is raised to at least the preceding one. So the
//! packets of a flow stay in order.

/// A turn has 2^`TICKS_SHIFT` ticks.
pub(super) const TICKS_SHIFT: u32 = 10;
const TICKS: usize = 1 << TICKS_SHIFT;

/// A packet of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) at_ns: u64,
    /// Number of the flow.
    pub(super) flow: u64,
    pub(super) ip_length_bytes: u16,
    pub(super) tcp_flags: u16,
    pub(super) is_udp: bool,
    /// Whether it is the flow's first packet.
    pub(super) is_birth: bool,
    /// Whether it is the first packet sent of the flow, which may have been active at the start.
    pub(super) is_first: bool,
    /// Whether it is the last packet of the flow.
    pub(super) is_last: bool,
}

/// One is written and copied per packet.
const _: () = assert!(size_of::<Sent>() == 24);

/// The outcome of reading a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    Sent(Sent),
    /// The next packet is later than requested; it stays in the turn.
    Later,
    /// All packets have been read.
    All,
}

/// The packets of a turn.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    /// A tick has 2^`tick_shift` nanoseconds.
    tick_shift: u32,
    written: Vec<Sent>,
    /// Packets per tick. While sorting, the position of the tick's next packet.
    ticks: Box<[u32; TICKS]>,
    ordered: Vec<Sent>,
    /// Number of packets read.
    read: usize,
    now_ns: u64,
}

impl Turn {
    /// A turn without packets.
    pub(super) fn new(tick_shift: u32) -> Self {
        Self {
            tick_shift,
            written: Vec::new(),
            ticks: Box::new([0; TICKS]),
            ordered: Vec::new(),
            read: 0,
            now_ns: 0,
        }
    }

    /// Adds a packet to be sorted next. All packets must be of one turn.
    #[inline(always)]
    pub(super) fn write(&mut self, sent: Sent) {
        self.ticks[(sent.at_ns >> self.tick_shift) as usize % TICKS] += 1;
        self.written.push(sent);
    }

    /// Sorts the written packets, which replace the previous ones.
    pub(super) fn order(&mut self) {
        let mut place = 0;
        for tick in &mut *self.ticks {
            place += std::mem::replace(tick, place);
        }
        if let Some(&any) = self.written.first() {
            self.ordered.resize(self.written.len(), any);
        }
        self.ordered.truncate(self.written.len());
        for sent in self.written.drain(..) {
            let place = &mut self.ticks[(sent.at_ns >> self.tick_shift) as usize % TICKS];
            self.ordered[*place as usize] = sent;
            *place += 1;
        }
        self.ticks.fill(0);
        self.read = 0;
    }

    /// The next packet, if it is before `end_ns`.
    #[inline(always)]
    pub(super) fn read(&mut self, end_ns: u64) -> Read {
        let Some(&sent) = self.ordered.get(self.read) else {
            return Read::All;
        };
        let at_ns = self.now_ns.max(sent.at_ns);
        if at_ns >= end_ns {
            return Read::Later;
        }
        self.read += 1;
        self.now_ns = at_ns;
        Read::Sent(Sent { at_ns, ..sent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const TICK_SHIFT: u32 = 6;

    fn sent(flow: u64, at_ns: u64) -> Sent {
        Sent {
            at_ns,
            flow,
            ip_length_bytes: 40,
            tcp_flags: 0,
            is_udp: true,
            is_birth: false,
            is_first: false,
            is_last: false,
        }
    }

    fn read_until(turn: &mut Turn, end_ns: u64) -> Vec<Sent> {
        let sent = || match turn.read(end_ns) {
            Read::Sent(sent) => Some(sent),
            Read::Later | Read::All => None,
        };
        std::iter::from_fn(sent).collect()
    }

    #[test]
    fn packets_are_read_by_time_and_keep_their_order_within_a_flow() {
        let mut turn = Turn::new(TICK_SHIFT);
        let mut random = Random::new(5);
        let mut last_ns = 0;
        for number in 7..10 {
            let begin_ns = number << (TICK_SHIFT + TICKS_SHIFT);
            let mut written = Vec::new();
            for flow in 0..300 {
                let at_ns = begin_ns + random.below(1 << (TICK_SHIFT + TICKS_SHIFT));
                let within_a_tick_ns = at_ns | ((1 << TICK_SHIFT) - 1);
                written.extend([sent(flow, at_ns), sent(flow, within_a_tick_ns)]);
            }
            written.iter().for_each(|&sent| turn.write(sent));
            turn.order();
            let middle_ns = begin_ns + (1 << (TICK_SHIFT + TICKS_SHIFT - 1));
            let mut read = read_until(&mut turn, middle_ns);
            assert!(read.iter().all(|sent| sent.at_ns < middle_ns));
            assert_eq!(turn.read(middle_ns), Read::Later);
            read.extend(read_until(&mut turn, u64::MAX));
            assert_eq!(read.len(), written.len());
            for sent in &read {
                assert!(sent.at_ns >= last_ns, "{sent:?} after {last_ns}");
                last_ns = sent.at_ns;
            }
            for pair in written.chunks(2) {
                let of_flow: Vec<_> = read.iter().filter(|r| r.flow == pair[0].flow).collect();
                assert!(
                    of_flow[0].at_ns >= pair[0].at_ns,
                    "no packet is read before its time"
                );
                assert!(of_flow[0].at_ns - pair[0].at_ns < 1 << TICK_SHIFT);
                assert!(of_flow[1].at_ns == pair[1].at_ns);
            }
        }
    }

    #[test]
    fn an_empty_turn_drops_the_packets_before_it() {
        let mut turn = Turn::new(TICK_SHIFT);
        turn.write(sent(1, 100));
        turn.order();
        turn.order();
        assert_eq!(turn.read(u64::MAX), Read::All);
    }
}
