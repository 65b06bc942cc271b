// SPDX-License-Identifier: Apache-2.0
//! Configuration of the program before it is loaded.

use libbpf_rs::OpenMapMut;
use rustix::time::{ClockId, Timespec, clock_getres};
use turboflow_merge::Layout;

use crate::layout::{INTERFACES, KEY_HALVES, TUPLE_HALVES};
use crate::{KernelError, OffloadConfig, TestedProgram};

/// The clock for timestamps of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// The kernel's tick: up to a tick (1 to 10 ms) early, and cheap.
    Coarse,
    /// Nanosecond resolution.
    #[default]
    Precise,
}

impl Clock {
    /// Nanoseconds per tick, if timestamps are ticks that the program counts.
    pub(crate) fn tick_ns(self) -> Option<u64> {
        match self {
            Self::Coarse => tick_ns(),
            Self::Precise => None,
        }
    }
}

/// The design of the microflow table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tables {
    /// A table per CPU, without locks. A flow whose packets arrive on several CPUs has overlapping
    /// records on each of them; its totals are still exact.
    #[default]
    PerCpu,
    /// One table with a lock per row: a flow has one record at a time, whichever CPUs its packets
    /// arrive on (TurboFlow, Figure 9).
    RowLock,
}

/// Maps that exist only if frames are handed up.
const UNPARSED_MAPS: [&str; 3] = ["unparsed", "unparsed_copy", "unparsed_lost"];

/// How frames that are not packets are handed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandUp {
    /// Bytes kept of a frame.
    pub snap_bytes: u32,
    /// Bytes of the ring buffer for these frames: a power of two, and a multiple of the page size.
    /// It bounds their rate: frames that arrive while it is full are only counted.
    pub ring_bytes: u32,
}

impl HandUp {
    /// Maximum bytes kept of a frame.
    pub const MAX_SNAP_BYTES: u32 = 16_384;

    /// The bytes of `struct unparsed_config` in `bpf/unparsed.h`.
    fn config_bytes(this: Option<Self>) -> [u8; 8] {
        let snap_bytes = this.map_or(0, |this| this.snap_bytes.min(Self::MAX_SNAP_BYTES));
        u64::from(snap_bytes).to_le_bytes()
    }

    /// Configures a map before anything is loaded into the kernel. Returns whether it is one of
    /// [`UNPARSED_MAPS`].
    pub(crate) fn configure(
        this: Option<Self>,
        map: &mut OpenMapMut<'_>,
    ) -> libbpf_rs::Result<bool> {
        let name = map.name().to_owned();
        if name == ".rodata.unparsed" {
            map.set_initial_value(&Self::config_bytes(this))?;
            return Ok(true);
        }
        if !UNPARSED_MAPS.iter().any(|own| name == *own) {
            return Ok(false);
        }
        match this {
            // The instructions that use it are dead code.
            None => map.set_autocreate(false)?,
            Some(this) if name == "unparsed" => map.set_max_entries(this.ring_bytes)?,
            Some(_) => {}
        }
        Ok(true)
    }
}

/// Configuration of programs that only tests and measurements run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tested {
    /// Number of flows over which packets are spread at random; 0: packets are unchanged.
    pub flows: u32,
    /// Whether flows follow Zipf's law, in trains of packets of which 32 are interleaved; else
    /// uniform.
    pub is_skewed: bool,
    /// Index of the interface that sends packets.
    pub interface: u32,
    /// Number of tables, if less than the number of CPUs: as if the other CPUs had been added
    /// later.
    pub tables: Option<u32>,
    /// The program attached to interfaces in place of the engine.
    pub attached: Option<TestedProgram>,
}

/// The engine's configuration.
#[derive(Clone, Debug)]
pub struct KernelConfig {
    /// Names of the interfaces to attach to, at most [`INTERFACES`].
    pub interfaces: Vec<String>,
    /// Whether the program is bound to its only interface, in native mode only. Then it can ask the
    /// driver about a frame ([`DriverKnows`](crate::DriverKnows)). Useful only with a layout that
    /// needs that.
    pub is_bound: bool,
    /// The contents of records, in one direction; `None`: the default definition.
    pub layout: Option<Layout>,
    /// The design of the table.
    pub tables: Tables,
    /// Slots of each IPv4 table, and of each IPv6 table.
    pub slots: u32,
    /// Bytes of the ring buffer: a power of two, and a multiple of the page size.
    pub ring_bytes: u32,
    /// Length of a cell: the minimum of `max_age` and the timeouts
    /// (`docs/decisions/0001-cells.md`).
    pub cell_ns: u64,
    /// No packet joins a record that has any of these marks: `Marks::ENDS` if the linger is 0, else
    /// 0.
    pub evict_after: u8,
    /// The clock for timestamps.
    pub clock: Clock,
    /// Reads the wall clock, in nanoseconds since 1970. The engine applies its offset to the
    /// kernel's clock, and adopts steps.
    pub wall_ns: fn() -> u64,
    /// Whether the program drops frames, as for a mirror port, instead of passing them on.
    pub drops: bool,
    /// Maximum length of a frame on the wire. Longer frames were merged from several, as in generic
    /// mode, and are counted (`KernelCounters::packets_merged`).
    pub longest_frame_bytes: u32,
    /// How frames that are not packets are handed up; `None`: not at all.
    pub hand_up: Option<HandUp>,
    /// A table of verdicts beside the microflow table, which user space writes through
    /// `KernelEngine::open_offload`; `None`: packets are only metered.
    pub offload: Option<OffloadConfig>,
    /// If set, also loads the programs for tests and measurements. The verifier takes time for
    /// each.
    pub tested: Option<Tested>,
    /// Random words of the hash key.
    pub hash_keys: [u64; KEY_HALVES],
}

/// Size of `struct config` in `bpf/layout.h`.
const CONFIG_BYTES: usize = 200;
/// Maximum slots of a table.
const MAX_SLOTS: u32 = 1 << 22;
/// The kernel requires rings of whole pages; 4,096 is the smallest page size.
pub(crate) const PAGE_BYTES: u32 = 4_096;
/// The program divides the clock by the cell's length, as a signed number.
const MAX_CELL_NS: u64 = i64::MAX as u64;

impl KernelConfig {
    /// Checks the ranges of all values, without asking the kernel.
    ///
    /// # Errors
    /// The first value out of range, with the valid range.
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
            let allowed = "1 for a program that is bound to an interface";
            return wrong("the number of interfaces", count, allowed);
        }
        if let Some(offload) = &self.offload {
            offload.validate()?;
            if self.is_bound {
                let allowed = "0 for a program that has a table of verdicts";
                return wrong(
                    "the number of devices that the program is bound to",
                    1,
                    allowed,
                );
            }
            if let Some(bridge) = &offload.bridge {
                bridge.validate(self.interfaces.len())?;
            }
        }
        if self.cell_ns == 0 || self.cell_ns > MAX_CELL_NS {
            let allowed = "1 ns to 292 years";
            return wrong("the length of a cell", self.cell_ns, allowed);
        }
        Ok(())
    }

    /// The program attached to interfaces in place of the engine, in tests and measurements.
    pub(crate) fn attached(&self) -> Option<TestedProgram> {
        self.tested.and_then(|tested| tested.attached)
    }

    /// Whether frames go from one interface to another.
    pub(crate) fn is_bridge(&self) -> bool {
        let offload = self.offload.as_ref();
        offload.is_some_and(|offload| offload.bridge.is_some())
    }

    /// Number of tables: one per present CPU. Possible CPUs may be many more, especially in virtual
    /// machines, and all their tables would take memory.
    pub(crate) fn tables(&self, present: usize, possible: usize) -> Option<u32> {
        let (tables, numbered) = match self.tables {
            Tables::PerCpu => (u32::try_from(present).ok()?, u32::try_from(possible).ok()?),
            Tables::RowLock => (1, 1),
        };
        // Rows are numbered in 32 bits, including those that a CPU added later would have, so that
        // its numbers differ from all others.
        self.slots.checked_mul(numbered)?.checked_mul(2)?;
        let fewer = self.tested.and_then(|tested| tested.tables);
        Some(fewer.unwrap_or(tables).min(tables))
    }

    /// The bytes of `struct config` in `bpf/layout.h`.
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
            attached: _,
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

/// Nanoseconds per tick, if the kernel derives ticks from its clock.
fn tick_ns() -> Option<u64> {
    const FINE_NS: u64 = 1;
    let is_fine = ns(clock_getres(ClockId::Monotonic)) == FINE_NS;
    is_fine.then(|| ns(clock_getres(ClockId::MonotonicCoarse)))
}

pub(crate) fn ns(time: Timespec) -> u64 {
    (time.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec as u64)
}
