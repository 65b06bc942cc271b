// SPDX-License-Identifier: Apache-2.0
//! A hierarchy of timing wheels (Varghese and Lauck, SOSP 1987): finds the entries that are due in
//! the next turn.
//!
//! The lowest wheel has one list per turn. Each higher wheel has one list per round of the wheel
//! below it. An entry is in the lowest wheel whose current round includes its turn, and moves down
//! when the time of its list begins. Most entries wait for a few turns only, so few lists are
//! written to. Their ends stay in L1, and their pages in the TLB.

/// A wheel has 2^`LISTS_SHIFT` lists.
const LISTS_SHIFT: u32 = 6;
const LISTS: usize = 1 << LISTS_SHIFT;

/// An entry and its due time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) at_ns: u64,
    pub(super) entry: u32,
}

/// Entries by due time.
#[derive(Clone, Debug)]
pub(super) struct Wheels {
    /// A turn has 2^`turn_shift` nanoseconds.
    turn_shift: u32,
    /// Number of the next turn.
    next_turn: u64,
    /// The lists of all wheels, lowest wheel first. The highest wheel covers all 64-bit times.
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

    /// Start of the next turn; `u64::MAX` after the last turn of the clock.
    pub(super) const fn next_ns(&self) -> u64 {
        match self.next_turn >> (u64::BITS - self.turn_shift) {
            0 => self.next_turn << self.turn_shift,
            _ => u64::MAX,
        }
    }

    /// Adds an entry, which must not be due before the next turn.
    #[inline(always)]
    pub(super) fn insert(&mut self, due: Due) {
        let turn = due.at_ns >> self.turn_shift;
        debug_assert!(turn >= self.next_turn, "the turn of the entry is not over");
        // The highest differing bit determines the wheel.
        let wheel = ((turn ^ self.next_turn) | 1).ilog2() / LISTS_SHIFT;
        self.lists[place(wheel, turn)].push(due);
    }

    /// Advances to the next turn. Replaces the content of `due` by the entries of that turn, in any
    /// order. Returns the number of the turn, which is their time shifted right.
    pub(super) fn turn(&mut self, due: &mut Vec<Due>) -> u64 {
        let turn = self.next_turn;
        // Starts with the highest wheel whose list begins now, because its entries move down step
        // by step.
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

/// Index of the list for a turn in a wheel.
#[inline(always)]
const fn place(wheel: u32, turn: u64) -> usize {
    wheel as usize * LISTS + (turn >> (wheel * LISTS_SHIFT)) as usize % LISTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn entries_are_due_in_their_turn() {
        const START_NS: u64 = 1_000_000;
        const TURN_SHIFT: u32 = 16;
        let mut wheel = Wheels::new(START_NS, TURN_SHIFT);
        let mut random = Random::new(3);
        // Here a round of the lowest wheel takes 2^22 ns, and one of the next wheel 2^28 ns.
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
