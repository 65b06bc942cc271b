// SPDX-License-Identifier: Apache-2.0
//! Scouts bring the headers of long records into the cache before the walk needs them.
//!
//! The start of a record is only known from the record before it. In a capture of whole packets,
//! each header lies in a page of its own, which no prefetcher can guess, and the walk waits for
//! memory at every packet. Several scouts start at different places ahead of the walk, each at what
//! looks like a record. They take turns going from header to header, so that their memory accesses
//! overlap. They only prefetch: a scout that started at a wrong place costs time but changes no
//! result.

use crate::walk::prefetch_line;

/// Bytes that are scouted at once. The headers in them fit into a second-level cache.
const REGION_BYTES: usize = 2 << 20;
/// Number of scouts that take turns. More would wait for each other: a core can have about twice as
/// many cache misses in flight.
const SCOUTS: usize = 16;
/// Minimum bytes per scout, so that its search for a start pays.
const LEAST_BYTES: usize = 32 << 10;
/// Minimum mean length of records for which scouts pay, in bytes. For shorter records, prefetching
/// in address order is enough.
const LONG_RECORD_BYTES: usize = 384;
/// Minimum number of packets for a meaningful mean length.
const TELLING_PACKETS: usize = 16;
/// How far a scout searches for a start, in bytes: a few long records.
const SEARCH_BYTES: usize = 16 << 10;

/// Locates the records of a file.
pub(crate) trait Records {
    /// The distance between two starts is a multiple of this.
    const ALIGNED_BYTES: usize;

    /// Where the record after the one at `at` starts, according to its header. `None` if the header
    /// is incomplete or invalid.
    fn after(&self, data: &[u8], at: usize) -> Option<usize>;

    /// Whether a record seems to start at `at`.
    fn seems_to_start(&self, data: &[u8], at: usize) -> bool;
}

/// Decides when scouts go ahead.
#[derive(Debug, Default)]
pub(crate) struct Scouts {
    /// Mean length of recent records.
    mean_bytes: usize,
    /// Bytes and packets since that mean was taken.
    bytes: usize,
    packets: usize,
    /// Number of bytes ahead of the walk that have been scouted.
    scouted_bytes: usize,
}

impl Scouts {
    /// Calls `go_ahead` on the start of `data` if records are long enough for scouts to pay.
    /// Returns how many packets the walk should take, at most `limit`.
    pub(crate) fn before_walk(
        &mut self,
        limit: usize,
        data: &[u8],
        go_ahead: impl FnOnce(&[u8]),
    ) -> usize {
        if !cfg!(target_arch = "x86_64") || self.mean_bytes < LONG_RECORD_BYTES {
            return limit;
        }
        // The remaining part is scouted again, because only the walk's position is surely the start
        // of a record.
        if self.scouted_bytes < REGION_BYTES / 4 {
            let region = &data[..data.len().min(REGION_BYTES)];
            go_ahead(region);
            self.scouted_bytes = region.len();
        }
        limit.min((self.scouted_bytes / self.mean_bytes).max(1))
    }

    /// Learns the mean length of records from a walk.
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

/// Sends scouts through a region that starts with a record.
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
            // A length of 0 would trap a scout for ever.
            let next = records.after(region, *place);
            *place = next.filter(|next| next > place).unwrap_or(usize::MAX);
            if *place < region.len() {
                // The end of the previous record (in pcapng, its trailer) is next to this header.
                prefetch_line(region, place.wrapping_sub(4));
                prefetch_line(region, *place);
                prefetch_line(region, place.wrapping_add(64));
                is_any_under_way = true;
            }
        }
    }
}

/// The first place from `from` on where two consecutive records seem to start.
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

    /// Records that each start with four marks and a length. Remembers where scouts have looked.
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

    /// Records of many lengths, and where they start. Some of them contain a decoy that looks like
    /// a start.
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
            // May miss the first records of a part, because the search for a start needs two in a
            // row.
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
