// SPDX-License-Identifier: Apache-2.0
//! `docs/telemetry.md`: the packets in the examples of the specifications, and what telemetry must
//! not change.

use turboflow_packet::{
    LinkType, PARSED_INPUTS, Parser, ParserConfig, TELEMETRY_INPUTS, TelemetryConfig,
    TelemetryFault,
};
use turboflow_record::{Input, InputValues, Packet};

use super::flow;
use crate::build::{self, frame_of, join};

pub(super) const INT_PORT: u16 = 5_000;
pub(super) const REPORT_PORT: u16 = 5_001;

pub(super) fn parser() -> Parser {
    Parser::new(config())
}

/// A parser for all telemetry and all inputs.
pub(super) fn config() -> ParserConfig {
    ParserConfig {
        telemetry: Some(TelemetryConfig {
            int_port: Some(INT_PORT),
            int_report_port: Some(REPORT_PORT),
            ..TelemetryConfig::default()
        }),
        needs: PARSED_INPUTS.union(TELEMETRY_INPUTS),
        ..ParserConfig::default()
    }
}

/// A packet and its telemetry: queue depth, latency, path, egress interface, hops.
pub(super) type Read = (Packet, [Option<u64>; 5]);

pub(super) fn read_with(parser: &mut Parser, bytes: &[u8]) -> (Packet, InputValues) {
    let mut values = InputValues::default();
    let frame = frame_of(bytes, LinkType::Ethernet);
    let packet = parser.parse_with_inputs(&frame, &mut values).unwrap();
    (packet, values)
}

pub(super) fn read(bytes: &[u8]) -> Read {
    let (packet, values) = read_with(&mut parser(), bytes);
    (packet, telemetry(&values))
}

pub(super) fn telemetry(values: &InputValues) -> [Option<u64>; 5] {
    [
        Input::QueueDepth,
        Input::HopLatency,
        Input::Path,
        Input::EgressInterface,
        Input::HopCount,
    ]
    .map(|input| values.get(input))
}

pub(super) fn fault(bytes: &[u8]) -> Option<TelemetryFault> {
    let mut parser = parser();
    read_with(&mut parser, bytes);
    let unread = parser.telemetry_counters().unwrap().unread;
    assert!(unread.iter().sum::<u64>() <= 1);
    TelemetryFault::ALL
        .into_iter()
        .find(|fault| unread[*fault as usize] > 0)
}

pub(super) fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// The header of the examples in section 6 of the INT specification, followed by two hops with node
/// identifier and queue occupancy, hop 2 first.
pub(super) fn examples_stack() -> Vec<u8> {
    words(&[
        0x2000_0206, // version 2, HopML 2, 6 hops left
        0x9000_0000, // bits 0 and 3
        0,
        22,
        0x0100_0012, // queue 1, occupancy 18
        21,
        0x0200_0007, // queue 2, occupancy 7
    ])
}

/// A frame of IPv4 with this DSCP.
pub(super) fn with_dscp(dscp: u8, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut datagram = build::ipv4(protocol, payload);
    datagram[1] = dscp << 2;
    build::ethernet(0x0800, &build::with_checksum(datagram))
}

#[test]
fn int_over_tcp_is_marked_by_the_dscp_of_the_example() {
    let shim = [0x10, 7, 0, 0];
    let bytes = with_dscp(
        0x17,
        6,
        &build::tcp(0x18, &[], &join(&[&shim, &examples_stack(), b"data"])),
    );
    let (packet, values) = read_with(&mut parser(), &bytes);
    assert_eq!(
        telemetry(&values),
        [Some(18), None, Some(21_022), None, Some(2)]
    );
    assert_eq!(flow(&packet), (6, 1_025, 443));
    // Lengths are those on the wire, but the payload length is that of the sender.
    assert_eq!(packet.ip_length_bytes, 20 + 20 + 32 + 4);
    assert_eq!(values.get(Input::PayloadLength), Some(4));
}

#[test]
fn int_is_behind_the_options_of_tcp_or_before_them() {
    let int = join(&[&[0x10, 7, 0, 0], &examples_stack()]);
    let options = [1, 1, 1, 1, 1, 1, 1, 0];
    let behind = build::tcp(0x18, &options, &int);
    let mut before = build::tcp(0x18, &[], &join(&[&int, &options]));
    before[12] = 7 << 4;
    for segment in [behind, before] {
        let (_, values) = read(&with_dscp(0x17, 6, &segment));
        assert_eq!(values, [Some(18), None, Some(21_022), None, Some(2)]);
    }
}

#[test]
fn int_in_udp_gives_the_flow_its_port_back() {
    let int = join(&[&[0x14, 7, 0x12, 0xb5], &examples_stack(), b"data"]);
    let bytes = build::ethernet(0x0800, &build::ipv4(17, &build::udp(9, INT_PORT, &int)));
    let (packet, values) = read_with(&mut parser(), &bytes);
    assert_eq!(flow(&packet), (17, 9, 4_789));
    assert_eq!(
        telemetry(&values),
        [Some(18), None, Some(21_022), None, Some(2)]
    );
    assert_eq!(values.get(Input::PayloadLength), Some(4));
    // Without the input, the flow is the one on the wire.
    let mut without = Parser::new(ParserConfig {
        telemetry: Some(TelemetryConfig::default()),
        needs: PARSED_INPUTS,
        ..ParserConfig::default()
    });
    assert_eq!(flow(&read_with(&mut without, &bytes).0), (17, 9, INT_PORT));
    assert_eq!(without.telemetry_counters(), None);
}

#[test]
fn a_udp_header_of_int_is_not_part_of_the_flow() {
    let segment = build::tcp(0x012, &[], b"data");
    let int = join(&[&[0x18, 7, 0, 6], &examples_stack(), &segment]);
    for (ether_type, datagram) in [
        (0x0800, build::ipv4(17, &build::udp(9, INT_PORT, &int))),
        (0x86dd, build::ipv6(17, &build::udp(9, INT_PORT, &int))),
    ] {
        let (packet, values) = read_with(&mut parser(), &build::ethernet(ether_type, &datagram));
        assert_eq!(flow(&packet), (6, 1_025, 443));
        assert_eq!(packet.tcp_flags, 0x012);
        assert_eq!(
            telemetry(&values),
            [Some(18), None, Some(21_022), None, Some(2)]
        );
        assert_eq!(values.get(Input::PayloadLength), Some(4));
    }
}

/// Hops with every kind of metadata in the specification, each in its place.
#[test]
fn every_instruction_takes_its_words() {
    let hop = |node: u32| {
        words(&[
            node,
            0x0003_0000 | node, // interfaces
            100 * node,         // latency
            0x0500_0000 | node, // queue
            1,
            2,
            3,
            4,
            70,
            7_000 + node, // logical interfaces
            0x5000_0000,
            0x0600_0001, // buffer
            0x1234_0000, // checksum complement
        ])
    };
    for (bitmap, egress) in [(0xff81_u32, 3), (0xbf81, 7_003)] {
        let only = |node| {
            let mut all = hop(node);
            if bitmap == 0xbf81 {
                all.drain(4..8);
            }
            all
        };
        let stack = join(&[&only(3), &only(2), &only(1)]);
        let hop_words = only(1).len() as u32 / 4;
        let header = words(&[0x2000_0005 | hop_words << 8, bitmap << 16, 0]);
        let length = (header.len() + stack.len()) / 4;
        let int = join(&[&[0x10, length as u8, 0, 0], &header, &stack]);
        let (_, values) = read(&with_dscp(0x17, 17, &build::udp(9, 53, &int)));
        let expected = [Some(3), Some(600), Some(1_002_003), Some(egress), Some(3)];
        assert_eq!(values, expected);
    }
}

#[test]
fn what_hops_leave_out_makes_no_wrong_number() {
    let header = |first: u32| words(&[first | 0x0000_0400, 0xf000_0000, 0]);
    let hop = |values: [u32; 4]| words(&values);
    let all = |first: u32, last: [u32; 4]| {
        let int = join(&[
            &[0x10, 11, 0, 0],
            &header(first),
            &hop(last),
            &hop([1, 2, 3, 4]),
        ]);
        read(&with_dscp(0x17, 17, &build::udp(9, 53, &int))).1
    };
    let whole = [Some(9), Some(8), Some(1_002), Some(7), Some(2)];
    assert_eq!(all(0x2000_0000, [2, 7, 5, 9]), whole);
    // E: the hop limit was reached. M: the packet would have been too long.
    for flags in [0x0400_0000, 0x0200_0000] {
        let seen = [Some(9), None, Some(1_002), None, Some(2)];
        assert_eq!(all(0x2000_0000 | flags, [2, 7, 5, 9]), seen);
    }
    let unknown = [Some(4), None, None, None, Some(2)];
    assert_eq!(all(0x2000_0000, [u32::MAX; 4]), unknown);
}

#[test]
fn hostile_int_is_counted_by_its_reason() {
    let stack = examples_stack();
    let udp = |int: &[u8]| with_dscp(0x17, 17, &build::udp(9, 53, int));
    let changed = |at: usize, value: u8| {
        let mut int = join(&[&[0x10, 7, 0, 0], &stack]);
        int[at] = value;
        udp(&int)
    };
    assert_eq!(fault(&changed(0, 0x10)), None);
    for (at, value, reason) in [
        (0, 0x20, TelemetryFault::NotTelemetry),
        (0, 0x30, TelemetryFault::NotTelemetry),
        (0, 0x14, TelemetryFault::NotTelemetry),
        (1, 0, TelemetryFault::BadLength),
        (1, 2, TelemetryFault::BadLength),
        (1, 6, TelemetryFault::BadLength),
        (1, 8, TelemetryFault::Cut),
        (1, 255, TelemetryFault::Cut),
        (4, 0x10, TelemetryFault::OtherVersion),
        (6, 0, TelemetryFault::BadLength),
        (6, 31, TelemetryFault::BadLength),
        (8, 0xff, TelemetryFault::BadLength),
    ] {
        let bytes = changed(at, value);
        assert_eq!(fault(&bytes), Some(reason), "byte {at} is {value:#x}");
        assert_eq!(read(&bytes).1, [None; 5]);
        assert_eq!(flow(&read(&bytes).0), (17, 9, 53));
    }
    assert_eq!(fault(&udp(b"")), Some(TelemetryFault::Cut));
    // An ordinary packet is not checked for telemetry.
    assert_eq!(
        fault(&with_dscp(0x16, 17, &build::udp(9, 53, &stack))),
        None
    );
}

/// An IPv6 packet with a hop-by-hop header that has these options.
pub(super) fn with_options(options: &[u8]) -> Vec<u8> {
    let mut header = join(&[&[17, 0], options]);
    header.resize(header.len().next_multiple_of(8), 0);
    header[1] = (header.len() / 8 - 1) as u8;
    let payload = join(&[&header, &build::udp(9, 53, b"data")]);
    build::ethernet(0x86dd, &build::ipv6(0, &payload))
}

/// A pre-allocated trace of two nodes with identifier, interfaces, transit delay and queue depth,
/// and room for a third.
pub(super) fn trace() -> Vec<u8> {
    join(&[
        &[1, 2, 0, 0], // padding to a multiple of 4
        &[0x31, 2 + 8 + 48, 0, 0],
        &[0x01, 0x23, 4 << 3, 4],
        &[0b1100_1010, 0, 0, 0],
        &words(&[0; 4]),
        &words(&[0x3e00_0002, 0x0001_0005, 2_000, 30]),
        &words(&[0x3f00_0001, 0x0007_0006, 1_000, 40]),
    ])
}

#[test]
fn ioam_lists_the_last_node_first() {
    let (packet, values) = read(&with_options(&trace()));
    assert_eq!(flow(&packet), (17, 9, 53));
    let expected = [Some(40), Some(3_000), Some(1_002), Some(5), Some(2)];
    assert_eq!(values, expected);
}

#[test]
fn ioam_has_wide_fields_and_snapshots() {
    let node = |id: u32, interface: u32| words(&[0x3f00_0000, id, 0, interface]);
    let options = join(&[
        &[1, 2, 0, 0],
        &[0x11, 2 + 8 + 44, 0, 1],
        &[0, 0, 4 << 3, 0],
        &[0, 0b1100_0000, 0b0000_0010, 0],
        &node(2, 70_000),
        &words(&[0x0100_0009, 5]), // a snapshot of one word
        &node(1, 80_000),
        &words(&[0x0000_0009]), // an empty one
    ]);
    let (_, values) = read(&with_options(&options));
    let expected = [None, None, Some(1_002), Some(70_000), Some(2)];
    assert_eq!(values, expected);
}

#[test]
fn what_nodes_of_ioam_leave_out_makes_no_wrong_number() {
    let mut overflow = trace();
    overflow[10] |= 4;
    let seen = [Some(40), None, Some(1_002), None, Some(2)];
    assert_eq!(read(&with_options(&overflow)).1, seen);
    let mut unpopulated = trace();
    unpopulated[32..48].fill(0xff);
    let seen = [Some(40), None, None, None, Some(2)];
    assert_eq!(read(&with_options(&unpopulated)).1, seen);
    let mut long = trace();
    long[40] = 0x80;
    assert_eq!(read(&with_options(&long)).1[1], None);
}

#[test]
fn hostile_ioam_is_counted_by_its_reason() {
    for (at, value) in [
        (5, 5),
        (5, 255),
        (10, 3 << 3),
        (11, 127),
        (11, 5),
        (14, 2),
        (12, 0),
    ] {
        let mut options = trace();
        options[at] = value;
        let bytes = with_options(&options);
        assert_eq!(
            fault(&bytes),
            Some(TelemetryFault::BadLength),
            "{at} {value}"
        );
        assert_eq!(flow(&read(&bytes).0), (17, 9, 53));
    }
    // Proof of transit is another type of IOAM.
    let mut other = trace();
    other[7] = 2;
    assert_eq!(fault(&with_options(&other)), None);
}

/// The first example of the specification of reports: node 3 reports its own queue occupancy. The
/// packet has INT-MD of the earlier nodes, with a UDP header that INT added.
pub(super) fn report() -> Vec<u8> {
    let int = join(&[
        &[0x18, 7, 0, 6],
        &examples_stack(),
        &build::tcp(2, &[], b""),
    ]);
    let inner = build::ipv4(17, &build::udp(9, INT_PORT, &int));
    let length = 3 + inner.len() / 4;
    join(&[
        &words(&[0x2000_0001, 23]),
        &[0x14, length as u8, 1, 0x20],
        &words(&[0x1000_0000, 0, 0x0400_002a]),
        &inner,
    ])
}

pub(super) fn to_collector(report: &[u8]) -> Vec<u8> {
    build::ethernet(
        0x0800,
        &build::ipv4(17, &build::udp(7, REPORT_PORT, report)),
    )
}

#[test]
fn a_report_is_about_the_packet_in_it() {
    let (packet, values) = read(&to_collector(&report()));
    assert_eq!(flow(&packet), (6, 1_025, 443));
    let expected = [Some(42), None, Some(21_022_023), None, Some(3)];
    assert_eq!(values, expected);
    assert_eq!(packet.ip_length_bytes, 20 + 8 + 32 + 20);
}

#[test]
fn a_node_reports_for_itself() {
    let inner = build::ethernet(0x0800, &build::ipv4(17, &build::udp(9, 53, b"data")));
    let padded = join(&[&inner, &[0; 2]]);
    let report = join(&[
        &words(&[0x2000_0001, 5]),
        &[0x13, (5 + padded.len() / 4) as u8, 3, 0],
        &words(&[0x7000_0000, 0, 0x0001_0002, 900, 0x0400_0003]),
        &padded,
    ]);
    let (packet, values) = read(&to_collector(&report));
    assert_eq!(flow(&packet), (17, 9, 53));
    let expected = [Some(3), Some(900), Some(5), Some(2), Some(1)];
    assert_eq!(values, expected);
    // Only the first report of a group is read. The others are counted.
    let mut parser = parser();
    read_with(&mut parser, &to_collector(&join(&[&report, &report[8..]])));
    assert_eq!(parser.telemetry_counters().unwrap().reports_skipped, 1);
}

#[test]
fn hostile_reports_are_counted_by_their_reason() {
    assert_eq!(fault(&to_collector(&report())), None);
    for (at, value, reason) in [
        (0, 0x10, TelemetryFault::OtherVersion),
        (8, 0x24, TelemetryFault::NotTelemetry),
        (8, 0x11, TelemetryFault::NoInnerPacket),
        (9, 3, TelemetryFault::NoInnerPacket),
        (10, 0, TelemetryFault::BadLength),
        (10, 255, TelemetryFault::BadLength),
        (12, 0xff, TelemetryFault::BadLength),
        (24, 0x60, TelemetryFault::NoInnerPacket),
    ] {
        let mut report = report();
        report[at] = value;
        let bytes = to_collector(&report);
        assert_eq!(fault(&bytes), Some(reason), "byte {at} is {value:#x}");
        assert_eq!(flow(&read(&bytes).0), (17, 7, REPORT_PORT));
    }
    for length in 0..20 {
        assert!(fault(&to_collector(&report()[..length])).is_some());
    }
}
