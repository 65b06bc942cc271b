// SPDX-License-Identifier: Apache-2.0
//! A timing wheel of two turns: which of many entries is due next, in a few nanoseconds.
//!
//! The near turn has a list for every tick, the far one a list for every near turn (Varghese and
//! Lauck, SOSP 1987). Entries of one tick come out in any order, and at a time that is never
//! before the last one's: a tick is chosen so short that it rarely holds two.

/// Lists of a turn.
const LISTS: u64 = 4_096;
/// The end of a list.
const END: u32 = u32::MAX;

/// When entries, small numbers, are due.
#[derive(Clone, Debug)]
pub(super) struct Wheel {
    /// A tick has two to this power nanoseconds.
    shift: u32,
    /// First tick of the near turn.
    base: u64,
    /// Where in the near turn the search goes on.
    cursor: u64,
    near: Box<[u32]>,
    /// A bit for each near list that is not empty.
    occupied: [u64; (LISTS / 64) as usize],
    far: Box<[u32]>,
    /// Of each entry: when it is due, and who follows in its list.
    entries: Vec<(u64, u32)>,
    now_ns: u64,
}

impl Wheel {
    /// An empty wheel whose ticks last at most `tick_ns`.
    pub(super) fn new(start_ns: u64, tick_ns: u64) -> Self {
        let shift = tick_ns.max(1).ilog2();
        Self {
            shift,
            base: (start_ns >> shift) / LISTS * LISTS,
            cursor: 0,
            near: vec![END; LISTS as usize].into(),
            occupied: [0; (LISTS / 64) as usize],
            far: vec![END; LISTS as usize].into(),
            entries: Vec::new(),
            now_ns: start_ns,
        }
    }

    /// Makes `entry` due at `due_ns`, or now if that is past. It must not be due already.
    #[inline(always)]
    pub(super) fn insert(&mut self, entry: u32, due_ns: u64) {
        if entry as usize >= self.entries.len() {
            self.entries.resize(entry as usize + 1, (0, END));
        }
        let tick = (due_ns >> self.shift).max(self.base + self.cursor);
        let list = if tick < self.base + LISTS {
            let place = tick - self.base;
            self.occupied[(place / 64) as usize] |= 1 << (place % 64);
            &mut self.near[place as usize]
        } else {
            // Beyond the far turn's end it wraps: the entry is looked at once a turn.
            &mut self.far[(tick / LISTS % LISTS) as usize]
        };
        self.entries[entry as usize] = (due_ns, *list);
        *list = entry;
    }

    /// Takes out the entry that is due next, and says when.
    ///
    /// There must be one.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> (u32, u64) {
        loop {
            if let Some(place) = self.next_occupied() {
                self.cursor = place;
                let entry = self.near[place as usize];
                let (due_ns, next) = self.entries[entry as usize];
                self.near[place as usize] = next;
                if next == END {
                    self.occupied[(place / 64) as usize] &= !(1 << (place % 64));
                }
                self.now_ns = self.now_ns.max(due_ns);
                return (entry, self.now_ns);
            }
            self.turn();
        }
    }

    #[inline(always)]
    fn next_occupied(&self) -> Option<u64> {
        let mut word = self.cursor / 64;
        let mut bits = self.occupied[word as usize] & (u64::MAX << (self.cursor % 64));
        while bits == 0 {
            word += 1;
            bits = *self.occupied.get(word as usize)?;
        }
        Some(word * 64 + u64::from(bits.trailing_zeros()))
    }

    /// Goes on to the next near turn.
    #[cold]
    fn turn(&mut self) {
        self.base += LISTS;
        self.cursor = 0;
        let list = (self.base / LISTS % LISTS) as usize;
        let mut entry = std::mem::replace(&mut self.far[list], END);
        while entry != END {
            let (due_ns, next) = self.entries[entry as usize];
            self.insert(entry, due_ns);
            entry = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn entries_come_out_when_they_are_due() {
        let tick_ns = 64;
        let mut wheel = Wheel::new(1_000_000, tick_ns);
        let mut random = Random::new(3);
        let mut due_ns = vec![0; 1_000];
        // Some beyond the far turn, which spans 2^30 ns here.
        let spans = [1, 100, 100_000, 1 << 29, 1 << 32];
        for (entry, due_ns) in due_ns.iter_mut().enumerate() {
            *due_ns = 1_000_000 + random.below(spans[entry % spans.len()]);
            wheel.insert(entry as u32, *due_ns);
        }
        let mut last_ns = 0;
        for _ in 0..20_000 {
            let (entry, now_ns) = wheel.pop();
            assert!(now_ns >= last_ns);
            assert!(now_ns >= due_ns[entry as usize]);
            assert!(now_ns < due_ns[entry as usize] + tick_ns);
            last_ns = now_ns;
            due_ns[entry as usize] = now_ns + random.below(spans[entry as usize % spans.len()]);
            wheel.insert(entry, due_ns[entry as usize]);
        }
    }
}
