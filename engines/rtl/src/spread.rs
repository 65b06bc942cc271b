// SPDX-License-Identifier: Apache-2.0
//! The table that gives the stage of a key (`rtl/tf_spread.sv`), packet by packet.

/// Cells are numbered from 1 to this, and then again from 1.
const LAST_NUMBER: u8 = 7;

/// State of one entry.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// Number of the cell of the entry's last packet; 0 before the first packet.
    number: u8,
    stage: u32,
}

/// A table without keys, addressed by the hash: all keys of an entry have the entry's stage.
///
/// An entry keeps its stage in the cell of its last packet and in the next one. In any later cell
/// no record of its keys is left, and the entry gets the next stage in turn that does not have too
/// many entries. Too many are more than the mean of all stages in this cell, plus one.
#[derive(Clone, Debug)]
pub(crate) struct Spread {
    entries: Vec<Entry>,
    stages: u32,
    /// Numbers of the current cell and of the previous one.
    number: u8,
    last_number: u8,
    /// The last stage that an entry got, and the stage that the next entry gets.
    turn: u32,
    next: u32,
    /// Entries of each stage in this cell; their mean plus one; and the remainder of the mean.
    counts: Vec<u32>,
    most: u32,
    left: u32,
    /// Whether a stage had too many entries before the last entry was counted.
    is_full: Vec<bool>,
}

impl Spread {
    pub(crate) fn new(entry_bits: u32, stages: u32) -> Self {
        Self {
            entries: vec![Entry::default(); 1 << entry_bits],
            stages,
            number: LAST_NUMBER,
            last_number: LAST_NUMBER,
            turn: 0,
            next: 0,
            counts: vec![0; stages as usize],
            most: 1,
            left: 0,
            is_full: vec![false; stages as usize],
        }
    }

    pub(crate) fn begin_cell(&mut self) {
        self.last_number = self.number;
        self.number = self.number % LAST_NUMBER + 1;
        self.counts.fill(0);
        (self.most, self.left) = (1, 0);
        self.is_full.fill(false);
    }

    /// The stage that an entry must keep, because records of its keys may be in the line.
    fn known(&self, entry: u32) -> Option<u32> {
        let Entry { number, stage } = self.entries[entry as usize];
        (number == self.number || number == self.last_number).then_some(stage)
    }

    /// The stage of an entry, or the one that it would get now.
    pub(crate) fn stage(&self, entry: u32) -> u32 {
        self.known(entry).unwrap_or(self.next)
    }

    /// Notes a packet of an entry.
    pub(crate) fn take(&mut self, entry: u32) {
        let at = entry as usize;
        if self.entries[at].number == self.number {
            return;
        }
        let known = self.known(entry);
        let stage = known.unwrap_or(self.next);
        self.entries[at] = Entry {
            number: self.number,
            stage,
        };
        if known.is_none() {
            self.turn = self.next;
        }
        self.next = self.following();
        for (is_full, count) in self.is_full.iter_mut().zip(&self.counts) {
            *is_full = *count > self.most;
        }
        self.counts[stage as usize] += 1;
        self.left = (self.left + 1) % self.stages;
        self.most += u32::from(self.left == 0);
    }

    /// The first stage after that of the last turn that is not full. If all are full, the stage
    /// directly after it.
    fn following(&self) -> u32 {
        let behind = |by: u32| (self.turn + by) % self.stages;
        let mut free = (1..=self.stages)
            .map(behind)
            .filter(|stage| !self.is_full[*stage as usize]);
        free.next().unwrap_or_else(|| behind(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_are_new_get_the_stages_in_turn() {
        let mut spread = Spread::new(4, 4);
        spread.begin_cell();
        let stages = (0..8).map(|entry| {
            let stage = spread.stage(entry);
            spread.take(entry);
            spread.take(entry);
            assert_eq!(spread.stage(entry), stage);
            stage
        });
        assert_eq!(stages.collect::<Vec<_>>(), [0, 1, 2, 3, 0, 1, 2, 3]);
    }

    #[test]
    fn an_entry_keeps_its_stage_in_the_next_cell_and_not_behind_it() {
        let mut spread = Spread::new(4, 4);
        spread.begin_cell();
        (0..4).for_each(|entry| spread.take(entry));
        spread.begin_cell();
        assert_eq!(spread.stage(3), 3);
        spread.take(3);
        spread.begin_cell();
        assert_eq!(spread.stage(3), 3);
        // Entry 2 had no packet in the previous cell: its stage is the next in turn.
        assert_eq!(spread.known(2), None);
    }

    /// New entries even out those that keep their stages.
    #[test]
    fn stages_stay_even_while_entries_keep_theirs() {
        let mut spread = Spread::new(10, 8);
        let mut random = 1_u64;
        let mut draw = || {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (random >> 33) as u32 % 1_024
        };
        for _ in 0..40 {
            spread.begin_cell();
            (0..600).for_each(|_| spread.take(draw()));
            let counts = &spread.counts;
            let (most, least) = (counts.iter().max(), counts.iter().min());
            assert!(most.unwrap() - least.unwrap() <= 8, "{counts:?}");
        }
    }
}
