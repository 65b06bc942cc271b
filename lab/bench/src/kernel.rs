// SPDX-License-Identifier: Apache-2.0
//! The cost of a packet in the XDP engine, compared with an empty program. It is measured with test
//! runs of the program, without a network.

use std::time::Duration;

use turboflow_engine::MicroflowBatch;
use turboflow_engine_xdp::{
    Clock, KEY_HALVES, KernelConfig, KernelEngine, KernelError, Tables, Tested, TestedProgram,
    interface_index,
};
use turboflow_merge::Layout;
use turboflow_record::{Definition, Feature, Input, Op};

use crate::{Options, Row, Timer};

/// Repetitions of one test run. In the worst case every repetition adds a record to the ring, which
/// must hold all of them.
const CHUNK: u32 = 100_000;
/// Frames sent by one test run. After each run, the kernel waits until all processors have released
/// the run's pages. That takes tens of milliseconds, in which nothing is sent.
const SENT_AT_ONCE: u32 = 1 << 30;
const RING_BYTES: u32 = 1 << 26;
const SLOTS: u32 = 65_536;
const SECOND_NS: u64 = 1_000_000_000;
/// A TCP segment over IPv4 in 60 bytes.
const FRAME_BYTES: usize = 60;

/// A design under test, and its measurements.
struct Contender {
    design: String,
    engine: KernelEngine,
    program: TestedProgram,
    flows: u64,
    traffic: &'static str,
    runs_ns: Vec<u64>,
    evicted: u64,
    packets: u64,
}

/// Measures the designs. With one flow: `empty`, the two clocks alone, `parse`, and the designs
/// with both clocks and with more features. With each requested number of flows: `spread` alone,
/// and the designs on top of it.
///
/// # Errors
/// If the kernel does not load the engine.
pub fn run(options: &Options, emit: &mut dyn FnMut(Row)) -> Result<(), KernelError> {
    measure(one_flow()?, options, emit)?;
    for &flows in &options.flows {
        for (traffic, is_skewed) in [("uniform", false), ("zipf", true)] {
            let flows = u32::try_from(flows).unwrap_or(u32::MAX);
            measure(many_flows(flows, traffic, is_skewed)?, options, emit)?;
        }
    }
    Ok(())
}

/// Sends packets of `flows` flows with Internet-like skew from an interface, as fast as the kernel
/// can, and returns the rate.
///
/// # Errors
/// If there is no such interface, or the kernel cannot send from it.
pub fn send(interface: &str, flows: u32, packets: u64) -> Result<Row, KernelError> {
    let tested = Tested {
        flows,
        is_skewed: true,
        interface: interface_index(interface)?,
        ..Tested::default()
    };
    let engine = KernelEngine::load(&config(Tables::PerCpu, Clock::Precise, tested))?;
    let tester = engine.tester();
    let mut timer = Timer::default();
    timer.time(|| {
        let mut left = packets;
        while left > 0 {
            let some = left.min(u64::from(SENT_AT_ONCE)) as u32;
            tester.run(TestedProgram::Send, &frame(), some)?;
            left -= u64::from(some);
        }
        Ok(())
    })?;
    let took = timer.total();
    Ok(Row::new(
        "kernel",
        "send",
        u64::from(flows),
        "zipf",
        packets,
        took,
    ))
}

fn one_flow() -> Result<Vec<Contender>, KernelError> {
    let load = |tables, clock| KernelEngine::load(&config(tables, clock, Tested::default()));
    let load_with = |features, tables| {
        let config = KernelConfig {
            layout: Some(with_features(features)),
            ..config(tables, Clock::Precise, Tested::default())
        };
        KernelEngine::load(&config)
    };
    let contender = |design: &str, engine, program| Contender {
        design: design.to_owned(),
        engine,
        program,
        flows: 1,
        traffic: "uniform",
        runs_ns: Vec::new(),
        evicted: 0,
        packets: 0,
    };
    let (precise, coarse) = (Clock::Precise, Clock::Coarse);
    let (per_cpu, row_lock) = (Tables::PerCpu, Tables::RowLock);
    let metered = TestedProgram::Microflows;
    Ok(vec![
        contender("empty", load(per_cpu, precise)?, TestedProgram::Pass),
        contender("clock", load(per_cpu, precise)?, TestedProgram::ClockOnly),
        contender(
            "clock_coarse",
            load(per_cpu, coarse)?,
            TestedProgram::ClockOnly,
        ),
        contender("parse", load(per_cpu, precise)?, TestedProgram::Parse),
        contender("per_cpu", load(per_cpu, precise)?, metered),
        contender("per_cpu_coarse", load(per_cpu, coarse)?, metered),
        contender("row_lock", load(row_lock, precise)?, metered),
        contender("row_lock_coarse", load(row_lock, coarse)?, metered),
        contender("per_cpu_1_feature", load_with(1, per_cpu)?, metered),
        contender("per_cpu_4_features", load_with(4, per_cpu)?, metered),
        contender("row_lock_4_features", load_with(4, row_lock)?, metered),
    ])
}

fn many_flows(
    flows: u32,
    traffic: &'static str,
    is_skewed: bool,
) -> Result<Vec<Contender>, KernelError> {
    let tested = Tested {
        flows,
        is_skewed,
        ..Tested::default()
    };
    let contender = |design: &str, tables, program| {
        Ok(Contender {
            design: design.to_owned(),
            engine: KernelEngine::load(&config(tables, Clock::Precise, tested))?,
            program,
            flows: u64::from(flows),
            traffic,
            runs_ns: Vec::new(),
            evicted: 0,
            packets: 0,
        })
    };
    Ok(vec![
        contender("spread", Tables::PerCpu, TestedProgram::SpreadOnly)?,
        contender("per_cpu", Tables::PerCpu, TestedProgram::Fire)?,
        contender("row_lock", Tables::RowLock, TestedProgram::Fire)?,
    ])
}

/// Runs the designs in turn, so that other load on the machine affects all of them. Reports the
/// median run.
fn measure(
    mut contenders: Vec<Contender>,
    options: &Options,
    emit: &mut dyn FnMut(Row),
) -> Result<(), KernelError> {
    let chunks = (options.items / u64::from(CHUNK)).max(1) * u64::from(options.repetitions);
    for _ in 0..chunks {
        for contender in &mut contenders {
            contender.run_once()?;
        }
    }
    for contender in contenders {
        emit(contender.row());
    }
    Ok(())
}

impl Contender {
    fn run_once(&mut self) -> Result<(), KernelError> {
        let run = self.engine.tester().run(self.program, &frame(), CHUNK)?;
        self.runs_ns.push(run.duration_ns);
        self.packets += u64::from(CHUNK);
        let mut batch = MicroflowBatch::default();
        loop {
            let collected = self.engine.collect(&mut batch)?;
            self.evicted += batch.len() as u64;
            batch.clear();
            if !collected.has_more {
                return Ok(());
            }
        }
    }

    fn row(mut self) -> Row {
        self.runs_ns.sort_unstable();
        let median = Duration::from_nanos(self.runs_ns[self.runs_ns.len() / 2]);
        let row = Row::new("kernel", self.design, self.flows, self.traffic, 1, median);
        Row {
            microflows_per_packet: Some(self.evicted as f64 / self.packets as f64),
            ..row
        }
    }
}

/// The default definition with `count` more features.
fn with_features(count: usize) -> Layout {
    let feature = Feature::new;
    let more = [
        feature("payload", Op::Sum, Some(Input::PayloadLength)),
        feature("smallest_window", Op::Min, Some(Input::TcpWindow)),
        feature("first_sequence", Op::First, Some(Input::TcpSequence)),
        feature("longest_gap", Op::GapMax, None),
    ];
    let mut definition = Definition::default();
    definition.features.extend_from_slice(&more[..count]);
    Layout::compile(&definition, false).expect("the benchmark's definition compiles")
}

pub(crate) fn config(tables: Tables, clock: Clock, tested: Tested) -> KernelConfig {
    KernelConfig {
        is_bound: false,
        interfaces: Vec::new(),
        layout: None,
        tables,
        slots: SLOTS,
        ring_bytes: RING_BYTES,
        cell_ns: SECOND_NS,
        evict_after: 0,
        clock,
        wall_ns: turboflow_run::wall_ns,
        drops: false,
        longest_frame_bytes: 1_522,
        hand_up: None,
        offload: None,
        tested: Some(tested),
        hash_keys: std::array::from_fn(|at| mixed(at as u64)),
    }
}

/// Constant hash keys, so that runs are comparable.
fn mixed(at: u64) -> u64 {
    const { assert!(KEY_HALVES < 64) };
    let word = (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word ^ word >> 29
}

pub(crate) fn frame() -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00];
    bytes.extend([0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0]);
    bytes.extend([
        10, 0, 0, 1, 10, 0, 0, 2, 0x30, 0x39, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0,
    ]);
    bytes.extend([0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
    bytes.resize(FRAME_BYTES, 0);
    bytes
}
