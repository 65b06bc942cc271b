// SPDX-License-Identifier: Apache-2.0
//! Measures the cost of a bridge compared with a bare redirect, from one veth pair to another:
//!
//!     cargo bench --package turboflow-engine-offload --features kernel --bench bridge
//!
//! Frames of 60 bytes go from one host to the other, and are counted and dropped there. One
//! processor does all the work: generator, first cable, program, second cable, counter. Every flow
//! has a verdict to pass. The contenders take turns, and each is loaded anew for its turn, because
//! the programs that count the fates of frames see all redirects of the system.
//!
//! Needs root. Measures the processor time of this thread, in which the kernel does most of the
//! work, and of the kernel's thread that does the rest.

#![allow(clippy::unwrap_used, reason = "a measurement ends where it fails")]

#[cfg(feature = "kernel")]
#[path = "../tests/kernel/bridge/network.rs"]
#[allow(dead_code, reason = "tests use other parts")]
mod network;
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
    use std::path::{Path, PathBuf};
    use std::sync::LazyLock;

    use rustix::time::ClockId;
    use turboflow_engine::MicroflowBatch;
    use turboflow_engine_offload::{
        FlowKey, FlowTable, KernelTable, Order, OrderKind, Outcome, Times, Verdict,
    };
    use turboflow_engine_xdp::{
        BridgeAction, BridgeConfig, Clock, KernelConfig, KernelEngine, OffloadConfig, Tested,
        TestedProgram, XdpMode, interface_index,
    };
    use turboflow_merge::Layout;
    use turboflow_record::{Definition, Feature, Input, Op};

    use crate::network::{HOSTS, Network, PORTS};
    use crate::run::offload_config;
    use crate::support::{SECOND_NS, clock_ns, collect, config, load_for_all_cpus, stay_on, tcp};

    const FLOWS: [u32; 3] = [1, 1_024, 16_384];
    const ROWS: u32 = 1 << 16;
    /// Number of turns; the median is reported.
    const TURNS: usize = 9;
    const FRAMES: u32 = 1_000_000;
    const XDP_DROP: usize = 1;
    const TIMES: Times = Times {
        now_ns: 0,
        idle_ns: 3_600 * SECOND_NS,
        linger_ns: SECOND_NS,
    };

    /// The program between the ports.
    struct Contender {
        what: &'static str,
        clock: Clock,
        definition: Definition,
        attached: Option<TestedProgram>,
    }

    fn contenders() -> Vec<Contender> {
        let usual = Definition::default().with_verdicts();
        let mut other = usual.clone();
        let sum = Feature::new("windows", Op::Sum, Some(Input::TcpWindow));
        other.features.push(sum);
        let of = |what, clock, definition: &Definition, attached| Contender {
            what,
            clock,
            definition: definition.clone(),
            attached,
        };
        let bare = Some(TestedProgram::RedirectAlone);
        vec![
            of("redirect alone", Clock::Coarse, &usual, bare),
            of("bridge, coarse clock", Clock::Coarse, &usual, None),
            of("bridge, precise clock", Clock::Precise, &usual, None),
            of("bridge, other records", Clock::Precise, &other, None),
        ]
    }

    impl Contender {
        fn config(&self) -> KernelConfig {
            let bridge = BridgeConfig {
                is_dry_run: false,
                rules: 16,
                undecided: BridgeAction::Pass,
                other: BridgeAction::Pass,
            };
            let tested = Tested {
                attached: self.attached,
                ..Tested::default()
            };
            KernelConfig {
                interfaces: PORTS.map(str::to_owned).to_vec(),
                layout: Some(Layout::compile(&self.definition, false).unwrap()),
                clock: self.clock,
                ring_bytes: 1 << 26,
                tested: self.attached.is_some().then_some(tested),
                offload: Some(OffloadConfig {
                    bridge: Some(bridge),
                    ..offload_config(ROWS)
                }),
                ..config(1 << 16)
            }
        }

        /// Nanoseconds per frame. Every frame must arrive.
        fn run(&self, network: &Network, flows: u32) -> f64 {
            let mut engine = load_for_all_cpus(&self.config()).unwrap();
            engine.attach(XdpMode::Native, false).unwrap();
            decide(&engine, flows);
            let mut batch = MicroflowBatch::default();
            let host = network.tester();
            let arrived = || host.returned().unwrap()[XDP_DROP];
            // Warms up rows and caches for this contender.
            host.run(TestedProgram::Send, &tcp(1, 0x10), FRAMES / 10)
                .unwrap();
            let (before, before_ns) = (arrived(), processor_ns());
            host.run(TestedProgram::Send, &tcp(1, 0x10), FRAMES)
                .unwrap();
            let took_ns = processor_ns() - before_ns;
            assert_eq!(arrived() - before, u64::from(FRAMES), "{}", self.what);
            if self.attached.is_none() {
                let counters = engine.offload_counters().unwrap();
                let port = engine.bridge_counters().unwrap()[0];
                assert_eq!(port.forwarded, u64::from(FRAMES + FRAMES / 10));
                assert_eq!((counters.hits, counters.misses), (port.received, 0));
            }
            collect(&mut engine, &mut batch);
            took_ns as f64 / f64::from(FRAMES)
        }
    }

    /// The processor time of this thread, and of the kernel's thread for left-over software
    /// interrupts.
    fn processor_ns() -> u64 {
        static SOFTIRQS: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
            let mut processes = fs::read_dir("/proc").ok()?.flatten();
            let comm = |path: &Path| fs::read_to_string(path.join("comm")).unwrap_or_default();
            let is_softirqs = |path: &PathBuf| comm(path).trim() == "ksoftirqd/0";
            let found = processes.find_map(|entry| Some(entry.path()).filter(is_softirqs));
            found.map(|path| path.join("schedstat"))
        });
        let told = SOFTIRQS
            .as_ref()
            .map(|path| fs::read_to_string(path).unwrap());
        let of_softirqs = told.map(|told| told.split(' ').next().unwrap().parse::<u64>().unwrap());
        clock_ns(ClockId::ThreadCPUTime) + of_softirqs.unwrap_or_default()
    }

    /// Gives every flow a verdict to pass.
    fn decide(engine: &KernelEngine, flows: u32) {
        let mut table = KernelTable::new(engine.open_offload().unwrap().table, ROWS);
        let frame = tcp(1, 0x10);
        let half_word = |at: usize| {
            let bytes: [u8; 4] = frame[at..at + 4].try_into().unwrap();
            u64::from(u32::from_le_bytes(bytes))
        };
        // The generator uses the number of the flow as source address, which is the smaller end.
        let orders = (0..u64::from(flows)).map(|number| Order {
            key: FlowKey::of_words([
                number | half_word(30) << 32,
                half_word(34) | 0x406 << 32,
                0,
                0,
                0,
            ]),
            kind: OrderKind::Add(Verdict {
                rule: 1,
                ..Verdict::PASS
            }),
        });
        let orders: Vec<_> = orders.collect();
        let mut outcomes = Vec::new();
        table.program(&orders, TIMES, &mut outcomes).unwrap();
        assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Done));
    }

    fn host(flows: u32) -> KernelConfig {
        KernelConfig {
            tested: Some(Tested {
                flows,
                interface: interface_index(HOSTS[0]).unwrap(),
                attached: Some(TestedProgram::Sink),
                ..Tested::default()
            }),
            offload: Some(offload_config(8)),
            ..config(8)
        }
    }

    fn median(runs: &mut [f64]) -> f64 {
        runs.sort_by(f64::total_cmp);
        runs[runs.len() / 2]
    }

    pub(super) fn all() {
        stay_on(0);
        let contenders = contenders();
        for flows in FLOWS {
            let Some(network) = Network::with(|| host(flows)) else {
                return;
            };
            let mut runs = vec![Vec::new(); contenders.len()];
            for _ in 0..TURNS {
                for (contender, runs) in contenders.iter().zip(&mut runs) {
                    runs.push(contender.run(&network, flows));
                }
            }
            let alone_ns = median(&mut runs[0]);
            for (contender, runs) in contenders.iter().zip(&mut runs) {
                let frame_ns = median(runs);
                println!(
                    "{flows:6} flows  {:<22} {frame_ns:6.1} ns a frame, least {:6.1}; {:5.2} M/s, \
                     {:5.1} % of redirect alone",
                    contender.what,
                    runs[0],
                    1e3 / frame_ns,
                    100.0 * alone_ns / frame_ns
                );
            }
        }
    }
}

fn main() {
    #[cfg(feature = "kernel")]
    measured::all();
    #[cfg(not(feature = "kernel"))]
    println!("needs the feature `kernel`");
}
