// SPDX-License-Identifier: Apache-2.0
//! Two CPUs at full speed while tables are emptied: nothing is lost, and nothing is counted twice.

use std::thread;

use turboflow_engine::{MicroflowBatch, ShortFlow};
use turboflow_engine_xdp::{KernelConfig, KernelCounters, Tables, Tested, TestedProgram};
use turboflow_merge::Layout;
use turboflow_record::{Definition, Feature, Input, Op};
use turboflow_testing::{Need, is_missing_in_part};

use crate::support::{DESIGNS, Totals, collect, config, load_for_all_cpus, stay_on, tcp};

const PACKETS: u64 = 10_000_000;
/// Test runs can be interrupted only between repetitions.
const REPETITIONS: u32 = 100_000;
/// Short cells, so that tables are emptied as often as the kernel allows.
const CELL_NS: u64 = 20_000_000;
/// IP length of the packets.
const LENGTH_BYTES: u64 = 40;
/// Length of their frames.
const FRAME_BYTES: u64 = 60;

/// Runs packets of `flows` flows on two CPUs, and returns the totals.
fn fire(config: &KernelConfig) -> Option<(Totals, KernelCounters)> {
    let (totals, counters, _) = fire_and_ask(config)?;
    Some((totals, counters))
}

/// Runs packets on two CPUs, and also returns the flows with dropped records.
fn fire_and_ask(config: &KernelConfig) -> Option<(Totals, KernelCounters, Vec<ShortFlow>)> {
    let mut engine = load_for_all_cpus(config)?;
    let cpus = thread::available_parallelism().unwrap().get().min(2);
    // With one CPU, that one does all the work.
    let _ = is_missing_in_part(&[Need::Right("run on two CPUs", cpus == 2)]);
    let share = PACKETS / cpus as u64;
    let mut totals = Totals::default();
    let mut batch = MicroflowBatch::default();
    thread::scope(|scope| {
        let firing: Vec<_> = (0..cpus)
            .map(|cpu| {
                let tester = engine.tester();
                scope.spawn(move || {
                    stay_on(cpu);
                    for _ in 0..share / u64::from(REPETITIONS) {
                        let frame = tcp(1, 0x10);
                        tester
                            .run(TestedProgram::Fire, &frame, REPETITIONS)
                            .unwrap();
                    }
                })
            })
            .collect();
        while !firing.iter().all(thread::ScopedJoinHandle::is_finished) {
            collect(&mut engine, &mut batch);
            totals.take(&mut batch);
            thread::yield_now();
        }
    });
    engine.finish().unwrap();
    collect(&mut engine, &mut batch);
    totals.take(&mut batch);
    Some((
        totals,
        engine.counters().unwrap(),
        engine.short_flows().unwrap(),
    ))
}

fn config_of(tables: Tables, flows: u32, ring_bytes: u32) -> KernelConfig {
    KernelConfig {
        tables,
        ring_bytes,
        cell_ns: CELL_NS,
        tested: Some(Tested {
            flows,
            ..Tested::default()
        }),
        ..config(16_384)
    }
}

fn check(totals: &Totals, counters: &KernelCounters, flows: u32) {
    assert_eq!(counters.received(), PACKETS);
    assert_eq!(counters.packets_metered, PACKETS);
    assert_eq!(counters.bytes_metered, PACKETS * LENGTH_BYTES);
    assert_eq!(totals.packets + counters.packets_dropped, PACKETS);
    assert_eq!(
        totals.bytes + counters.bytes_dropped,
        PACKETS * LENGTH_BYTES
    );
    assert_eq!(
        totals.records + counters.microflows_dropped,
        counters.in_common().evicted.total()
    );
    assert!(totals.flows() <= flows as usize);
}

#[test]
fn received_is_recorded_while_tables_are_emptied() {
    for tables in DESIGNS {
        for flows in [1, 16_384, 1_000_000] {
            let Some((totals, counters)) = fire(&config_of(tables, flows, 1 << 26)) else {
                return;
            };
            check(&totals, &counters, flows);
            assert!(counters.evicted_age > 10, "{counters:?}");
            assert!(totals.flows() > flows as usize / 2);
            if tables == Tables::RowLock {
                assert_eq!(totals.overlapping, 0, "of {} records", totals.records);
            }
            eprintln!("{tables:?}, {flows} flows: {counters:?}");
        }
    }
}

#[test]
fn a_tiny_ring_drops_what_it_counts() {
    for tables in DESIGNS {
        // With the first number all short flows are named, with the second as many as fit.
        for (flows, slots) in [(10_000, 1_024), (1_000_000, 16_384)] {
            let config = KernelConfig {
                slots,
                ..config_of(tables, flows, 4_096)
            };
            let Some((totals, counters, short)) = fire_and_ask(&config) else {
                return;
            };
            check(&totals, &counters, flows);
            assert!(counters.packets_dropped > PACKETS / 10, "{counters:?}");
            let sum = |of: fn(&ShortFlow) -> u64| short.iter().map(of).sum::<u64>();
            let named = counters.microflows_dropped - counters.microflows_unnamed;
            assert_eq!(sum(|flow| flow.microflows), named);
            if flows == 10_000 {
                assert_eq!(counters.microflows_unnamed, 0);
                assert_eq!(sum(|flow| flow.packets), counters.packets_dropped);
                assert_eq!(sum(|flow| flow.bytes), counters.bytes_dropped);
                assert!(short.len() <= flows as usize);
            } else {
                assert!(short.len() > 10_000 && counters.microflows_unnamed > 0);
            }
        }
    }
}

/// With further features, which are also folded under the lock: none is lost or counted twice.
#[test]
fn features_of_a_plan_while_tables_are_emptied() {
    let feature = Feature::new;
    let definition = Definition {
        features: vec![
            feature("frame_bytes", Op::Sum, Some(Input::FrameLength)),
            feature("gaps", Op::GapMax, None),
            feature("windows", Op::Max, Some(Input::TcpWindow)),
        ],
        ..Definition::default()
    };
    let layout = Layout::compile(&definition, false).unwrap();
    for tables in DESIGNS {
        for flows in [1, 1_000_000] {
            let config = KernelConfig {
                layout: Some(layout.clone()),
                ..config_of(tables, flows, 1 << 27)
            };
            let Some((totals, counters)) = fire(&config) else {
                return;
            };
            check(&totals, &counters, flows);
            // Except for records that the ring dropped.
            assert_eq!(totals.first_words, totals.packets * FRAME_BYTES);
            if tables == Tables::RowLock {
                assert_eq!(totals.overlapping, 0, "of {} records", totals.records);
            }
        }
    }
}

/// A CPU that waits for a row has read the clock before the CPU that holds it. Gaps are still
/// between the reported times.
#[test]
fn gaps_add_up_to_the_duration_though_cpus_wait_for_each_other() {
    let definition = Definition {
        features: vec![Feature::new("gaps", Op::Sum, Some(Input::Gap))],
        ..Definition::default()
    };
    let layout = Layout::compile(&definition, false).unwrap();
    let config = KernelConfig {
        layout: Some(layout),
        ..config_of(Tables::RowLock, 1, 1 << 26)
    };
    let Some((totals, counters)) = fire(&config) else {
        return;
    };
    check(&totals, &counters, 1);
    assert!(totals.durations_ns > 0);
    assert_eq!(totals.first_words, totals.durations_ns);
}

/// Such a CPU has no table: its packets are dropped, counted and named, and no other CPU's rows
/// change.
#[test]
fn a_cpu_that_was_added_after_the_start_loses_what_it_counts() {
    // So few that few records are evicted early: the ring has room for all, however late it is
    // read.
    const FLOWS: u32 = 1_000;
    let definition = Definition {
        features: vec![Feature::new("frames", Op::Sum, Some(Input::FrameLength))],
        ..Definition::default()
    };
    let layout = Layout::compile(&definition, false).unwrap();
    for layout in [None, Some(layout)] {
        let tested = Tested {
            flows: FLOWS,
            tables: Some(1),
            ..Tested::default()
        };
        let config = KernelConfig {
            tested: Some(tested),
            layout,
            ..config_of(Tables::PerCpu, FLOWS, 1 << 26)
        };
        let Some((totals, counters, short)) = fire_and_ask(&config) else {
            return;
        };
        check(&totals, &counters, FLOWS);
        let cpus = thread::available_parallelism().unwrap().get().min(2) as u64;
        assert_eq!(counters.packets_dropped, PACKETS - PACKETS / cpus);
        let missing: u64 = short.iter().map(|flow| flow.packets).sum();
        assert_eq!(missing, counters.packets_dropped);
        assert_eq!(counters.microflows_unnamed, 0);
    }
}
