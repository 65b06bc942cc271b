// SPDX-License-Identifier: Apache-2.0
//! A bridge between two veth pairs: which frames arrive, what is counted, and what records contain.

// Shared with the tests of the engine in the kernel.
#[allow(dead_code, reason = "it is used there in other ways")]
#[path = "../../../../../apps/bridge/tests/kernel/frames.rs"]
mod frames;
pub(crate) mod network;
mod race;

use std::collections::BTreeMap;

use turboflow_capture::live::Sender;
use turboflow_engine::{MicroflowBatch, RemoteEngine};
use turboflow_engine_offload::{
    Action, Decider, DeciderGone, Decision, FirstPacket, FlowKey, OffloadEngine, Tapped, Verdict,
};
use turboflow_engine_xdp::{
    BridgeAction, BridgeConfig, BridgePortCounters, KernelConfig, OffloadConfig, RuleCount, XdpMode,
};
use turboflow_merge::Layout;
use turboflow_packet::{Parser, ParserConfig};
use turboflow_record::{Definition, Feature, FiveTuple, Input, KeyField, Op};

use crate::run::{DropsHalf, TIMES, by_name, is_dropped, offload_config, over};
use crate::support::{captures, config, frame, frames_of, load_for_all_cpus, tcp};
use frames::{Ear, end, pass_on};
use network::{HOSTS, Network, PORTS, ip};

/// The longest frame of an interface with the usual MTU.
const LONGEST: usize = 1_514;
/// Frames that are sent before they are received: an ear has room for them.
const AT_ONCE: usize = 2_000;

/// The standard record with the bridge's decisions, which the fast program writes.
fn usual() -> Definition {
    Definition::default().with_verdicts()
}

/// A definition that the fast program cannot handle.
fn unusual() -> Definition {
    let mut definition = usual();
    let sum = Feature::new("windows", Op::Sum, Some(Input::TcpWindow));
    definition.features.push(sum);
    definition
}

fn bridge() -> BridgeConfig {
    BridgeConfig {
        is_dry_run: false,
        rules: 16,
        undecided: BridgeAction::Pass,
        other: BridgeAction::Pass,
    }
}

fn config_of(bridge: BridgeConfig, definition: &Definition) -> KernelConfig {
    KernelConfig {
        interfaces: PORTS.map(str::to_owned).to_vec(),
        layout: Some(Layout::compile(definition, false).unwrap()),
        ring_bytes: 1 << 26,
        offload: Some(OffloadConfig {
            bridge: Some(bridge),
            ..offload_config(1 << 16)
        }),
        ..config(16_384)
    }
}

/// The state word of an input's column.
fn word(layout: &Layout, of: Input) -> usize {
    let steps = layout.steps();
    let step = steps.state.iter().find(|step| step.of == Some(of));
    step.unwrap().word
}

/// A running bridge, and the sums of its records.
struct Running {
    engine: OffloadEngine,
    layout: Layout,
    batch: MicroflowBatch,
    packets: u64,
    packets_dropped: u64,
    bytes_dropped: u64,
    /// Records by their last verdict and rule.
    verdicts: BTreeMap<(u64, u64), u64>,
    /// Both hosts, once one has sent to the other: closing their sockets takes milliseconds.
    hosts: Option<[(Sender, Ear); 2]>,
}

impl Running {
    fn start(config: &KernelConfig, decider: Box<dyn Decider>) -> Option<Self> {
        let mut kernel = load_for_all_cpus(config)?;
        kernel.attach(XdpMode::Native, false).unwrap();
        let mut running = Self {
            engine: over(kernel, config, decider, TIMES),
            layout: config.layout.clone().unwrap(),
            batch: MicroflowBatch::default(),
            packets: 0,
            packets_dropped: 0,
            bytes_dropped: 0,
            verdicts: BTreeMap::new(),
            hosts: None,
        };
        running.collect();
        Some(running)
    }

    fn collect(&mut self) {
        while self.engine.collect(&mut self.batch).unwrap().has_more {}
        let words = [
            Input::Verdict,
            Input::Rule,
            Input::PacketDropped,
            Input::BytesDropped,
        ]
        .map(|of| word(&self.layout, of));
        let mut records = Vec::new();
        match self.layout.has_vlan_key() {
            true => {
                let wide = self.batch.wide::<120>();
                records.extend(wide.map(|it| (it.base.packets, it.state)));
            }
            false => {
                let of_v4 = self.batch.v4::<120>();
                records.extend(of_v4.map(|it| (it.base.packets, it.state)));
                let of_v6 = self.batch.v6::<120>();
                records.extend(of_v6.map(|it| (it.base.packets, it.state)));
            }
        }
        for (packets, state) in records {
            let [verdict, rule, packets_dropped, bytes_dropped] = words.map(|word| state[word]);
            self.packets += packets;
            self.packets_dropped += packets_dropped;
            self.bytes_dropped += bytes_dropped;
            assert!(verdict > 0 && rule > 0, "every packet has both");
            *self.verdicts.entry((verdict - 1, rule - 1)).or_default() += 1;
        }
        self.batch.clear();
    }

    /// Sends frames from one host to the other, and returns those that arrive.
    fn pass(&mut self, from: usize, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let open = || HOSTS.map(|host| (Sender::open(host).unwrap(), Ear::at(host)));
        let mut hosts = self.hosts.take().unwrap_or_else(open);
        let [first, second] = &mut hosts;
        let (sender, ear) = match from {
            0 => (&mut first.0, &mut second.1),
            _ => (&mut second.0, &mut first.1),
        };
        let mut heard = Vec::new();
        for some in frames.chunks(AT_ONCE) {
            ear.send(sender, some);
            end(sender);
            heard.extend(ear.heard());
            self.collect();
        }
        self.hosts = Some(hosts);
        heard
    }

    fn finish(mut self) -> Finished {
        self.engine.finish().unwrap();
        self.collect();
        let kernel = self.engine.kernel();
        let counters = kernel.counters().unwrap();
        let ports = kernel.bridge_counters().unwrap();
        let of_rule_7 = kernel.rule_counter().count(7).unwrap();
        let own = by_name(self.engine.own_counts().unwrap());
        for port in &ports {
            check(port);
        }
        let received: u64 = ports.iter().map(|port| port.received).sum();
        assert_eq!(counters.received(), received);
        assert_eq!(self.packets, counters.packets_metered);
        assert_eq!(own["bridge_received"], received);
        Finished {
            ports,
            of_rule_7,
            packets_dropped: self.packets_dropped,
            bytes_dropped: self.bytes_dropped,
            verdicts: self.verdicts,
        }
    }
}

struct Finished {
    ports: [BridgePortCounters; 2],
    of_rule_7: RuleCount,
    packets_dropped: u64,
    bytes_dropped: u64,
    verdicts: BTreeMap<(u64, u64), u64>,
}

#[track_caller]
fn check(port: &BridgePortCounters) {
    let dropped = port.dropped_by_verdict + port.dropped_undecided + port.dropped_other;
    assert_eq!(port.received, port.redirected + dropped, "{port:?}");
    let lost = port.too_long + port.redirect_errors + port.driver_dropped;
    assert_eq!(port.redirected, port.forwarded + lost, "{port:?}");
}

fn sendable(frame: &[u8]) -> bool {
    (14..=LONGEST).contains(&frame.len())
}

/// The flow of a frame, if it is a packet of a flow.
fn flow_of(parser: &mut Parser, bytes: &[u8]) -> Option<[u64; 5]> {
    let packet = parser.parse(&frame(bytes)).ok()?;
    Some(FlowKey::of(&packet.tuple).0.words())
}

#[test]
fn every_capture_comes_out_byte_for_byte() {
    let Some(_network) = Network::new() else {
        return;
    };
    for definition in [usual(), unusual()] {
        let config = config_of(bridge(), &definition);
        let Some(mut running) = Running::start(&config, Box::new(FirstPacket)) else {
            return;
        };
        let (mut sent, mut packets, mut from) = ([0; 2], 0, 0);
        let mut parser = Parser::new(ParserConfig::default());
        for path in captures() {
            let mut frames = frames_of(&path);
            frames.retain(|frame| sendable(frame));
            let flows = frames.iter().filter_map(|it| flow_of(&mut parser, it));
            packets += flows.count() as u64;
            let heard = running.pass(from, &frames);
            assert_eq!(heard.len(), frames.len(), "{}", path.display());
            assert!(heard == frames, "{}", path.display());
            sent[from] += (frames.len() + frames.len().div_ceil(AT_ONCE)) as u64;
            from = 1 - from;
        }
        assert!(packets > 10_000, "{packets} packets");
        let finished = running.finish();
        let forwarded = finished.ports.map(|port| port.forwarded);
        assert_eq!(forwarded, sent);
        assert_eq!((finished.packets_dropped, finished.bytes_dropped), (0, 0));
        // No rule applied: the packets passed, or were not decided yet.
        let kinds: Vec<_> = finished.verdicts.keys().copied().collect();
        assert_eq!(kinds, [(0, 0), (1, 0)]);
    }
}

/// Drops some of the flows; `heard` are the remaining frames.
fn half(bridge: BridgeConfig, definition: &Definition) -> Option<(Vec<Vec<u8>>, usize, Finished)> {
    let config = config_of(bridge, definition);
    let mut running = Running::start(&config, Box::new(DropsHalf))?;
    let mut frames: Vec<_> = captures().iter().flat_map(|path| frames_of(path)).collect();
    frames.retain(|frame| sendable(frame));
    frames.truncate(60_000);
    let heard = running.pass(0, &frames);
    let finished = running.finish();
    let mut parser = Parser::new(ParserConfig::default());
    let mut left = heard.iter().peekable();
    for bytes in &frames {
        if left.next_if_eq(&bytes).is_none() {
            let flow = flow_of(&mut parser, bytes);
            assert!(flow.is_some_and(is_dropped), "a frame that was to pass");
        }
    }
    assert_eq!(
        left.count(),
        0,
        "frames come out in the order in which they came in"
    );
    Some((heard, frames.len(), finished))
}

#[test]
fn flows_that_a_rule_drops_are_missing_and_nothing_else() {
    let Some(_network) = Network::new() else {
        return;
    };
    for definition in [usual(), unusual()] {
        let Some((heard, sent, finished)) = half(bridge(), &definition) else {
            return;
        };
        let dropped = finished.ports[0].dropped_by_verdict;
        eprintln!(
            "{dropped} of {sent} frames dropped: {:?}",
            finished.ports[0]
        );
        assert!(dropped > 1_000, "{dropped}");
        assert_eq!(heard.len() as u64, sent as u64 - dropped);
        assert_eq!(finished.packets_dropped, dropped);
        let rule = finished.of_rule_7;
        assert_eq!(rule.packets_dropped, dropped);
        assert_eq!(rule.bytes_dropped, finished.bytes_dropped);
        assert!(finished.verdicts.contains_key(&(2, 7)));
    }
}

#[test]
fn a_dry_run_forwards_all_and_says_what_it_would_drop() {
    let Some(_network) = Network::new() else {
        return;
    };
    let dry = BridgeConfig {
        is_dry_run: true,
        ..bridge()
    };
    let Some((heard, sent, finished)) = half(dry, &usual()) else {
        return;
    };
    assert_eq!(heard.len(), sent);
    assert_eq!((finished.packets_dropped, finished.bytes_dropped), (0, 0));
    let would_drop = finished.ports[0].would_drop;
    assert!(would_drop > 1_000, "{would_drop}");
    assert_eq!(finished.of_rule_7.packets_dropped, would_drop);
    assert!(finished.verdicts.contains_key(&(3, 7)));
    assert!(!finished.verdicts.keys().any(|(verdict, _)| *verdict == 2));
}

#[test]
fn what_is_undecided_and_what_is_no_flow_is_treated_as_configured() {
    let Some(_network) = Network::new() else {
        return;
    };
    let config = config_of(bridge(), &usual());
    let Some(mut running) = Running::start(&config, Box::new(Mute)) else {
        return;
    };
    let actions = running.engine.kernel().bridge_actions().unwrap();
    let undecided = vec![tcp(1, 0x10), tcp(2, 0x10)];
    let other = frames::frames(26);
    assert_eq!(running.pass(0, &undecided), undecided);
    assert_eq!(running.pass(1, &other), other);
    // The frame that marks the end of a batch belongs to no flow, so it must pass.
    actions.set(BridgeAction::Drop, BridgeAction::Pass);
    assert_eq!(running.pass(0, &undecided).len(), 0);
    assert_eq!(running.pass(1, &other).len(), other.len());
    let finished = running.finish();
    assert_eq!(finished.ports[0].dropped_undecided, 2);
    assert_eq!(finished.packets_dropped, 2);
    assert_eq!(finished.bytes_dropped, 80);
}

/// A decider that never decides.
struct Mute;

impl Decider for Mute {
    fn snap_bytes(&self) -> u32 {
        0
    }

    fn decide(
        &mut self,
        _tapped: &turboflow_engine_offload::Tapped<'_>,
    ) -> Result<turboflow_engine_offload::Decision, turboflow_engine_offload::DeciderGone> {
        Ok(turboflow_engine_offload::Decision::Undecided)
    }
}

#[test]
fn frames_too_long_for_the_other_port_are_counted_as_such() {
    let Some(_network) = Network::new() else {
        return;
    };
    let Some(mut running) = Running::start(&config_of(bridge(), &usual()), Box::new(Mute)) else {
        return;
    };
    ip("link set pb mtu 600");
    let mut long = tcp(1, 0x10);
    long.resize(1_000, 0);
    let frames: Vec<_> = (0..100).map(|_| long.clone()).collect();
    assert_eq!(running.pass(0, &frames).len(), 0);
    // With the smaller MTU, that end of the cable does not receive long frames either.
    let short = vec![tcp(1, 0x10)];
    assert_eq!(running.pass(1, &short), short);
    let finished = running.finish();
    assert_eq!(finished.ports[0].too_long, 100);
    assert_eq!(finished.ports[0].redirect_errors, 0);
    assert_eq!(finished.ports[1].too_long, 0);
}

/// Frames of several buffers.
#[test]
fn frames_longer_than_a_page_pass() {
    let Some(_network) = Network::new() else {
        return;
    };
    for interface in PORTS.into_iter().chain(HOSTS) {
        ip(&format!("link set {interface} mtu 9000"));
    }
    for definition in [usual(), unusual()] {
        let config = config_of(bridge(), &definition);
        let Some(mut running) = Running::start(&config, Box::new(FirstPacket)) else {
            return;
        };
        let frames: Vec<_> = (1_500..=9_000)
            .step_by(500)
            .map(|length_bytes: u16| {
                let mut frame = tcp(1, 0x10);
                frame[16..18].copy_from_slice(&length_bytes.to_be_bytes());
                frame.resize(14 + usize::from(length_bytes), 7);
                frame
            })
            .collect();
        assert!(running.pass(0, &frames) == frames);
        assert!(running.pass(1, &frames) == frames);
        let finished = running.finish();
        assert_eq!(finished.ports.map(|port| port.forwarded), [17, 17]);
    }
}

/// A decider that drops flows in VLAN 10 and lets all others pass.
struct DropsVlan10;

impl Decider for DropsVlan10 {
    fn snap_bytes(&self) -> u32 {
        0
    }

    fn decide(&mut self, tapped: &Tapped<'_>) -> Result<Decision, DeciderGone> {
        let tuple = FiveTuple::of_words(tapped.key.words()).unwrap();
        Ok(Decision::Decided(Verdict {
            action: match tuple.vlan() {
                10 => Action::Drop,
                _ => Action::Redirect,
            },
            rule: 7,
        }))
    }
}

/// Two customers use the same addresses.
#[test]
fn flows_in_different_vlans_are_different_flows_if_records_have_the_vlan_in_their_key() {
    let Some(_network) = Network::new() else {
        return;
    };
    let mut definition = usual();
    definition.key.push(KeyField::Input(Input::Vlan));
    let mut config = config_of(bridge(), &definition);
    let layout = config.layout.as_ref().unwrap();
    config.offload.as_mut().unwrap().keys_vlan = layout.has_vlan_key();
    let Some(mut running) = Running::start(&config, Box::new(DropsVlan10)) else {
        return;
    };
    let tagged = |kind: u16, tag: u16| {
        let mut frame = tcp(1, 0x10);
        let header = [kind.to_be_bytes(), tag.to_be_bytes()].concat();
        frame.splice(12..12, header);
        frame
    };
    // The priority does not belong to the VLAN, and VLAN 0 means no VLAN.
    let frames = vec![
        tcp(1, 0x10),
        tagged(0x8100, 0x600a),
        tagged(0x88a8, 20),
        tagged(0x8100, 0x6000),
    ];
    let passed = running.pass(0, &frames);
    assert!(passed == frames);
    let rows = |running: &mut Running| by_name(running.engine.own_counts().unwrap());
    turboflow_testing::until("each flow has a row", || {
        rows(&mut running)["offload_rows_begun"] == 3
    });
    assert!(running.pass(0, &frames) == [&frames[..1], &frames[2..]].concat());
    let finished = running.finish();
    assert_eq!(finished.packets_dropped, 1);
}

/// Acts as if a second cable connected both sides.
#[test]
fn broadcast_frames_that_come_in_at_both_ports_are_counted() {
    let Some(_network) = Network::new() else {
        return;
    };
    for definition in [usual(), unusual()] {
        let config = config_of(bridge(), &definition);
        let Some(mut running) = Running::start(&config, Box::new(FirstPacket)) else {
            return;
        };
        let to = |address: [u8; 6], number: u8| {
            let mut frame = tcp(1, 0x10);
            frame[..6].copy_from_slice(&address);
            frame[26] = number;
            frame
        };
        let broadcast: Vec<_> = (0..5).map(|number| to([0xff; 6], number)).collect();
        let multicast = vec![to([1, 0, 0x5e, 0, 0, 1], 0)];
        let unicast = vec![to([2; 6], 0)];
        for frames in [&broadcast, &broadcast, &multicast, &unicast] {
            assert!(running.pass(0, frames) == *frames);
        }
        for frames in [&unicast, &broadcast, &multicast] {
            assert!(running.pass(1, frames) == *frames);
        }
        let other = vec![to([0xff; 6], 9)];
        assert!(running.pass(1, &other) == other);
        let finished = running.finish();
        assert_eq!(finished.ports.map(|port| port.came_back), [0, 6]);
    }
}

#[test]
fn redirects_that_fail_are_counted() {
    let Some(mut network) = Network::new() else {
        return;
    };
    let Some(mut running) = Running::start(&config_of(bridge(), &usual()), Box::new(Mute)) else {
        return;
    };
    assert_eq!(running.pass(0, &[tcp(1, 0x10)]).len(), 1);
    network.deafen();
    let frames: Vec<_> = (0..100).map(|_| tcp(1, 0x10)).collect();
    let mut sender = Sender::open(HOSTS[0]).unwrap();
    pass_on(&mut sender, &frames);
    turboflow_testing::until("all frames have been received", || {
        let counters = running.engine.kernel().counters().unwrap();
        counters.received() == 2 + 100
    });
    let finished = running.finish();
    let port = finished.ports[0];
    assert_eq!((port.forwarded, port.redirect_errors), (2, 100), "{port:?}");
}
