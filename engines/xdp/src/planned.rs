// SPDX-License-Identifier: Apache-2.0
//! Records of a plan on their way to the aggregator: base, state and key, as many words as the plan has.

use std::sync::atomic::Ordering;

use turboflow_merge::MicroflowRecord;

use crate::layout::{FIRST_NS_AT, record};
use crate::memory::SharedMemory;
use crate::plan::Shape;

/// Records of one family, or of both.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlannedRows {
    words: Vec<u64>,
    /// Words of a record; 0 as long as none has come.
    stride: usize,
    state_words: usize,
}

/// Records of a plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Planned {
    pub(crate) v4: PlannedRows,
    /// Those of both families where the key is not the 5-tuple.
    pub(crate) v6: PlannedRows,
}

impl PlannedRows {
    fn push(&mut self, row: impl IntoIterator<Item = u64>, stride: usize, shape: Shape) {
        (self.stride, self.state_words) = (stride, shape.state_words);
        self.words.extend(row);
        debug_assert_eq!(self.words.len() % stride, 0);
    }

    fn iter(&self) -> impl Iterator<Item = &[u64]> {
        self.words.chunks_exact(self.stride.max(1))
    }

    fn len(&self) -> usize {
        self.iter().count()
    }

    /// The records, with room for so many words of key and state.
    pub(crate) fn records<const K: usize, const N: usize>(
        &self,
    ) -> impl Iterator<Item = MicroflowRecord<K, N>> + '_ {
        self.iter().map(|row| record(row, self.state_words))
    }

    fn append(&mut self, other: &mut Self) {
        if !other.words.is_empty() {
            (self.stride, self.state_words) = (other.stride, other.state_words);
            self.words.append(&mut other.words);
        }
    }

    fn split_off_before(&mut self, end_ns: u64, before: &mut Self) {
        if self.iter().all(|row| row[FIRST_NS_AT] >= end_ns) {
            return;
        }
        let mut all = std::mem::take(self);
        if all.iter().all(|row| row[FIRST_NS_AT] < end_ns) {
            before.append(&mut all);
            return;
        }
        for to in [&mut *before, &mut *self] {
            (to.stride, to.state_words) = (all.stride, all.state_words);
        }
        for row in all.iter() {
            let to = match row[FIRST_NS_AT] < end_ns {
                true => &mut *before,
                false => &mut *self,
            };
            to.words.extend_from_slice(row);
        }
    }

    fn first_ns(&self) -> Option<u64> {
        self.iter().map(|row| row[FIRST_NS_AT]).min()
    }
}

impl Planned {
    /// Takes a record of the ring; whether it is one.
    pub(crate) fn push(&mut self, row: impl ExactSizeIterator<Item = u64>, shape: Shape) -> bool {
        let words = row.len();
        if words == shape.words_v6() {
            self.v6.push(row, words, shape);
        } else if words == shape.words_v4() && shape.wide_key_words.is_none() {
            self.v4.push(row, words, shape);
        } else {
            return false;
        }
        true
    }

    pub(crate) fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    pub(crate) fn clear(&mut self) {
        self.v4.words.clear();
        self.v6.words.clear();
    }

    pub(crate) fn append(&mut self, other: &mut Self) {
        self.v4.append(&mut other.v4);
        self.v6.append(&mut other.v6);
    }

    pub(crate) fn split_off_before(&mut self, end_ns: u64, before: &mut Self) {
        self.v4.split_off_before(end_ns, &mut before.v4);
        self.v6.split_off_before(end_ns, &mut before.v6);
    }

    pub(crate) fn first_ns(&self) -> Option<u64> {
        let both = [self.v4.first_ns(), self.v6.first_ns()];
        both.into_iter().flatten().min()
    }
}

/// Words from one row of a table to the next: whole cache lines.
pub(crate) const fn row_words(words: usize) -> usize {
    words.next_multiple_of(8)
}

/// Moves the records of a half of both tables to `to`; how many there were.
pub(crate) fn take_rows(
    [table_v4, table_v6]: [&SharedMemory; 2],
    half: u64,
    shape: Shape,
    in_use: &[bool],
    to: &mut Planned,
) -> u64 {
    let of_v6 = take_rows_of(table_v6, half, shape.words_v6(), shape, in_use, &mut to.v6);
    match shape.wide_key_words {
        Some(_) => of_v6,
        None => of_v6 + take_rows_of(table_v4, half, shape.words_v4(), shape, in_use, &mut to.v4),
    }
}

fn take_rows_of(
    table: &SharedMemory,
    half: u64,
    words: usize,
    shape: Shape,
    in_use: &[bool],
    to: &mut PlannedRows,
) -> u64 {
    table.take_rows(half, in_use, row_words(words), |row| {
        let before_padding = row[..words].iter();
        let loaded = before_padding.map(|word| word.load(Ordering::Relaxed));
        to.push(loaded, words, shape);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape {
        state_words: 3,
        wide_key_words: None,
    };

    fn row(words: usize, number: u64, first_ns: u64) -> Vec<u64> {
        let mut row = vec![0; words];
        (row[0], row[FIRST_NS_AT], row[8]) = (number, first_ns, number + 100);
        row
    }

    fn numbers(rows: &PlannedRows) -> Vec<(u64, u64)> {
        let records = rows.records::<5, 8>();
        records
            .map(|record| (record.base.packets, record.state[2]))
            .collect()
    }

    #[test]
    fn is_parted_by_time_and_stays_in_order() {
        let mut batch = Planned::default();
        for (number, first_ns) in [(1, 10), (2, 20), (3, 10), (4, 30)] {
            assert!(batch.push(row(11, number, first_ns).into_iter(), SHAPE));
            assert!(batch.push(row(14, number, first_ns - 5).into_iter(), SHAPE));
            assert!(!batch.push(row(13, number, first_ns).into_iter(), SHAPE));
        }
        assert_eq!((batch.first_ns(), batch.len()), (Some(5), 8));
        let mut before = Planned::default();
        batch.split_off_before(20, &mut before);
        assert_eq!(numbers(&before.v4), [(1, 101), (3, 103)]);
        assert_eq!(numbers(&before.v6), [(1, 101), (2, 102), (3, 103)]);
        assert_eq!(numbers(&batch.v4), [(2, 102), (4, 104)]);
        batch.split_off_before(100, &mut before);
        assert_eq!(
            numbers(&before.v4),
            [(1, 101), (3, 103), (2, 102), (4, 104)]
        );
        assert_eq!((batch.len(), batch.first_ns()), (0, None));
    }

    #[test]
    fn one_table_has_the_records_of_any_other_key() {
        let wide = Shape {
            state_words: 3,
            wide_key_words: Some(2),
        };
        let mut batch = Planned::default();
        assert!(batch.push(row(11, 1, 10).into_iter(), wide));
        assert_eq!((batch.v4.len(), batch.v6.len()), (0, 1));
    }
}
