// SPDX-License-Identifier: Apache-2.0
//! A hierarchy of timing wheels (Varghese and Lauck, SOSP 1987): which of many entries are due in
//! the turn that comes.
//!
//! The lowest wheel has a list for each of the next turns, every other one a list for each round
//! of the wheel below. An entry waits in the lowest wheel whose round it shares with the turn that
//! comes, and goes down when its list's time begins. Most wait for a few turns only, so that few
//! lists are written to: their ends stay in the first-level cache, their pages in the TLB.

/// Two to this power lists make a wheel.
const LISTS_SHIFT: u32 = 6;
const LISTS: usize = 1 << LISTS_SHIFT;

/// An entry, a small number, and when it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) at_ns: u64,
    pub(super) entry: u32,
}

/// When entries are due.
#[derive(Clone, Debug)]
pub(super) struct Wheels {
    /// A turn has two to this power nanoseconds.
    turn_shift: u32,
    /// The turn that comes.
    next_turn: u64,
    /// Of the lowest wheel first, then of those above, which reach to the end of time.
    lists: Box<[Vec<Due>]>,
}

impl Wheels {
    /// Empty wheels whose first turn is that of `start_ns`.
    pub(super) fn new(start_ns: u64, turn_shift: u32) -> Self {
        let wheels = (u64::BITS - turn_shift).div_ceil(LISTS_SHIFT) as usize;
        Self {
            turn_shift,
            next_turn: start_ns >> turn_shift,
            lists: vec![Vec::new(); wheels * LISTS].into(),
        }
    }

    /// When the turn that comes begins; after the last one of all times, `u64::MAX`.
    pub(super) const fn next_ns(&self) -> u64 {
        match self.next_turn >> (u64::BITS - self.turn_shift) {
            0 => self.next_turn << self.turn_shift,
            _ => u64::MAX,
        }
    }

    /// Makes an entry due, not before the turn that comes.
    #[inline(always)]
    pub(super) fn insert(&mut self, due: Due) {
        let turn = due.at_ns >> self.turn_shift;
        debug_assert!(turn >= self.next_turn, "that turn is over");
        // The highest bit that differs is in the number of the list.
        let wheel = ((turn ^ self.next_turn) | 1).ilog2() / LISTS_SHIFT;
        self.lists[place(wheel, turn)].push(due);
    }

    /// Goes on to the next turn: puts what is due in it into `due`, whose content is lost, in any
    /// order, and returns its number: its times, shifted.
    pub(super) fn turn(&mut self, due: &mut Vec<Due>) -> u64 {
        let turn = self.next_turn;
        // From the highest wheel whose list's time begins now, for its entries go down step by step.
        let begins = (turn.trailing_zeros() / LISTS_SHIFT) as usize;
        for wheel in (1..=begins.min(self.lists.len() / LISTS - 1)).rev() {
            self.send_down(place(wheel as u32, turn));
        }
        due.clear();
        std::mem::swap(due, &mut self.lists[place(0, turn)]);
        self.next_turn += 1;
        turn
    }

    fn send_down(&mut self, list: usize) {
        let mut entries = std::mem::take(&mut self.lists[list]);
        for due in entries.drain(..) {
            self.insert(due);
        }
        self.lists[list] = entries;
    }
}

/// Which list of a wheel a turn is in.
#[inline(always)]
const fn place(wheel: u32, turn: u64) -> usize {
    wheel as usize * LISTS + (turn >> (wheel * LISTS_SHIFT)) as usize % LISTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn entries_come_out_in_their_turn() {
        const START_NS: u64 = 1_000_000;
        const TURN_SHIFT: u32 = 16;
        let mut wheel = Wheels::new(START_NS, TURN_SHIFT);
        let mut random = Random::new(3);
        // The lowest wheel's round takes 2^22 ns here, that of the next one 2^28 ns.
        let spans = [1, 100, 100_000, 1 << 25, 1 << 29];
        let mut waiting: Vec<_> = (0..1_000)
            .map(|entry| Due {
                at_ns: START_NS + random.below(spans[entry as usize % spans.len()]),
                entry,
            })
            .collect();
        for &due in &waiting {
            wheel.insert(due);
        }
        let mut due = Vec::new();
        for expected in START_NS >> TURN_SHIFT..(START_NS + (1 << 30)) >> TURN_SHIFT {
            let turn = wheel.turn(&mut due);
            assert_eq!(turn, expected);
            due.sort_by_key(|due| due.entry);
            let now: Vec<_> = waiting
                .extract_if(.., |due| due.at_ns >> TURN_SHIFT == turn)
                .collect();
            assert_eq!(due, now);
            for Due { entry, .. } in due.drain(..) {
                let wait_ns = random.below(spans[entry as usize % spans.len()]);
                let at_ns = ((turn + 1) << TURN_SHIFT) + wait_ns;
                let again = Due { at_ns, entry };
                wheel.insert(again);
                waiting.push(again);
            }
            waiting.sort_by_key(|due| due.entry);
        }
    }
}
