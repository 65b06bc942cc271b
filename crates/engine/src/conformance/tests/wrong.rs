// SPDX-License-Identifier: Apache-2.0
//! Engines that are wrong in one way each.

use turboflow_merge::{KeyHasher, Marks, MicroflowRecord, Plan};

use crate::conformance::{InProcess, PlainEngines, plain};
use crate::{Abilities, EvictAll, Evicted, PacketEngine, PacketEngines};

/// What an engine does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Records of a cell come in the next one.
    AgesLate,
    /// It counts a record that there is not.
    CountsOneMore,
    /// It takes an eviction by age for one by collision.
    CountsAnotherCause,
    /// It forgets the record that it evicts first.
    DropsOne,
    /// It evicts everything after every look.
    EvictsForNothing,
    /// It has more slots than it was given.
    HasMoreSlots,
    /// It stamps a late packet with the time of the cell.
    LetsLateJoin,
    /// It keeps a record over the end of its cell.
    LetsSpanCells,
    /// It does not look at SYN.
    MergesAcrossSyn,
    /// It does not look at FIN and RST.
    MergesAfterEnd,
    /// A smallest time to live is forgotten in the record that it evicts first.
    MergesWrong,
    /// It evicts a record twice.
    RepeatsOne,
    /// Of two records of a flow the second comes first.
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
        /// The engines with that fault.
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
    /// What is to come later.
    held: Vec<MicroflowRecord<K, N>>,
    /// Whether it has done wrong, where once is enough.
    is_done: bool,
}

impl<const K: usize, const N: usize> WrongEngine<K, N> {
    /// What becomes of a packet.
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

    /// What becomes of what the right engine evicted.
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
