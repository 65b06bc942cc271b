// SPDX-License-Identifier: Apache-2.0
//! Keeps account of which records of a run each partition holds, and up to which time everything
//! has arrived.

use std::collections::VecDeque;

use crate::Totals;

/// Maximum number of open marks. When it is reached because brokers are away, no more marks are
/// made.
const MAX_MARKS: usize = 64;

/// A message that has been neither delivered nor lost yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parcel {
    pub(crate) totals: Totals,
    /// The number of the first mark after this message.
    mark: u64,
}

/// Which of the run's records one partition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// Totals of the run's records up to `offset`, and of no others.
    pub(crate) totals: Totals,
    /// The offset of the last message; -1 before the first one.
    pub(crate) offset: i64,
    /// Totals of records whose offset the broker did not report, because it had already stored
    /// their message before. They precede the next message.
    unplaced: Totals,
}

impl Default for Share {
    fn default() -> Self {
        Self {
            totals: Totals::default(),
            offset: -1,
            unplaced: Totals::default(),
        }
    }
}

/// A point in the order of messages.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    /// Number of messages between the previous mark and this one that are neither delivered nor
    /// lost yet.
    waiting: u64,
    /// The run's watermark when all of these messages had been given to the client.
    watermark_ns: u64,
}

/// The account of a topic. Messages of one partition arrive in order; messages of different
/// partitions may not.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) shares: Vec<Share>,
    /// Totals of the records that have arrived in all partitions.
    pub(crate) arrived: Totals,
    pub(crate) lost: Totals,
    /// Marks in the order of messages. The last one is still open.
    marks: VecDeque<Mark>,
    /// The number of the first mark in `marks`.
    first_mark: u64,
    /// Every record that the run had finished by this watermark has arrived or is lost.
    pub(crate) complete_ns: u64,
}

impl Default for Account {
    fn default() -> Self {
        Self {
            shares: Vec::new(),
            arrived: Totals::default(),
            lost: Totals::default(),
            marks: VecDeque::from([Mark::default()]),
            first_mark: 0,
            complete_ns: 0,
        }
    }
}

impl Account {
    /// Number of records that were delivered or lost.
    pub(crate) const fn done(&self) -> u64 {
        self.arrived.records + self.lost.records
    }

    /// Sets the number of partitions of the topic.
    pub(crate) fn has_partitions(&mut self, count: usize) {
        if self.shares.len() < count {
            self.shares.resize(count, Share::default());
        }
    }

    /// Counts a message that is about to be given to the client.
    pub(crate) fn send(&mut self, totals: Totals) -> Parcel {
        let behind = self.marks.len() - 1;
        self.marks[behind].waiting += 1;
        Parcel {
            totals,
            mark: self.first_mark + behind as u64,
        }
    }

    /// Counts a message as delivered. The offset is negative if the broker did not report it.
    pub(crate) fn arrive(&mut self, parcel: &Parcel, partition: i32, offset: i64) {
        let partition = usize::try_from(partition).unwrap_or(0);
        self.has_partitions(partition + 1);
        let share = &mut self.shares[partition];
        share.unplaced.add(parcel.totals);
        if offset >= 0 {
            share.totals.add(std::mem::take(&mut share.unplaced));
            share.offset = share.offset.max(offset);
        }
        self.arrived.add(parcel.totals);
        self.end(parcel);
    }

    /// Counts a message as lost.
    pub(crate) fn lose(&mut self, parcel: &Parcel) {
        self.lost.add(parcel.totals);
        self.end(parcel);
    }

    fn end(&mut self, parcel: &Parcel) {
        let index = parcel.mark.saturating_sub(self.first_mark) as usize;
        if let Some(mark) = self.marks.get_mut(index) {
            mark.waiting = mark.waiting.saturating_sub(1);
        }
        self.settle();
    }

    /// Sets a mark: everything that the run had finished by this watermark was given to the client.
    pub(crate) fn mark(&mut self, watermark_ns: u64) {
        let behind = self.marks.len() - 1;
        match self.marks[behind].waiting {
            // Nothing was sent since the previous mark, so the previous mark takes the watermark.
            0 if behind > 0 => self.marks[behind - 1].watermark_ns = watermark_ns,
            _ if self.marks.len() < MAX_MARKS => {
                self.marks[behind].watermark_ns = watermark_ns;
                self.marks.push_back(Mark::default());
            }
            _ => {}
        }
        self.settle();
    }

    /// Removes marks from the front that no longer wait for a message.
    fn settle(&mut self) {
        while let [first, _, ..] = self.marks.make_contiguous()
            && first.waiting == 0
        {
            self.complete_ns = self.complete_ns.max(first.watermark_ns);
            self.marks.pop_front();
            self.first_mark += 1;
        }
    }

    /// At the end of the run, counts messages of unknown offset, because no further message will
    /// follow them.
    pub(crate) fn close(&mut self) {
        for share in &mut self.shares {
            share.totals.add(std::mem::take(&mut share.unplaced));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(records: u64) -> Totals {
        Totals {
            records,
            packets: 10 * records,
            octets: 100 * records,
        }
    }

    #[test]
    fn a_watermark_holds_once_all_before_it_has_an_end() {
        let mut account = Account::default();
        account.mark(5);
        assert_eq!(account.complete_ns, 5, "nothing was sent");
        let [one, two] = [1, 2].map(|records| account.send(totals(records)));
        account.mark(10);
        let three = account.send(totals(3));
        account.mark(20);
        account.mark(30);
        account.arrive(&three, 1, 0);
        account.arrive(&two, 0, 0);
        assert_eq!(account.complete_ns, 5);
        account.lose(&one);
        assert_eq!(account.complete_ns, 30);
        assert_eq!((account.arrived, account.lost), (totals(5), totals(1)));
        assert_eq!(account.done(), 6);
        assert_eq!(account.shares.len(), 2);
    }

    #[test]
    fn sums_are_those_up_to_the_offset() {
        let mut account = Account::default();
        let parcels = [1, 2, 4].map(|records| account.send(totals(records)));
        account.arrive(&parcels[0], 2, 17);
        // The message was stored before, so the broker does not report its offset.
        account.arrive(&parcels[1], 2, -1001);
        let share = account.shares[2];
        assert_eq!((share.totals, share.offset), (totals(1), 17));
        account.arrive(&parcels[2], 2, 19);
        let share = account.shares[2];
        assert_eq!((share.totals, share.offset), (totals(7), 19));
        let last = account.send(totals(8));
        account.arrive(&last, 2, -1001);
        account.close();
        assert_eq!(account.shares[2].totals, totals(15));
        assert_eq!(account.shares[0].offset, -1);
    }

    #[test]
    fn marks_are_bounded_while_nothing_arrives() {
        let mut account = Account::default();
        let sent: Vec<_> = (1..=1_000)
            .map(|second| {
                let parcel = account.send(totals(1));
                account.mark(second);
                parcel
            })
            .collect();
        assert_eq!((account.marks.len(), account.complete_ns), (MAX_MARKS, 0));
        for parcel in &sent {
            account.arrive(parcel, 0, 0);
        }
        assert_eq!(account.complete_ns, MAX_MARKS as u64 - 1);
        account.mark(1_001);
        assert_eq!((account.marks.len(), account.complete_ns), (1, 1_001));
    }
}
