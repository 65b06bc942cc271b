// SPDX-License-Identifier: Apache-2.0
//! FlowRadar (Li and others, NSDI 2016): a Bloom filter of the flows seen, and a table in which
//! each cell sums up several flows. A collector decodes the table afterwards.

use std::collections::HashMap;

use turboflow_merge::KeyHasher;

use crate::count_min::hashers;
use crate::{Answer, FlowCounter};

/// A cell of the counting table.
#[derive(Clone, Copy, Debug)]
struct Cell<const K: usize> {
    /// The keys of its flows, XORed.
    flow_xor: [u64; K],
    /// Number of flows in this cell.
    flow_count: u32,
    /// Total packets of its flows.
    packet_count: u64,
}

/// The encoded flow set of one switch, decoded once at the end.
///
/// Every flow is added to `hashes` cells. A cell with a single flow reveals its key and packets,
/// which are then subtracted from the flow's other cells. That may leave further cells with a
/// single flow. With more than [`peeling_threshold`] cells per flow, this very probably decodes all
/// flows; with fewer, most flows stay undecoded. A flow that the filter wrongly reports as seen
/// never enters the table, and its packets are counted for other flows.
#[derive(Clone, Debug)]
pub struct FlowRadar<const K: usize> {
    filter: Vec<u64>,
    filter_hashes: Vec<KeyHasher>,
    cells: Vec<Cell<K>>,
    cells_a_hash: usize,
    cell_hashes: Vec<KeyHasher>,
    flows: u64,
}

/// Cells per flow that decoding requires, for 3 to 5 hash functions and many flows.
///
/// # Source
/// The peeling thresholds of random hypergraphs. FlowRadar and invertible Bloom lookup tables
/// (Goodrich and Mitzenmacher, 2011) decode by peeling.
#[must_use]
pub const fn peeling_threshold(hashes: usize) -> Option<f64> {
    match hashes {
        3 => Some(1.222),
        4 => Some(1.295),
        5 => Some(1.425),
        _ => None,
    }
}

impl<const K: usize> FlowRadar<K> {
    /// A filter of `filter_bits` with `filter_hashes` functions, and a counting table of `cells`
    /// with `hashes` functions. Each function of the table has its own equal share of the cells.
    ///
    /// # Panics
    /// If one of them is 0.
    #[must_use]
    pub fn new(
        filter_bits: usize,
        filter_hashes: usize,
        cells: usize,
        hashes: usize,
        seed: u64,
    ) -> Self {
        assert!(filter_bits > 0 && filter_hashes > 0 && hashes > 0);
        let cells_a_hash = cells.div_ceil(hashes);
        assert!(cells_a_hash > 0, "each hash function has at least one cell");
        let empty = Cell {
            flow_xor: [0; K],
            flow_count: 0,
            packet_count: 0,
        };
        let mut all = hashers(filter_hashes + hashes, seed);
        let cell_hashes = all.split_off(filter_hashes);
        Self {
            filter: vec![0; filter_bits.div_ceil(64)],
            filter_hashes: all,
            cells: vec![empty; cells_a_hash * hashes],
            cells_a_hash,
            cell_hashes,
            flows: 0,
        }
    }

    /// Number of flows that the filter reported as new.
    #[must_use]
    pub const fn flows(&self) -> u64 {
        self.flows
    }

    #[inline(always)]
    fn place(&self, hash: usize, key: &[u64; K]) -> usize {
        let index = self.cell_hashes[hash]
            .hash(key)
            .share(self.cells_a_hash as u64);
        hash * self.cells_a_hash + index as usize
    }

    /// Adds the key to the filter. Returns true if it was new.
    #[inline(always)]
    fn is_new(&mut self, key: &[u64; K]) -> bool {
        let bits = self.filter.len() as u64 * 64;
        let mut new = false;
        for hasher in &self.filter_hashes {
            let bit = hasher.hash(key).share(bits);
            let word = &mut self.filter[(bit / 64) as usize];
            new |= *word >> (bit % 64) & 1 == 0;
            *word |= 1 << (bit % 64);
        }
        new
    }

    /// Subtracts a flow from all its cells.
    fn take_out(&mut self, key: &[u64; K], packets: u64, alone: &mut Vec<usize>) {
        for hash in 0..self.cell_hashes.len() {
            let place = self.place(hash, key);
            let cell = &mut self.cells[place];
            for (word, others) in cell.flow_xor.iter_mut().zip(key) {
                *word ^= others;
            }
            cell.flow_count -= 1;
            // Packets of flows that the filter wrongly reported as seen were added to other flows,
            // to some cells more often than to others.
            cell.packet_count = cell.packet_count.saturating_sub(packets);
            if cell.flow_count == 1 {
                alone.push(place);
            }
        }
    }
}

impl<const K: usize> FlowCounter<K> for FlowRadar<K> {
    #[inline(always)]
    fn observe(&mut self, key: &[u64; K]) {
        let new = self.is_new(key);
        self.flows += u64::from(new);
        for hash in 0..self.cell_hashes.len() {
            let place = self.place(hash, key);
            let cell = &mut self.cells[place];
            if new {
                for (word, newcomer) in cell.flow_xor.iter_mut().zip(key) {
                    *word ^= newcomer;
                }
                cell.flow_count += 1;
            }
            cell.packet_count += 1;
        }
    }

    fn size_bytes(&self) -> usize {
        size_of_val(self.filter.as_slice()) + size_of_val(self.cells.as_slice())
    }

    fn answer(mut self: Box<Self>) -> Answer<K> {
        let mut listed = HashMap::new();
        let mut alone: Vec<usize> = (0..self.cells.len())
            .filter(|place| self.cells[*place].flow_count == 1)
            .collect();
        while let Some(place) = alone.pop() {
            let Cell {
                flow_xor: key,
                flow_count,
                packet_count,
            } = self.cells[place];
            // The cell may have been emptied since it was pushed.
            if flow_count == 1 {
                listed.insert(key, packet_count);
                self.take_out(&key, packet_count, &mut alone);
            }
        }
        Answer {
            listed,
            others: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::{Stream, key};

    const FLOWS: u64 = 10_000;

    /// The share of flows decoded. Asserts that the packet count of each is correct.
    fn decoded(cells_a_flow: f64, hashes: usize, seed: u64) -> f64 {
        let cells = (cells_a_flow * FLOWS as f64) as usize;
        // The filter is large enough to give no false positives here.
        let mut radar = Box::new(FlowRadar::new(64 * FLOWS as usize, 7, cells, hashes, seed));
        for flow in 0..FLOWS {
            (0..=flow % 5).for_each(|_| radar.observe(&key(flow)));
        }
        assert_eq!(radar.flows(), FLOWS);
        let answer = radar.answer();
        for flow in (0..FLOWS).filter(|flow| answer.listed.contains_key(&key(*flow))) {
            assert_eq!(answer.packets(&key(flow)), flow % 5 + 1);
        }
        answer.listed.len() as f64 / FLOWS as f64
    }

    #[test]
    fn decodes_every_flow_above_the_threshold_and_few_below() {
        for hashes in [3, 4, 5] {
            let threshold = peeling_threshold(hashes).unwrap();
            for seed in 0..10 {
                let above = decoded(threshold * 1.05, hashes, seed);
                assert_eq!(above, 1.0, "{hashes} hash functions, seed {seed}");
                let below = decoded(threshold * 0.92, hashes, seed);
                assert!(below < 0.6, "{hashes} hash functions, seed {seed}: {below}");
            }
        }
    }

    #[test]
    fn a_small_filter_loses_flows_and_counts_their_packets_for_others() {
        let stream = Stream::zipf(20_000, 200_000, 1);
        let flows = stream.truth.packets.len();
        let mut radar = Box::new(FlowRadar::new(4 * flows, 3, 3 * flows, 3, 1));
        stream.packets.iter().for_each(|key| radar.observe(key));
        // The filter reports (1 - e^(-3/4))^3 of the last flows as seen, and fewer of the first
        // ones.
        let known = flows as u64 - radar.flows();
        let share = known as f64 / flows as f64;
        assert!((0.01..0.15).contains(&share), "{share}");
        let answer = radar.answer();
        assert!(answer.listed.len() < flows);
        assert!(
            answer
                .listed
                .iter()
                .any(|(key, packets)| stream.truth.packets.get(key) < Some(packets))
        );
    }

    #[test]
    fn memory_is_that_of_filter_and_cells() {
        let radar = FlowRadar::<2>::new(640, 3, 30, 3, 1);
        assert_eq!(radar.size_bytes(), 80 + 30 * 32);
    }
}
