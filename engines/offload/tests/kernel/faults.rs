// SPDX-License-Identifier: Apache-2.0
//! Anything too small, too slow or gone costs verdicts, never counts, and each fault has a counter.

use turboflow_engine_offload::{
    Decider, DeciderGone, Decision, FirstPacket, FlowTable, KernelTable, Order, OrderKind, Outcome,
    Tapped, Times, Verdict,
};
use turboflow_engine_xdp::{KernelConfig, TapBudget, TestedProgram};

use crate::race::key_of;
use crate::run::{Ran, TIMES, fire_at, fired, load_offload, offload_config};
use crate::support::{load_for_all_cpus, tcp};

const PACKETS: u64 = 1_000_000;
const FLOWS: u32 = 10_000;

fn ran(config: &KernelConfig, decider: Box<dyn Decider>) -> Option<Ran> {
    let ran = fire_at(load_offload(config, decider, TIMES)?, PACKETS);
    ran.check(PACKETS);
    Some(ran)
}

#[test]
fn a_full_table_refuses_rows_and_counts_them() {
    const ROWS: u32 = 500;
    let Some(ran) = ran(&fired(ROWS, FLOWS), Box::new(FirstPacket)) else {
        return;
    };
    assert_eq!(ran.own("rows_begun"), ROWS.into());
    assert_eq!(ran.own("rows_open"), ROWS.into());
    let refused = ran.own("refused_full");
    assert!(refused >= u64::from(FLOWS - ROWS) * 9 / 10, "{refused}");
    // A flow is tapped until user space has reported that it has no room. How many packets that
    // takes depends on the machine, but budgets of 24 packets a flow are not used up.
    assert!(refused < 10 * u64::from(FLOWS), "{refused}");
    assert!(ran.own("taps") < 11 * u64::from(FLOWS));
    assert_eq!(ran.own("refused_failed"), 0);
}

#[test]
fn a_tiny_ring_loses_taps_and_counts_them() {
    let mut config = fired(1 << 17, FLOWS);
    config.offload.as_mut().unwrap().ring_bytes = 4_096;
    let Some(ran) = ran(&config, Box::new(FirstPacket)) else {
        return;
    };
    assert!(ran.own("taps_lost") > 1_000);
    assert_eq!(ran.own("decider_gone"), 0);
    // Later packets of the flows are tapped instead.
    assert!(ran.own("rows_begun") > u64::from(FLOWS) / 100);
}

/// A decider that ends after this many packets.
struct Mortal(u32);

impl Decider for Mortal {
    fn snap_bytes(&self) -> u32 {
        0
    }

    fn decide(&mut self, tapped: &Tapped<'_>) -> Result<Decision, DeciderGone> {
        self.0 = self.0.checked_sub(1).ok_or(DeciderGone)?;
        FirstPacket.decide(tapped)
    }
}

#[test]
fn a_dead_decider_decides_nothing_more() {
    let config = fired(1 << 17, FLOWS);
    let Some(ran) = ran(&config, Box::new(Mortal(500))) else {
        return;
    };
    assert_eq!(ran.own("decider_gone"), 1);
    assert!(ran.own("rows_begun") <= 500);
    assert!(ran.own("taps_unheard") > 0);
    assert!(ran.own("hits") > 0 && ran.own("misses") > PACKETS / 2);
}

/// A decider that never decides.
struct Mute;

impl Decider for Mute {
    fn snap_bytes(&self) -> u32 {
        0
    }

    fn decide(&mut self, _tapped: &Tapped<'_>) -> Result<Decision, DeciderGone> {
        Ok(Decision::Undecided)
    }
}

/// A flow is tapped as often as its budget allows, even if it is never decided.
#[test]
fn undecided_flows_are_tapped_within_their_budget() {
    const FEW: u32 = 1_000;
    let mut config = fired(1 << 17, FEW);
    config.offload = Some(turboflow_engine_xdp::OffloadConfig {
        budget: TapBudget {
            tcp: 5,
            ..TapBudget::default()
        },
        ring_bytes: 1 << 24,
        ..offload_config(1 << 17)
    });
    let Some(ran) = ran(&config, Box::new(Mute)) else {
        return;
    };
    assert_eq!((ran.own("hits"), ran.own("misses")), (0, PACKETS));
    let taps = ran.own("taps");
    // Two CPUs may count one packet of a flow at the same time.
    let (least, most) = (5 * u64::from(FEW), 6 * u64::from(FEW));
    assert!((least..=most).contains(&taps), "{taps}");
    assert_eq!(ran.own("taps_undecided"), taps);
}

/// Other rules may need more packets of a flow than the earlier ones did.
#[test]
fn a_flow_without_a_verdict_any_more_is_tapped_anew() {
    const BUDGET: u64 = 5;
    let mut config = fired(8, 1);
    config.offload.as_mut().unwrap().budget.tcp = BUDGET as u8;
    let Some(engine) = load_for_all_cpus(&config) else {
        return;
    };
    let mut table = KernelTable::new(engine.open_offload().unwrap().table, 8);
    let tester = engine.tester();
    let taps = || {
        let frame = tcp(1, 0x10);
        tester.run(TestedProgram::FireCounted, &frame, 100).unwrap();
        engine.offload_counters().unwrap().taps
    };
    let mut order = |kind| {
        let key = key_of(0);
        let times = Times {
            now_ns: 0,
            idle_ns: TIMES.idle_ns,
            linger_ns: TIMES.linger_ns,
        };
        let mut outcomes = Vec::new();
        table
            .program(&[Order { key, kind }], times, &mut outcomes)
            .unwrap();
        outcomes[0]
    };
    assert_eq!((taps(), taps()), (BUDGET, BUDGET));
    // This holds whether or not the flow has a row.
    assert_eq!(order(OrderKind::Remove), Outcome::Absent);
    assert_eq!((taps(), taps()), (2 * BUDGET, 2 * BUDGET));
    assert_eq!(order(OrderKind::Add(Verdict::PASS)), Outcome::Done);
    assert_eq!(taps(), 2 * BUDGET);
    assert_eq!(order(OrderKind::Remove), Outcome::Done);
    assert_eq!((taps(), taps()), (3 * BUDGET, 3 * BUDGET));
}

/// A decider that panics: the learner is gone, and everything is still counted.
struct Broken;

impl Decider for Broken {
    fn snap_bytes(&self) -> u32 {
        0
    }

    fn decide(&mut self, _tapped: &Tapped<'_>) -> Result<Decision, DeciderGone> {
        panic!("as a test wants it")
    }
}

#[test]
fn a_learner_that_is_gone_is_named() {
    let config = fired(1 << 17, FLOWS);
    let Some(engine) = load_offload(&config, Box::new(Broken), TIMES) else {
        return;
    };
    let ran = fire_at(engine, PACKETS);
    assert_eq!(ran.counters.packets_metered, PACKETS);
    assert_eq!(ran.totals.packets + ran.counters.packets_dropped, PACKETS);
    assert_eq!(ran.own("misses"), PACKETS);
    assert_eq!(ran.own("decider_gone"), 1);
}
