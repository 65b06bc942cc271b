// SPDX-License-Identifier: Apache-2.0
//! Properties that hold for any bytes.

use crate::build;
use crate::build::frame_of;
use crate::{generate, marks};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use turboflow_packet::{
    Frame, LinkType, PARSED_INPUTS, Parser, ParserConfig, ReassemblyConfig, Rejected,
    TELEMETRY_INPUTS, TunnelSet,
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

fn with_everything(max_datagrams: usize) -> Parser {
    Parser::new(ParserConfig {
        decapsulate: TunnelSet::ALL,
        icmp_ports: true,
        reassemble_flows: Some(ReassemblyConfig {
            max_datagrams,
            timeout_ns: 50,
        }),
        telemetry: Some(marks::telemetry()),
        needs: PARSED_INPUTS.union(TELEMETRY_INPUTS),
    })
}

fn plain() -> Parser {
    Parser::new(ParserConfig::default())
}

fn wanting_everything() -> Parser {
    Parser::new(ParserConfig {
        needs: PARSED_INPUTS,
        ..Default::default()
    })
}

/// Tests every link type, wire lengths below and above the captured one, and both entry points.
fn survives(bytes: &[u8]) {
    let mut values = InputValues::default();
    for link_type in LINK_TYPES {
        for wire_length_bytes in [0, bytes.len() as u32, u32::MAX] {
            let frame = Frame {
                wire_length_bytes,
                ..frame_of(bytes, link_type)
            };
            let bare = plain().parse(&frame);
            assert_eq!(
                bare,
                wanting_everything().parse_with_inputs(&frame, &mut values)
            );
            if let Ok(packet) = bare {
                assert_eq!(packet.frame_length_bytes, wire_length_bytes);
                assert!(packet.ip_length_bytes >= 20);
            }
            // If a frame is rejected without decapsulation, decapsulation rejects it for the same
            // reason, unless what follows an MPLS label stack is an Ethernet pseudowire.
            match (
                bare,
                with_everything(4).parse_with_inputs(&frame, &mut values),
            ) {
                (Ok(_), Ok(_) | Err(Rejected::Held)) | (Err(Rejected::MplsNotIp), _) => {}
                (bare, everything) => assert_eq!(bare, everything),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn never_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        survives(&bytes);
    }

    #[test]
    fn never_panics_on_mutated_frames(bytes in generate::frames()) {
        survives(&bytes);
        // Without the Ethernet header, for the other link types.
        survives(bytes.get(14..).unwrap_or(&[]));
    }

    #[test]
    fn every_frame_is_a_packet_rejected_or_released(
        frames in prop::collection::vec((generate::frames(), 0_u64..20), 0..60),
        max_datagrams in 1_usize..6,
    ) {
        let mut parser = with_everything(max_datagrams);
        let (mut packets, mut rejected, mut held) = (0, [0_u64; Rejected::COUNT], Vec::new());
        let mut values = InputValues::default();
        let mut now_ns = 0;
        for (bytes, later_ns) in &frames {
            now_ns += later_ns;
            let mut frame = frame_of(bytes, LinkType::Ethernet);
            frame.timestamp_ns = now_ns;
            match parser.parse_with_inputs(&frame, &mut values) {
                Ok(_) => packets += 1,
                Err(reason) => rejected[reason.index()] += 1,
            }
            if later_ns % 3 == 0 {
                parser.release(now_ns, &mut held);
            }
        }
        parser.release_all(&mut held);
        prop_assert_eq!(rejected[Rejected::Held.index()], held.len() as u64);
        prop_assert_eq!(packets + rejected.iter().sum::<u64>(), frames.len() as u64);
        prop_assert_eq!(parser.fragment_counters().held, held.len() as u64);
    }

    #[test]
    fn the_order_of_fragments_does_not_matter(
        order in Just((0_u16..40).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        // Ten datagrams of four fragments each.
        let mut parser = with_everything(64);
        let mut out = Vec::new();
        let mut ports = Vec::new();
        for piece in order {
            let (id, index) = (piece / 4, piece % 4);
            let flags = (index * 3) | if index == 3 { 0 } else { 0x2000 };
            let datagram = build::ipv4_fragment(17, id, flags, &build::udp(7, 100 + id, &[0; 16]));
            let bytes = build::ethernet(0x0800, &datagram);
            if let Ok(packet) = parser.parse(&frame_of(&bytes, LinkType::Ethernet)) {
                ports.push(packet.tuple.destination_port());
            }
        }
        parser.release(1_000, &mut out);
        ports.extend(out.iter().map(|(packet, _)| packet.tuple.destination_port()));
        ports.sort_unstable();
        let expected: Vec<u16> = (0..40).map(|piece| 100 + piece / 4).collect();
        prop_assert_eq!(ports, expected);
    }
}
