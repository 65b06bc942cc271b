// SPDX-License-Identifier: Apache-2.0
//! Measures the offload engine's table in the kernel with the offload paper's traffic: how many
//! packets reach user space, and what a new flow costs there. It uses test runs of the program,
//! without a network.

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

/// Number of groups in which flows are replaced. Each group has its own source port.
const GROUPS: u32 = 100;
/// Consecutive packets of one group. After each test run the kernel waits tens of milliseconds for
/// all processors. So runs are long, and flows send in bursts.
const AT_ONCE: u32 = 100_000;
/// Offset of the source port in a frame.
const PORT_AT: usize = 34;
/// Mean number of packets of a flow in the learning phase, so that nearly all flows are seen.
const LEARNED_BY: u64 = 5;
const SECOND_NS: u64 = 1_000_000_000;
/// The default of the engine's option `--row-idle`.
const IDLE_NS: u64 = 15 * SECOND_NS;

/// The result for one number of flows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offloaded {
    /// Packets of the measured phase.
    pub packets: u64,
    /// How many of these were copied to user space.
    pub taps: u64,
    /// How many of these did not fit in the ring of copies.
    pub taps_lost: u64,
    /// Packets that are in no record, because a ring was full.
    pub dropped: u64,
    /// Flows that got a row.
    pub births: u64,
    /// Flows that were refused a row.
    pub refused: u64,
    /// Processor time of the learner, in ns.
    pub learner_ns: u64,
    /// Time to send the packets, in ns.
    pub took_ns: u64,
}

/// Why the measurement failed.
#[derive(Debug)]
pub enum OffloadError {
    /// The engine in the kernel failed.
    Kernel(KernelError),
    /// The offload engine in user space failed.
    Engine(EngineError),
    /// The operating system failed.
    System(io::Error),
}

impl OffloadError {
    /// Whether the cause is that this user may not load the engine.
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

/// Learns `flows` flows. Then sends as many packets as the paper does in a second, while a tenth of
/// the flows is replaced. The first packet decides.
///
/// # Errors
/// If the kernel does not load or run the engine.
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

/// Sends packets of the groups in turn, and replaces `replaced` of the groups, one after another.
/// Returns the time taken, in ns.
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

/// Runs `work` in a thread of its own. Meanwhile it collects records, until the work is done and
/// the learner is idle.
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

/// The processor time of the thread with that name, in ns, according to the scheduler.
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

/// The idle timeout, scaled with the number of flows. All packets are sent by one processor, so the
/// gaps between packets of a flow grow with the number of flows. On the paper's link they are 0.2
/// s, and no flow is idle.
fn idle_ns(flows: u32) -> u64 {
    IDLE_NS * u64::from(flows / 1_000_000).max(1)
}

/// Rows for the flows, and for those that replace others before the rows of these are idle.
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
