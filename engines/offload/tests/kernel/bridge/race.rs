// SPDX-License-Identifier: Apache-2.0
//! Verdicts are set, changed and removed every millisecond while two CPUs send frames through a
//! bridge, one from each side. No frame is lost or counted twice, and records, rules and ports
//! agree about every flow.

use std::thread;

use turboflow_engine::MicroflowBatch;
use turboflow_engine_xdp::{
    BridgeAction, BridgeConfig, BridgePortCounters, KernelConfig, KernelEngine, RuleCount, Tested,
    TestedProgram, Tester, XdpMode, interface_index,
};
use turboflow_merge::Layout;
use turboflow_record::Input;
use turboflow_testing::until;

use super::network::{HOSTS, Network};
use super::{bridge, check, config_of, usual, word};
use crate::race::{FLOWS, PHANTOMS, ROWS, Writer};
use crate::run::{LENGTH_BYTES, REPETITIONS, cpus, offload_config};
use crate::support::{collect, config, load_for_all_cpus, stay_on, tcp};

/// Frames sent from each side.
const FRAMES: u64 = 2_000_000;
const XDP_DROP: usize = 1;

/// A program that counts and drops the frames arriving at the hosts, and sends from one of them.
fn host(place: usize) -> KernelConfig {
    KernelConfig {
        tested: Some(Tested {
            flows: FLOWS,
            interface: interface_index(HOSTS[place]).unwrap(),
            attached: Some(TestedProgram::Sink),
            ..Tested::default()
        }),
        offload: Some(offload_config(8)),
        ..config(8)
    }
}

/// Sends frames from both hosts, each on its own CPU, and calls `between` meanwhile.
fn send(hosts: [&Tester; 2], mut between: impl FnMut()) {
    thread::scope(|scope| {
        let sending: Vec<_> = (0..2)
            .map(|place| {
                let host = hosts[place].clone();
                scope.spawn(move || {
                    stay_on(place % cpus());
                    for _ in 0..FRAMES / u64::from(REPETITIONS) {
                        let frame = tcp(1, 0x10);
                        host.run(TestedProgram::Send, &frame, REPETITIONS).unwrap();
                    }
                })
            })
            .collect();
        while !sending.iter().all(thread::ScopedJoinHandle::is_finished) {
            between();
        }
    });
}

/// The sums of all records of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Flow {
    packets: u64,
    packets_dropped: u64,
    bytes_dropped: u64,
}

/// Sums records by the number of their flow, which is its source address.
fn add(layout: &Layout, batch: &mut MicroflowBatch, flows: &mut [Flow]) {
    let words = [Input::PacketDropped, Input::BytesDropped].map(|of| word(layout, of));
    for record in batch.v4::<8>() {
        let flow = &mut flows[(record.key[0] & 0xffff_ffff) as usize];
        flow.packets += record.base.packets;
        flow.packets_dropped += record.state[words[0]];
        flow.bytes_dropped += record.state[words[1]];
    }
    batch.clear();
}

/// Runs a bridge whose flows get random verdicts, and returns the contents of its records. Each
/// flow has its own rule.
fn race(
    undecided: [BridgeAction; 2],
    drops: impl Fn(u32) -> bool,
) -> Option<(KernelEngine, Vec<Flow>, u64)> {
    let network = Network::with(|| host(0))?;
    let other = load_for_all_cpus(&host(1))?;
    let mut config = config_of(
        BridgeConfig {
            rules: FLOWS + PHANTOMS,
            ..bridge()
        },
        &usual(),
    );
    config.offload.as_mut().unwrap().rows = ROWS;
    let layout = config.layout.clone().unwrap();
    let mut engine = load_for_all_cpus(&config)?;
    engine.attach(XdpMode::Native, false).unwrap();
    let actions = engine.bridge_actions().unwrap();
    let mut writer = Writer::new(engine.open_offload().unwrap());
    let (mut batch, mut flows) = (
        MicroflowBatch::default(),
        vec![Flow::default(); FLOWS as usize],
    );
    send([&network.tester(), &other.tester()], || {
        writer.round(&drops);
        actions.set(
            undecided[writer.ordered.rounds as usize % 2],
            BridgeAction::Pass,
        );
        collect(&mut engine, &mut batch);
        add(&layout, &mut batch, &mut flows);
    });
    engine.finish().unwrap();
    collect(&mut engine, &mut batch);
    add(&layout, &mut batch, &mut flows);
    writer.ordered.check();
    let ports = engine.bridge_counters().unwrap();
    let forwarded = ports.iter().map(|port| port.forwarded).sum();
    until("all frames that left have arrived", || {
        network.tester().returned().unwrap()[XDP_DROP] == forwarded
    });
    eprintln!("{:?}, {ports:?}", writer.ordered);
    ports.iter().for_each(check);
    for port in &ports {
        assert!(port.received > FRAMES / 2 && port.received <= FRAMES);
    }
    Some((engine, flows, ports.iter().map(|it| it.received).sum()))
}

#[test]
fn no_frame_is_lost_while_verdicts_change() {
    let undecided = [BridgeAction::Pass, BridgeAction::Drop];
    let Some((engine, flows, received)) = race(undecided, |_| true) else {
        return;
    };
    let counters = engine.counters().unwrap();
    assert_eq!(counters.packets_metered, received);
    assert_eq!(counters.packets_dropped, 0, "no record was dropped");
    let ports = engine.bridge_counters().unwrap();
    let of_ports = |of: fn(&BridgePortCounters) -> u64| -> u64 { ports.iter().map(of).sum() };
    let by_verdict = of_ports(|port| port.dropped_by_verdict);
    let undecided = of_ports(|port| port.dropped_undecided);
    let redirected = of_ports(|port| port.redirected);
    let sum = |of: fn(&Flow) -> u64| -> u64 { flows.iter().map(of).sum() };
    let dropped = sum(|flow| flow.packets_dropped);
    assert_eq!(sum(|flow| flow.packets), received);
    assert_eq!(dropped, by_verdict + undecided);
    assert_eq!(dropped, received - redirected);
    assert!(by_verdict > received / 100 && undecided > received / 100);
    for flow in &flows {
        assert_eq!(flow.bytes_dropped, flow.packets_dropped * LENGTH_BYTES);
    }
}

/// Every flow is dropped only by its own verdict, while the memory of rows passes from flow to
/// flow.
#[test]
fn no_flow_is_dropped_by_the_verdict_of_another() {
    let undecided = [BridgeAction::Pass; 2];
    let Some((engine, flows, _)) = race(undecided, |number| number % 3 == 0) else {
        return;
    };
    let rules = engine.rule_counter();
    for (number, flow) in (0u16..).zip(&flows) {
        let of_rule = rules.count(number).unwrap();
        assert_eq!(flow.packets_dropped, of_rule.packets_dropped, "{number}");
        assert_eq!(flow.bytes_dropped, of_rule.bytes_dropped, "{number}");
        assert_eq!(flow.packets_dropped > 0, number % 3 == 0, "{number}");
        assert!(of_rule.packets_passed <= flow.packets - flow.packets_dropped);
    }
    for number in FLOWS..FLOWS + PHANTOMS {
        let of_rule = rules.count(number as u16).unwrap();
        assert_eq!(of_rule, RuleCount::default());
    }
}
