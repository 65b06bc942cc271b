// SPDX-License-Identifier: Apache-2.0
//! Microflow tables of several sizes that observe the same packets.

use turboflow_merge::KeyHash;

/// A table that stores only the flow of each slot.
///
/// A flow is identified by its 64-bit hash, of which 32 bits choose the slot. So two different
/// flows in one slot have equal hashes with a probability of 2^-32.
pub(super) struct Table {
    /// The hash of the flow in each slot; 0 if empty.
    residents: Vec<u64>,
    /// Packets whose slot was empty or held another flow.
    pub(super) started: u64,
    /// Packets whose slot held another flow.
    pub(super) evicted: u64,
}

impl Table {
    pub(super) fn new(slots: u32) -> Self {
        Self {
            residents: vec![0; slots as usize],
            started: 0,
            evicted: 0,
        }
    }

    pub(super) fn slots(&self) -> u32 {
        self.residents.len() as u32
    }

    /// The paper's table: `slot = hash(key); if slot.key != key { evict slot; slot = packet }`.
    pub(super) fn observe(&mut self, hashes: &[KeyHash]) {
        let slots = self.slots();
        for hash in hashes {
            let flow = hash.0.max(1);
            let resident = &mut self.residents[hash.slot(slots)];
            self.started += u64::from(*resident != flow);
            self.evicted += u64::from(*resident != flow && *resident != 0);
            *resident = flow;
        }
    }
}
