// SPDX-License-Identifier: Apache-2.0
//! Loads the program, and owns its maps.

use std::sync::Arc;

use libbpf_rs::libbpf_sys::BPF_F_XDP_DEV_BOUND_ONLY;
use libbpf_rs::{ErrorKind, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject};
use turboflow_engine::{PlainRows, RecordShape};
use turboflow_record::WORDS_V4;

use crate::attach::interface_index;
use crate::clock::EngineClock;
use crate::collect::{Collecting, RECORD_BYTES};
use crate::driver::splits_headers;
use crate::grace::Grace;
use crate::inbox::Inbox;
use crate::link::Link;
use crate::memory::SharedMemory;
use crate::plan::KernelPlan;
use crate::planned::row_words;
use crate::ring::Ring;
use crate::ticks::{TICK_NAME, Ticks};
use crate::unparsed::Unparsed;
use crate::{HandUp, KernelConfig, KernelCounters, KernelError, Tables, Tester, short};

/// The compiled program, aligned as its ELF headers require.
#[repr(C, align(8))]
struct Aligned<Bytes: ?Sized>(Bytes);

static PROGRAM: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(
    env!("OUT_DIR"),
    "/microflow.bpf.o"
)));

/// The device-bound program. It is a separate object, because it needs the kernel's types (BTF) and
/// another licence.
static BOUND: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/bound.bpf.o")));

/// Words between two IPv4 rows of a table: a cache line.
pub(crate) const ROW_WORDS_V4: usize = PlainRows::<WORDS_V4>::WORDS;
/// Words between two IPv6 rows: two cache lines.
pub(crate) const ROW_WORDS_V6: usize = 16;

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
            Some(layout) => KernelPlan::new(layout)?,
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
        let program = if is_bound { BOUND } else { PROGRAM };
        let mut open = ObjectBuilder::default()
            .open_memory(&program.0)
            .map_err(KernelError::refused("read its own program"))?;
        let interfaces = config.interfaces.iter();
        let interfaces = interfaces
            .map(|name| Ok((name.clone(), interface_index(name)?)))
            .collect::<Result<Vec<_>, KernelError>>()?;
        let indices: Vec<u32> = interfaces.iter().map(|(_, index)| *index).collect();
        configure(&mut open, config, tables, &indices, plan.as_ref(), shape)?;
        let object = open.load().map_err(|source| match &interfaces[..] {
            [(name, _)] if is_bound && is_no_driver(source.kind()) => {
                let name = name.clone();
                KernelError::NoDriver { name, source }
            }
            _ => KernelError::refused("load its program")(source),
        })?;
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
        Tester::new(Arc::clone(&self.object), self.shape.is_some())
    }

    /// The program that runs on interfaces.
    pub(crate) const fn program_name(&self) -> &'static str {
        program_name(self.shape.is_some(), self.is_bound)
    }
}

const fn program_name(has_plan: bool, is_bound: bool) -> &'static str {
    match (has_plan, is_bound) {
        (false, _) => PROGRAM_NAME,
        (true, false) => PLANNED_NAME,
        (true, true) => BOUND_NAME,
    }
}

/// Program for the default definition.
pub(crate) const PROGRAM_NAME: &str = "microflows";
/// Program for any other definition.
pub(crate) const PLANNED_NAME: &str = "planned";
/// Program for any other definition, bound to an interface: the only program of its object.
const BOUND_NAME: &str = "bound";
/// The program for the default definition on generated packets, for tests and measurements.
const FIRE_NAME: &str = "fire";
/// Metering programs of one object, of which one is loaded: the verifier takes time for each.
const METERING: [&str; 2] = [PROGRAM_NAME, PLANNED_NAME];

/// Error of loading a bound program: the device does not support it, or the kernel does not.
const fn is_no_driver(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::InvalidInput | ErrorKind::Unsupported)
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

/// Sets sizes and constants before anything is loaded into the kernel.
fn configure(
    open: &mut OpenObject,
    config: &KernelConfig,
    tables: u32,
    interfaces: &[u32],
    plan: Option<&KernelPlan>,
    shape: Option<RecordShape>,
) -> Result<(), KernelError> {
    const DOING: &str = "set up its program";
    let mine = program_name(plan.is_some(), config.is_bound);
    for mut program in open.progs_mut() {
        let name = program.name().to_str().unwrap_or_default();
        let is_beside = !METERING.contains(&name) && (plan.is_none() || name != FIRE_NAME);
        let wanted = match name {
            TICK_NAME => config.clock.tick_ns().is_some(),
            _ => name == mine || config.tested.is_some() && is_beside,
        };
        program.set_autoload(wanted);
        if name == BOUND_NAME {
            program.set_ifindex(interfaces[0]);
            program.set_flags(BPF_F_XDP_DEV_BOUND_ONLY);
        }
    }
    let rows = config.slots * tables * 2;
    let has_v4 = shape.is_none_or(|shape| shape.wide_key_words.is_none());
    let row_v4 = shape.map_or(ROW_WORDS_V4, |shape| row_words(shape.words_v4()));
    let row_v6 = shape.map_or(ROW_WORDS_V6, |shape| row_words(shape.words_v6()));
    for mut map in open.maps_mut() {
        if HandUp::configure(config.hand_up, &mut map).map_err(KernelError::refused(DOING))? {
            continue;
        }
        match map.name().to_str() {
            Some("table_v4") if !has_v4 => Ok(()),
            Some("table_v4") => map
                .set_max_entries(rows)
                .and_then(|()| map.set_value_size(8 * row_v4 as u32)),
            Some("table_v6") => map
                .set_max_entries(rows)
                .and_then(|()| map.set_value_size(8 * row_v6 as u32)),
            Some("locks") if config.tables == Tables::RowLock => map.set_max_entries(config.slots),
            Some("evicted") => map.set_max_entries(config.ring_bytes),
            Some("short_flows") => map.set_key_size(8 * short::key_words(shape) as u32),
            Some(".rodata.config") => {
                let mut named = config.interfaces.iter().zip(interfaces);
                let splits_headers = named.any(|(name, index)| splits_headers(name, *index));
                map.set_initial_value(&config.bytes(interfaces, plan.is_some(), splits_headers))
            }
            Some(".rodata.plan") => match plan {
                Some(plan) => map.set_initial_value(&plan.bytes(&config.hash_keys)),
                None => Ok(()),
            },
            _ => Ok(()),
        }
        .map_err(KernelError::refused(DOING))?;
    }
    Ok(())
}

pub(crate) fn map(object: &Object, name: &'static str) -> Result<MapHandle, KernelError> {
    let map = object
        .maps()
        .find(|map| map.name() == name)
        .ok_or(KernelError::Incomplete { name })?;
    MapHandle::try_from(&map).map_err(KernelError::refused("open its maps"))
}

fn shared_memory(object: &Object, what: &'static str) -> Result<SharedMemory, KernelError> {
    let map = map(object, what)?;
    SharedMemory::map(&map).map_err(|source| KernelError::Map { what, source })
}
