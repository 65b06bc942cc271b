// SPDX-License-Identifier: Apache-2.0
//! Microflow records on their way to the aggregator.

use turboflow_merge::{MicroflowRecord, WORDS_WIDE};
use turboflow_record::{WORDS_V4, WORDS_V6};

use crate::layout::{BASE_WORDS, record_of_words};
use crate::planned::Planned;

/// Records that the kernel handed over: those of a flow in the order of time.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub(crate) v4: Rows<WORDS_V4>,
    pub(crate) v6: Rows<WORDS_V6>,
    pub(crate) planned: Planned,
}

/// Records of one family, as the aggregator takes them.
#[derive(Clone, Debug)]
pub(crate) struct Rows<const K: usize> {
    records: Vec<MicroflowRecord<K, 0>>,
    /// When the first and the last of them to begin began: so that they mostly need not be looked at to be parted by time.
    earliest_ns: u64,
    latest_ns: u64,
}

impl<const K: usize> Default for Rows<K> {
    fn default() -> Self {
        Self {
            records: Vec::new(),
            earliest_ns: u64::MAX,
            latest_ns: 0,
        }
    }
}

impl<const K: usize> Rows<K> {
    /// Words of a row: base and key.
    pub(crate) const WORDS: usize = BASE_WORDS + K;

    /// Takes the row of these words.
    #[inline]
    pub(crate) fn push(&mut self, word: impl Fn(usize) -> u64) {
        self.push_record(record_of_words(word));
    }

    #[inline]
    fn push_record(&mut self, record: MicroflowRecord<K, 0>) {
        self.earliest_ns = self.earliest_ns.min(record.base.first_ns);
        self.latest_ns = self.latest_ns.max(record.base.first_ns);
        self.records.push(record);
    }

    /// Appends all of another, which is empty then, without a copy where nothing is here.
    fn append(&mut self, other: &mut Self) {
        self.earliest_ns = self.earliest_ns.min(other.earliest_ns);
        self.latest_ns = self.latest_ns.max(other.latest_ns);
        other.give(&mut self.records);
    }

    /// The same, to records without more.
    fn give(&mut self, to: &mut Vec<MicroflowRecord<K, 0>>) {
        if to.is_empty() {
            std::mem::swap(to, &mut self.records);
        } else {
            to.append(&mut self.records);
        }
        self.clear();
    }

    fn clear(&mut self) {
        self.records.clear();
        (self.earliest_ns, self.latest_ns) = (u64::MAX, 0);
    }

    /// Appends those that began before `end_ns` to `before`, keeps the others.
    fn split_off_before(&mut self, end_ns: u64, before: &mut Self) {
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

    fn first_ns(&self) -> Option<u64> {
        (!self.records.is_empty()).then_some(self.earliest_ns)
    }
}

impl Batch {
    /// How many records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.v4.records.len() + self.v6.records.len() + self.planned.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets the records, keeps the memory.
    pub fn clear(&mut self) {
        self.v4.clear();
        self.v6.clear();
        self.planned.clear();
    }

    /// The records of IPv4 flows.
    pub fn v4(&self) -> impl Iterator<Item = MicroflowRecord<WORDS_V4, 0>> + '_ {
        self.v4.records.iter().copied()
    }

    /// The records of IPv6 flows.
    pub fn v6(&self) -> impl Iterator<Item = MicroflowRecord<WORDS_V6, 0>> + '_ {
        self.v6.records.iter().copied()
    }

    /// Moves the records of IPv4 flows behind those in `to`, without a copy where there are none.
    pub fn give_v4(&mut self, to: &mut Vec<MicroflowRecord<WORDS_V4, 0>>) {
        self.v4.give(to);
    }

    /// The same of IPv6 flows.
    pub fn give_v6(&mut self, to: &mut Vec<MicroflowRecord<WORDS_V6, 0>>) {
        self.v6.give(to);
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
    use crate::layout::FIRST_NS_AT;

    /// The words of a row of so many packets.
    fn row(packets: u64, first_ns: u64) -> impl Fn(usize) -> u64 {
        move |at| match at {
            0 => packets,
            FIRST_NS_AT => first_ns,
            _ => 0,
        }
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
            batch.v4.push(row(number, first_ns));
            batch.v6.push(row(number, first_ns - 5));
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
