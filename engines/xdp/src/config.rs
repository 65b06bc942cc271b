// SPDX-License-Identifier: Apache-2.0
//! How the program is set up before it is loaded.

use crate::KernelError;
use crate::layout::KEY_HALVES;

/// Which clock stamps packets that come without a timestamp of the hardware's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The kernel's tick: up to a tick (1 to 10 ms) late, and cheap.
    Coarse,
    /// Nanoseconds.
    Precise,
}

/// The engine's configuration.
#[derive(Clone, Debug)]
pub struct KernelConfig {
    /// Slots of the table of each CPU.
    pub slots: u32,
    /// Bytes of the ring buffer: a power of two, and whole pages.
    pub ring_bytes: u32,
    /// Length of a cell: the smallest of `max_age` and the timeouts (`docs/decisions/0001-cells.md`).
    pub cell_ns: u64,
    /// Marks after which no packet joins a record: `Marks::ENDS` where the linger is 0, else 0.
    pub evict_after: u8,
    /// Which clock.
    pub clock: Clock,
    /// Nanoseconds from the monotonic clock's zero to that of the wall clock, 1970 subtracted.
    pub clock_offset_ns: u64,
    /// Whether the programs that only tests and measurements run are loaded too: the verifier takes its time over each.
    pub loads_tested_programs: bool,
    /// Random words that key the hash.
    pub hash_keys: [u64; KEY_HALVES],
}

/// Memory of the largest table of one CPU: 2^22 rows, 369 MB.
const MAX_SLOTS: u32 = 1 << 22;
/// The kernel takes rings of whole pages; 4,096 is the smallest page there is.
const PAGE_BYTES: u32 = 4_096;

impl KernelConfig {
    pub(crate) fn validate(&self) -> Result<(), KernelError> {
        let wrong = |what, value: u64, allowed| {
            Err(KernelError::Configuration {
                what,
                value,
                allowed,
            })
        };
        if self.slots == 0 || self.slots > MAX_SLOTS {
            return wrong(
                "the number of microflow slots",
                self.slots.into(),
                "1 to 4194304",
            );
        }
        if !self.ring_bytes.is_power_of_two() || self.ring_bytes < PAGE_BYTES {
            let allowed = "a power of two of at least 4096 bytes";
            return wrong("the size of the ring", self.ring_bytes.into(), allowed);
        }
        if self.cell_ns == 0 {
            return wrong("the length of a cell", 0, "at least 1 ns");
        }
        Ok(())
    }

    /// As `struct config` of `bpf/layout.h` lies.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(112);
        for word in self
            .hash_keys
            .iter()
            .chain([&self.cell_ns, &self.clock_offset_ns])
        {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(self.slots.to_ne_bytes());
        bytes.extend([
            self.evict_after,
            u8::from(self.clock == Clock::Coarse),
            0,
            0,
        ]);
        debug_assert_eq!(bytes.len(), 112);
        bytes
    }
}
