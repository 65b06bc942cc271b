// SPDX-License-Identifier: Apache-2.0
//! Counters of a bridge.

use std::sync::Arc;

use libbpf_rs::{MapCore, MapFlags, Object};

use crate::KernelError;
use crate::layout::words;
use crate::object::map;

/// Words of `struct bridge_port` in `bpf/bridge.h`.
const PORT_WORDS: usize = 7;

/// Counters of the frames received on one port of a bridge.
///
/// `received = redirected + dropped_by_verdict + dropped_undecided + dropped_other`, and
/// `redirected = forwarded + too_long + redirect_errors + driver_dropped` once no frame is in
/// transit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BridgePortCounters {
    /// Frames received.
    pub received: u64,
    /// Of these: redirected to the other port.
    pub redirected: u64,
    /// Of these: dropped by a verdict on their flow.
    pub dropped_by_verdict: u64,
    /// Of these: dropped because their TCP or UDP flow has no verdict yet.
    pub dropped_undecided: u64,
    /// Of these: dropped because they have no verdict and another protocol, or belong to no flow.
    pub dropped_other: u64,
    /// Of the redirected: those that would have been dropped without the dry run.
    pub would_drop: u64,
    /// Of the redirected: multicast and broadcast frames that had come in at the other port within
    /// about a second. They show that there is a path beside the bridge.
    pub came_back: u64,
    /// Of the redirected: accepted by the other port's driver.
    pub forwarded: u64,
    /// Of the redirected: longer than the other port's MTU.
    pub too_long: u64,
    /// Of the redirected: refused by the kernel for another reason.
    pub redirect_errors: u64,
    /// Of the redirected: not accepted by the other port's driver, for instance because its ring
    /// was full.
    pub driver_dropped: u64,
}

/// Packets with a verdict from one rule, and their IP bytes. A dry run counts those that would have
/// been dropped as dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleCount {
    /// Packets that passed.
    pub packets_passed: u64,
    /// Their IP bytes.
    pub bytes_passed: u64,
    /// Packets that were dropped.
    pub packets_dropped: u64,
    /// Their IP bytes.
    pub bytes_dropped: u64,
}

/// The counters of both ports, over all CPUs, without [`BridgePortCounters::received`].
pub(super) fn read_ports(object: &Object) -> Result<[BridgePortCounters; 2], KernelError> {
    let mut ports = [BridgePortCounters::default(); 2];
    // Fates first, so that no frame has a fate before it is counted as redirected.
    for cpu in per_cpu(object, "bridge_fates", 0)? {
        let fates: Vec<u64> = words(&cpu).collect();
        for (place, port) in ports.iter_mut().enumerate() {
            let of = |kind: usize| fates.get(2 * kind + place).copied().unwrap_or_default();
            port.forwarded += of(0);
            port.driver_dropped += of(1);
            port.too_long += of(2);
            port.redirect_errors += of(3);
        }
    }
    for cpu in per_cpu(object, "bridge_ledger", 0)? {
        let counted: Vec<u64> = words(&cpu).collect();
        for (port, words) in ports.iter_mut().zip(counted.chunks_exact(PORT_WORDS)) {
            port.redirected += words[0];
            port.dropped_by_verdict += words[1];
            port.dropped_undecided += words[2];
            port.dropped_other += words[3];
            port.would_drop += words[4];
            port.redirect_errors += words[5];
            port.came_back += words[6];
        }
    }
    Ok(ports)
}

/// Reads the counters of rules and ports, from any thread. It keeps the program's maps open.
#[derive(Clone)]
pub struct RuleCounter {
    object: Arc<Object>,
}

impl RuleCounter {
    pub(super) const fn new(object: Arc<Object>) -> Self {
        Self { object }
    }

    /// Packets and bytes counted for a rule, over all CPUs. Only rules with numbers below
    /// [`BridgeConfig::rules`](crate::BridgeConfig::rules) are counted.
    ///
    /// # Errors
    /// If this is not a bridge, or the kernel does not return the counters.
    pub fn count(&self, rule: u16) -> Result<RuleCount, KernelError> {
        let mut sum = RuleCount::default();
        for cpu in per_cpu(&self.object, "rule_counts", rule.into())? {
            let totals = [
                &mut sum.packets_passed,
                &mut sum.bytes_passed,
                &mut sum.packets_dropped,
                &mut sum.bytes_dropped,
            ];
            for (total, word) in totals.into_iter().zip(words(&cpu)) {
                *total += word;
            }
        }
        Ok(sum)
    }
}

impl RuleCounter {
    /// The counters of both ports, without [`BridgePortCounters::received`].
    ///
    /// # Errors
    /// As [`count`](Self::count).
    pub fn ports(&self) -> Result<[BridgePortCounters; 2], KernelError> {
        read_ports(&self.object)
    }
}

fn per_cpu(object: &Object, name: &'static str, key: u32) -> Result<Vec<Vec<u8>>, KernelError> {
    let cpus = map(object, name)?
        .lookup_percpu(&key.to_ne_bytes(), MapFlags::ANY)
        .map_err(KernelError::refused("read the counters of a bridge"))?;
    Ok(cpus.unwrap_or_default())
}
