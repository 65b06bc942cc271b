// SPDX-License-Identifier: Apache-2.0
//! The direct-mapped microflow table.

use turboflow_engine::{EvictAll, Evicted, PacketEngine, PacketEngines};
use turboflow_merge::{
    Base, KeyHasher, Machine, Marks, MergeGate, MicroflowRecord, PendingStates, Plan, Vectors,
    WithVectors, prefetch,
};

use crate::bypass::{HitWatch, Sizing};

/// Configuration of an engine.
#[derive(Clone, Copy, Debug)]
pub struct EngineConfig {
    /// Size of the microflow table.
    pub sizing: Sizing,
    /// Once a record has any of these marks, no further packet may join it. `Marks::ENDS` if the
    /// linger is 0, else 0.
    pub evict_after: u8,
}

/// Packets between the prefetch of a slot and its use.
const PREFETCH_DISTANCE: usize = 16;

/// The forwarding engine of one shard and one key width.
pub struct SoftwareEngine<const K: usize, const N: usize> {
    slots: Vec<MicroflowRecord<K, N>>,
    /// Slots in use, in the order in which they were first filled.
    occupied: Vec<u32>,
    hasher: KeyHasher,
    plan: Plan,
    cell: CellRules,
    watch: HitWatch,
    hits_needed_percent: u64,
    evicted: Evicted,
    machine: Machine,
}

/// The work on a batch of packets, compiled for every vector width.
struct MeterPackets<'a, const K: usize, const N: usize> {
    engine: &'a mut SoftwareEngine<K, N>,
    packets: &'a [MicroflowRecord<K, N>],
    evicted: &'a mut Vec<MicroflowRecord<K, N>>,
}

impl<const K: usize, const N: usize> WithVectors for MeterPackets<'_, K, N> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vectors>(self, vectors: V) {
        self.engine.meter(vectors, self.packets, self.evicted);
    }
}

impl<const K: usize, const N: usize> SoftwareEngine<K, N> {
    /// An empty engine.
    ///
    /// # Panics
    /// When the table is enabled and has no slots.
    #[must_use]
    pub fn new(config: EngineConfig, plan: Plan, hasher: KeyHasher) -> Self {
        let slots = config.sizing.slots();
        assert!(
            slots > 0 || config.sizing == Sizing::Off,
            "a table has at least one slot"
        );
        Self {
            slots: vec![MicroflowRecord::default(); slots as usize],
            occupied: Vec::with_capacity(slots as usize),
            hasher,
            plan,
            cell: CellRules {
                start_ns: 0,
                evict_after: config.evict_after,
            },
            watch: HitWatch::new(config.sizing),
            hits_needed_percent: 0,
            evicted: Evicted::default(),
            machine: Machine::detect(),
        }
    }

    /// Records resident in the table.
    #[must_use]
    pub const fn resident(&self) -> usize {
        self.occupied.len()
    }

    /// Memory of a table with this many slots, in bytes.
    #[must_use]
    pub const fn size_bytes_of(slots: u32) -> usize {
        slots as usize * (size_of::<MicroflowRecord<K, N>>() + size_of::<u32>())
    }

    /// The paper's table: `slot = hash(key); if slot.key == key { slot.update } else { evict slot;
    /// slot = packet }`.
    #[inline(always)]
    fn meter<V: Vectors>(
        &mut self,
        vectors: V,
        packets: &[MicroflowRecord<K, N>],
        evicted: &mut Vec<MicroflowRecord<K, N>>,
    ) {
        evicted.reserve(packets.len());
        let slot_count = self.slots.len() as u32;
        let hasher = self.hasher;
        let cell = self.cell;
        let gate = vectors.gate(&cell.gate());
        let mut ahead = [0u32; PREFETCH_DISTANCE];
        let slot_of =
            |packet: &MicroflowRecord<K, N>| hasher.hash(&packet.key).slot(slot_count) as u32;
        for (place, packet) in ahead.iter_mut().zip(packets) {
            *place = slot_of(packet);
            prefetch(self.slots.as_ptr().wrapping_add(*place as usize));
        }
        let (slots, mut pending) = (self.slots.as_mut_ptr(), PendingStates::new());
        let plan = &self.plan;
        let mut merged_up_to = 0;
        while merged_up_to < packets.len() {
            let end = packets
                .len()
                .min(merged_up_to.saturating_add(PendingStates::<N>::ROOM));
            for index in merged_up_to..end {
                let packet = &packets[index];
                let place = ahead[index % PREFETCH_DISTANCE];
                if let Some(later) = packets.get(index + PREFETCH_DISTANCE) {
                    let slot = slot_of(later);
                    ahead[index % PREFETCH_DISTANCE] = slot;
                    prefetch(slots.wrapping_add(slot as usize));
                }
                // SAFETY: the hash selects a slot of the table, which is not empty.
                let slot = unsafe { slots.add(place as usize) };
                // SAFETY: no other reference into the table lives. Until the pending states are
                // merged, no record leaves the table, and only its key and base are read.
                let merged = unsafe {
                    let state = &raw mut (*slot).state;
                    cell.may_join_at_once(&(*slot).base, &packet.base)
                        && pending.merge_if_passes(vectors, plan, &gate, slot, state, packet)
                };
                if merged {
                    continue;
                }
                // SAFETY: no other reference into the table lives.
                let resident = unsafe { &mut *slot };
                if cell.joins(resident, packet) {
                    // SAFETY: as for the merge above.
                    unsafe { pending.merge_in_order(vectors, plan, slot, packet) };
                } else if resident.key == [0; K] {
                    self.occupied.push(place);
                    *resident = *packet;
                } else {
                    pending.merge(vectors, plan);
                    // SAFETY: as above. The reference is taken again because the pending merge may
                    // have written this record.
                    let resident = unsafe { &mut *slot };
                    let same = resident.key == packet.key;
                    self.evicted.cut += u64::from(same);
                    self.evicted.collision += u64::from(!same);
                    evicted.push(*resident);
                    *resident = *packet;
                }
            }
            pending.merge(vectors, plan);
            merged_up_to = end;
        }
    }
}

impl<const K: usize, const N: usize> PacketEngine<K, N> for SoftwareEngine<K, N> {
    fn enter_cell(&mut self, start_ns: u64, hits_needed_percent: u64) {
        debug_assert!(self.occupied.is_empty());
        self.cell.start_ns = start_ns;
        self.hits_needed_percent = hits_needed_percent;
    }

    /// When the table starts to be bypassed, all its records are evicted.
    ///
    /// # Panics
    /// When the engine has no table.
    fn observe(
        &mut self,
        packets: &[MicroflowRecord<K, N>],
        evicted: &mut Vec<MicroflowRecord<K, N>>,
    ) {
        assert!(
            !self.slots.is_empty(),
            "packets are metered in a table, or passed by"
        );
        let before = evicted.len() + self.occupied.len();
        let machine = self.machine;
        machine.run_loop::<N, _>(MeterPackets {
            engine: self,
            packets,
            evicted,
        });
        let opened = evicted.len() + self.occupied.len() - before;
        let hits = packets.len().saturating_sub(opened) as u64;
        self.watch
            .count(packets.len(), hits, self.hits_needed_percent);
        if self.watch.is_aside() {
            self.evict_all(EvictAll::Flush, evicted);
        }
    }

    fn is_bypassed(&self) -> bool {
        self.watch.is_aside()
    }

    fn pass(&mut self, packets: usize) {
        debug_assert!(self.watch.is_aside());
        self.evicted.bypass += packets as u64;
        self.watch.count(packets, 0, self.hits_needed_percent);
    }

    /// Evicts in the order in which the slots were filled.
    fn evict_all(&mut self, why: EvictAll, evicted: &mut Vec<MicroflowRecord<K, N>>) {
        let count = self.occupied.len() as u64;
        match why {
            EvictAll::Cell => self.evicted.age += count,
            EvictAll::Flush => self.evicted.flush += count,
        }
        evicted.reserve(self.occupied.len());
        for &place in &self.occupied {
            let resident = &mut self.slots[place as usize];
            evicted.push(*resident);
            resident.key = [0; K];
        }
        self.occupied.clear();
    }

    fn evicted(&self) -> Evicted {
        self.evicted
    }
}

/// Creates software engines with tables of one size.
#[derive(Clone, Copy, Debug)]
pub struct SoftwareEngines {
    /// Total size of the microflow tables of all shards, where it is fixed.
    pub sizing: Sizing,
}

impl SoftwareEngines {
    /// The sizing of one shard's table, of `shards` in total.
    const fn of_a_shard(self, shards: usize) -> Sizing {
        match self.sizing {
            Sizing::Adaptive | Sizing::Off => self.sizing,
            Sizing::Fixed(slots) => Sizing::Fixed(slots.div_ceil(shards as u32)),
        }
    }
}

impl PacketEngines for SoftwareEngines {
    type Engine<const K: usize, const N: usize> = SoftwareEngine<K, N>;

    fn open<const K: usize, const N: usize>(
        &self,
        shards: usize,
        evict_after: u8,
        plan: Plan,
        hasher: KeyHasher,
    ) -> SoftwareEngine<K, N> {
        let sizing = self.of_a_shard(shards);
        let config = EngineConfig {
            sizing,
            evict_after,
        };
        SoftwareEngine::new(config, plan, hasher)
    }

    fn size_bytes<const K: usize, const N: usize>(&self, shards: usize) -> usize {
        SoftwareEngine::<K, N>::size_bytes_of(self.of_a_shard(shards).slots())
    }
}

/// Which packets and records of the current cell are merged.
#[derive(Clone, Copy, Debug)]
struct CellRules {
    /// Start of the cell. No packet of the cell is earlier.
    start_ns: u64,
    /// Marks that end a record.
    evict_after: u8,
}

impl CellRules {
    /// Passes pairs that certainly join, given [`CellRules::may_join_at_once`].
    /// [`CellRules::joins`] decides about the others.
    fn gate(&self) -> MergeGate {
        // All times are of one cell, so their differences are small.
        const ANY_NS: u64 = MergeGate::UNLIMITED_NS;
        let gate = MergeGate::new(self.start_ns, ANY_NS, ANY_NS);
        if self.evict_after == 0 {
            gate
        } else {
            gate.without_ends()
        }
    }

    /// The conditions that the gate does not check: the record began in this cell, and the packet
    /// does not open a connection.
    #[inline(always)]
    fn may_join_at_once(&self, resident: &Base, packet: &Base) -> bool {
        resident.first_ns >= self.start_ns && !packet.marks.any(Marks::STARTS_WITH_SYN)
    }

    /// Whether a packet may join a record: their keys are equal and both belong to this cell, the
    /// packet is not earlier than the record's start, and nothing that could end a flow arrived in
    /// between.
    #[inline(always)]
    fn joins<const K: usize, const N: usize>(
        &self,
        resident: &MicroflowRecord<K, N>,
        packet: &MicroflowRecord<K, N>,
    ) -> bool {
        let (base, marks) = (&resident.base, packet.base.marks);
        let in_cell = base.first_ns >= self.start_ns && packet.base.first_ns >= base.first_ns;
        let starts = marks.any(Marks::STARTS_WITH_SYN);
        resident.key == packet.key && in_cell & !starts & !base.marks.any(self.evict_after)
    }
}
