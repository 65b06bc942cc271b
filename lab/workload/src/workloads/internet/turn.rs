// SPDX-License-Identifier: Apache-2.0
//! The packets of a short time, written flow by flow and read in order of time.
//!
//! A turn has [`TICKS`] ticks, so short that one rarely holds two packets. Packets of a tick come
//! out as they were written, at a time that is never before the last one's: those of a flow stay
//! in order.

/// Two to this power ticks make a turn.
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
    /// Whether the flow was born with it.
    pub(super) is_birth: bool,
    /// Whether it is the first one that was sent of the flow: of one met on its way too.
    pub(super) is_first: bool,
    /// Whether it is the last packet of the flow.
    pub(super) is_last: bool,
}

/// Written and copied for every packet.
const _: () = assert!(size_of::<Sent>() == 24);

/// What comes next in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    Sent(Sent),
    /// A packet that comes later than was asked for; it stays.
    Later,
    /// All packets were read.
    All,
}

/// The packets of a turn.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    /// A tick has two to this power nanoseconds.
    tick_shift: u32,
    written: Vec<Sent>,
    /// How many packets each tick has; while they are put in order, where its next one goes.
    ticks: Box<[u32; TICKS]>,
    ordered: Vec<Sent>,
    /// How many of them were read.
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

    /// Adds a packet to those that are put in order next; all of them are of one turn.
    #[inline(always)]
    pub(super) fn write(&mut self, sent: Sent) {
        self.ticks[(sent.at_ns >> self.tick_shift) as usize % TICKS] += 1;
        self.written.push(sent);
    }

    /// Puts what was written in order, to be read instead of what was there.
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

    /// The packet that comes next, if it comes before `end_ns`.
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
    fn packets_are_read_in_order_of_time_and_those_of_a_flow_as_they_were_written() {
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
                    "never earlier than it was sent"
                );
                assert!(of_flow[0].at_ns - pair[0].at_ns < 1 << TICK_SHIFT);
                assert!(of_flow[1].at_ns == pair[1].at_ns);
            }
        }
    }

    #[test]
    fn a_turn_without_packets_has_none_of_the_last_one() {
        let mut turn = Turn::new(TICK_SHIFT);
        turn.write(sent(1, 100));
        turn.order();
        turn.order();
        assert_eq!(turn.read(u64::MAX), Read::All);
    }
}
