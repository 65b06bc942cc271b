// SPDX-License-Identifier: Apache-2.0
//! Scouts: brings the headers of long records into the cache before the walk needs them.
//!
//! The start of a record is only known from the record before it. In a capture of whole packets,
//! each header lies in a page of its own, no prefetcher can guess it, and the walk waits for memory
//! at every packet. Scouts start at several places of the next bytes at once, each at what looks
//! like a record, and go from header to header in turn, so that their waits overlap. They only
//! prefetch: a scout that started at a wrong place costs time and changes no result.

use crate::walk::prefetch_line;

/// How many bytes are scouted at once. The headers in them fit into a second-level cache.
const REGION_BYTES: usize = 2 << 20;
/// Scouts that go in turn. More would wait for each other: a core has room for about twice as many
/// cache lines on their way.
const SCOUTS: usize = 16;
/// The least bytes for one scout: its search for a start must pay.
const LEAST_BYTES: usize = 32 << 10;
/// Mean length of records from which on scouts pay. Prefetching in the order of addresses is enough
/// for shorter ones.
const LONG_RECORD_BYTES: usize = 384;
/// Fewer packets tell nothing about the mean length.
const TELLING_PACKETS: usize = 16;
/// How far a scout looks for a start: a few long records.
const SEARCH_BYTES: usize = 16 << 10;

/// Where the records of a file are.
pub(crate) trait Records {
    /// The distance between two starts is a multiple of this.
    const ALIGNED_BYTES: usize;

    /// Where the record after the one at `at` starts, as its header says. `None` if the header is
    /// incomplete or cannot be one.
    fn after(&self, data: &[u8], at: usize) -> Option<usize>;

    /// Whether a record seems to start at `at`.
    fn seems_to_start(&self, data: &[u8], at: usize) -> bool;
}

/// Decides when scouts go ahead.
#[derive(Debug, Default)]
pub(crate) struct Scouts {
    /// Mean length of the last records.
    mean_bytes: usize,
    /// Bytes and packets since that mean was taken.
    bytes: usize,
    packets: usize,
    /// Bytes from the position of the walk on that were scouted.
    scouted_bytes: usize,
}

impl Scouts {
    /// Sends scouts through the start of `data` with `go_ahead` if records are so long that this
    /// pays. Returns how many packets the walk should take, `limit` at most.
    pub(crate) fn before_walk(
        &mut self,
        limit: usize,
        data: &[u8],
        go_ahead: impl FnOnce(&[u8]),
    ) -> usize {
        if !cfg!(target_arch = "x86_64") || self.mean_bytes < LONG_RECORD_BYTES {
            return limit;
        }
        // What is left is scouted again: the position of the walk is where a record surely starts.
        if self.scouted_bytes < REGION_BYTES / 4 {
            let region = &data[..data.len().min(REGION_BYTES)];
            go_ahead(region);
            self.scouted_bytes = region.len();
        }
        limit.min((self.scouted_bytes / self.mean_bytes).max(1))
    }

    /// Learns from a walk.
    pub(crate) const fn after_walk(&mut self, bytes: usize, packets: usize) {
        self.scouted_bytes = self.scouted_bytes.saturating_sub(bytes);
        self.bytes = self.bytes.saturating_add(bytes);
        self.packets += packets;
        if self.packets >= TELLING_PACKETS {
            self.mean_bytes = self.bytes / self.packets;
            (self.bytes, self.packets) = (0, 0);
        }
    }
}

/// Sends scouts through a region, which starts with a record.
pub(crate) fn go_ahead(records: &impl Records, region: &[u8]) {
    let part_bytes = (region.len() / SCOUTS).max(LEAST_BYTES);
    let mut places = [usize::MAX; SCOUTS];
    places[0] = 0;
    for (scout, place) in places.iter_mut().enumerate().skip(1) {
        *place = first_start(records, region, scout * part_bytes).unwrap_or(usize::MAX);
    }
    let mut is_any_under_way = true;
    while is_any_under_way {
        is_any_under_way = false;
        for (scout, place) in places.iter_mut().enumerate() {
            if *place >= region.len().min((scout + 1) * part_bytes) {
                continue;
            }
            // A length of 0 would hold a scout for ever.
            let next = records.after(region, *place);
            *place = next.filter(|next| next > place).unwrap_or(usize::MAX);
            if *place < region.len() {
                // The end of the record before, its trailer in pcapng, is next to this header.
                prefetch_line(region, place.wrapping_sub(4));
                prefetch_line(region, *place);
                prefetch_line(region, place.wrapping_add(64));
                is_any_under_way = true;
            }
        }
    }
}

/// The first place from `from` on where a record, and another behind it, seem to start.
fn first_start<R: Records>(records: &R, region: &[u8], from: usize) -> Option<usize> {
    let from = from.next_multiple_of(R::ALIGNED_BYTES);
    let places = (from..region.len().min(from + SEARCH_BYTES)).step_by(R::ALIGNED_BYTES);
    places
        .filter(|&place| records.seems_to_start(region, place))
        .find(|&place| {
            let next = records.after(region, place);
            next.is_some_and(|next| records.seems_to_start(region, next))
        })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    use super::*;

    const MARK: u8 = 0xa5;
    const HEADER_BYTES: usize = 8;

    /// Records of which each starts with four marks and its length. Keeps where scouts have looked.
    #[derive(Default)]
    struct Marked {
        seen: RefCell<BTreeSet<usize>>,
    }

    impl Records for Marked {
        const ALIGNED_BYTES: usize = 4;

        fn after(&self, data: &[u8], at: usize) -> Option<usize> {
            self.seen.borrow_mut().insert(at);
            let length = data.get(at + 4..at + HEADER_BYTES)?.first_chunk()?;
            Some(at + u32::from_le_bytes(*length) as usize)
        }

        fn seems_to_start(&self, data: &[u8], at: usize) -> bool {
            data.get(at..at + 4) == Some(&[MARK; 4])
        }
    }

    /// Records of many lengths, and where they start. Some contain what looks like a start.
    fn records(bytes: usize) -> (Vec<u8>, BTreeSet<usize>) {
        let (mut data, mut starts) = (Vec::new(), BTreeSet::new());
        while data.len() < bytes {
            starts.insert(data.len());
            let length = 64 + data.len() * 7919 % 1_400 / 4 * 4;
            data.extend([MARK; 4]);
            data.extend((length as u32).to_le_bytes());
            data.resize(data.len() + length - HEADER_BYTES, 0);
            if length > 1_200 {
                let decoy = data.len() - 40;
                data[decoy..decoy + 4].fill(MARK);
            }
        }
        (data, starts)
    }

    #[test]
    fn scouts_see_every_record_of_the_region() {
        for bytes in [3_000, 100_000, 1 << 20, REGION_BYTES] {
            let (data, starts) = records(bytes);
            let marked = Marked::default();
            go_ahead(&marked, &data);
            let seen = marked.seen.into_inner();
            // Not the first records of a part: the search for its start takes two in a row.
            let missed = starts
                .difference(&seen)
                .filter(|start| **start < bytes.min(data.len()));
            let missed = missed.count();
            assert!(missed <= SCOUTS, "{missed} of {}", starts.len());
        }
    }

    #[test]
    fn scouts_end_whatever_the_bytes_are() {
        for data in [vec![], vec![0; 5], vec![MARK; 300_000], vec![0xff; 300_000]] {
            go_ahead(&Marked::default(), &data);
        }
        let mut data = vec![0; 300_000];
        data[..4].fill(MARK);
        go_ahead(&Marked::default(), &data);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn scouts_go_once_per_region_and_only_where_records_are_long() {
        let (mut scouts, data) = (Scouts::default(), vec![0; 5 * REGION_BYTES]);
        let mut sent = 0;
        for (record_bytes, least, most) in [(80, 0, 0), (1_000, 4, 6), (80, 0, 0)] {
            scouts.after_walk(100 * record_bytes, 100);
            let mut walked = 0;
            sent = 0;
            while walked < 4 * REGION_BYTES {
                let packets = scouts.before_walk(256, &data, |_| sent += 1);
                assert!((1..=256).contains(&packets));
                scouts.after_walk(packets * record_bytes, packets);
                walked += packets * record_bytes;
            }
            assert!((least..=most).contains(&sent), "{sent}");
        }
        assert_eq!(sent, 0);
    }
}
