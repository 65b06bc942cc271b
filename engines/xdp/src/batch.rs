// SPDX-License-Identifier: Apache-2.0
//! Microflow records on their way to the aggregator.

use turboflow_record::{MicroflowRecord, WORDS_V4, WORDS_V6, WORDS_WIDE};

use crate::layout::{BASE_WORDS, FIRST_NS_AT, record};
use crate::planned::Planned;

/// Records that the kernel handed over: those of a flow in the order of time.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub(crate) v4: Rows<WORDS_V4>,
    pub(crate) v6: Rows<WORDS_V6>,
    pub(crate) planned: Planned,
}

/// Records of one family, as words of base and key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows<const K: usize> {
    words: Vec<u64>,
}

impl<const K: usize> Rows<K> {
    /// Words of a record.
    pub(crate) const STRIDE: usize = BASE_WORDS + K;

    pub(crate) fn push(&mut self, row: impl IntoIterator<Item = u64>) {
        self.words.extend(row);
        debug_assert_eq!(self.words.len() % Self::STRIDE, 0);
    }

    /// Appends all of another, which is empty then, without a copy where nothing is here.
    fn append(&mut self, other: &mut Self) {
        if self.words.is_empty() {
            std::mem::swap(&mut self.words, &mut other.words);
        } else {
            self.words.append(&mut other.words);
        }
    }

    fn iter(&self) -> impl Iterator<Item = &[u64]> {
        self.words.chunks_exact(Self::STRIDE)
    }

    fn len(&self) -> usize {
        self.words.len() / Self::STRIDE
    }

    /// Appends those that began before `end_ns` to `before`, keeps the others.
    fn split_off_before(&mut self, end_ns: u64, before: &mut Self) {
        if self.iter().all(|row| row[FIRST_NS_AT] >= end_ns) {
            return;
        }
        if self.iter().all(|row| row[FIRST_NS_AT] < end_ns) {
            before.append(self);
            return;
        }
        let all = std::mem::take(&mut self.words);
        for row in all.chunks_exact(Self::STRIDE) {
            let to = match row[FIRST_NS_AT] < end_ns {
                true => &mut before.words,
                false => &mut self.words,
            };
            to.extend_from_slice(row);
        }
    }

    fn first_ns(&self) -> Option<u64> {
        self.iter().map(|row| row[FIRST_NS_AT]).min()
    }
}

impl Batch {
    /// How many records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.v4.len() + self.v6.len() + self.planned.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets the records, keeps the memory.
    pub fn clear(&mut self) {
        self.v4.words.clear();
        self.v6.words.clear();
        self.planned.clear();
    }

    /// The records of IPv4 flows.
    pub fn v4(&self) -> impl Iterator<Item = MicroflowRecord<WORDS_V4, 0>> + '_ {
        self.v4.iter().map(|row| record(row, 0))
    }

    /// The records of IPv6 flows.
    pub fn v6(&self) -> impl Iterator<Item = MicroflowRecord<WORDS_V6, 0>> + '_ {
        self.v6.iter().map(|row| record(row, 0))
    }

    /// Whether there are records of another layout than the default one's: where an engine has one, all are.
    #[must_use]
    pub fn is_planned(&self) -> bool {
        self.planned.len() > 0
    }

    /// The records of IPv4 flows of such a layout, whose key is the 5-tuple.
    ///
    /// # Panics
    /// Here and below, when `N` is less than the words that the layout's state takes.
    pub fn planned_v4<const N: usize>(
        &self,
    ) -> impl Iterator<Item = MicroflowRecord<WORDS_V4, N>> + '_ {
        self.planned.v4.records()
    }

    /// The records of IPv6 flows of such a layout.
    pub fn planned_v6<const N: usize>(
        &self,
    ) -> impl Iterator<Item = MicroflowRecord<WORDS_V6, N>> + '_ {
        self.planned.v6.records()
    }

    /// The records of a layout whose key is another.
    pub fn planned_wide<const N: usize>(
        &self,
    ) -> impl Iterator<Item = MicroflowRecord<WORDS_WIDE, N>> + '_ {
        self.planned.v6.records()
    }

    /// Appends all of another, which is empty then.
    pub(crate) fn append(&mut self, other: &mut Self) {
        self.v4.append(&mut other.v4);
        self.v6.append(&mut other.v6);
        self.planned.append(&mut other.planned);
    }

    /// Appends those that began before `end_ns` to `before`, in their order, and keeps the others in theirs.
    pub(crate) fn split_off_before(&mut self, end_ns: u64, before: &mut Self) {
        self.v4.split_off_before(end_ns, &mut before.v4);
        self.v6.split_off_before(end_ns, &mut before.v6);
        self.planned.split_off_before(end_ns, &mut before.planned);
    }

    /// When the earliest began.
    pub(crate) fn first_ns(&self) -> Option<u64> {
        let all = [
            self.v4.first_ns(),
            self.v6.first_ns(),
            self.planned.first_ns(),
        ];
        all.into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row<const K: usize>(number: u64, first_ns: u64) -> Vec<u64> {
        let mut row = vec![0; Rows::<K>::STRIDE];
        row[0] = number;
        row[FIRST_NS_AT] = first_ns;
        row
    }

    fn numbers(batch: &Batch) -> (Vec<u64>, Vec<u64>) {
        (
            batch.v4().map(|record| record.base.packets).collect(),
            batch.v6().map(|record| record.base.packets).collect(),
        )
    }

    #[test]
    fn is_parted_by_time_and_stays_in_order() {
        let mut batch = Batch::default();
        for (number, first_ns) in [(1, 10), (2, 20), (3, 10), (4, 30)] {
            batch.v4.push(row::<WORDS_V4>(number, first_ns));
            batch.v6.push(row::<WORDS_V6>(number, first_ns - 5));
        }
        assert_eq!(batch.first_ns(), Some(5));
        let mut before = Batch::default();
        batch.split_off_before(20, &mut before);
        assert_eq!(numbers(&before), (vec![1, 3], vec![1, 2, 3]));
        assert_eq!(numbers(&batch), (vec![2, 4], vec![4]));
        batch.split_off_before(100, &mut before);
        assert_eq!(numbers(&before), (vec![1, 3, 2, 4], vec![1, 2, 3, 4]));
        assert!(batch.is_empty() && batch.first_ns().is_none());
    }
}
