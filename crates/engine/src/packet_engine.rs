// SPDX-License-Identifier: Apache-2.0
//! Engines that are given packets in this process.

use turboflow_merge::{KeyHasher, MicroflowRecord, Plan};

use crate::Evicted;

/// Why a table is emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictAll {
    /// A cell of the clock ended.
    Cell,
    /// The input ended, or the clock was set back.
    Flush,
}

/// The microflow table of one shard and one key width, in this process.
///
/// Packets arrive as microflow records of one packet, in the order of their arrival. What the table
/// evicts goes to the aggregator: the records of a flow in time order (law 3), none spanning the
/// end of a cell (laws 4 and 5; `docs/decisions/0001-cells.md`).
///
/// # Shape
/// `K` words of key, `N` words of further features.
pub trait PacketEngine<const K: usize, const N: usize>: Send {
    /// Enters the cell of the clock that starts at `start_ns`; the table has been emptied of the one
    /// before.
    ///
    /// `hits_needed_percent` is the share of packets that must hit for the table to pay, given what a
    /// merge in the aggregator costs at the moment.
    fn enter_cell(&mut self, start_ns: u64, hits_needed_percent: u64);

    /// Meters packets of the current cell and appends what they displace to `evicted`.
    fn observe(
        &mut self,
        packets: &[MicroflowRecord<K, N>],
        evicted: &mut Vec<MicroflowRecord<K, N>>,
    );

    /// Whether packets go straight to the aggregator at the moment, since the table does not pay.
    fn is_bypassed(&self) -> bool;

    /// Counts packets that go straight to the aggregator.
    fn pass(&mut self, packets: usize);

    /// Evicts every resident record.
    fn evict_all(&mut self, why: EvictAll, evicted: &mut Vec<MicroflowRecord<K, N>>);

    /// What has left the table so far.
    fn evicted(&self) -> Evicted;
}

/// A kind of [`PacketEngine`] with its settings: makes the tables of every shard and key width.
pub trait PacketEngines: Clone + Send + 'static {
    /// The engine of one key width and record size.
    type Engine<const K: usize, const N: usize>: PacketEngine<K, N>;

    /// An empty table for one of `shards` shards. No packet joins a record with a mark in
    /// `evict_after`.
    fn open<const K: usize, const N: usize>(
        &self,
        shards: usize,
        evict_after: u8,
        plan: Plan,
        hasher: KeyHasher,
    ) -> Self::Engine<K, N>;

    /// Memory of one such table, in bytes.
    fn size_bytes<const K: usize, const N: usize>(&self, shards: usize) -> usize;
}
