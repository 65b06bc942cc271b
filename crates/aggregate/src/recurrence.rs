// SPDX-License-Identifier: Apache-2.0
//! How often flows come again: what the way of looking ahead depends on besides a table's size (`reach.rs`).

use turboflow_merge::{LaneHasher, MicroflowRecord};

/// Chunks from one that is looked at to the next.
const EVERY: u32 = 64;
/// Records that a chunk has at least, for a look at it to tell anything.
const ENOUGH: usize = 512;
/// Records that are looked at.
const MOST: usize = 1_024;
/// Places for fingerprints of their flows.
const PLACES: usize = 4 * MOST;

/// Whether most records are of flows that had another shortly before, going by [`MOST`] of a chunk, one chunk in every [`EVERY`] for
/// which it matters. No more of the past is looked at: trains of packets, and the few flows that have most of them, show there already.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recurrence {
    /// Chunks until the next look.
    wait: u32,
    is_common: bool,
}

impl Recurrence {
    /// Takes note of a chunk, and says whether recurrence is common by now.
    #[inline]
    pub(crate) fn note<const K: usize, const N: usize>(
        &mut self,
        hasher: &LaneHasher<K>,
        chunk: &[MicroflowRecord<K, N>],
    ) -> bool {
        if self.wait > 0 {
            self.wait -= 1;
        } else if chunk.len() >= ENOUGH {
            let some = &chunk[..chunk.len().min(MOST)];
            self.is_common = 2 * recurring(hasher, some) >= some.len();
            self.wait = EVERY - 1;
        }
        self.is_common
    }
}

/// Records of flows that had one before, or nearly: of flows that share a place, each takes it from the other.
#[cold]
#[inline(never)]
fn recurring<const K: usize, const N: usize>(
    hasher: &LaneHasher<K>,
    chunk: &[MicroflowRecord<K, N>],
) -> usize {
    let mut seen = [0; PLACES];
    let recurs = |record: &&MicroflowRecord<K, N>| {
        let hash = hasher.hash(&record.key);
        let place = &mut seen[hash.part(PLACES as u32) as usize];
        std::mem::replace(place, hash.tag()) == hash.tag()
    };
    chunk.iter().filter(recurs).count()
}

#[cfg(test)]
mod tests {
    use turboflow_merge::KeyHasher;

    use super::*;

    /// `records` of as many flows as there are, in turn.
    fn chunk(records: u64, flows: u64) -> Vec<MicroflowRecord<2, 0>> {
        let of_flow = |flow| MicroflowRecord {
            key: [flow + 1, 6],
            ..MicroflowRecord::default()
        };
        (0..records).map(|record| of_flow(record % flows)).collect()
    }

    #[test]
    fn is_common_where_flows_come_again_within_a_chunk_and_is_looked_at_now_and_then() {
        let hasher = LaneHasher::new(&KeyHasher::new(1));
        let mut recurrence = Recurrence::default();
        let [again, alone] = [chunk(2_048, 200), chunk(2_048, u64::MAX)];
        assert!(!recurrence.note(&hasher, &chunk(100, 2)), "too few to tell");
        for _ in 0..EVERY {
            assert!(recurrence.note(&hasher, &again));
        }
        for _ in 0..EVERY {
            assert!(!recurrence.note(&hasher, &alone));
        }
        assert!(recurrence.note(&hasher, &again));
    }
}
