// SPDX-License-Identifier: Apache-2.0
//! Counters of verdicts and taps.

use libbpf_rs::{MapCore, MapFlags, Object};

use crate::KernelError;
use crate::layout::words;
use crate::object::map;

/// Counters of verdicts and taps, over all CPUs. Every metered packet is a hit or a miss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OffloadCounters {
    /// Packets with a verdict.
    pub hits: u64,
    /// Of these: dropped by their verdict.
    pub packets_dropped: u64,
    /// IP bytes of the dropped packets.
    pub bytes_dropped: u64,
    /// Packets without a verdict.
    pub misses: u64,
    /// Of these: copied to user space.
    pub taps: u64,
    /// Of these: not copied, because the ring had no room.
    pub taps_lost: u64,
    /// Notes about the end of a connection for which the ring had no room.
    pub ends_lost: u64,
}

impl OffloadCounters {
    pub(super) fn read(object: &Object) -> Result<Self, KernelError> {
        let cpus = map(object, "offload_ledger")?
            .lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY)
            .map_err(KernelError::refused("read its counters of verdicts"))?;
        let mut counters = Self::default();
        for cpu in cpus.iter().flatten() {
            counters.add_cpu(cpu);
        }
        Ok(counters)
    }

    /// Adds the counters of one CPU: the bytes of `struct offload_counters` in `bpf/verdict.h`.
    fn add_cpu(&mut self, bytes: &[u8]) {
        let totals = [
            &mut self.hits,
            &mut self.packets_dropped,
            &mut self.bytes_dropped,
            &mut self.misses,
            &mut self.taps,
            &mut self.taps_lost,
            &mut self.ends_lost,
        ];
        for (total, word) in totals.into_iter().zip(words(bytes)) {
            *total += word;
        }
    }
}
