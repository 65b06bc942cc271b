// SPDX-License-Identifier: Apache-2.0
//! Engines to test, and packets for them from all CPUs.

use std::collections::BTreeMap;
use std::thread;

use turboflow_engine::{MicroflowBatch, OwnCount, RemoteEngine};
use turboflow_engine_offload::{
    Action, Decider, DeciderGone, Decision, LearnerConfig, OffloadEngine, Tapped, Verdict,
};
use turboflow_engine_xdp::{
    KernelConfig, KernelCounters, KernelEngine, OffloadConfig, TapBudget, Tested, TestedProgram,
    Tester,
};
use turboflow_testing::{Need, is_missing_in_part};

use crate::support::{SECOND_NS, Totals, config, load_for_all_cpus, stay_on, tcp};

/// Test runs can be interrupted only between repetitions.
pub(crate) const REPETITIONS: u32 = 100_000;
/// IP length of the generated packets.
pub(crate) const LENGTH_BYTES: u64 = 40;

pub(crate) fn offload_config(rows: u32) -> OffloadConfig {
    OffloadConfig {
        rows,
        tap_rows: 1 << 18,
        budget: TapBudget::default(),
        ring_bytes: 1 << 22,
        snap_bytes: 0,
        idle_ns: 15 * SECOND_NS,
        keys_vlan: false,
        hash_keys: [3, 5].map(|odd: u64| {
            std::array::from_fn(|at| (at as u64 + odd).wrapping_mul(0xbf58_476d_1ce4_e5b9))
        }),
        bridge: None,
    }
}

/// The configuration of an engine with `rows` rows that gets packets of `flows` flows.
pub(crate) fn fired(rows: u32, flows: u32) -> KernelConfig {
    KernelConfig {
        offload: Some(offload_config(rows)),
        ring_bytes: 1 << 26,
        cell_ns: 20_000_000,
        tested: Some(Tested {
            flows,
            ..Tested::default()
        }),
        ..config(16_384)
    }
}

pub(crate) const TIMES: LearnerConfig = LearnerConfig {
    idle_ns: 15 * SECOND_NS,
    linger_ns: SECOND_NS,
};

/// Loads the engine for a test on several CPUs; `None` if the test is skipped.
pub(crate) fn load_offload(
    config: &KernelConfig,
    decider: Box<dyn Decider>,
    times: LearnerConfig,
) -> Option<OffloadEngine> {
    let kernel = load_for_all_cpus(config)?;
    Some(over(kernel, config, decider, times))
}

pub(crate) fn over(
    kernel: KernelEngine,
    config: &KernelConfig,
    decider: Box<dyn Decider>,
    times: LearnerConfig,
) -> OffloadEngine {
    let rows = config.offload.as_ref().unwrap().rows;
    OffloadEngine::new(kernel, rows, decider, times).unwrap()
}

/// The number of CPUs that send packets: two if the machine has them.
pub(crate) fn cpus() -> usize {
    let cpus = thread::available_parallelism().unwrap().get().min(2);
    let _ = is_missing_in_part(&[Need::Right("run on two CPUs", cpus == 2)]);
    cpus
}

/// Sends packets from two CPUs, and calls `between` repeatedly until all have been sent.
pub(crate) fn fire(tester: &Tester, packets: u64, mut between: impl FnMut()) {
    let cpus = cpus();
    let share = packets / cpus as u64;
    thread::scope(|scope| {
        let firing: Vec<_> = (0..cpus)
            .map(|cpu| {
                let tester = tester.clone();
                scope.spawn(move || {
                    stay_on(cpu);
                    for _ in 0..share / u64::from(REPETITIONS) {
                        let frame = tcp(1, 0x10);
                        tester
                            .run(TestedProgram::FireCounted, &frame, REPETITIONS)
                            .unwrap();
                    }
                })
            })
            .collect();
        while !firing.iter().all(thread::ScopedJoinHandle::is_finished) {
            between();
            thread::yield_now();
        }
    });
}

/// The results of a run.
pub(crate) struct Ran {
    pub(crate) totals: Totals,
    pub(crate) counters: KernelCounters,
    own: BTreeMap<&'static str, u64>,
}

impl Ran {
    /// A counter of the engine.
    pub(crate) fn own(&self, name: &str) -> u64 {
        self.own[format!("offload_{name}").as_str()]
    }

    /// Checks that every packet is in a record and is a hit or a miss, and that rows and taps add
    /// up.
    pub(crate) fn check(&self, packets: u64) {
        let counters = &self.counters;
        assert_eq!(counters.received(), packets);
        assert_eq!(counters.packets_metered, packets);
        assert_eq!(counters.bytes_metered, packets * LENGTH_BYTES);
        assert_eq!(self.totals.packets + counters.packets_dropped, packets);
        let bytes = self.totals.bytes + counters.bytes_dropped;
        assert_eq!(bytes, packets * LENGTH_BYTES);
        assert_eq!(self.own("hits") + self.own("misses"), packets);
        assert_eq!(self.own("taps_read"), self.own("taps"));
        let ended = self.own("rows_idle") + self.own("rows_removed");
        assert_eq!(self.own("rows_begun"), ended + self.own("rows_open"));
        let decided = self.own("flows_decided") + self.own("flows_gave_up");
        assert_eq!(self.own("rows_begun"), decided);
    }
}

pub(crate) fn by_name(counts: Vec<OwnCount>) -> BTreeMap<&'static str, u64> {
    counts.iter().map(|own| (own.name, own.count)).collect()
}

/// Appends the available records to the totals.
pub(crate) fn collect_into(engine: &mut OffloadEngine, totals: &mut Totals) {
    let mut batch = MicroflowBatch::default();
    while engine.collect(&mut batch).unwrap().has_more {}
    totals.take(&mut batch);
}

/// Ends an engine; `totals` contains its records so far.
pub(crate) fn finish(mut engine: OffloadEngine, mut totals: Totals) -> Ran {
    engine.finish().unwrap();
    collect_into(&mut engine, &mut totals);
    Ran {
        totals,
        counters: engine.kernel().counters().unwrap(),
        own: by_name(engine.own_counts().unwrap()),
    }
}

/// Sends packets to an engine, and ends it.
pub(crate) fn fire_at(mut engine: OffloadEngine, packets: u64) -> Ran {
    let mut totals = Totals::default();
    collect_into(&mut engine, &mut totals);
    let tester = engine.kernel().tester();
    fire(&tester, packets, || collect_into(&mut engine, &mut totals));
    finish(engine, totals)
}

/// Decides by the first packet: drops flows whose key has an odd checksum.
pub(crate) struct DropsHalf;

/// Whether [`DropsHalf`] drops a flow.
pub(crate) fn is_dropped(words: [u64; 5]) -> bool {
    let ones: u32 = words.iter().map(|word| word.count_ones()).sum();
    ones % 2 == 1
}

impl Decider for DropsHalf {
    fn snap_bytes(&self) -> u32 {
        0
    }

    fn decide(&mut self, tapped: &Tapped<'_>) -> Result<Decision, DeciderGone> {
        Ok(Decision::Decided(Verdict {
            action: match is_dropped(tapped.key.words()) {
                true => Action::Drop,
                false => Action::Pass,
            },
            rule: 7,
        }))
    }
}
