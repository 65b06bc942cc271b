// SPDX-License-Identifier: Apache-2.0
//! Storage for the records of one family in a batch.

use turboflow_merge::MicroflowRecord;
use turboflow_record::WORDS_V6;

use crate::shape::{BASE_WORDS, BYTES_AT, FIRST_NS_AT, PACKETS_AT, record_of_row, record_of_words};

/// Records of the default definition, in the aggregator's format.
#[derive(Clone, Debug)]
pub struct PlainRows<const K: usize> {
    records: Vec<MicroflowRecord<K, 0>>,
    /// The earliest start of any record, as `latest_ns` is the latest. Most batches lie on one side
    /// of a cell boundary, which these two values show without a look at every record.
    earliest_ns: u64,
    latest_ns: u64,
}

impl<const K: usize> Default for PlainRows<K> {
    fn default() -> Self {
        Self {
            records: Vec::new(),
            earliest_ns: u64::MAX,
            latest_ns: 0,
        }
    }
}

impl<const K: usize> PlainRows<K> {
    /// Words of a row: base and key.
    pub const WORDS: usize = BASE_WORDS + K;

    /// Appends the record made of these words.
    #[inline]
    pub fn push(&mut self, word: impl Fn(usize) -> u64) {
        self.push_record(record_of_words(word));
    }

    /// Appends the record made of a row of [`WORDS`](Self::WORDS) words.
    pub(crate) fn push_row(&mut self, row: impl Iterator<Item = u64>) {
        let mut words = [0; BASE_WORDS + WORDS_V6];
        for (to, word) in words.iter_mut().zip(row) {
            *to = word;
        }
        self.push(|at| words[at]);
    }

    /// Calls `take` with the words of every record, base first.
    pub(crate) fn for_each_row(&self, mut take: impl FnMut(&[u64])) {
        let mut words = [0; BASE_WORDS + WORDS_V6];
        for record in &self.records {
            words[..BASE_WORDS].copy_from_slice(&record.base.words());
            words[BASE_WORDS..Self::WORDS].copy_from_slice(&record.key);
            take(&words[..Self::WORDS]);
        }
    }

    /// Appends a record.
    #[inline]
    pub fn push_record(&mut self, record: MicroflowRecord<K, 0>) {
        self.earliest_ns = self.earliest_ns.min(record.base.first_ns);
        self.latest_ns = self.latest_ns.max(record.base.first_ns);
        self.records.push(record);
    }

    /// The number of records.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are no records.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = MicroflowRecord<K, 0>> + '_ {
        self.records.iter().copied()
    }

    /// Keeps the records for which `is_kept` returns true, given their packets and bytes.
    pub(crate) fn retain(&mut self, is_kept: &mut impl FnMut(u64, u64) -> bool) {
        self.records
            .retain(|record| is_kept(record.base.packets, record.base.bytes));
    }

    /// Moves all records of `other` to the end, without a copy if this is empty.
    pub(crate) fn append(&mut self, other: &mut Self) {
        self.earliest_ns = self.earliest_ns.min(other.earliest_ns);
        self.latest_ns = self.latest_ns.max(other.latest_ns);
        other.move_to(&mut self.records);
    }

    /// Moves all records to the end of `to`, without a copy if `to` is empty.
    pub(crate) fn move_to(&mut self, to: &mut Vec<MicroflowRecord<K, 0>>) {
        if to.is_empty() {
            std::mem::swap(to, &mut self.records);
        } else {
            to.append(&mut self.records);
        }
        self.clear();
    }

    pub(crate) fn clear(&mut self) {
        self.records.clear();
        (self.earliest_ns, self.latest_ns) = (u64::MAX, 0);
    }

    /// Moves the records that began before `end_ns` to `before`.
    pub(crate) fn split_off_before(&mut self, end_ns: u64, before: &mut Self) {
        if self.earliest_ns >= end_ns {
            return;
        }
        if self.latest_ns < end_ns {
            before.append(self);
            return;
        }
        for record in std::mem::take(self).records {
            match record.base.first_ns < end_ns {
                true => before.push_record(record),
                false => self.push_record(record),
            }
        }
    }

    /// Sorts the records by start time. Records with equal start times keep their order.
    pub(crate) fn sort_by_start(&mut self) {
        self.records.sort_by_key(|record| record.base.first_ns);
    }

    pub(crate) fn first_ns(&self) -> Option<u64> {
        (!self.records.is_empty()).then_some(self.earliest_ns)
    }
}

/// Records of any other definition as words, only as many as the layout uses.
#[derive(Clone, Debug, Default)]
pub(crate) struct WordRows {
    words: Vec<u64>,
    /// Words per record; 0 until the first one is added.
    stride: usize,
    state_words: usize,
}

impl WordRows {
    pub(crate) fn push(
        &mut self,
        row: impl IntoIterator<Item = u64>,
        stride: usize,
        state_words: usize,
    ) {
        (self.stride, self.state_words) = (stride, state_words);
        self.words.extend(row);
        debug_assert_eq!(self.words.len() % stride, 0);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u64]> {
        self.words.chunks_exact(self.stride.max(1))
    }

    pub(crate) fn len(&self) -> usize {
        self.words.len() / self.stride.max(1)
    }

    /// The records. Words of key and state that the layout does not use are zero.
    pub(crate) fn records<const K: usize, const N: usize>(
        &self,
    ) -> impl Iterator<Item = MicroflowRecord<K, N>> + '_ {
        self.iter().map(|row| record_of_row(row, self.state_words))
    }

    pub(crate) fn append(&mut self, other: &mut Self) {
        if !other.words.is_empty() {
            (self.stride, self.state_words) = (other.stride, other.state_words);
            self.words.append(&mut other.words);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.words.clear();
    }

    /// Keeps the records for which `is_kept` returns true, given their packets and bytes.
    pub(crate) fn retain(&mut self, is_kept: &mut impl FnMut(u64, u64) -> bool) {
        let mut kept = 0;
        for at in 0..self.len() {
            let row = at * self.stride..(at + 1) * self.stride;
            if is_kept(
                self.words[row.start + PACKETS_AT],
                self.words[row.start + BYTES_AT],
            ) {
                self.words.copy_within(row, kept);
                kept += self.stride;
            }
        }
        self.words.truncate(kept);
    }

    pub(crate) fn split_off_before(&mut self, end_ns: u64, before: &mut Self) {
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

    /// Sorts the records by start time. Records with equal start times keep their order.
    pub(crate) fn sort_by_start(&mut self) {
        let words = std::mem::take(&mut self.words);
        let mut rows: Vec<&[u64]> = words.chunks_exact(self.stride.max(1)).collect();
        rows.sort_by_key(|row| row[FIRST_NS_AT]);
        self.words.reserve(words.len());
        rows.into_iter()
            .for_each(|row| self.words.extend_from_slice(row));
    }

    pub(crate) fn first_ns(&self) -> Option<u64> {
        self.iter().map(|row| row[FIRST_NS_AT]).min()
    }
}
