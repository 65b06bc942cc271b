// SPDX-License-Identifier: Apache-2.0
//! Engines with one fault each.

use turboflow_merge::{KeyHasher, Marks, MicroflowRecord, Plan};

use crate::conformance::{InProcess, PlainEngines, plain};
use crate::{Abilities, EvictAll, Evicted, PacketEngine, PacketEngines};

/// The fault of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Hands over the records of a cell in the next one.
    AgesLate,
    /// Counts an evicted record that does not exist.
    CountsOneMore,
    /// Counts an eviction by age as one by collision.
    CountsAnotherCause,
    /// Loses the first record that it evicts.
    DropsOne,
    /// Evicts everything whenever records are collected.
    EvictsForNothing,
    /// Has more slots than configured.
    HasMoreSlots,
    /// Changes the timestamp of a late packet to the start of the cell.
    LetsLateJoin,
    /// Keeps a record beyond the end of its cell.
    LetsSpanCells,
    /// Ignores SYN.
    MergesAcrossSyn,
    /// Ignores FIN and RST.
    MergesAfterEnd,
    /// Loses the smallest time to live of the first record that it evicts.
    MergesWrong,
    /// Evicts a record twice.
    RepeatsOne,
    /// Hands over two records of a flow in the wrong order.
    SwapsTwo,
}

/// The plain engine with a fault.
#[derive(Clone, Copy, Debug)]
pub(super) struct WrongEngines {
    slots: u32,
    fault: Fault,
}

macro_rules! subjects {
    ($($fault:ident)*) => {
        /// The plain engine with this fault.
        pub(super) fn wrong(fault: Fault) -> InProcess<WrongEngines> {
            let of_slots: fn(u32) -> WrongEngines = match fault {
                $(Fault::$fault => |slots| WrongEngines { slots, fault: Fault::$fault },)*
            };
            let abilities = Abilities { name: "wrong", ..crate::conformance::Subject::abilities(&plain()) };
            InProcess::new(abilities, of_slots)
        }
    };
}
subjects!(AgesLate CountsOneMore CountsAnotherCause DropsOne EvictsForNothing HasMoreSlots LetsLateJoin LetsSpanCells
    MergesAcrossSyn MergesAfterEnd MergesWrong RepeatsOne SwapsTwo);

impl PacketEngines for WrongEngines {
    type Engine<const K: usize, const N: usize> = WrongEngine<K, N>;

    fn open<const K: usize, const N: usize>(
        &self,
        shards: usize,
        evict_after: u8,
        plan: Plan,
        hasher: KeyHasher,
    ) -> WrongEngine<K, N> {
        let slots = match self.fault {
            Fault::HasMoreSlots => 4 * self.slots,
            _ => self.slots,
        };
        let evict_after = match self.fault {
            Fault::MergesAfterEnd => 0,
            _ => evict_after,
        };
        WrongEngine {
            right: PlainEngines { slots }.open(shards, evict_after, plan, hasher),
            fault: self.fault,
            cell_start_ns: 0,
            held: Vec::new(),
            is_done: false,
        }
    }

    fn size_bytes<const K: usize, const N: usize>(&self, _shards: usize) -> usize {
        0
    }
}

pub(super) struct WrongEngine<const K: usize, const N: usize> {
    right: <PlainEngines as PacketEngines>::Engine<K, N>,
    fault: Fault,
    cell_start_ns: u64,
    /// Records that are handed over later.
    held: Vec<MicroflowRecord<K, N>>,
    /// Whether the fault has occurred, if it occurs only once.
    is_done: bool,
}

impl<const K: usize, const N: usize> WrongEngine<K, N> {
    /// The packet, as the faulty engine meters it.
    fn spoil(&self, packet: &MicroflowRecord<K, N>) -> MicroflowRecord<K, N> {
        let mut packet = *packet;
        match self.fault {
            Fault::MergesAcrossSyn => packet.base.marks.0 &= !Marks::STARTS_WITH_SYN,
            Fault::LetsLateJoin => {
                packet.base.first_ns = packet.base.first_ns.max(self.cell_start_ns + 10);
                packet.base.last_ns = packet.base.first_ns;
            }
            _ => {}
        }
        packet
    }

    /// Hands over what the correct engine evicted, with the fault.
    fn hand_over(
        &mut self,
        records: Vec<MicroflowRecord<K, N>>,
        evicted: &mut Vec<MicroflowRecord<K, N>>,
    ) {
        for mut record in records {
            let is_first = !std::mem::replace(&mut self.is_done, true);
            match self.fault {
                Fault::DropsOne if is_first => continue,
                Fault::RepeatsOne if is_first => evicted.push(record),
                Fault::MergesWrong if is_first => record.base.min_ttl = Default::default(),
                Fault::SwapsTwo => {
                    let of_flow = |held: &MicroflowRecord<K, N>| held.key == record.key;
                    let held = self.held.iter().position(of_flow);
                    match held.map(|place| self.held.remove(place)) {
                        Some(held) => evicted.extend([record, held]),
                        None => self.held.push(record),
                    }
                    continue;
                }
                _ => {}
            }
            evicted.push(record);
        }
    }
}

impl<const K: usize, const N: usize> PacketEngine<K, N> for WrongEngine<K, N> {
    fn enter_cell(&mut self, start_ns: u64, hits_needed_percent: u64) {
        self.cell_start_ns = start_ns;
        if self.fault != Fault::LetsSpanCells {
            self.right.enter_cell(start_ns, hits_needed_percent);
        }
    }

    fn observe(
        &mut self,
        packets: &[MicroflowRecord<K, N>],
        evicted: &mut Vec<MicroflowRecord<K, N>>,
    ) {
        let packets: Vec<_> = packets.iter().map(|packet| self.spoil(packet)).collect();
        let mut records = Vec::new();
        self.right.observe(&packets, &mut records);
        if self.fault == Fault::EvictsForNothing {
            self.right.evict_all(EvictAll::Cell, &mut records);
        }
        self.hand_over(records, evicted);
    }

    fn is_bypassed(&self) -> bool {
        false
    }

    fn pass(&mut self, packets: usize) {
        self.right.pass(packets);
    }

    fn evict_all(&mut self, why: EvictAll, evicted: &mut Vec<MicroflowRecord<K, N>>) {
        let mut records = Vec::new();
        if self.fault != Fault::LetsSpanCells || why == EvictAll::Flush {
            self.right.evict_all(why, &mut records);
        }
        if self.fault == Fault::AgesLate {
            std::mem::swap(&mut records, &mut self.held);
            if why == EvictAll::Flush {
                records.append(&mut self.held);
            }
        }
        self.hand_over(records, evicted);
        if self.fault == Fault::SwapsTwo {
            evicted.append(&mut self.held);
        }
    }

    fn evicted(&self) -> Evicted {
        let evicted = self.right.evicted();
        match self.fault {
            Fault::CountsOneMore => Evicted {
                collision: evicted.collision + 1,
                ..evicted
            },
            Fault::CountsAnotherCause => Evicted {
                age: 0,
                collision: evicted.collision + evicted.age,
                ..evicted
            },
            _ => evicted,
        }
    }
}
