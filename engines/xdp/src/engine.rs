// SPDX-License-Identifier: Apache-2.0
//! The engine: the loaded program, its maps and its interfaces.

use std::sync::Arc;

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object};
use turboflow_engine::RecordShape;

use crate::bridge::opened::Bridge;
use crate::clock::EngineClock;
use crate::collect::{Collecting, RECORD_BYTES};
use crate::grace::Grace;
use crate::inbox::Inbox;
use crate::interface::interface_index;
use crate::link::Link;
use crate::memory::SharedMemory;
use crate::object::{map, program_name, shared_memory};
use crate::plan::KernelPlan;
use crate::ring::Ring;
use crate::ticks::Ticks;
use crate::unparsed::Unparsed;
use crate::{
    KernelConfig, KernelCounters, KernelError, OffloadConfig, Tables, TestedProgram, Tester,
    object, short,
};

/// The engine in the kernel: the loaded program, and its interfaces.
pub struct KernelEngine {
    /// Closing a link detaches the program from its interface. First, so that no more packets
    /// arrive while the other fields are dropped.
    pub(crate) links: Vec<Link>,
    pub(crate) interfaces: Vec<(String, u32)>,
    pub(crate) object: Arc<Object>,
    pub(crate) table_v4: SharedMemory,
    pub(crate) table_v6: SharedMemory,
    pub(crate) control: SharedMemory,
    pub(crate) ring: Ring,
    pub(crate) inbox: Inbox,
    /// The shape of a plan's records; `None` for the default definition.
    pub(crate) shape: Option<RecordShape>,
    /// Whether the program can ask the driver about frames.
    pub(crate) is_bound: bool,
    /// Whether records follow a plan and are not written by the fast program.
    has_plan: bool,
    /// The program attached to interfaces in place of the engine, in tests and measurements.
    attached: Option<TestedProgram>,
    pub(crate) bridge: Option<Bridge>,
    pub(crate) unparsed: Option<Unparsed>,
    pub(crate) collecting: Collecting,
    ledger: MapHandle,
    pub(crate) short_flows: MapHandle,
    pub(crate) tables: usize,
    /// One more than the highest possible CPU number.
    cpus: usize,
    ring_bytes: u32,
    memory_bytes: u64,
}

impl KernelEngine {
    /// Loads the program without attaching it.
    ///
    /// # Errors
    /// A configuration out of range, or an error of the kernel.
    pub fn load(config: &KernelConfig) -> Result<Self, KernelError> {
        config.validate()?;
        let plan = match &config.layout {
            Some(layout) => KernelPlan::new(layout, config.is_bridge())?,
            None => None,
        };
        let shape = config
            .layout
            .as_ref()
            .filter(|_| plan.is_some())
            .map(RecordShape::of);
        // The errors contain what libbpf would print.
        libbpf_rs::set_print(None);
        let cpus = cpu_numbers("possible")?;
        let slots = config.slots;
        let tables = config
            .tables(cpu_numbers("present")?, cpus)
            .ok_or(KernelError::TooManyRows { slots, cpus })?;
        let is_bound = config.is_bound && plan.is_some();
        let interfaces = config.interfaces.iter();
        let interfaces = interfaces
            .map(|name| Ok((name.clone(), interface_index(name)?)))
            .collect::<Result<Vec<_>, KernelError>>()?;
        let object = object::load(config, tables, &interfaces, plan.as_ref(), shape)?;
        let bridge = Bridge::of(config, &object, &interfaces)?;
        let shared = (config.tables == Tables::RowLock).then_some(slots);
        let what = "ring";
        let ring = Ring::map(&map(&object, "evicted")?)
            .map_err(|source| KernelError::Map { what, source })?;
        let ticks = match config.clock.tick_ns() {
            Some(tick_ns) => Some(Ticks::find(&object, tick_ns)?),
            None => None,
        };
        let clock = EngineClock::new(config.clock, config.wall_ns, ticks);
        let table_v4 = shared_memory(&object, "table_v4")?;
        let table_v6 = shared_memory(&object, "table_v6")?;
        let table_words = table_v4.words().len() + table_v6.words().len();
        let short_flows = map(&object, "short_flows")?;
        let offload = config.offload.as_ref();
        let record_bytes = shape.map_or(RECORD_BYTES, |shape| 8 * shape.words_v6());
        let engine = Self {
            links: Vec::new(),
            interfaces,
            control: shared_memory(&object, ".data.control")?,
            collecting: Collecting::new(config, clock, Grace::new()?, record_bytes),
            ledger: map(&object, "ledger")?,
            tables: tables as usize,
            cpus,
            ring_bytes: config.ring_bytes,
            memory_bytes: 8 * table_words as u64
                + u64::from(config.ring_bytes)
                + offload.map_or(0, OffloadConfig::memory_bytes)
                + short::memory_bytes(&short_flows),
            short_flows,
            table_v4,
            table_v6,
            unparsed: Unparsed::open(&object, config.hand_up)?,
            object: Arc::new(object),
            ring,
            inbox: Inbox::new(shared, shape),
            shape,
            is_bound,
            bridge,
            attached: config.attached(),
            has_plan: plan.is_some_and(|plan| plan.judged().is_none()),
        };
        engine.set_clock();
        Ok(engine)
    }

    /// Kernel memory of the tables, the ring and the list of flows with dropped records.
    #[must_use]
    pub const fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Bytes of the ring for records.
    #[must_use]
    pub const fn ring_bytes(&self) -> u32 {
        self.ring_bytes
    }

    /// The engine's counters so far, over all CPUs.
    ///
    /// # Errors
    /// Where the kernel does not return them.
    pub fn counters(&self) -> Result<KernelCounters, KernelError> {
        let mut counters = self.collecting.counters();
        for cpu in self.ledger_by_cpu()? {
            counters.add_cpu(&cpu);
        }
        Ok(counters)
    }

    /// Packets merged into each table so far; `None` if the mapping of CPUs to tables is unknown.
    pub(crate) fn metered_by_table(&self) -> Result<Option<Vec<u64>>, KernelError> {
        let cpus = self.ledger_by_cpu()?.into_iter().map(|cpu| {
            let mut counters = KernelCounters::default();
            counters.add_cpu(&cpu);
            counters.packets_metered
        });
        let mut metered: Vec<u64> = cpus.collect();
        if self.tables == 1 {
            return Ok(Some(vec![metered.iter().sum()]));
        }
        // If some CPU numbers are not used, the kernel leaves out their counters.
        let is_known = metered.len() == self.cpus;
        metered.truncate(self.tables);
        Ok(is_known.then_some(metered))
    }

    /// `struct counters` of every possible CPU.
    fn ledger_by_cpu(&self) -> Result<Vec<Vec<u8>>, KernelError> {
        let cpus = self
            .ledger
            .lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY);
        let cpus = cpus.map_err(KernelError::refused("read its ledger"))?;
        Ok(cpus.unwrap_or_default())
    }

    /// Runs the programs on frames without a network; usable from any thread.
    #[must_use]
    pub fn tester(&self) -> Tester {
        Tester::new(Arc::clone(&self.object), self.has_plan)
    }

    /// The program that runs on interfaces.
    pub(crate) const fn program_name(&self) -> &'static str {
        match self.attached {
            Some(tested) => tested.name(self.has_plan),
            None => program_name(self.has_plan, self.is_bound),
        }
    }
}

/// One more than the highest `present` or `possible` CPU number; some numbers may not be used.
fn cpu_numbers(which: &str) -> Result<usize, KernelError> {
    let what = "CPUs";
    let listed = std::fs::read_to_string(format!("/sys/devices/system/cpu/{which}"))
        .map_err(|source| KernelError::Map { what, source })?;
    let last = listed.trim().rsplit([',', '-']).next();
    let last = last.and_then(|number| number.parse::<usize>().ok());
    last.map(|last| last + 1)
        .ok_or(KernelError::Incomplete { name: what })
}
