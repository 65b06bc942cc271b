// SPDX-License-Identifier: Apache-2.0
//! A timing wheel of two turns: which of many entries is due next, in a few nanoseconds.
//!
//! The near turn has a list for every tick, the far one a list for every near turn (Varghese and
//! Lauck, SOSP 1987). Entries of one tick come out in any order, and at a time that is never
//! before the last one's: a tick is chosen so short that it rarely holds two.
//!
//! Most entries wait in the far turn, in lists that are written and read from end to end; the few
//! of the near turn stay in the first-level cache.

/// Lists of a turn.
const LISTS: u64 = 1_024;
/// The end of a list.
const END: u32 = u32::MAX;

/// An entry, a small number, and when it is due.
#[derive(Clone, Copy, Debug)]
struct Due {
    at_ns: u64,
    entry: u32,
}

/// A place in the near turn.
#[derive(Clone, Copy, Debug)]
struct Node {
    due: Due,
    /// Who follows in the list, or among the free.
    next: u32,
}

/// When entries are due.
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
    nodes: Vec<Node>,
    free: u32,
    far: Box<[Vec<Due>]>,
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
            nodes: Vec::new(),
            free: END,
            far: vec![Vec::new(); LISTS as usize].into(),
            now_ns: start_ns,
        }
    }

    /// Makes `entry` due at `at_ns`, or now if that is past.
    #[inline(always)]
    pub(super) fn insert(&mut self, entry: u32, at_ns: u64) {
        let due = Due { at_ns, entry };
        let tick = (at_ns >> self.shift).max(self.base + self.cursor);
        if tick < self.base + LISTS {
            self.insert_near(due, tick - self.base);
        } else {
            // Beyond the far turn's end it wraps: the entry is looked at once a turn.
            self.far[(tick / LISTS % LISTS) as usize].push(due);
        }
    }

    #[inline(always)]
    fn insert_near(&mut self, due: Due, place: u64) {
        let list = &mut self.near[place as usize];
        let node = Node { due, next: *list };
        if let Some(unused) = self.nodes.get_mut(self.free as usize) {
            *list = self.free;
            self.free = std::mem::replace(unused, node).next;
        } else {
            *list = self.nodes.len() as u32;
            self.nodes.push(node);
        }
        self.occupied[(place / 64) as usize] |= 1 << (place % 64);
    }

    /// Takes out the entry that is due next, and says when. `announce` hears of entries that will
    /// be due soon.
    ///
    /// There must be one.
    #[inline(always)]
    pub(super) fn pop(&mut self, announce: impl Fn(u32)) -> (u32, u64) {
        loop {
            if let Some(place) = self.next_occupied() {
                self.cursor = place;
                let list = &mut self.near[place as usize];
                let taken = *list;
                let node = &mut self.nodes[taken as usize];
                let due = node.due;
                *list = std::mem::replace(&mut node.next, self.free);
                self.free = taken;
                if *list == END {
                    self.occupied[(place / 64) as usize] &= !(1 << (place % 64));
                }
                self.now_ns = self.now_ns.max(due.at_ns);
                return (due.entry, self.now_ns);
            }
            self.turn(&announce);
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
    #[inline(never)]
    fn turn(&mut self, announce: &impl Fn(u32)) {
        self.base += LISTS;
        self.cursor = 0;
        let list = (self.base / LISTS % LISTS) as usize;
        let mut entries = std::mem::take(&mut self.far[list]);
        let end = self.base + LISTS;
        // Those of a later turn stay where they are.
        entries.retain(|&due| {
            let tick = (due.at_ns >> self.shift).max(self.base);
            if tick < end {
                announce(due.entry);
                self.insert_near(due, tick - self.base);
            }
            tick >= end
        });
        self.far[list] = entries;
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
        // Some beyond the far turn, which spans 2^26 ns here.
        let spans = [1, 100, 100_000, 1 << 25, 1 << 28];
        for (entry, due_ns) in due_ns.iter_mut().enumerate() {
            *due_ns = 1_000_000 + random.below(spans[entry % spans.len()]);
            wheel.insert(entry as u32, *due_ns);
        }
        let mut last_ns = 0;
        for _ in 0..20_000 {
            let (entry, now_ns) = wheel.pop(|_| ());
            assert!(now_ns >= last_ns);
            assert!(now_ns >= due_ns[entry as usize]);
            assert!(now_ns < due_ns[entry as usize] + tick_ns);
            last_ns = now_ns;
            due_ns[entry as usize] = now_ns + random.below(spans[entry as usize % spans.len()]);
            wheel.insert(entry, due_ns[entry as usize]);
        }
    }
}
