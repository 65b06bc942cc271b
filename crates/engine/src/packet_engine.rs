// SPDX-License-Identifier: Apache-2.0
//! Engines that run in this process and are given packets.

use turboflow_merge::{KeyHasher, MicroflowRecord, Plan};

use crate::Evicted;

/// Why all records are evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictAll {
    /// A clock cell ended.
    Cell,
    /// The input ended, or the clock went backwards.
    Flush,
}

/// The microflow table of one shard and one key width.
///
/// Packets arrive as microflow records of one packet, in order of arrival. Evicted records go to
/// the aggregator. Those of one flow leave in time order (law 3), and no record spans the end of a
/// cell (laws 4 and 5; `docs/architecture.md`, `docs/decisions/0001-cells.md`).
///
/// # Shape
/// `K` words of key, `N` words of further features.
pub trait PacketEngine<const K: usize, const N: usize>: Send {
    /// Enters the clock cell that starts at `start_ns`. The caller has evicted the records of the
    /// previous cell.
    ///
    /// `hits_needed_percent` is the share of packets that must hit for the table to be worth its
    /// cost, given the current cost of a merge in the aggregator.
    fn enter_cell(&mut self, start_ns: u64, hits_needed_percent: u64);

    /// Meters packets of the current cell and appends the records that they displace to `evicted`.
    fn observe(
        &mut self,
        packets: &[MicroflowRecord<K, N>],
        evicted: &mut Vec<MicroflowRecord<K, N>>,
    );

    /// Whether packets currently bypass the table because it does not pay.
    fn is_bypassed(&self) -> bool;

    /// Counts packets that bypass the table.
    fn pass(&mut self, packets: usize);

    /// Evicts every resident record.
    fn evict_all(&mut self, why: EvictAll, evicted: &mut Vec<MicroflowRecord<K, N>>);

    /// The numbers of records evicted so far.
    fn evicted(&self) -> Evicted;
}

/// A kind of [`PacketEngine`] with its settings. Creates the tables of all shards and key widths.
pub trait PacketEngines: Clone + Send + 'static {
    /// The engine for one key width and record size.
    type Engine<const K: usize, const N: usize>: PacketEngine<K, N>;

    /// Creates an empty table for one of `shards` shards. No packet joins a record that has any of
    /// the marks in `evict_after` ([`Marks`](turboflow_merge::Marks)).
    fn open<const K: usize, const N: usize>(
        &self,
        shards: usize,
        evict_after: u8,
        plan: Plan,
        hasher: KeyHasher,
    ) -> Self::Engine<K, N>;

    /// Memory of one table, in bytes.
    fn size_bytes<const K: usize, const N: usize>(&self, shards: usize) -> usize;
}
