// SPDX-License-Identifier: Apache-2.0
//! Loads the program, and knows its maps.

use std::sync::Arc;

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject};
use turboflow_record::WORDS_V4;

use crate::attach::interface_index;
use crate::batch::Rows;
use crate::clock::EngineClock;
use crate::collect::Collecting;
use crate::grace::Grace;
use crate::inbox::Inbox;
use crate::link::Link;
use crate::memory::SharedMemory;
use crate::ring::Ring;
use crate::unparsed::Unparsed;
use crate::{HandUp, KernelConfig, KernelCounters, KernelError, Tables, Tester};

/// The program as clang compiled it, aligned as its ELF headers want to be.
#[repr(C, align(8))]
struct Aligned<Bytes: ?Sized>(Bytes);

static PROGRAM: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(
    env!("OUT_DIR"),
    "/microflow.bpf.o"
)));

/// Words from one IPv4 row of a table to the next: a cache line.
pub(crate) const ROW_WORDS_V4: usize = Rows::<WORDS_V4>::STRIDE;
/// Words from one IPv6 row to the next: two cache lines.
pub(crate) const ROW_WORDS_V6: usize = 16;

/// The engine in the kernel: loaded, and on the interfaces that it was attached to.
pub struct KernelEngine {
    /// Closing one takes the program off its interface. First, so that no packet comes any more when the rest goes.
    pub(crate) links: Vec<Link>,
    pub(crate) interfaces: Vec<(String, u32)>,
    pub(crate) object: Arc<Object>,
    pub(crate) table_v4: SharedMemory,
    pub(crate) table_v6: SharedMemory,
    pub(crate) control: SharedMemory,
    pub(crate) ring: Ring,
    pub(crate) inbox: Inbox,
    pub(crate) unparsed: Option<Unparsed>,
    pub(crate) collecting: Collecting,
    ledger: MapHandle,
    /// Of each half.
    pub(crate) tables: usize,
    ring_bytes: u32,
    memory_bytes: u64,
}

impl KernelEngine {
    /// Loads the program; it is attached to nothing.
    ///
    /// # Errors
    /// A configuration out of range, or what the kernel refused.
    pub fn load(config: &KernelConfig) -> Result<Self, KernelError> {
        config.validate()?;
        // What libbpf would print is in the errors.
        libbpf_rs::set_print(None);
        let cpus = cpu_numbers()?;
        let slots = config.slots;
        let tables = config
            .tables_a_half(cpus)
            .ok_or(KernelError::TooManyRows { slots, cpus })?;
        let mut open = ObjectBuilder::default()
            .open_memory(&PROGRAM.0)
            .map_err(KernelError::refused("read its own program"))?;
        let interfaces = config.interfaces.iter();
        let interfaces = interfaces
            .map(|name| Ok((name.clone(), interface_index(name)?)))
            .collect::<Result<Vec<_>, KernelError>>()?;
        let indices: Vec<u32> = interfaces.iter().map(|(_, index)| *index).collect();
        configure(&mut open, config, tables, &indices)?;
        let object = open
            .load()
            .map_err(KernelError::refused("load its program"))?;
        let shared = (config.tables == Tables::RowLock).then_some(slots);
        let what = "ring";
        let ring = Ring::map(&map(&object, "evicted")?)
            .map_err(|source| KernelError::Map { what, source })?;
        let clock = EngineClock::new(config.clock, config.wall_ns);
        let table_v4 = shared_memory(&object, "table_v4")?;
        let table_v6 = shared_memory(&object, "table_v6")?;
        let table_words = table_v4.words().len() + table_v6.words().len();
        let engine = Self {
            links: Vec::new(),
            interfaces,
            control: shared_memory(&object, ".data.control")?,
            collecting: Collecting::new(config, clock, Grace::new()?),
            ledger: map(&object, "ledger")?,
            tables: tables as usize,
            ring_bytes: config.ring_bytes,
            memory_bytes: 8 * table_words as u64 + u64::from(config.ring_bytes),
            table_v4,
            table_v6,
            unparsed: Unparsed::open(&object, config.hand_up)?,
            object: Arc::new(object),
            ring,
            inbox: Inbox::new(shared),
        };
        engine.set_clock();
        Ok(engine)
    }

    /// Memory of the kernel's that tables and ring take.
    #[must_use]
    pub const fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Bytes of the ring that records come by.
    #[must_use]
    pub const fn ring_bytes(&self) -> u32 {
        self.ring_bytes
    }

    /// What the engine has done so far, over all CPUs.
    ///
    /// # Errors
    /// Where the kernel does not give it.
    pub fn counters(&self) -> Result<KernelCounters, KernelError> {
        let mut counters = self.collecting.counters();
        for cpu in self.ledger_by_cpu()? {
            counters.add_cpu(&cpu);
        }
        Ok(counters)
    }

    /// Packets that went into each table so far; `None` where it is not known which CPU has which.
    pub(crate) fn metered_by_table(&self) -> Result<Option<Vec<u64>>, KernelError> {
        let cpus = self.ledger_by_cpu()?.into_iter().map(|cpu| {
            let mut counters = KernelCounters::default();
            counters.add_cpu(&cpu);
            counters.packets_metered
        });
        let metered = match self.tables {
            1 => vec![cpus.sum()],
            _ => cpus.collect(),
        };
        // Where numbers of CPUs are left out, the kernel leaves them out here too.
        Ok((metered.len() == self.tables).then_some(metered))
    }

    /// `struct counters` of every CPU that there may be.
    fn ledger_by_cpu(&self) -> Result<Vec<Vec<u8>>, KernelError> {
        let cpus = self
            .ledger
            .lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY);
        let cpus = cpus.map_err(KernelError::refused("read its ledger"))?;
        Ok(cpus.unwrap_or_default())
    }

    /// Runs its programs on frames, without a network; from any thread.
    #[must_use]
    pub fn tester(&self) -> Tester {
        Tester::new(Arc::clone(&self.object))
    }
}

/// The program that interfaces run.
pub(crate) const PROGRAM_NAME: &str = "microflows";

/// One more than the highest number a CPU may have: numbers may be left out.
fn cpu_numbers() -> Result<usize, KernelError> {
    let what = "CPUs";
    let possible = std::fs::read_to_string("/sys/devices/system/cpu/possible")
        .map_err(|source| KernelError::Map { what, source })?;
    let last = possible.trim().rsplit([',', '-']).next();
    let last = last.and_then(|number| number.parse::<usize>().ok());
    last.map(|last| last + 1)
        .ok_or(KernelError::Incomplete { name: what })
}

/// Sets sizes and constants, before anything is in the kernel.
fn configure(
    open: &mut OpenObject,
    config: &KernelConfig,
    tables: u32,
    interfaces: &[u32],
) -> Result<(), KernelError> {
    const DOING: &str = "set up its program";
    for mut program in open.progs_mut() {
        let wanted = config.tested.is_some() || program.name() == PROGRAM_NAME;
        program.set_autoload(wanted);
    }
    let rows = config.slots * tables * 2;
    for mut map in open.maps_mut() {
        if HandUp::configure(config.hand_up, &mut map).map_err(KernelError::refused(DOING))? {
            continue;
        }
        match map.name().to_str() {
            Some("table_v4") => map.set_max_entries(rows),
            Some("table_v6") => map
                .set_max_entries(rows)
                .and_then(|()| map.set_value_size(8 * ROW_WORDS_V6 as u32)),
            Some("locks") if config.tables == Tables::RowLock => map.set_max_entries(config.slots),
            Some("evicted") => map.set_max_entries(config.ring_bytes),
            Some(".rodata.config") => map.set_initial_value(&config.bytes(tables, interfaces)),
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
