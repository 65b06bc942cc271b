// SPDX-License-Identifier: Apache-2.0
//! Measures the cost of the table in the kernel, in processor time of the thread that pays for it:
//!
//!     cargo bench --package turboflow-engine-offload --features kernel
//!
//! - orders per second, by the load of the table;
//! - a packet with a verdict, compared with an empty program, a bare redirect and the engine
//!   without rows;
//! - user space, for a flow that is decided by its first packet.
//!
//! Needs root. Uses test runs of the program, without a network.

#![allow(clippy::unwrap_used, reason = "a measurement ends where it fails")]

#[cfg(feature = "kernel")]
#[path = "../tests/kernel/run.rs"]
#[allow(dead_code, reason = "tests use other parts")]
mod run;
#[cfg(feature = "kernel")]
#[path = "../../xdp/tests/kernel/support.rs"]
#[allow(dead_code, reason = "tests use other parts")]
mod support;

#[cfg(feature = "kernel")]
mod measured {
    use std::fs;

    use rustix::time::ClockId;
    use turboflow_engine_offload::{
        FirstPacket, FlowKey, FlowTable, KernelTable, OffloadEngine, Order, OrderKind, Outcome,
        Times, Verdict,
    };
    use turboflow_engine_xdp::{Clock, KernelConfig, KernelEngine, Tested, TestedProgram};

    use crate::run::{self, TIMES};
    use crate::support::{self, SECOND_NS, Totals};

    const ROWS: u32 = 1 << 20;
    const BATCH: usize = 4_096;
    /// Number of runs; their median and minimum are reported.
    const RUNS: usize = 15;
    const REPETITIONS: u32 = 200_000;

    fn thread_ns() -> u64 {
        support::clock_ns(ClockId::ThreadCPUTime)
    }

    fn key(number: u32) -> FlowKey {
        let hosts = u64::from(number) | 0xffff_ffff << 32;
        FlowKey::of_words([hosts, 0x406_0050_1234, 0, 0, 0])
    }

    /// Processor time of orders for the flows with these numbers; every outcome must be `expected`.
    fn orders(
        table: &mut KernelTable,
        numbers: std::ops::Range<u32>,
        kind: OrderKind,
        expected: fn(&Outcome) -> bool,
    ) -> u64 {
        let times = Times {
            now_ns: 0,
            idle_ns: 3_600 * SECOND_NS,
            linger_ns: SECOND_NS,
        };
        let mut outcomes = Vec::new();
        let mut took_ns = 0;
        let numbers: Vec<u32> = numbers.collect();
        for some in numbers.chunks(BATCH) {
            let batch: Vec<Order> = some
                .iter()
                .map(|number| Order {
                    key: key(*number),
                    kind,
                })
                .collect();
            outcomes.clear();
            let before_ns = thread_ns();
            table.program(&batch, times, &mut outcomes).unwrap();
            took_ns += thread_ns() - before_ns;
            assert!(outcomes.iter().all(expected), "{kind:?}");
        }
        took_ns
    }

    fn programming() {
        let config = run::fired(ROWS, 0);
        let engine = support::load(&config).unwrap();
        let mut table = KernelTable::new(engine.open_offload().unwrap().table, ROWS);
        let mut tell = |what: &str, numbers: std::ops::Range<u32>, kind, expected| {
            let count = f64::from(numbers.end - numbers.start);
            let took_ns = orders(&mut table, numbers, kind, expected);
            println!(
                "orders  {what:<22} {:6.2} M/s of processor time",
                count * 1e3 / took_ns as f64
            );
        };
        let done: fn(&Outcome) -> bool = |outcome| *outcome == Outcome::Done;
        let full: fn(&Outcome) -> bool = |outcome| *outcome == Outcome::Full;
        let exists: fn(&Outcome) -> bool = |outcome| *outcome == Outcome::Exists;
        let stays: fn(&Outcome) -> bool = |outcome| matches!(outcome, Outcome::Stays { .. });
        let add = OrderKind::Add(Verdict::PASS);
        let at = |percent: u32| (u64::from(ROWS) * u64::from(percent) / 100) as u32;
        tell("add, 0 to 10 % full", 0..at(10), add, done);
        tell("add, 10 to 50 %", at(10)..at(50), add, done);
        tell("add, 50 to 90 %", at(50)..at(90), add, done);
        tell("add, 90 to 100 %", at(90)..ROWS, add, done);
        tell("add, refused", ROWS..ROWS + at(10), add, full);
        tell("add, there already", 0..ROWS, add, exists);
        tell("change", 0..ROWS, OrderKind::Change(Verdict::PASS), done);
        tell("age, stays", 0..ROWS, OrderKind::Age, stays);
        tell("remove", 0..ROWS, OrderKind::Remove, done);
    }

    struct Contender {
        what: &'static str,
        engine: KernelEngine,
        program: TestedProgram,
        runs_ns: Vec<f64>,
    }

    impl Contender {
        fn new(what: &'static str, config: &KernelConfig, program: TestedProgram) -> Self {
            Self {
                what,
                engine: support::load(config).unwrap(),
                program,
                runs_ns: Vec::new(),
            }
        }

        /// Gives the frame's flow a row.
        fn with_row(self) -> Self {
            let offload = self.engine.open_offload().unwrap();
            let mut table = KernelTable::new(offload.table, ROWS);
            let frame = support::tcp(1, 0x10);
            let word = |at: usize| {
                let bytes: [u8; 8] = frame[at..at + 8].try_into().unwrap();
                u64::from_le_bytes(bytes)
            };
            let transport = word(34) & 0xffff_ffff | 0x406 << 32;
            // `fire` sends from address 0, the smaller end.
            let addresses = word(26) & 0xffff_ffff_0000_0000;
            for (addresses, ports) in [(addresses, transport), (word(26), transport)] {
                let order = Order {
                    key: FlowKey::of_words([addresses, ports, 0, 0, 0]),
                    kind: OrderKind::Add(Verdict::PASS),
                };
                let times = Times {
                    now_ns: 0,
                    idle_ns: SECOND_NS,
                    linger_ns: SECOND_NS,
                };
                let mut outcomes = Vec::new();
                table.program(&[order], times, &mut outcomes).unwrap();
                assert_eq!(outcomes, [Outcome::Done]);
            }
            self
        }

        fn run(&mut self) {
            let tester = self.engine.tester();
            let frame = support::tcp(1, 0x10);
            let before_ns = thread_ns();
            tester.run(self.program, &frame, REPETITIONS).unwrap();
            let took_ns = thread_ns() - before_ns;
            self.runs_ns.push(took_ns as f64 / f64::from(REPETITIONS));
        }

        fn tell(&mut self) {
            self.runs_ns.sort_by(f64::total_cmp);
            println!(
                "packet  {:<42} {:6.1} ns, least {:6.1}",
                self.what,
                self.runs_ns[self.runs_ns.len() / 2],
                self.runs_ns[0]
            );
        }
    }

    /// Measures one flow with both clocks. The contenders take turns.
    fn packets() {
        let tested = Tested {
            flows: 1,
            ..Tested::default()
        };
        let base = |clock| KernelConfig {
            clock,
            ring_bytes: 1 << 26,
            cell_ns: 3_600 * SECOND_NS,
            tested: Some(tested),
            ..support::config(16_384)
        };
        let offload = |clock| KernelConfig {
            offload: Some(run::offload_config(ROWS)),
            ..base(clock)
        };
        let (coarse, precise) = (Clock::Coarse, Clock::Precise);
        let fire = TestedProgram::Fire;
        let mut contenders = [
            Contender::new("empty", &base(coarse), TestedProgram::Pass),
            Contender::new("generator", &base(coarse), TestedProgram::SpreadOnly),
            Contender::new("bare redirect", &base(coarse), TestedProgram::RedirectOnly),
            Contender::new("xdp engine, coarse clock", &base(coarse), fire),
            Contender::new("offload, hit, coarse clock", &offload(coarse), fire).with_row(),
            Contender::new("xdp engine, precise clock", &base(precise), fire),
            Contender::new("offload, hit, precise clock", &offload(precise), fire).with_row(),
        ];
        for _ in 0..RUNS {
            contenders.iter_mut().for_each(Contender::run);
        }
        contenders.iter_mut().for_each(Contender::tell);
        for contender in &contenders {
            if let Ok(counters) = contender.engine.offload_counters() {
                assert_eq!(counters.misses, 0, "every packet was a hit");
            }
        }
    }

    /// The processor time of the thread with that name, as counted by the scheduler.
    fn cpu_ns_of(name: &str) -> Option<u64> {
        let tasks = fs::read_dir("/proc/self/task").ok()?;
        tasks.flatten().find_map(|task| {
            let comm = fs::read_to_string(task.path().join("comm")).ok()?;
            let times = fs::read_to_string(task.path().join("schedstat")).ok()?;
            let on_cpu = times.split(' ').next()?.parse().ok()?;
            (comm.trim() == name).then_some(on_cpu)
        })
    }

    /// Taps, and processor time of user space in microseconds, both per offloaded flow. `None` if
    /// the test is skipped.
    fn learn(flows: u32, packets: u64) -> Option<(f64, f64)> {
        let config = run::fired(ROWS, flows);
        let mut engine = run::load_offload(&config, Box::new(FirstPacket), TIMES)?;
        let mut totals = Totals::default();
        run::collect_into(&mut engine, &mut totals);
        let tester = engine.kernel().tester();
        run::fire(&tester, packets, || {
            run::collect_into(&mut engine, &mut totals)
        });
        let begun = |engine: &OffloadEngine| engine.learner_counts().rows_begun;
        let mut last = 0;
        while last != begun(&engine) || last == 0 {
            last = begun(&engine);
            run::collect_into(&mut engine, &mut totals);
            std::thread::yield_now();
        }
        let cpu_ns = cpu_ns_of("learner").unwrap_or_default();
        let ran = run::finish(engine, totals);
        ran.check(packets);
        let rows = ran.own("rows_begun") as f64;
        let taps = ran.own("taps_read") as f64;
        Some((taps / rows, cpu_ns as f64 / 1e3 / rows))
    }

    /// Flows that are decided by their first packet: first with 50 packets each, then short ones. A
    /// single run says little, because the delay of user space depends on the scheduler.
    fn learning(where_to: &str) {
        for (flows, packets) in [(40_000, 2_000_000), (200_000, 800_000)] {
            let runs = (0..RUNS).map_while(|_| learn(flows, packets));
            let (mut taps, mut costs_us): (Vec<f64>, Vec<f64>) = runs.unzip();
            taps.sort_by(f64::total_cmp);
            costs_us.sort_by(f64::total_cmp);
            let (Some(most_taps), Some(most_us)) = (taps.last(), costs_us.last()) else {
                return;
            };
            println!(
                "learner {where_to}, {flows} flows, {packets} packets: {:.2} taps a flow, most \
                 {most_taps:.2}; {:.2} us of user space a flow, most {most_us:.2}",
                taps[taps.len() / 2],
                costs_us[costs_us.len() / 2],
            );
        }
    }

    pub(super) fn all() {
        // The measurements after this one stay on one CPU.
        learning("all processors");
        programming();
        packets();
        learning("one processor");
    }
}

fn main() {
    #[cfg(feature = "kernel")]
    measured::all();
    #[cfg(not(feature = "kernel"))]
    println!("needs the feature `kernel`");
}
