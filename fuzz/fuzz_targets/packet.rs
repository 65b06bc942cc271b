// SPDX-License-Identifier: Apache-2.0
//! A session of frames of any link type, without panics. Every frame is a packet, is rejected, or
//! is released by the fragment cache.
//!
//! Input: a byte of options, then frames of (link type, captured length, time step, bytes).

#![no_main]

use libfuzzer_sys::fuzz_target;
use turboflow_packet::{
    Frame, LinkType, PARSED_INPUTS, Parser, ParserConfig, ReassemblyConfig, Rejected,
    TELEMETRY_INPUTS, TelemetryConfig, TunnelSet,
};
use turboflow_record::InputValues;

const LINK_TYPES: [LinkType; 8] = [
    LinkType::Ethernet,
    LinkType::LinuxCooked,
    LinkType::LinuxCooked2,
    LinkType::Null,
    LinkType::Ppp,
    LinkType::Raw,
    LinkType::RawIpv4,
    LinkType::RawIpv6,
];

fuzz_target!(|input: &[u8]| {
    let Some((&options, mut rest)) = input.split_first() else {
        return;
    };
    let reassembly = ReassemblyConfig {
        max_datagrams: 4,
        timeout_ns: 64,
    };
    let config = ParserConfig {
        decapsulate: if options & 1 != 0 {
            TunnelSet::ALL
        } else {
            TunnelSet::EMPTY
        },
        icmp_ports: options & 2 != 0,
        ..ParserConfig::default()
    };
    let telemetry = TelemetryConfig {
        int_dscp: "46".parse().expect("a DSCP"),
        int_port: Some(5_000),
        int_report_port: Some(5_001),
    };
    let mut bare = Parser::new(config);
    let mut parser = Parser::new(ParserConfig {
        reassemble_flows: (options & 4 != 0).then_some(reassembly),
        telemetry: (options & 8 != 0).then_some(telemetry),
        needs: PARSED_INPUTS.union(TELEMETRY_INPUTS),
        ..config
    });
    let (mut frames, mut packets, mut rejected) = (0_u64, 0_u64, [0_u64; Rejected::COUNT]);
    let mut values = InputValues::default();
    let mut released = Vec::new();
    let mut timestamp_ns = 0;
    while let [kind, length, step, bytes @ ..] = rest {
        let captured = bytes.len().min(usize::from(*length) * 2);
        timestamp_ns += u64::from(*step);
        let frame = Frame {
            bytes: &bytes[..captured],
            wire_length_bytes: captured as u32,
            timestamp_ns,
            interface: 0,
            link_type: LINK_TYPES[usize::from(*kind) % LINK_TYPES.len()],
        };
        rest = &bytes[captured..];
        frames += 1;
        let outcome = parser.parse_with_inputs(&frame, &mut values);
        match outcome {
            Ok(_) => packets += 1,
            Err(reason) => rejected[reason.index()] += 1,
        }
        // Except for held fragments, both parsers agree.
        match (outcome, bare.parse(&frame)) {
            // A report is about another packet.
            (Ok(_), Ok(alone)) if options & 8 != 0 && alone.tuple.destination_port() == 5_001 => {}
            (Ok(joined), Ok(alone)) => {
                assert_eq!(joined.tuple.source(), alone.tuple.source());
                assert_eq!(joined.ip_length_bytes, alone.ip_length_bytes);
            }
            (Err(Rejected::Held), alone) => assert!(alone.is_ok()),
            (joined, alone) => assert_eq!(joined, alone),
        }
        if step % 2 == 0 {
            parser.release(timestamp_ns, &mut released);
        }
    }
    parser.release_all(&mut released);
    if let Some(telemetry) = parser.telemetry_counters() {
        assert!(telemetry.read + telemetry.unread.iter().sum::<u64>() <= frames);
    }
    assert_eq!(packets + rejected.iter().sum::<u64>(), frames);
    assert_eq!(rejected[Rejected::Held.index()], released.len() as u64);
});
