// SPDX-License-Identifier: Apache-2.0
//! Loads the program, reads its ring, its ledger and, at the end, its table.

use std::cell::RefCell;
use std::rc::Rc;

use libbpf_rs::{
    MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject, ProgramInput, RingBuffer,
    RingBufferBuilder,
};

use crate::{Batch, KernelConfig, KernelCounters, KernelError};

/// The program as clang compiled it, aligned as its ELF headers want to be.
#[repr(C, align(8))]
struct Aligned<Bytes: ?Sized>(Bytes);

static PROGRAM: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(
    env!("OUT_DIR"),
    "/microflow.bpf.o"
)));

/// Bytes of `struct outcome` in `bpf/layout.h`.
const OUTCOME_BYTES: usize = 56;

/// What the ring's reader leaves.
#[derive(Default)]
struct Inbox {
    batch: Batch,
    /// Items of the ring that are no records.
    foreign: u64,
}

/// The engine in the kernel: loaded, with a table on every CPU.
pub struct KernelEngine {
    object: Object,
    table: MapHandle,
    ledger: MapHandle,
    ring: RingBuffer<'static>,
    inbox: Rc<RefCell<Inbox>>,
    slots: u32,
}

/// What is known when an engine has ended.
#[derive(Clone, Copy, Debug)]
pub struct Finished {
    /// The whole ledger.
    pub counters: KernelCounters,
    /// Records that were still in a table.
    pub evicted_flush: u64,
}

/// A program that can be run on a frame without a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestedProgram {
    /// The engine itself.
    Microflows,
    /// The parser alone.
    Parse,
    /// Nothing at all: what a run costs.
    Pass,
}

/// What a run gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestRun {
    /// The program's verdict: 2 is `XDP_PASS`.
    pub verdict: u32,
    /// Nanoseconds a repetition, on average.
    pub duration_ns: u64,
}

impl KernelEngine {
    /// Loads the program; it is attached to nothing.
    ///
    /// # Errors
    /// A configuration out of range, or what the kernel refused.
    pub fn load(config: &KernelConfig) -> Result<Self, KernelError> {
        config.validate()?;
        let mut open = ObjectBuilder::default()
            .open_memory(&PROGRAM.0)
            .map_err(KernelError::refused("read its own program"))?;
        configure(&mut open, config)?;
        let object = open
            .load()
            .map_err(KernelError::refused("load its program"))?;
        let inbox = Rc::new(RefCell::new(Inbox::default()));
        let ring = ring(&map(&object, "evicted")?, Rc::clone(&inbox))?;
        Ok(Self {
            table: map(&object, "table")?,
            ledger: map(&object, "ledger")?,
            object,
            ring,
            inbox,
            slots: config.slots,
        })
    }

    /// Appends what the program has evicted since the last call; never waits.
    ///
    /// # Errors
    /// Where the ring cannot be read, or carried something that is no record.
    pub fn drain(&mut self, batch: &mut Batch) -> Result<(), KernelError> {
        std::mem::swap(&mut self.inbox.borrow_mut().batch, batch);
        let consumed = self.ring.consume();
        let mut inbox = self.inbox.borrow_mut();
        std::mem::swap(&mut inbox.batch, batch);
        consumed.map_err(KernelError::refused("read its ring"))?;
        match inbox.foreign {
            0 => Ok(()),
            count => Err(KernelError::ForeignItems { count }),
        }
    }

    /// What the program has done so far, over all CPUs.
    ///
    /// # Errors
    /// Where the kernel does not give it.
    pub fn counters(&self) -> Result<KernelCounters, KernelError> {
        let mut counters = KernelCounters::default();
        for cpu in per_cpu(&self.ledger, 0, "read its ledger")? {
            counters.add_cpu(&cpu);
        }
        Ok(counters)
    }

    /// Appends all that is left: in the ring, and behind it in the tables. The program must not be
    /// attached any more: what it meters meanwhile is in neither.
    ///
    /// # Errors
    /// As [`KernelEngine::drain`] and [`KernelEngine::counters`].
    pub fn finish(mut self, batch: &mut Batch) -> Result<Finished, KernelError> {
        self.drain(batch)?;
        let mut evicted_flush = 0;
        for slot in 0..self.slots {
            for row in per_cpu(&self.table, slot, "read its table")? {
                evicted_flush += u64::from(batch.push_row(&row));
            }
        }
        Ok(Finished {
            counters: self.counters()?,
            evicted_flush,
        })
    }

    /// Runs a program `repeat` times on a frame, on this CPU, without a network.
    ///
    /// # Errors
    /// Where the kernel refuses, as for frames of less than an Ethernet header.
    pub fn test_run(
        &self,
        program: TestedProgram,
        frame: &[u8],
        repeat: u32,
    ) -> Result<TestRun, KernelError> {
        let name = program.name();
        let program = self
            .object
            .progs_mut()
            .find(|program| program.name() == name)
            .ok_or(KernelError::Incomplete { name })?;
        let input = ProgramInput {
            data_in: Some(frame),
            repeat,
            ..Default::default()
        };
        let output = program
            .test_run(input)
            .map_err(KernelError::refused("run its program on a frame"))?;
        Ok(TestRun {
            verdict: output.return_value,
            duration_ns: u64::try_from(output.duration.as_nanos()).unwrap_or(u64::MAX),
        })
    }

    /// What the last frame was to [`TestedProgram::Parse`], as `struct outcome` of `bpf/layout.h` lies.
    ///
    /// # Errors
    /// Where the kernel does not give it.
    pub fn parsed(&self) -> Result<[u8; OUTCOME_BYTES], KernelError> {
        map(&self.object, "parsed")?
            .lookup(&0u32.to_ne_bytes(), MapFlags::ANY)
            .map_err(KernelError::refused("read what it parsed"))?
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or(KernelError::Incomplete { name: "parsed" })
    }
}

impl TestedProgram {
    const fn name(self) -> &'static str {
        match self {
            Self::Microflows => "microflows",
            Self::Parse => "parse",
            Self::Pass => "pass",
        }
    }
}

/// Sets sizes and constants, before anything is in the kernel.
fn configure(open: &mut OpenObject, config: &KernelConfig) -> Result<(), KernelError> {
    const DOING: &str = "set up its program";
    for mut program in open.progs_mut() {
        let wanted =
            config.loads_tested_programs || program.name() == TestedProgram::Microflows.name();
        program.set_autoload(wanted);
    }
    for mut map in open.maps_mut() {
        match map.name().to_str() {
            Some("table") => map.set_max_entries(config.slots),
            Some("evicted") => map.set_max_entries(config.ring_bytes),
            Some(".rodata.config") => map.set_initial_value(&config.bytes()),
            _ => Ok(()),
        }
        .map_err(KernelError::refused(DOING))?;
    }
    Ok(())
}

fn map(object: &Object, name: &'static str) -> Result<MapHandle, KernelError> {
    let map = object
        .maps()
        .find(|map| map.name() == name)
        .ok_or(KernelError::Incomplete { name })?;
    MapHandle::try_from(&map).map_err(KernelError::refused("open its maps"))
}

fn ring(map: &MapHandle, inbox: Rc<RefCell<Inbox>>) -> Result<RingBuffer<'static>, KernelError> {
    const DOING: &str = "map its ring";
    let mut builder = RingBufferBuilder::new();
    let receive = move |item: &[u8]| {
        let mut inbox = inbox.borrow_mut();
        inbox.foreign += u64::from(!inbox.batch.push_evicted(item));
        0
    };
    builder
        .add(map, receive)
        .map_err(KernelError::refused(DOING))?;
    builder.build().map_err(KernelError::refused(DOING))
}

/// The value of every CPU.
fn per_cpu(map: &MapHandle, index: u32, doing: &'static str) -> Result<Vec<Vec<u8>>, KernelError> {
    map.lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY)
        .map(Option::unwrap_or_default)
        .map_err(KernelError::refused(doing))
}
