// SPDX-License-Identifier: Apache-2.0
//! The offload engine's table in the kernel under the offload paper's traffic: how many packets
//! reach user space, and what a new flow costs there. Test runs of the program, without a network.

use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use turboflow_engine::{EngineError, MicroflowBatch, RemoteEngine};
use turboflow_engine_offload::{FirstPacket, LearnerConfig, OffloadEngine};
use turboflow_engine_xdp::{
    Clock, KernelConfig, KernelEngine, KernelError, OffloadConfig, Tables, TapBudget, Tested,
    TestedProgram, Tester,
};

use crate::Timer;
use crate::kernel::{config, frame};

/// Flows are replaced in groups, each of which has a source port of its own.
const GROUPS: u32 = 100;
/// Packets of one group before the next one's. The kernel waits for all processors with each test
/// run, for tens of milliseconds, so a run is long, and flows send in bursts.
const AT_ONCE: u32 = 100_000;
/// Where a frame has its source port.
const PORT_AT: usize = 34;
/// Packets of a flow while all are learned, in the mean, so that nearly all are seen.
const LEARNED_BY: u64 = 5;
const SECOND_NS: u64 = 1_000_000_000;
/// As the engine's option `--row-idle`.
const IDLE_NS: u64 = 15 * SECOND_NS;

/// What came of one number of flows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offloaded {
    /// Packets of the measured phase.
    pub packets: u64,
    /// Of these: copied to user space.
    pub taps: u64,
    /// Of these: without room in the ring of copies.
    pub taps_lost: u64,
    /// Packets that are in no record, because a ring was full.
    pub dropped: u64,
    /// Flows that got a row.
    pub births: u64,
    /// Flows that were refused one.
    pub refused: u64,
    /// Processor time of the learner.
    pub learner_ns: u64,
    /// Time that the packets took.
    pub took_ns: u64,
}

/// Why nothing was measured.
#[derive(Debug)]
pub enum OffloadError {
    /// By the engine in the kernel.
    Kernel(KernelError),
    /// By the engine that stands on it.
    Engine(EngineError),
    /// By the system.
    System(io::Error),
}

impl OffloadError {
    /// Whether this user may not load the engine.
    #[must_use]
    pub fn is_permission(&self) -> bool {
        matches!(self, Self::Kernel(error) if error.is_permission())
    }
}

impl std::fmt::Display for OffloadError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Kernel(error) => error.fmt(formatter),
            Self::Engine(error) => error.fmt(formatter),
            Self::System(error) => error.fmt(formatter),
        }
    }
}

impl std::error::Error for OffloadError {}

impl From<KernelError> for OffloadError {
    fn from(error: KernelError) -> Self {
        Self::Kernel(error)
    }
}

/// Learns `flows` flows, then sends as many packets to them as the paper does in a second, while a
/// tenth of the flows is replaced. The first packet decides.
///
/// # Errors
/// When the kernel does not load or run the engine.
pub fn run(flows: u32, packets: u64) -> Result<Offloaded, OffloadError> {
    let kernel = KernelEngine::load(&with_rows(flows))?;
    let tester = kernel.tester();
    let times = LearnerConfig {
        idle_ns: idle_ns(flows),
        linger_ns: SECOND_NS,
    };
    let mut engine = OffloadEngine::new(kernel, rows(flows), Box::new(FirstPacket), times)?;
    let learning = (u64::from(flows) * LEARNED_BY).max(u64::from(GROUPS * AT_ONCE));
    collecting(&mut engine, || send(&tester, learning, 0))?;
    let before = State::of(&mut engine)?;
    let took_ns = collecting(&mut engine, || send(&tester, packets, GROUPS / 10))?;
    let after = State::of(&mut engine)?;
    Ok(Offloaded {
        packets: after.packets - before.packets,
        taps: after.taps - before.taps,
        taps_lost: after.taps_lost - before.taps_lost,
        dropped: after.dropped - before.dropped,
        births: after.begun - before.begun,
        refused: after.refused - before.refused,
        learner_ns: after.learner_ns - before.learner_ns,
        took_ns,
    })
}

/// Sends packets group by group in turn, and replaces so many of the groups, one after the other.
/// Returns how long it took.
fn send(tester: &Tester, packets: u64, replaced: u32) -> Result<u64, KernelError> {
    let turns = packets / u64::from(AT_ONCE);
    let apart = turns / u64::from(replaced + 1);
    let mut frame = frame();
    let mut timer = Timer::default();
    timer.time(|| {
        for turn in 0..turns {
            let births = turn / apart.max(1);
            let group = turn % u64::from(GROUPS);
            let is_replaced = group < births.min(replaced.into());
            let port = 1_024 + group as u16 + if is_replaced { GROUPS as u16 } else { 0 };
            frame[PORT_AT..PORT_AT + 2].copy_from_slice(&port.to_be_bytes());
            tester.run(TestedProgram::Fire, &frame, AT_ONCE)?;
        }
        Ok::<(), KernelError>(())
    })?;
    Ok(timer.total().as_nanos() as u64)
}

/// Runs `work` in a thread of its own, and collects records until it is done and the learner has
/// nothing more to order.
fn collecting(
    engine: &mut OffloadEngine,
    work: impl FnOnce() -> Result<u64, KernelError> + Send,
) -> Result<u64, OffloadError> {
    let is_done = AtomicBool::new(false);
    let mut batch = MicroflowBatch::default();
    let mut collect = |engine: &mut OffloadEngine| -> Result<(), OffloadError> {
        while engine
            .collect(&mut batch)
            .map_err(OffloadError::Engine)?
            .has_more
        {
            batch.clear();
        }
        batch.clear();
        thread::yield_now();
        Ok(())
    };
    // The learner begins with the first collection.
    collect(engine)?;
    let took = thread::scope(|scope| {
        let working = scope.spawn(|| {
            let took = work();
            is_done.store(true, Ordering::Release);
            took
        });
        while !is_done.load(Ordering::Acquire) {
            collect(engine)?;
        }
        Ok::<_, OffloadError>(working.join().expect("the sender does not panic")?)
    })?;
    loop {
        let taps = engine.kernel().offload_counters()?.taps;
        if engine.learner_counts().taps_read == taps {
            return Ok(took);
        }
        collect(engine)?;
    }
}

/// Totals so far.
struct State {
    packets: u64,
    dropped: u64,
    taps: u64,
    taps_lost: u64,
    begun: u64,
    refused: u64,
    learner_ns: u64,
}

impl State {
    fn of(engine: &mut OffloadEngine) -> Result<Self, OffloadError> {
        let counters = engine.kernel().counters()?;
        let offload = engine.kernel().offload_counters()?;
        let learner = engine.learner_counts();
        Ok(Self {
            packets: counters.packets_metered,
            dropped: counters.packets_dropped,
            taps: offload.taps,
            taps_lost: offload.taps_lost,
            begun: learner.rows_begun,
            refused: learner.refused(),
            learner_ns: thread_cpu_ns("learner").map_err(OffloadError::System)?,
        })
    }
}

/// The processor time of the thread of that name, by the scheduler.
fn thread_cpu_ns(name: &str) -> io::Result<u64> {
    for task in fs::read_dir("/proc/self/task")? {
        let task = task?.path();
        if fs::read_to_string(task.join("comm"))?.trim() == name {
            let times = fs::read_to_string(task.join("schedstat"))?;
            let on_cpu = times.split(' ').next().and_then(|word| word.parse().ok());
            return on_cpu.ok_or_else(|| io::Error::other("schedstat has no time"));
        }
    }
    Err(io::Error::other(format!("there is no thread {name}")))
}

/// The more flows there are, the further apart are the packets of one, because one processor sends
/// them all. On the paper's link they are 0.2 s apart, and no flow is idle.
fn idle_ns(flows: u32) -> u64 {
    IDLE_NS * u64::from(flows / 1_000_000).max(1)
}

/// Flows, and those that replace some while the rows of the others are not idle yet.
fn rows(flows: u32) -> u32 {
    flows + flows / 5
}

fn with_rows(flows: u32) -> KernelConfig {
    let tested = Tested {
        flows: flows / GROUPS,
        ..Tested::default()
    };
    KernelConfig {
        offload: Some(OffloadConfig {
            rows: rows(flows),
            tap_rows: (rows(flows) / 4 * 4).max(1 << 18),
            budget: TapBudget::default(),
            ring_bytes: 1 << 22,
            snap_bytes: 0,
            idle_ns: idle_ns(flows),
            keys_vlan: false,
            hash_keys: [3, 5].map(|odd: u64| {
                std::array::from_fn(|at| (at as u64 + odd).wrapping_mul(0xbf58_476d_1ce4_e5b9))
            }),
            bridge: None,
        }),
        ..config(Tables::PerCpu, Clock::Coarse, tested)
    }
}
