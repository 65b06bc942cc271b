// SPDX-License-Identifier: Apache-2.0
//! Configuration of the table of verdicts before it is loaded.

use libbpf_rs::OpenMapMut;

use crate::config::PAGE_BYTES;
use crate::layout::TUPLE_HALVES;
use crate::plan::KernelPlan;
use crate::{BridgeConfig, KernelError};

/// Maximum bytes copied of a frame that is tapped: `MAX_TAP_BYTES` in `bpf/tap.h`.
pub const MAX_TAP_BYTES: u32 = 2_048;

/// Maximum number of packets of a flow that are tapped. Packets for which the ring had no room do
/// not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TapBudget {
    /// Of a TCP flow.
    pub tcp: u8,
    /// Of a UDP flow.
    pub udp: u8,
    /// Of any other flow.
    pub other: u8,
}

/// As many packets as are inspected to detect applications (`PacketLimits` in `crates/inspect`).
impl Default for TapBudget {
    fn default() -> Self {
        Self {
            tcp: 32,
            udp: 24,
            other: 24,
        }
    }
}

/// The table of verdicts, and how first packets are tapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffloadConfig {
    /// Rows for IPv4 flows; there are as many again for IPv6 flows.
    pub rows: u32,
    /// Number of flows whose spent budget is remembered: a multiple of 4. If there are more, the
    /// flow that was silent longest is forgotten, and is tapped anew if it continues.
    pub tap_rows: u32,
    /// Packets of a flow that are tapped.
    pub budget: TapBudget,
    /// Bytes of the ring for taps: a power of two, and a multiple of the page size.
    pub ring_bytes: u32,
    /// Bytes kept of a frame, at most [`MAX_TAP_BYTES`]; 0: only the key.
    pub snap_bytes: u32,
    /// After this silence, in nanoseconds, a packet of a flow that is not TCP begins a new flow,
    /// which is tapped anew.
    pub idle_ns: u64,
    /// Whether flows in different VLANs (outermost tag) are different flows.
    pub keys_vlan: bool,
    /// Random words of two hashes of a flow's key.
    pub hash_keys: [[u64; TUPLE_HALVES]; 2],
    /// Whether frames are forwarded between two interfaces according to their verdicts; `None`:
    /// frames go to the kernel.
    pub bridge: Option<BridgeConfig>,
}

/// Size of `struct offload_config` in `bpf/verdict.h`.
const CONFIG_BYTES: usize = 8 * 2 * TUPLE_HALVES + 16;
/// Rows of a set of the budgets, `TAP_WAYS` in `bpf/tap.h`.
const TAP_WAYS: u32 = 4;
/// Maximum rows: `bpf_map_update_elem` numbers them in 32 bits, with spare ones for each CPU.
const MAX_ROWS: u32 = 1 << 28;
/// A budget of 255 marks a flow that is not tapped again (`ALL_SPENT` in `bpf/tap.h`).
const MAX_BUDGET: u8 = 254;
/// Bytes of kernel memory for a row: element and bucket.
const ROW_BYTES_V4: u64 = 96;
const ROW_BYTES_V6: u64 = 120;

impl OffloadConfig {
    /// Kernel memory of the rows, the budgets and the ring, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        u64::from(self.rows) * (ROW_BYTES_V4 + ROW_BYTES_V6)
            + u64::from(self.tap_rows) * 8
            + u64::from(self.ring_bytes)
    }

    /// Checks the ranges of all values, without asking the kernel.
    pub(crate) fn validate(&self) -> Result<(), KernelError> {
        let wrong = |what, value: u64, allowed| {
            Err(KernelError::Configuration {
                what,
                value,
                allowed,
            })
        };
        if self.rows == 0 || self.rows > MAX_ROWS {
            let allowed = "1 to 268435456";
            return wrong("the number of rows for verdicts", self.rows.into(), allowed);
        }
        if self.tap_rows < TAP_WAYS
            || self.tap_rows > MAX_ROWS
            || !self.tap_rows.is_multiple_of(TAP_WAYS)
        {
            let allowed = "4 to 268435456, a multiple of 4";
            return wrong(
                "the number of rows for budgets",
                self.tap_rows.into(),
                allowed,
            );
        }
        if !self.ring_bytes.is_power_of_two() || self.ring_bytes < PAGE_BYTES {
            let allowed = "a power of two of at least 4096 bytes";
            return wrong(
                "the size of the ring for taps",
                self.ring_bytes.into(),
                allowed,
            );
        }
        if self.snap_bytes > MAX_TAP_BYTES {
            let allowed = "at most 2048";
            return wrong("the bytes kept of a tap", self.snap_bytes.into(), allowed);
        }
        let TapBudget { tcp, udp, other } = self.budget;
        if let Some(budget) = [tcp, udp, other].into_iter().find(|one| *one > MAX_BUDGET) {
            let allowed = "at most 254";
            return wrong("the budget of taps", budget.into(), allowed);
        }
        Ok(())
    }

    /// The bytes of `struct offload_config` in `bpf/verdict.h`.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(CONFIG_BYTES);
        for word in self.hash_keys.as_flattened() {
            bytes.extend(word.to_ne_bytes());
        }
        let sets = self.tap_rows / TAP_WAYS;
        // A silence is measured in units of 2^30 ns, in 16 bits.
        let idle_units = u32::try_from(self.idle_ns >> 30).unwrap_or(u32::MAX);
        bytes.extend(sets.to_ne_bytes());
        bytes.extend(self.snap_bytes.to_ne_bytes());
        let TapBudget { tcp, udp, other } = self.budget;
        bytes.extend([tcp, udp, other, u8::from(self.keys_vlan)]);
        bytes.extend(idle_units.min(u16::MAX.into()).to_ne_bytes());
        bytes
    }

    /// Configures a map before anything is loaded into the kernel. Returns whether the map belongs
    /// to the table of verdicts.
    pub(crate) fn configure(
        &self,
        map: &mut OpenMapMut<'_>,
        plan: Option<&KernelPlan>,
    ) -> libbpf_rs::Result<bool> {
        if let Some(bridge) = &self.bridge
            && bridge.configure(map, plan)?
        {
            return Ok(true);
        }
        match map.name().to_str() {
            Some("verdicts_v4" | "verdicts_v6") => map.set_max_entries(self.rows)?,
            Some("tap_sets") => map.set_max_entries(self.tap_rows / TAP_WAYS)?,
            Some("taps") => map.set_max_entries(self.ring_bytes)?,
            Some(".rodata.offload") => map.set_initial_value(&self.bytes())?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> OffloadConfig {
        OffloadConfig {
            rows: 100,
            tap_rows: 64,
            budget: TapBudget::default(),
            ring_bytes: 1 << 16,
            snap_bytes: 128,
            keys_vlan: true,
            idle_ns: 15_000_000_000,
            hash_keys: [[1; TUPLE_HALVES], [2; TUPLE_HALVES]],
            bridge: None,
        }
    }

    #[test]
    fn is_written_as_the_program_reads_it() {
        let bytes = config().bytes();
        assert_eq!(bytes.len(), CONFIG_BYTES);
        let after_keys = &bytes[8 * 2 * TUPLE_HALVES..];
        assert_eq!(
            after_keys,
            [16, 0, 0, 0, 128, 0, 0, 0, 32, 24, 24, 1, 13, 0, 0, 0]
        );
    }

    #[test]
    fn values_out_of_range_are_refused_by_name() {
        assert!(config().validate().is_ok());
        let refused = |change: fn(&mut OffloadConfig)| {
            let mut config = config();
            change(&mut config);
            config.validate().map_err(|error| error.to_string())
        };
        for (change, what) in [
            (
                (|config| config.rows = 0) as fn(&mut OffloadConfig),
                "rows for verdicts",
            ),
            (|config| config.tap_rows = 6, "rows for budgets"),
            (|config| config.ring_bytes = 4_097, "ring for taps"),
            (|config| config.snap_bytes = 2_049, "kept of a tap"),
            (|config| config.budget.udp = 255, "budget of taps"),
        ] {
            let said = refused(change).unwrap_err();
            assert!(said.contains(what), "{said}");
        }
    }
}
