// SPDX-License-Identifier: Apache-2.0
//! Loads the program, and knows its maps.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use libbpf_rs::{
    MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject, RingBuffer, RingBufferBuilder,
};
use turboflow_record::WORDS_V4;

use crate::attach::interface_index;
use crate::batch::Rows;
use crate::clock::EngineClock;
use crate::collect::{Collecting, RECORD_BYTES};
use crate::grace::Grace;
use crate::inbox::Inbox;
use crate::memory::SharedMemory;
use crate::plan::{KernelPlan, Shape};
use crate::planned::row_words;
use crate::{KernelConfig, KernelCounters, KernelError, Tables, Tester};

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
    pub(crate) links: Vec<OwnedFd>,
    pub(crate) interfaces: Vec<(String, u32)>,
    pub(crate) object: Arc<Object>,
    pub(crate) table_v4: SharedMemory,
    pub(crate) table_v6: SharedMemory,
    pub(crate) control: SharedMemory,
    pub(crate) ring: RingBuffer<'static>,
    pub(crate) inbox: Arc<Mutex<Inbox>>,
    /// Of records of a plan; `None` where they are the default definition's.
    pub(crate) shape: Option<Shape>,
    pub(crate) collecting: Collecting,
    ledger: MapHandle,
    memory_bytes: u64,
}

impl KernelEngine {
    /// Loads the program; it is attached to nothing.
    ///
    /// # Errors
    /// A configuration out of range, or what the kernel refused.
    pub fn load(config: &KernelConfig) -> Result<Self, KernelError> {
        config.validate()?;
        let plan = match &config.layout {
            Some(layout) => KernelPlan::new(layout)?,
            None => None,
        };
        let shape = plan.as_ref().map(KernelPlan::shape);
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
        configure(&mut open, config, tables, &indices, plan.as_ref())?;
        let object = open
            .load()
            .map_err(KernelError::refused("load its program"))?;
        let shared = (config.tables == Tables::RowLock).then_some(slots);
        let inbox = Arc::new(Mutex::new(Inbox::new(shared, shape)));
        let ring = ring(&map(&object, "evicted")?, Arc::clone(&inbox))?;
        let clock = EngineClock::new(config.clock);
        let table_v4 = shared_memory(&object, "table_v4")?;
        let table_v6 = shared_memory(&object, "table_v6")?;
        let table_words = table_v4.words().len() + table_v6.words().len();
        let record_bytes = shape.map_or(RECORD_BYTES, |shape| 8 * shape.words_v6());
        let engine = Self {
            links: Vec::new(),
            interfaces,
            control: shared_memory(&object, ".data.control")?,
            collecting: Collecting::new(config, clock, Grace::new()?, record_bytes),
            ledger: map(&object, "ledger")?,
            memory_bytes: 8 * table_words as u64 + u64::from(config.ring_bytes),
            table_v4,
            table_v6,
            object: Arc::new(object),
            ring,
            inbox,
            shape,
        };
        engine.set_clock();
        Ok(engine)
    }

    /// Memory of the kernel's that tables and ring take.
    #[must_use]
    pub const fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// What the engine has done so far, over all CPUs.
    ///
    /// # Errors
    /// Where the kernel does not give it.
    pub fn counters(&self) -> Result<KernelCounters, KernelError> {
        let mut counters = self.collecting.counters();
        let cpus = self
            .ledger
            .lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY)
            .map_err(KernelError::refused("read its ledger"))?;
        for cpu in cpus.iter().flatten() {
            counters.add_cpu(cpu);
        }
        Ok(counters)
    }

    /// Runs its programs on frames, without a network; from any thread.
    #[must_use]
    pub fn tester(&self) -> Tester {
        Tester::new(Arc::clone(&self.object), self.shape.is_some())
    }

    /// The program that interfaces run.
    pub(crate) const fn program_name(&self) -> &'static str {
        match self.shape {
            Some(_) => PLANNED_NAME,
            None => PROGRAM_NAME,
        }
    }
}

/// The program for the default definition.
pub(crate) const PROGRAM_NAME: &str = "microflows";
/// The same for any other one.
pub(crate) const PLANNED_NAME: &str = "planned";
/// Programs that `planned` is in the place of: the verifier takes its time over each.
const NOT_PLANNED: [&str; 2] = [PROGRAM_NAME, "fire"];

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
    plan: Option<&KernelPlan>,
) -> Result<(), KernelError> {
    const DOING: &str = "set up its program";
    for mut program in open.progs_mut() {
        let name = program.name().to_str().unwrap_or_default();
        let (mine, others) = match plan {
            Some(_) => (PLANNED_NAME, &NOT_PLANNED[..]),
            None => (PROGRAM_NAME, &[PLANNED_NAME][..]),
        };
        let wanted = name == mine || config.tested.is_some() && !others.contains(&name);
        program.set_autoload(wanted);
    }
    let rows = config.slots * tables * 2;
    let shape = plan.map(KernelPlan::shape);
    let has_v4 = shape.is_none_or(|shape| shape.wide_key_words.is_none());
    let row_v4 = shape.map_or(ROW_WORDS_V4, |shape| row_words(shape.words_v4()));
    let row_v6 = shape.map_or(ROW_WORDS_V6, |shape| row_words(shape.words_v6()));
    for mut map in open.maps_mut() {
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
            Some(".rodata.config") => {
                map.set_initial_value(&config.bytes(tables, interfaces, plan.is_some()))
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

/// Only one thread at a time has the engine, and it alone reads the ring.
pub(crate) fn lock(inbox: &Mutex<Inbox>) -> MutexGuard<'_, Inbox> {
    inbox.lock().unwrap_or_else(PoisonError::into_inner)
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

fn ring(map: &MapHandle, inbox: Arc<Mutex<Inbox>>) -> Result<RingBuffer<'static>, KernelError> {
    const DOING: &str = "map its ring";
    let mut builder = RingBufferBuilder::new();
    let receive = move |item: &[u8]| {
        lock(&inbox).receive(item);
        0
    };
    builder
        .add(map, receive)
        .map_err(KernelError::refused(DOING))?;
    builder.build().map_err(KernelError::refused(DOING))
}
