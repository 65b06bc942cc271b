// SPDX-License-Identifier: Apache-2.0
//! A batch of microflow records on its way to the aggregator.

use turboflow_merge::{MicroflowRecord, WORDS_WIDE};
use turboflow_record::{WORDS_V4, WORDS_V6};

use crate::RecordShape;
use crate::rows::{PlainRows, WordRows};
use crate::shape::{BYTES_AT, LAST_NS_AT, PACKETS_AT};

/// Microflow records handed over by an engine. Those of a flow keep the order in which they were
/// evicted.
///
/// The type does not depend on the record size, so that a batch can cross a trait object. Records
/// of the default definition are stored in the aggregator's format and moved without a copy.
/// Records of any other definition are stored as words ([`RecordShape`]).
#[derive(Clone, Debug, Default)]
pub struct MicroflowBatch {
    /// IPv4 records of the default definition.
    pub plain_v4: PlainRows<WORDS_V4>,
    /// IPv6 records of the default definition.
    pub plain_v6: PlainRows<WORDS_V6>,
    words_v4: WordRows,
    /// IPv6 records, or the records of both families if the key is not the 5-tuple.
    words_v6: WordRows,
}

/// What the records of a batch add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchSums {
    /// Packets.
    pub packets: u64,
    /// Bytes, according to the IP headers.
    pub bytes: u64,
    /// The time of the last packet, in nanoseconds since 1970.
    pub last_ns: u64,
}

impl MicroflowBatch {
    /// The number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.plain_v4.len() + self.plain_v6.len() + self.words_v4.len() + self.words_v6.len()
    }

    /// Whether there are no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all records but keeps the allocated memory.
    pub fn clear(&mut self) {
        self.plain_v4.clear();
        self.plain_v6.clear();
        self.words_v4.clear();
        self.words_v6.clear();
    }

    /// Appends the record that `row` holds. The number of words determines the address family.
    /// Returns false, and appends nothing, if no record of this shape has that number of words.
    #[must_use]
    pub fn push_row(
        &mut self,
        row: impl ExactSizeIterator<Item = u64>,
        shape: RecordShape,
    ) -> bool {
        let words = row.len();
        if words == shape.words_v6() {
            self.words_v6.push(row, words, shape.state_words);
        } else if words == shape.words_v4() && shape.wide_key_words.is_none() {
            self.words_v4.push(row, words, shape.state_words);
        } else {
            return false;
        }
        true
    }

    /// Moves the records of the default definition to the end of `v4` and `v6`, without a copy if
    /// these are empty.
    pub fn move_plain(
        &mut self,
        v4: &mut Vec<MicroflowRecord<WORDS_V4, 0>>,
        v6: &mut Vec<MicroflowRecord<WORDS_V6, 0>>,
    ) {
        self.plain_v4.move_to(v4);
        self.plain_v6.move_to(v6);
    }

    /// Whether all records are of the default definition.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.words_v4.len() + self.words_v6.len() == 0
    }

    /// IPv4 records with a 5-tuple as key.
    ///
    /// # Panics
    /// If `N` words cannot hold the state of a record. This holds for `v6` and `wide` as well.
    pub fn v4<const N: usize>(&self) -> impl Iterator<Item = MicroflowRecord<WORDS_V4, N>> + '_ {
        let plain = self.plain_v4.iter().map(with_state);
        plain.chain(self.words_v4.records())
    }

    /// IPv6 records with a 5-tuple as key.
    pub fn v6<const N: usize>(&self) -> impl Iterator<Item = MicroflowRecord<WORDS_V6, N>> + '_ {
        let plain = self.plain_v6.iter().map(with_state);
        plain.chain(self.words_v6.records())
    }

    /// Records with another key.
    pub fn wide<const N: usize>(
        &self,
    ) -> impl Iterator<Item = MicroflowRecord<WORDS_WIDE, N>> + '_ {
        self.words_v6.records()
    }

    /// Calls `take` with the words of every IPv4 record, or of all other records.
    pub(crate) fn for_each_row(&self, of_v4: bool, mut take: impl FnMut(&[u64])) {
        if of_v4 {
            self.plain_v4.for_each_row(&mut take);
            self.words_v4.iter().for_each(take);
        } else {
            self.plain_v6.for_each_row(&mut take);
            self.words_v6.iter().for_each(take);
        }
    }

    /// Packets, bytes and the latest time of all records.
    #[must_use]
    pub fn sums(&self) -> BatchSums {
        let mut sums = BatchSums::default();
        for of_v4 in [true, false] {
            self.for_each_row(of_v4, |row| {
                sums.packets = sums.packets.saturating_add(row[PACKETS_AT]);
                sums.bytes = sums.bytes.saturating_add(row[BYTES_AT]);
                sums.last_ns = sums.last_ns.max(row[LAST_NS_AT]);
            });
        }
        sums
    }

    /// Keeps the records for which `is_kept` returns true, given their packets and bytes. Returns
    /// how many records were removed.
    pub fn retain(&mut self, mut is_kept: impl FnMut(u64, u64) -> bool) -> u64 {
        let before = self.len();
        self.plain_v4.retain(&mut is_kept);
        self.plain_v6.retain(&mut is_kept);
        self.words_v4.retain(&mut is_kept);
        self.words_v6.retain(&mut is_kept);
        (before - self.len()) as u64
    }

    /// Moves all records of `other` to the end of this batch.
    pub fn append(&mut self, other: &mut Self) {
        self.plain_v4.append(&mut other.plain_v4);
        self.plain_v6.append(&mut other.plain_v6);
        self.words_v4.append(&mut other.words_v4);
        self.words_v6.append(&mut other.words_v6);
    }

    /// Moves the records that began before `end_ns` to `before`. The order is kept in both batches.
    pub fn split_off_before(&mut self, end_ns: u64, before: &mut Self) {
        self.plain_v4.split_off_before(end_ns, &mut before.plain_v4);
        self.plain_v6.split_off_before(end_ns, &mut before.plain_v6);
        self.words_v4.split_off_before(end_ns, &mut before.words_v4);
        self.words_v6.split_off_before(end_ns, &mut before.words_v6);
    }

    /// Sorts the records of each kind by start time, for example when several engines filled the
    /// batch. Records with equal start times keep their order.
    pub fn sort_by_start(&mut self) {
        self.plain_v4.sort_by_start();
        self.plain_v6.sort_by_start();
        self.words_v4.sort_by_start();
        self.words_v6.sort_by_start();
    }

    /// The earliest start time of a record.
    #[must_use]
    pub fn first_ns(&self) -> Option<u64> {
        let all = [
            self.plain_v4.first_ns(),
            self.plain_v6.first_ns(),
            self.words_v4.first_ns(),
            self.words_v6.first_ns(),
        ];
        all.into_iter().flatten().min()
    }
}

/// Widens a record without further features: the state is zero.
fn with_state<const K: usize, const N: usize>(
    record: MicroflowRecord<K, 0>,
) -> MicroflowRecord<K, N> {
    let MicroflowRecord { key, base, .. } = record;
    let state = [0; N];
    MicroflowRecord { key, base, state }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FIRST_NS_AT;

    /// The words of a record with this number of packets.
    fn row(packets: u64, first_ns: u64) -> impl Fn(usize) -> u64 {
        move |at| match at {
            0 => packets,
            FIRST_NS_AT => first_ns,
            _ => 0,
        }
    }

    fn numbers(batch: &MicroflowBatch) -> (Vec<u64>, Vec<u64>) {
        (
            batch.v4::<8>().map(|record| record.base.packets).collect(),
            batch.v6::<8>().map(|record| record.base.packets).collect(),
        )
    }

    const SHAPE: RecordShape = RecordShape {
        state_words: 3,
        wide_key_words: None,
    };

    #[test]
    fn splits_by_time_and_keeps_order() {
        let mut plain = MicroflowBatch::default();
        let mut laid_out = MicroflowBatch::default();
        for (number, first_ns) in [(1, 10), (2, 20), (3, 10), (4, 30)] {
            let (v4, v6) = (row(number, first_ns), row(number, first_ns - 5));
            assert!(laid_out.push_row((0..11).map(&v4), SHAPE));
            assert!(laid_out.push_row((0..14).map(&v6), SHAPE));
            assert!(!laid_out.push_row((0..13).map(&v6), SHAPE));
            plain.plain_v4.push(v4);
            plain.plain_v6.push(v6);
        }
        for mut batch in [plain, laid_out] {
            assert_eq!((batch.first_ns(), batch.len()), (Some(5), 8));
            let mut before = MicroflowBatch::default();
            batch.split_off_before(20, &mut before);
            assert_eq!(numbers(&before), (vec![1, 3], vec![1, 2, 3]));
            assert_eq!(numbers(&batch), (vec![2, 4], vec![4]));
            batch.split_off_before(100, &mut before);
            assert_eq!(numbers(&before), (vec![1, 3, 2, 4], vec![1, 2, 3, 4]));
            assert!(batch.is_empty() && batch.first_ns().is_none());
            let sums = before.sums();
            assert_eq!((sums.packets, sums.bytes, sums.last_ns), (20, 0, 0));
            before.sort_by_start();
            assert_eq!(numbers(&before), (vec![1, 3, 2, 4], vec![1, 3, 2, 4]));
            assert_eq!(before.retain(|packets, _| packets % 2 == 0), 4);
            assert_eq!(numbers(&before), (vec![2, 4], vec![2, 4]));
        }
    }

    #[test]
    fn rows_of_words_keep_state_and_key() {
        let mut batch = MicroflowBatch::default();
        assert!(batch.push_row((1..12u64).collect::<Vec<_>>().into_iter(), SHAPE));
        let record = batch.v4::<8>().next().expect("was put in");
        assert_eq!(record.state, [7, 8, 9, 0, 0, 0, 0, 0]);
        assert_eq!((record.key, record.base.bytes), ([10, 11], 2));
        let wide = RecordShape {
            wide_key_words: Some(2),
            ..SHAPE
        };
        let mut batch = MicroflowBatch::default();
        assert!(batch.push_row((1..12u64).collect::<Vec<_>>().into_iter(), wide));
        let record = batch.wide::<8>().next().expect("was put in");
        assert_eq!(record.key[..3], [10, 11, 0]);
    }
}
