// SPDX-License-Identifier: Apache-2.0
//! Tests that both parsers agree. `tests/sentences` tests the rules themselves.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use turboflow_record::{Family, Input, InputSet, InputValues};

use crate::build::frame_of;
use crate::link::LinkFields;
use crate::walk::Walk;
use crate::{
    LinkType, PARSED_INPUTS, Parser, ParserConfig, TELEMETRY_INPUTS, TunnelSet, fast, inputs,
};

fn values_of(bytes: &[u8], walk: &Walk) -> InputValues {
    let wanted: Vec<Input> = PARSED_INPUTS.iter().collect();
    let frame = frame_of(bytes, LinkType::Ethernet);
    let mut values = InputValues::default();
    inputs::fill(
        &mut values,
        &wanted,
        &frame,
        walk,
        &walk.packet(&frame, false),
    );
    values
}

/// Whether the fast parser accepts the frame. Panics if its result differs from the general
/// parser's.
fn agrees(bytes: &[u8], entered: TunnelSet) -> bool {
    let frame = frame_of(bytes, LinkType::Ethernet);
    let udp_tunnels = entered.intersects(TunnelSet::IN_UDP);
    let fast = fast::parse(&frame, udp_tunnels);
    let of_v4 = fast
        .map(|fast| fast.packet)
        .filter(|packet| packet.tuple.family() == Family::V4);
    assert_eq!(fast::parse_v4(&frame, udp_tunnels), of_v4);
    let Some(fast) = fast else {
        return false;
    };
    let walk = Walk::new(&frame, entered, &mut LinkFields::default())
        .expect("the general parser accepts what the fast one does");
    assert_eq!(fast.packet, walk.packet(&frame, true));
    let short = Walk::from_fast(&frame, &fast);
    assert_eq!(short.ip, walk.ip);
    assert_eq!(short.link, walk.link);
    assert_eq!(values_of(bytes, &short), values_of(bytes, &walk));
    true
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn the_fast_parser_agrees_with_the_general_one(bytes in crate::generate::frames()) {
        agrees(&bytes, TunnelSet::EMPTY);
        agrees(&bytes, TunnelSet::ALL);
    }
}

/// Plain packets are checked for telemetry only if they are marked, all others always.
#[test]
fn telemetry_does_not_depend_on_the_parser() {
    let config = ParserConfig {
        telemetry: Some(crate::marks::telemetry()),
        needs: PARSED_INPUTS.union(TELEMETRY_INPUTS),
        ..ParserConfig::default()
    };
    let (mut any, mut general) = (Parser::new(config), Parser::new(config));
    let (mut values, mut expected) = (InputValues::default(), InputValues::default());
    let mut runner = TestRunner::deterministic();
    let frames = crate::generate::frames();
    for _ in 0..20_000 {
        let bytes = frames.new_tree(&mut runner).unwrap().current();
        let frame = frame_of(&bytes, LinkType::Ethernet);
        let packet = any.parse_with_inputs(&frame, &mut values);
        assert_eq!(packet, general.parse_any_with_inputs(&frame, &mut expected));
        assert!(
            packet.is_err() || values == expected,
            "{values:?}, {expected:?}"
        );
    }
    let counters = any.telemetry_counters().unwrap();
    assert_eq!(counters, general.telemetry_counters().unwrap());
    assert!(counters.read > 500 && counters.unread.iter().all(|count| *count > 0));
}

#[test]
fn the_fast_parser_accepts_plain_packets() {
    use crate::build::{ethernet, ipv4, ipv6, tag, tcp, udp};
    let segments = [
        (6, tcp(0x018, &[], &[0; 8])),
        (17, udp(4_000, 53, &[0; 12])),
    ];
    for (protocol, segment) in segments {
        for (ether_type, datagram) in [
            (0x0800, ipv4(protocol, &segment)),
            (0x86dd, ipv6(protocol, &segment)),
        ] {
            for bytes in [
                ethernet(ether_type, &datagram),
                ethernet(0x8100, &tag(0x2005, ether_type, &datagram)),
            ] {
                assert!(agrees(&bytes, TunnelSet::EMPTY));
                assert!(agrees(&bytes, TunnelSet::ALL));
            }
        }
    }
}

/// Every declared input is extracted from some frame, and no other input from any.
#[test]
fn frames_provide_the_declared_inputs() {
    let mut parser = Parser::new(ParserConfig {
        decapsulate: TunnelSet::ALL,
        needs: Input::ALL.into_iter().collect(),
        ..Default::default()
    });
    let mut runner = TestRunner::deterministic();
    let frames = crate::generate::frames();
    let (mut values, mut met) = (InputValues::default(), InputSet::EMPTY);
    for _ in 0..20_000 {
        let bytes = frames.new_tree(&mut runner).unwrap().current();
        let frame = frame_of(&bytes, LinkType::Ethernet);
        if parser.parse_with_inputs(&frame, &mut values).is_ok() {
            met = met.union(values.present());
        }
    }
    assert!(InputSet::DERIVED.iter().all(|input| !met.contains(input)));
    assert_eq!(met.union(InputSet::DERIVED).names(), PARSED_INPUTS.names());
}
