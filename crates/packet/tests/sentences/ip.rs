// SPDX-License-Identifier: Apache-2.0

use turboflow_packet::{
    Frame, LinkType, MAX_EXTENSION_HEADERS, Parser, ParserConfig, RejectClass, Rejected, TunnelSet,
};

use super::{flow, flow_of, inner, parse};
use crate::build::{
    ethernet, extension, fragment, frame_of, ipv4, ipv4_fragment, ipv4_with_options, ipv6, join,
    tag, tcp, udp,
};

fn v4(datagram: &[u8]) -> Vec<u8> {
    ethernet(0x0800, datagram)
}

fn v6(datagram: &[u8]) -> Vec<u8> {
    ethernet(0x86dd, datagram)
}

#[test]
fn skips_ipv4_options() {
    let bytes = v4(&ipv4_with_options(
        6,
        &[7, 7, 4, 0, 0, 0, 0, 0],
        &tcp(0x012, &[], b""),
    ));
    let packet = parse(&bytes).unwrap();
    assert_eq!(flow(&packet), (6, 1025, 443));
    assert_eq!((packet.tcp_flags, packet.ip_length_bytes), (0x012, 48));
}

#[test]
fn a_total_length_of_0_means_to_the_end_of_the_frame_on_the_wire() {
    let mut bytes = v4(&ipv4(6, &tcp(0x018, &[], &[0; 100])));
    bytes[16..18].copy_from_slice(&[0, 0]);
    let mut frame = frame_of(&bytes[..60], LinkType::Ethernet);
    frame.wire_length_bytes = 9_014;
    let packet = Parser::new(ParserConfig::default()).parse(&frame).unwrap();
    assert_eq!(
        (packet.ip_length_bytes, packet.frame_length_bytes),
        (9_000, 9_014)
    );
    assert_eq!((flow(&packet), packet.tcp_flags), ((6, 1025, 443), 0x018));
}

#[test]
fn bytes_are_what_the_header_declares_even_where_less_was_captured() {
    let whole = v4(&ipv4(17, &udp(53, 5353, &[0; 500])));
    let packet = parse(&whole[..60]).unwrap();
    assert_eq!(
        (packet.ip_length_bytes, flow(&packet)),
        (528, (17, 53, 5353))
    );
}

#[test]
fn impossible_headers_are_malformed() {
    let good = v4(&inner());
    let with = |index: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[index] = value;
        parse(&bytes).unwrap_err()
    };
    assert_eq!(with(14, 0x65), Rejected::VersionMismatch);
    assert_eq!(with(14, 0x44), Rejected::HeaderLengthTooSmall);
    assert_eq!(with(17, 19), Rejected::TotalLengthTooSmall);
    assert_eq!(with(14, 0x4f), Rejected::TotalLengthTooSmall);
    assert_eq!(
        parse(&good[..33]).unwrap_err(),
        Rejected::Ipv4HeaderNotCaptured
    );
    assert_eq!(
        parse(&good[..14]).unwrap_err(),
        Rejected::Ipv4HeaderNotCaptured
    );
    let options = v4(&ipv4_with_options(6, &[1; 8], &tcp(0, &[], b"")));
    assert_eq!(
        parse(&options[..41]).unwrap_err(),
        Rejected::Ipv4HeaderNotCaptured
    );
    let six = v6(&ipv6(17, &udp(1, 2, b"")));
    assert_eq!(
        parse(&six[..53]).unwrap_err(),
        Rejected::Ipv6HeaderNotCaptured
    );
    assert_eq!(parse(&v6(&inner())).unwrap_err(), Rejected::NotIpv6);
    assert_eq!(Rejected::VersionMismatch.class(), RejectClass::Malformed);
}

#[test]
fn a_header_alone_is_a_packet() {
    assert_eq!(flow_of(&v4(&ipv4(17, b""))), (17, 0, 0));
    assert_eq!(flow_of(&v6(&ipv6(59, b""))), (59, 0, 0));
    assert_eq!(parse(&v6(&ipv6(6, b""))).unwrap().ip_length_bytes, 40);
}

#[test]
fn walks_ipv6_extension_headers_to_the_protocol() {
    let segment = tcp(0x002, &[], b"");
    let chain = extension(43, 1, &extension(60, 0, &extension(6, 2, &segment)));
    let packet = parse(&v6(&ipv6(0, &chain))).unwrap();
    assert_eq!((flow(&packet), packet.tcp_flags), ((6, 1025, 443), 2));
    // The length field of AH counts words of 4 bytes, minus 2.
    let authenticated = join(&[&[17, 4, 0, 0], &[0; 20], &udp(5, 6, b"")]);
    assert_eq!(flow_of(&v6(&ipv6(51, &authenticated))), (17, 5, 6));
    // In IPv4, AH is the protocol.
    assert_eq!(flow_of(&v4(&ipv4(51, &authenticated))), (51, 0, 0));
    // ESP, no next header and mobility end the chain.
    for last in [50, 59, 135, 139, 140] {
        assert_eq!(
            flow_of(&v6(&ipv6(60, &extension(last, 0, &[0; 8])))),
            (last, 0, 0)
        );
    }
}

#[test]
fn a_truncated_chain_gives_the_last_protocol_captured() {
    let bytes = v6(&ipv6(
        0,
        &extension(60, 0, &extension(17, 1, &udp(5, 6, b""))),
    ));
    let first = 14 + 40;
    let captured = |bytes_of_chain: usize| flow_of(&bytes[..first + bytes_of_chain]);
    assert_eq!(captured(0), (0, 0, 0));
    assert_eq!(captured(1), (0, 0, 0));
    assert_eq!(captured(2), (60, 0, 0));
    assert_eq!(captured(9), (60, 0, 0));
    assert_eq!(captured(10), (17, 0, 0));
    assert_eq!(captured(27), (17, 0, 0));
    assert_eq!(captured(28), (17, 5, 6));
    let fragmented = v6(&ipv6(44, &fragment(17, 0, 1, &udp(5, 6, b""))));
    assert_eq!(flow_of(&fragmented[..first + 7]), (44, 0, 0));
    assert_eq!(flow_of(&fragmented[..first + 8]), (17, 0, 0));
}

#[test]
fn chains_longer_than_the_limit_end_at_it() {
    let mut chain = udp(5, 6, b"");
    let mut next = 17;
    for _ in 0..MAX_EXTENSION_HEADERS {
        chain = extension(next, 0, &chain);
        next = 60;
    }
    assert_eq!(flow_of(&v6(&ipv6(60, &chain))), (17, 5, 6));
    assert_eq!(
        flow_of(&v6(&ipv6(60, &extension(60, 0, &chain)))),
        (60, 0, 0)
    );
}

/// A frame whose capture is truncated.
fn cut(bytes: &[u8], wire_length_bytes: u32) -> Frame<'_> {
    Frame {
        wire_length_bytes,
        ..frame_of(bytes, LinkType::Ethernet)
    }
}

#[test]
fn honours_the_jumbo_option_of_a_frame_that_has_room_for_it() {
    let mut parser = Parser::new(ParserConfig::default());
    let options = [6, 0, 0xc2, 4, 0, 1, 0x86, 0xa0];
    let mut bytes = v6(&ipv6(0, &join(&[&options, &tcp(0x010, &[], &[0; 40])])));
    bytes[18..20].copy_from_slice(&[0, 0]);
    let packet = parser.parse(&cut(&bytes, 14 + 40 + 100_000)).unwrap();
    assert_eq!(
        (packet.ip_length_bytes, flow(&packet)),
        (40 + 100_000, (6, 1025, 443))
    );
    assert_eq!(packet.tcp_flags, 0x010);
    assert_eq!(parser.packets_longer_than_frame(), 0);
    // A longer length stands for the rest of the frame.
    for declared in [100_001_u32, u32::MAX] {
        bytes[14 + 44..14 + 48].copy_from_slice(&declared.to_be_bytes());
        let packet = parser.parse(&cut(&bytes, 14 + 40 + 100_000)).unwrap();
        assert_eq!(packet.ip_length_bytes, 40 + 100_000);
    }
    assert_eq!(parser.packets_longer_than_frame(), 2);
}

#[test]
fn an_ipv6_payload_length_of_0_is_the_rest_of_the_frame() {
    let mut bytes = v6(&ipv6(6, &tcp(0x010, &[], b"")));
    bytes[18..20].copy_from_slice(&[0, 0]);
    let mut parser = Parser::new(ParserConfig::default());
    let packet = parser.parse(&cut(&bytes, 70_068)).unwrap();
    assert_eq!(
        (packet.ip_length_bytes, flow(&packet), packet.tcp_flags),
        (70_054, (6, 1025, 443), 0x010)
    );
    // This also holds after a hop-by-hop header without a jumbo option.
    let mut bytes = v6(&ipv6(0, &extension(6, 0, &tcp(0x010, &[], b""))));
    bytes[18..20].copy_from_slice(&[0, 0]);
    let packet = parser.parse(&cut(&bytes, 3_014)).unwrap();
    assert_eq!(
        (packet.ip_length_bytes, flow(&packet)),
        (3_000, (6, 1025, 443))
    );
    // "No next header" has no payload, so the rest is padding.
    let packet = parser.parse(&cut(&v6(&ipv6(59, b"")), 60)).unwrap();
    assert_eq!((packet.ip_length_bytes, flow(&packet)), (40, (59, 0, 0)));
    assert_eq!(parser.packets_longer_than_frame(), 0);
}

#[test]
fn packets_longer_than_their_frame_count_with_what_they_declare() {
    let mut parser = Parser::new(ParserConfig::default());
    let short = udp(53, 5353, b"12345");
    let mut longer = |bytes: &[u8]| {
        let before = parser.packets_longer_than_frame();
        let packet = parser.parse(&frame_of(bytes, LinkType::Ethernet)).unwrap();
        let counted = parser.packets_longer_than_frame() - before;
        (packet.ip_length_bytes, counted)
    };
    assert_eq!(longer(&v4(&ipv4(17, &short))), (33, 0));
    assert_eq!(longer(&v6(&ipv6(17, &short))), (53, 0));
    let mut bytes = v4(&ipv4(17, &short));
    bytes[17] += 1;
    assert_eq!(longer(&bytes), (34, 1));
    let mut bytes = v6(&ipv6(17, &short));
    bytes[18] = 0xfe;
    assert_eq!(longer(&bytes), (40 + 0xfe00 + 13, 1));
    let mut tagged = ethernet(0x8100, &tag(7, 0x0800, &ipv4(17, &short)));
    tagged[20] = 0xff;
    assert_eq!(longer(&tagged), (0xff00 + 33, 1));
}

#[test]
fn an_inner_packet_longer_than_the_outer_one_counts_once() {
    let mut parser = Parser::new(ParserConfig {
        decapsulate: TunnelSet::ALL,
        ..Default::default()
    });
    let mut inner = ipv4(17, &udp(53, 5353, b"12345"));
    inner[3] += 1;
    let mut bytes = v4(&ipv4(4, &inner));
    // Room in the frame, none in the outer packet.
    bytes.extend([0; 20]);
    let packet = parser.parse(&frame_of(&bytes, LinkType::Ethernet)).unwrap();
    assert_eq!(
        (packet.ip_length_bytes, flow(&packet)),
        (34, (17, 53, 5353))
    );
    assert_eq!(parser.packets_longer_than_frame(), 1);
}

#[test]
fn only_first_fragments_have_ports() {
    let datagram = udp(53, 5353, &[0; 24]);
    assert_eq!(
        flow_of(&v4(&ipv4_fragment(17, 9, 0x2000, &datagram))),
        (17, 53, 5353)
    );
    assert_eq!(
        flow_of(&v4(&ipv4_fragment(17, 9, 0x2001, &datagram))),
        (17, 0, 0)
    );
    assert_eq!(
        flow_of(&v4(&ipv4_fragment(17, 9, 0x0001, &datagram))),
        (17, 0, 0)
    );
    // The don't-fragment flag and the reserved bit do not make a fragment.
    assert_eq!(
        flow_of(&v4(&ipv4_fragment(17, 9, 0xc000, &datagram))),
        (17, 53, 5353)
    );
    assert_eq!(
        flow_of(&v6(&ipv6(44, &fragment(17, 1, 9, &datagram)))),
        (17, 53, 5353)
    );
    assert_eq!(
        flow_of(&v6(&ipv6(44, &fragment(17, 0, 9, &datagram)))),
        (17, 53, 5353)
    );
    assert_eq!(
        flow_of(&v6(&ipv6(44, &fragment(17, 8, 9, &datagram)))),
        (17, 0, 0)
    );
    // The extension headers of a later fragment are not followed.
    assert_eq!(
        flow_of(&v6(&ipv6(
            44,
            &fragment(60, 8, 9, &extension(17, 0, &datagram))
        ))),
        (60, 0, 0)
    );
}

#[test]
fn icmp_errors_belong_to_their_own_header() {
    let error = join(&[&[3, 3, 0, 0, 0, 0, 0, 0], &inner()]);
    assert_eq!(flow_of(&v4(&ipv4(1, &error))), (1, 0, 0));
}
