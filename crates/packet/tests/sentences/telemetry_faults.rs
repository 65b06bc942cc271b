// SPDX-License-Identifier: Apache-2.0
//! `docs/telemetry.md`: what remains of a packet if some of its telemetry cannot be read, and
//! telemetry in fragments.

use turboflow_packet::{
    LinkType, Parser, ParserConfig, ReassemblyConfig, Rejected, TelemetryFault,
};
use turboflow_record::{Input, InputValues};

use super::flow;
use super::telemetry::{
    INT_PORT, REPORT_PORT, config, examples_stack, fault, parser, read, read_with, report,
    telemetry, to_collector, trace, with_dscp, with_options, words,
};
use crate::build::{self, frame_of, join};

/// The values of the stack of the examples.
const EXAMPLE: [Option<u64>; 5] = [Some(18), None, Some(21_022), None, Some(2)];
/// The values of the trace of the examples.
const TRACE: [Option<u64>; 5] = [Some(40), Some(3_000), Some(1_002), Some(5), Some(2)];

/// IPv4 and UDP to the port of INT, with this shim and the bytes behind it.
fn in_udp(shim: [u8; 4], behind: &[u8]) -> Vec<u8> {
    let int = join(&[&shim, behind]);
    build::ethernet(0x0800, &build::ipv4(17, &build::udp(9, INT_PORT, &int)))
}

#[test]
fn a_stack_that_cannot_be_read_leaves_the_flow_its_port() {
    // Another version, no words for a hop, and instructions that do not fit.
    let damages = [
        (0, 0x10, TelemetryFault::OtherVersion),
        (2, 0, TelemetryFault::BadLength),
        (4, 0xff, TelemetryFault::BadLength),
    ];
    for (at, value, reason) in damages {
        let mut stack = examples_stack();
        stack[at] = value;
        let bytes = in_udp([0x14, 7, 0x12, 0xb5], &join(&[&stack, b"data"]));
        let (packet, values) = read_with(&mut parser(), &bytes);
        assert_eq!(flow(&packet), (17, 9, 4_789), "{reason:?}");
        assert_eq!(values.get(Input::PayloadLength), Some(4), "{reason:?}");
        assert_eq!(telemetry(&values), [None; 5]);
        assert_eq!(fault(&bytes), Some(reason));

        let segment = build::tcp(0x012, &[], b"data");
        let bytes = in_udp([0x18, 7, 0, 6], &join(&[&stack, &segment]));
        let (packet, values) = read_with(&mut parser(), &bytes);
        assert_eq!(flow(&packet), (6, 1_025, 443), "{reason:?}");
        assert_eq!(packet.tcp_flags, 0x012);
        assert_eq!(values.get(Input::PayloadLength), Some(4));
        assert_eq!(fault(&bytes), Some(reason));

        let int = join(&[&[0x10, 7, 0, 0], &stack, b"data"]);
        let bytes = with_dscp(0x17, 17, &build::udp(9, 53, &int));
        let (_, values) = read_with(&mut parser(), &bytes);
        assert_eq!(values.get(Input::PayloadLength), Some(4), "{reason:?}");
    }
}

#[test]
fn other_headers_behind_the_shim_leave_the_flow_its_port() {
    // A destination header, and INT-MX, which has no stack.
    for kind in [2, 3] {
        let bytes = in_udp([kind << 4 | 4, 3, 0x12, 0xb5], &[0x20; 12]);
        assert_eq!(flow(&read(&bytes).0), (17, 9, 4_789), "type {kind}");
        assert_eq!(fault(&bytes), Some(TelemetryFault::NotTelemetry));
    }
    // Bytes that are not a shim do not change the port.
    for shim in [
        [0x04, 7, 1, 1],
        [0x44, 7, 1, 1],
        [0x10, 7, 1, 1],
        [0x14, 2, 1, 1],
    ] {
        let bytes = in_udp(shim, &examples_stack());
        assert_eq!(flow(&read(&bytes).0), (17, 9, INT_PORT), "{shim:x?}");
        assert!(fault(&bytes).is_some());
    }
}

#[test]
fn a_cut_stack_leaves_the_flow_what_was_captured_of_it() {
    let whole = in_udp([0x14, 7, 0x12, 0xb5], &join(&[&examples_stack(), b"data"]));
    for captured in [14 + 20 + 8 + 4, whole.len() - 5] {
        let mut frame = frame_of(&whole, LinkType::Ethernet);
        frame.bytes = &whole[..captured];
        let (mut parser, mut values) = (parser(), InputValues::default());
        let packet = parser.parse_with_inputs(&frame, &mut values).unwrap();
        assert_eq!(flow(&packet), (17, 9, 4_789), "{captured} bytes");
        assert_eq!(values.get(Input::PayloadLength), Some(4));
        let unread = parser.telemetry_counters().unwrap().unread;
        assert_eq!(unread[TelemetryFault::Cut as usize], 1);
    }
}

#[test]
fn a_header_of_int_is_no_option_of_ip() {
    let segment = build::tcp(0x012, &[], b"data");
    let bytes = in_udp([0x18, 7, 0, 6], &join(&[&examples_stack(), &segment]));
    let (_, values) = read_with(&mut parser(), &bytes);
    assert_eq!(values.get(Input::IpOptions), Some(0));
}

/// IPv6 with this trace, and UDP with these bytes of INT, which the DSCP marks.
fn both(options: &[u8], int: &[u8]) -> Vec<u8> {
    let mut header = join(&[&[17, 0], options]);
    header.resize(header.len().next_multiple_of(8), 0);
    header[1] = (header.len() / 8 - 1) as u8;
    let mut datagram = build::ipv6(0, &join(&[&header, &build::udp(9, 53, int)]));
    // The DSCP is in the upper bits of the traffic class: 0x17 << 2.
    datagram[0] = 0x65;
    datagram[1] = 0xc0;
    build::ethernet(0x86dd, &datagram)
}

#[test]
fn one_kind_of_telemetry_stays_when_another_cannot_be_read() {
    let int = join(&[&[0x10, 7, 0, 0], &examples_stack()]);
    assert_eq!(read(&both(&trace(), &int)).1, EXAMPLE, "that of INT");
    assert_eq!(fault(&both(&trace(), &int)), None);

    let mut damaged = int.clone();
    damaged[4] = 0x10;
    let bytes = both(&trace(), &damaged);
    assert_eq!(read(&bytes).1, TRACE);
    assert_eq!(fault(&bytes), Some(TelemetryFault::OtherVersion));

    let mut damaged = trace();
    damaged[10] = 3 << 3;
    let bytes = both(&damaged, &int);
    assert_eq!(read(&bytes).1, EXAMPLE);
    assert_eq!(fault(&bytes), Some(TelemetryFault::BadLength));

    // No hop has written to the header of INT yet.
    let empty = join(&[&[0x10, 3, 0, 0], &examples_stack()[..12]]);
    assert_eq!(read(&both(&trace(), &empty)).1, TRACE);
    assert_eq!(fault(&both(&trace(), &empty)), None);
}

/// A report of node 23, with its own queue depth of 42, about this IPv4 packet.
fn about(inner: &[u8]) -> Vec<u8> {
    let length = (3 + inner.len().div_ceil(4)) as u8;
    let mut report = join(&[
        &words(&[0x2000_0001, 23]),
        &[0x14, length, 1, 0x20],
        &words(&[0x1000_0000, 0, 0x0400_002a]),
        inner,
    ]);
    report.resize(report.len().next_multiple_of(4), 0);
    report
}

/// IPv4 with the DSCP of INT.
fn marked(payload: &[u8]) -> Vec<u8> {
    let mut datagram = build::ipv4(17, payload);
    datagram[1] = 0x17 << 2;
    build::with_checksum(datagram)
}

#[test]
fn a_report_has_its_own_hop_about_a_packet_without_int() {
    let own = [Some(42), None, Some(23), None, Some(1)];
    // INT-MX leaves only instructions in packets; the DSCP alone may be a coincidence.
    for int in [join(&[&[0x30, 3, 0, 0], &[0x20; 12]]), b"data".to_vec()] {
        let bytes = to_collector(&about(&marked(&build::udp(9, 53, &int))));
        let (packet, values) = read(&bytes);
        assert_eq!(flow(&packet), (17, 9, 53));
        assert_eq!(values, own);
        assert_eq!(fault(&bytes), None);
    }
}

#[test]
fn a_report_about_hops_that_cannot_be_read_makes_no_wrong_number() {
    let mut int = join(&[&[0x10, 7, 0, 0], &examples_stack()]);
    int[4] = 0x10;
    let bytes = to_collector(&about(&marked(&build::udp(9, 53, &int))));
    let (packet, values) = read(&bytes);
    assert_eq!(flow(&packet), (17, 9, 53));
    // Neither path nor number of hops is known, but one queue depth is.
    assert_eq!(values, [Some(42), None, None, None, None]);
    assert_eq!(fault(&bytes), Some(TelemetryFault::OtherVersion));
}

#[test]
fn a_report_that_cannot_be_read_is_a_packet_with_its_own_telemetry() {
    let mut broken = report();
    broken[0] = 0x10;
    let mut header = join(&[&[17, 0], &trace()]);
    header.resize(header.len().next_multiple_of(8), 0);
    header[1] = (header.len() / 8 - 1) as u8;
    let payload = join(&[&header, &build::udp(7, REPORT_PORT, &broken)]);
    let bytes = build::ethernet(0x86dd, &build::ipv6(0, &payload));
    assert_eq!(read(&bytes).1, TRACE);
    assert_eq!(flow(&read(&bytes).0), (17, 7, REPORT_PORT));
    assert_eq!(fault(&bytes), Some(TelemetryFault::OtherVersion));
}

#[test]
fn a_report_to_the_end_of_its_datagram_is_the_last() {
    let mut report = about(&build::ipv4(17, &build::udp(9, 53, &[7; 100])));
    report[9] = 0xff;
    let bytes = to_collector(&report);
    for captured in [bytes.len(), bytes.len() - 60] {
        let mut frame = frame_of(&bytes, LinkType::Ethernet);
        frame.bytes = &bytes[..captured];
        let (mut parser, mut values) = (parser(), InputValues::default());
        let packet = parser.parse_with_inputs(&frame, &mut values).unwrap();
        assert_eq!(flow(&packet), (17, 9, 53));
        assert_eq!(parser.telemetry_counters().unwrap().reports_skipped, 0);
    }
}

#[test]
fn a_packet_cut_inside_a_report_has_the_length_of_its_header() {
    let inner = build::ipv4(17, &build::udp(9, 53, &[7; 100]));
    for (kept, length) in [(inner.len(), 128), (28, 128)] {
        let (packet, values) = read_with(&mut parser(), &to_collector(&about(&inner[..kept])));
        assert_eq!(packet.ip_length_bytes, length);
        assert_eq!(values.get(Input::PayloadLength), Some(100));
    }
    // Without a length, as with segmentation offload, it ends where the report ends on the wire, no
    // matter how much was captured.
    let mut offloaded = inner;
    offloaded[2..4].fill(0);
    let bytes = to_collector(&about(&build::with_checksum(offloaded)));
    for captured in [bytes.len(), bytes.len() - 60] {
        let mut frame = frame_of(&bytes, LinkType::Ethernet);
        frame.bytes = &bytes[..captured];
        let packet = parser().parse_with_inputs(&frame, &mut InputValues::default());
        assert_eq!(packet.unwrap().ip_length_bytes, 128, "{captured} bytes");
    }
}

#[test]
fn the_ether_type_is_that_of_the_packet_in_a_report() {
    let inner = build::ipv6(17, &build::udp(9, 53, b"data"));
    let framed = build::ethernet(0x86dd, &inner);
    for (inner_type, inner, ether_type) in [(3, &framed, Some(0x86dd)), (5, &inner, None)] {
        let mut report = about(inner);
        report[8] = 0x10 | inner_type;
        let (packet, values) = read_with(&mut parser(), &to_collector(&report));
        assert_eq!(flow(&packet), (17, 9, 53));
        assert_eq!(values.get(Input::EtherType), ether_type);
    }
}

#[test]
fn values_of_the_packet_before_do_not_stay() {
    let int = join(&[&[0x10, 7, 0, 0], &examples_stack()]);
    let plain = build::ethernet(0x0800, &build::ipv4(17, &build::udp(9, 53, b"data")));
    let fragment = build::ethernet(0x0800, &build::ipv4_fragment(17, 7, 3, &[0; 32]));
    let (mut parser, mut values) = (parser(), InputValues::default());
    for bytes in [&plain, &fragment] {
        let with = both(&trace(), &int);
        let frame = frame_of(&with, LinkType::Ethernet);
        parser.parse_with_inputs(&frame, &mut values).unwrap();
        assert_eq!(telemetry(&values), EXAMPLE);
        let frame = frame_of(bytes, LinkType::Ethernet);
        parser.parse_with_inputs(&frame, &mut values).unwrap();
        assert_eq!(telemetry(&values), [None; 5]);
    }
}

fn reassembling() -> Parser {
    Parser::new(ParserConfig {
        reassemble_flows: Some(ReassemblyConfig {
            max_datagrams: 8,
            timeout_ns: 100,
        }),
        ..config()
    })
}

/// Protocol and ports of the packet in a frame.
fn seen(parser: &mut Parser, bytes: &[u8]) -> Result<(u8, u16, u16), Rejected> {
    let frame = frame_of(bytes, LinkType::Ethernet);
    let packet = parser.parse_with_inputs(&frame, &mut InputValues::default())?;
    Ok(flow(&packet))
}

const MORE: u16 = 0x2000;

#[test]
fn later_fragments_are_no_reports() {
    // The bytes at the position of a first fragment's ports look like those of a report.
    let like = build::udp(7, REPORT_PORT, &report());
    let later = build::ethernet(0x0800, &build::ipv4_fragment(17, 7, 3, &like));
    assert_eq!(flow(&read(&later).0), (17, 0, 0));
    assert_eq!(fault(&later), None);
    let later = build::ethernet(0x86dd, &build::ipv6(44, &build::fragment(17, 24, 7, &like)));
    assert_eq!(flow(&read(&later).0), (17, 0, 0));
    assert_eq!(fault(&later), None);
}

#[test]
fn fragments_inside_reports_are_of_the_flow_of_their_first() {
    let mut parser = reassembling();
    let first = build::ipv4_fragment(17, 7, MORE, &build::udp(9, 53, &[0; 16]));
    let later = build::ipv4_fragment(17, 7, 3, &[0; 24]);
    let expected = Ok((17, 9, 53));
    assert_eq!(seen(&mut parser, &to_collector(&about(&first))), expected);
    assert_eq!(seen(&mut parser, &to_collector(&about(&later))), expected);
    let other = build::ipv4_fragment(17, 8, 3, &[0; 24]);
    let held = Err(Rejected::Held);
    assert_eq!(seen(&mut parser, &to_collector(&about(&other))), held);
}

#[test]
fn later_fragments_of_a_report_are_of_the_flow_to_the_collector() {
    let mut parser = reassembling();
    let report = build::udp(7, REPORT_PORT, &report());
    let first = build::ethernet(0x0800, &build::ipv4_fragment(17, 7, MORE, &report));
    let later = build::ethernet(0x0800, &build::ipv4_fragment(17, 7, 30, &[0; 24]));
    assert_eq!(seen(&mut parser, &first), Ok((6, 1_025, 443)));
    assert_eq!(seen(&mut parser, &later), Ok((17, 7, REPORT_PORT)));
}

#[test]
fn later_fragments_behind_int_are_of_the_original_flow() {
    let segment = build::tcp(0x012, &[], b"data");
    for (shim, original, expected) in [
        ([0x18, 7, 0, 6], &segment[..], (6, 1_025, 443)),
        ([0x14, 7, 0x12, 0xb5], b"data", (17, 9, 4_789)),
    ] {
        let mut parser = reassembling();
        let int = join(&[&shim, &examples_stack(), original]);
        let udp = build::udp(9, INT_PORT, &int);
        let first = build::ethernet(0x0800, &build::ipv4_fragment(17, 7, MORE, &udp));
        let later = build::ethernet(0x0800, &build::ipv4_fragment(17, 7, 30, &[0; 24]));
        assert_eq!(seen(&mut parser, &first), Ok(expected));
        assert_eq!(seen(&mut parser, &later), Ok(expected));
    }
}

#[test]
fn a_report_about_a_later_fragment_lacks_the_hops_in_the_first() {
    let mut later = build::ipv4_fragment(17, 7, 3, &[0; 24]);
    let own = [Some(42), None, Some(23), None, Some(1)];
    later[1] = 0;
    // The original destination may be any port, including that of INT.
    let cut = [Some(42), None, None, None, None];
    assert_eq!(read(&to_collector(&about(&later))).1, cut);
    later[9] = 6;
    assert_eq!(read(&to_collector(&about(&later))).1, own);
    later[1] = 0x17 << 2;
    assert_eq!(read(&to_collector(&about(&later))).1, cut);
}

#[test]
fn every_fragment_has_the_trace_of_its_own_way() {
    let mut header = join(&[&[44, 0], &trace()]);
    header.resize(header.len().next_multiple_of(8), 0);
    header[1] = (header.len() / 8 - 1) as u8;
    for place in [1, 24] {
        let fragment = build::fragment(17, place, 7, &build::udp(9, 53, b"data"));
        let datagram = build::ipv6(0, &join(&[&header, &fragment]));
        assert_eq!(read(&build::ethernet(0x86dd, &datagram)).1, TRACE);
    }
    assert_eq!(fault(&with_options(&trace())), None);
}
