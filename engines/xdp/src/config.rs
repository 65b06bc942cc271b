// SPDX-License-Identifier: Apache-2.0
//! How the program is set up before it is loaded.

use turboflow_merge::Layout;

use crate::layout::{INTERFACES, KEY_HALVES, TUPLE_HALVES};
use crate::ticks::tick_ns;
use crate::{HandUp, KernelError};

/// Which clock stamps packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// The kernel's tick: up to a tick (1 to 10 ms) too early, and cheap.
    Coarse,
    /// Nanoseconds.
    #[default]
    Precise,
}

impl Clock {
    /// From one tick to the next, in nanoseconds, where packets are stamped with ticks that the program counts.
    pub(crate) fn tick_ns(self) -> Option<u64> {
        match self {
            Self::Coarse => tick_ns(),
            Self::Precise => None,
        }
    }
}

/// Where packets are metered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tables {
    /// A table on every CPU: nobody waits. A flow whose packets come to several CPUs has records on each of them, which
    /// overlap in time; its totals are exact all the same.
    #[default]
    PerCpu,
    /// One table, with a lock for each row: a flow has one record at a time, whichever CPUs its packets come to (TurboFlow,
    /// Figure 9).
    RowLock,
}

/// What programs that only tests and measurements run are set up with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tested {
    /// Flows over which packets are spread by chance; 0 leaves them as they are.
    pub flows: u32,
    /// Whether that follows Zipf's law, in trains of packets of which 32 are under way, rather than being uniform.
    pub is_skewed: bool,
    /// Index of the interface that packets are sent from.
    pub interface: u32,
    /// Tables, where there are to be fewer than CPUs: as if the others had been added later.
    pub tables: Option<u32>,
}

/// The engine's configuration.
#[derive(Clone, Debug)]
pub struct KernelConfig {
    /// Names of the interfaces that it is to be on, at most [`INTERFACES`].
    pub interfaces: Vec<String>,
    /// Whether the program is bound to its only interface, in native mode alone: it is told then what the driver knows of a frame
    /// ([`DriverKnows`](crate::DriverKnows)). Of no use without a layout that asks for such.
    pub is_bound: bool,
    /// What records hold: of one direction; `None` for the default definition.
    pub layout: Option<Layout>,
    /// Which tables.
    pub tables: Tables,
    /// Slots of a table for IPv4, and as many for IPv6.
    pub slots: u32,
    /// Bytes of the ring buffer: a power of two, and whole pages.
    pub ring_bytes: u32,
    /// Length of a cell: the smallest of `max_age` and the timeouts (`docs/decisions/0001-cells.md`).
    pub cell_ns: u64,
    /// Marks after which no packet joins a record: `Marks::ENDS` where the linger is 0, else 0.
    pub evict_after: u8,
    /// Which clock.
    pub clock: Clock,
    /// Reads the wall clock, in nanoseconds since 1970: the kernel's clock is taken for as far from it as it is, and followed where it
    /// is set.
    pub wall_ns: fn() -> u64,
    /// Whether frames end in the engine, as at a mirror port, rather than pass on.
    pub drops: bool,
    /// How long a frame of the wire may be. Longer ones were merged of several, as they are where a program is in generic mode, and
    /// counted (`KernelCounters::packets_merged`).
    pub longest_frame_bytes: u32,
    /// How frames that are no packet are handed up; not at all without it.
    pub hand_up: Option<HandUp>,
    /// Whether the programs that only tests and measurements run are loaded too: the verifier takes its time over each.
    pub tested: Option<Tested>,
    /// Random words that key the hash.
    pub hash_keys: [u64; KEY_HALVES],
}

/// `struct config` of `bpf/layout.h`.
const CONFIG_BYTES: usize = 200;
/// The largest table.
const MAX_SLOTS: u32 = 1 << 22;
/// The kernel takes rings of whole pages; 4,096 is the smallest page there is.
pub(crate) const PAGE_BYTES: u32 = 4_096;
/// What the program divides the clock by has to fit.
const MAX_CELL_NS: u64 = i64::MAX as u64;

impl KernelConfig {
    /// Says what is out of range, without asking the kernel.
    ///
    /// # Errors
    /// The first value that cannot be, with those that can.
    pub fn validate(&self) -> Result<(), KernelError> {
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
        let of_frames = self.hand_up.map(|hand_up| hand_up.ring_bytes);
        for ring_bytes in of_frames.into_iter().chain([self.ring_bytes]) {
            if !ring_bytes.is_power_of_two() || ring_bytes < PAGE_BYTES {
                let allowed = "a power of two of at least 4096 bytes";
                return wrong("the size of the ring", ring_bytes.into(), allowed);
            }
        }
        if self.interfaces.len() > INTERFACES {
            let count = self.interfaces.len() as u64;
            return wrong("the number of interfaces", count, "at most 16");
        }
        if self.is_bound && self.interfaces.len() != 1 {
            let count = self.interfaces.len() as u64;
            let allowed = "1 for a program that is bound to it";
            return wrong("the number of interfaces", count, allowed);
        }
        if self.cell_ns == 0 || self.cell_ns > MAX_CELL_NS {
            let allowed = "1 ns to 292 years";
            return wrong("the length of a cell", self.cell_ns, allowed);
        }
        Ok(())
    }

    /// How many tables: one for every CPU that is there. More are possible, in virtual machines often by far more, and memory
    /// would be taken for all of them.
    pub(crate) fn tables(&self, present: usize, possible: usize) -> Option<u32> {
        let (tables, numbered) = match self.tables {
            Tables::PerCpu => (u32::try_from(present).ok()?, u32::try_from(possible).ok()?),
            Tables::RowLock => (1, 1),
        };
        // Rows are numbered in 32 bits, those too that a CPU would have that is added later: none of them is another's.
        self.slots.checked_mul(numbered)?.checked_mul(2)?;
        let fewer = self.tested.and_then(|tested| tested.tables);
        Some(fewer.unwrap_or(tables).min(tables))
    }

    /// As `struct config` of `bpf/layout.h` lies.
    pub(crate) fn bytes(
        &self,
        interfaces: &[u32],
        has_plan: bool,
        splits_headers: bool,
    ) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(CONFIG_BYTES);
        let hash_keys = self.hash_keys.iter().take(TUPLE_HALVES);
        let tick_ns = self.clock.tick_ns().unwrap_or(0);
        for word in hash_keys.chain([&self.cell_ns, &tick_ns]) {
            bytes.extend(word.to_ne_bytes());
        }
        let Tested {
            flows,
            is_skewed,
            interface,
            tables: _,
        } = self.tested.unwrap_or_default();
        let mut indices = [0; INTERFACES];
        indices[..interfaces.len()].copy_from_slice(interfaces);
        let count = interfaces.len() as u32;
        let half_words = [self.slots, flows, interface].into_iter();
        for half_word in half_words
            .chain(indices)
            .chain([count, self.longest_frame_bytes])
        {
            bytes.extend(half_word.to_ne_bytes());
        }
        let is_coarse = u8::from(self.clock == Clock::Coarse);
        let is_shared = u8::from(self.tables == Tables::RowLock);
        let drops = u8::from(self.drops);
        let octaves = if is_skewed {
            flows.max(1).ilog2() + 1
        } else {
            0
        } as u8;
        let (has_plan, splits_headers) = (u8::from(has_plan), u8::from(splits_headers));
        bytes.extend([
            self.evict_after,
            is_coarse,
            is_shared,
            drops,
            octaves,
            has_plan,
            splits_headers,
        ]);
        bytes.resize(CONFIG_BYTES, 0);
        bytes
    }
}
