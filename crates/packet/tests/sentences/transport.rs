// SPDX-License-Identifier: Apache-2.0

use turboflow_packet::{LinkType, Parser, ParserConfig};

use super::{flow, flow_of, parse};
use crate::build::{ethernet, frame_of, ipv4, ipv4_fragment, ipv6, tcp, udp};

#[test]
fn five_protocols_have_ports() {
    for protocol in 0..=255 {
        let bytes = ethernet(0x0800, &ipv4(protocol, &udp(7, 9, &[0; 12])));
        let ports = match protocol {
            6 | 17 | 33 | 132 | 136 => (7, 9),
            _ => (0, 0),
        };
        assert_eq!(flow_of(&bytes), (protocol, ports.0, ports.1));
    }
}

#[test]
fn ports_need_4_captured_bytes_and_flags_14() {
    let bytes = ethernet(0x0800, &ipv4(6, &tcp(0xfff, &[], &[0; 10])));
    for captured in 34..bytes.len() {
        let packet = parse(&bytes[..captured]).unwrap();
        let ports = if captured < 38 {
            (6, 0, 0)
        } else {
            (6, 1025, 443)
        };
        let flags = if captured < 48 { 0 } else { 0xfff };
        assert_eq!(
            (flow(&packet), packet.tcp_flags),
            (ports, flags),
            "{captured} captured"
        );
        assert_eq!(packet.ip_length_bytes, 50);
    }
}

#[test]
fn ports_and_flags_must_lie_inside_the_ip_length() {
    for inside in 0..=20 {
        let mut bytes = ethernet(0x0800, &ipv4(6, &tcp(0xfff, &[], b"")));
        bytes[17] = 20 + inside;
        let packet = parse(&bytes).unwrap();
        assert_eq!(
            packet.tuple.source_port(),
            if inside < 4 { 0 } else { 1025 }
        );
        assert_eq!(packet.tcp_flags, if inside < 14 { 0 } else { 0xfff });
        let mut bytes = ethernet(0x86dd, &ipv6(6, &tcp(0xfff, &[], b"")));
        // A payload length of 0 means the rest of the frame.
        if inside == 0 {
            continue;
        }
        bytes[19] = inside;
        let packet = parse(&bytes).unwrap();
        assert_eq!(
            packet.tuple.source_port(),
            if inside < 4 { 0 } else { 1025 }
        );
        assert_eq!(packet.tcp_flags, if inside < 14 { 0 } else { 0xfff });
    }
}

#[test]
fn icmp_ports_are_0_unless_asked_for() {
    let mut parser = Parser::new(ParserConfig {
        icmp_ports: true,
        ..Default::default()
    });
    let mut asked =
        |bytes: &[u8]| flow(&parser.parse(&frame_of(bytes, LinkType::Ethernet)).unwrap());
    let v4 = ethernet(0x0800, &ipv4(1, &[3, 13, 0, 0, 0, 0, 0, 0]));
    let v6 = ethernet(0x86dd, &ipv6(58, &[128, 0, 0, 0]));
    assert_eq!(flow_of(&v4), (1, 0, 0));
    assert_eq!(flow_of(&v6), (58, 0, 0));
    assert_eq!(asked(&v4), (1, 0, 3 * 256 + 13));
    assert_eq!(asked(&v6), (58, 0, 128 * 256));
    let later = ethernet(0x0800, &ipv4_fragment(1, 1, 1, &[3, 13, 0, 0]));
    assert_eq!(asked(&later), (1, 0, 0));
    assert_eq!(asked(&ethernet(0x0800, &ipv4(1, &[3]))), (1, 0, 0));
}
