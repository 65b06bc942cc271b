// SPDX-License-Identifier: Apache-2.0

use turboflow_packet::{
    LinkType, MAX_TUNNEL_DEPTH, Parser, ParserConfig, Rejected, Tunnel, TunnelSet,
};
use turboflow_record::{Input, InputValues, Packet};

use super::{flow, inner, values_of};
use crate::build::{
    DESTINATION, SOURCE, ethernet, frame_of, ipv4, ipv4_fragment, ipv6, join, tag, udp,
};

const INNER: (u8, u16, u16) = (17, 53, 5353);

/// Parses a datagram with all tunnels decapsulated, with only this one (the result must be equal),
/// and with all but this one (the packet must stay in the outer flow).
fn entered(tunnel: Tunnel, datagram: &[u8]) -> (Packet, InputValues) {
    let bytes = ethernet(0x0800, datagram);
    let all = values_of(&bytes, TunnelSet::ALL);
    assert_eq!(values_of(&bytes, TunnelSet::EMPTY.with(tunnel)), all);
    let others = Tunnel::ALL
        .into_iter()
        .filter(|&other| other != tunnel)
        .collect();
    let (outer, values) = values_of(&bytes, others);
    assert_eq!(outer.tuple.source().to_string(), "192.0.2.1");
    assert_eq!(values.outer_addresses, [[0; 16]; 2]);
    let (packet, values) = all;
    assert_eq!(values.outer_addresses[0][..4], SOURCE);
    assert_eq!(values.outer_addresses[1][..4], DESTINATION);
    (packet, values)
}

fn expect_inner((packet, values): (Packet, InputValues)) -> InputValues {
    assert_eq!(flow(&packet), INNER);
    assert_eq!(packet.tuple.source().to_string(), "10.0.0.1");
    assert_eq!(packet.ip_length_bytes, 33);
    values
}

fn expect_outer(datagram: &[u8]) {
    let (packet, values) = values_of(&ethernet(0x0800, datagram), TunnelSet::ALL);
    assert_eq!(packet.tuple.source().to_string(), "192.0.2.1");
    assert_eq!(packet.ip_length_bytes as usize, datagram.len());
    assert_eq!(values.outer_addresses, [[0; 16]; 2]);
}

fn inner_v6() -> Vec<u8> {
    ipv6(17, &udp(53, 5353, b"inner"))
}

#[test]
fn enters_ip_in_ip_of_any_two_families() {
    expect_inner(entered(Tunnel::Ipip, &ipv4(4, &inner())));
    let (packet, values) = entered(Tunnel::SixInFour, &ipv4(41, &inner_v6()));
    assert_eq!((flow(&packet), packet.ip_length_bytes), (INNER, 53));
    assert_eq!(values.get(Input::EtherType), None);
    for (next_header, payload) in [(4, inner()), (41, inner_v6())] {
        let bytes = ethernet(0x86dd, &ipv6(next_header, &payload));
        let (packet, values) = values_of(&bytes, TunnelSet::ALL);
        assert_eq!(flow(&packet), INNER);
        assert_eq!(values.outer_addresses[1][15], 2);
    }
}

#[test]
fn enters_gre_with_any_optional_fields() {
    for flags in [0x00_u8, 0x80, 0x20, 0x10, 0xa0, 0x30, 0x90, 0xb0] {
        let mut header = vec![flags, 0, 8, 0];
        for (bit, field) in [(0x80, [1; 4]), (0x20, [2; 4]), (0x10, [3; 4])] {
            if flags & bit != 0 {
                header.extend(field);
            }
        }
        let values = expect_inner(entered(Tunnel::Gre, &ipv4(47, &join(&[&header, &inner()]))));
        let key = (flags & 0x20 != 0).then_some(0x0202_0202);
        assert_eq!(values.get(Input::GreKey), key);
        assert_eq!(values.get(Input::EtherType), Some(0x0800));
    }
    let gre = |header: &[u8], payload: &[u8]| ipv4(47, &join(&[header, payload]));
    let (packet, _) = entered(Tunnel::Gre, &gre(&[0, 0, 0x86, 0xdd], &inner_v6()));
    assert_eq!(flow(&packet), INNER);
    expect_inner(entered(
        Tunnel::Gre,
        &gre(&[0, 0, 0x88, 0x47, 0, 1, 0x21, 64], &inner()),
    ));
    expect_outer(&gre(&[0x40, 0, 8, 0, 0, 0, 0, 0], &inner()));
    expect_outer(&gre(&[0, 2, 8, 0], &inner()));
    expect_outer(&gre(&[0, 0, 0x08, 0x06], &[0; 28]));
}

#[test]
fn enters_ethernet_in_gre_nvgre_and_erspan() {
    let gre = |header: &[u8], payload: &[u8]| ipv4(47, &join(&[header, payload]));
    let frame = ethernet(0x8100, &tag(5, 0x0800, &inner()));
    expect_inner(entered(Tunnel::Gre, &gre(&[0, 0, 0x65, 0x58], &frame)));
    let nvgre = gre(&[0x20, 0, 0x65, 0x58, 0, 1, 2, 3], &frame);
    assert_eq!(
        expect_inner(entered(Tunnel::Gre, &nvgre)).get(Input::GreKey),
        Some(0x0001_0203)
    );
    expect_inner(entered(Tunnel::Gre, &gre(&[0, 0, 0x88, 0xbe], &frame)));
    let second = [0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 1, 0, 2, 0, 0, 0, 0];
    expect_inner(entered(Tunnel::Gre, &gre(&second, &frame)));
    let third = [
        0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    expect_inner(entered(Tunnel::Gre, &gre(&third, &frame)));
    let mut with_platform = third.to_vec();
    with_platform[19] = 1;
    with_platform.extend([0; 8]);
    expect_inner(entered(Tunnel::Gre, &gre(&with_platform, &frame)));
    // The frame type is 0 for an Ethernet frame and 2 for an IP packet; others are unknown.
    for (frame_type, payload) in [
        (2 << 2, inner()),
        (0x82 | 2 << 2, inner()),
        (0x80, frame.clone()),
    ] {
        let mut header = third.to_vec();
        header[18] = frame_type;
        expect_inner(entered(Tunnel::Gre, &gre(&header, &payload)));
    }
    let mut reserved = third.to_vec();
    reserved[18] = 1 << 2;
    expect_outer(&gre(&reserved, &frame));
    let mut unknown = second.to_vec();
    unknown[8] = 0x30;
    expect_outer(&gre(&unknown, &frame));
}

#[test]
fn enters_pptp_where_ppp_carries_ip() {
    let pptp = |header: &[u8], ppp: &[u8]| ipv4(47, &join(&[header, ppp, &inner()]));
    let plain = [0x30, 0x01, 0x88, 0x0b, 0, 37, 0, 9, 0, 0, 0, 1];
    let values = expect_inner(entered(Tunnel::Gre, &pptp(&plain, &[0xff, 3, 0, 0x21])));
    assert_eq!(values.get(Input::GreKey), Some(37 << 16 | 9));
    let acknowledging = [0x30, 0x81, 0x88, 0x0b, 0, 37, 0, 9, 0, 0, 0, 1, 0, 0, 0, 2];
    expect_inner(entered(Tunnel::Gre, &pptp(&acknowledging, &[0x21])));
    expect_outer(&pptp(&plain, &[0x00, 0xfd]));
    expect_outer(&ipv4(47, &[0x20, 0x81, 0x88, 0x0b, 0, 0, 0, 9, 0, 0, 0, 1]));
}

#[test]
fn enters_vxlan_and_knows_its_vni() {
    let header = [0x08, 0, 0, 0, 0x01, 0x02, 0x03, 0];
    let frame = ethernet(0x0800, &inner());
    for port in [4789, 8472] {
        let datagram = ipv4(17, &udp(50_000, port, &join(&[&header, &frame])));
        let values = expect_inner(entered(Tunnel::Vxlan, &datagram));
        assert_eq!(values.get(Input::Vni), Some(0x01_0203));
    }
    expect_outer(&ipv4(17, &udp(50_000, 4789, &join(&[&[0; 8], &frame]))));
    expect_outer(&ipv4(17, &udp(4789, 50_000, &join(&[&header, &frame]))));
    let arp = ethernet(0x0806, &[0; 46]);
    expect_outer(&ipv4(17, &udp(50_000, 4789, &join(&[&header, &arp]))));
}

#[test]
fn enters_vxlan_gpe_by_its_next_protocol() {
    let frame = ethernet(0x0800, &inner());
    let gpe = |flags, next, payload: &[u8]| {
        let header = [flags, 0, 0, next, 0x01, 0x02, 0x03, 0];
        ipv4(17, &udp(50_000, 4790, &join(&[&header, payload])))
    };
    // Without the P bit the payload is Ethernet, whatever the value of the last byte.
    for (flags, next, payload) in [(0x08, 1, &frame), (0x0c, 3, &frame), (0x0c, 1, &inner())] {
        let values = expect_inner(entered(Tunnel::Vxlan, &gpe(flags, next, payload)));
        assert_eq!(values.get(Input::Vni), Some(0x01_0203));
    }
    let (packet, _) = entered(Tunnel::Vxlan, &gpe(0x0c, 2, &inner_v6()));
    assert_eq!((flow(&packet), packet.ip_length_bytes), (INNER, 53));
    // A network service header; no I flag.
    expect_outer(&gpe(0x0c, 4, &inner()));
    expect_outer(&gpe(0x04, 1, &inner()));
}

#[test]
fn enters_geneve_past_its_options() {
    let frame = ethernet(0x0800, &inner());
    let header = |words: u8, kind: [u8; 2]| {
        join(&[
            &[words, 0],
            &kind,
            &[9, 8, 7, 0],
            &vec![0xff; usize::from(words) * 4],
        ])
    };
    for words in [0, 1, 63] {
        let payload = join(&[&header(words, [0x65, 0x58]), &frame]);
        let values = expect_inner(entered(
            Tunnel::Geneve,
            &ipv4(17, &udp(50_000, 6081, &payload)),
        ));
        assert_eq!(values.get(Input::Vni), Some(0x09_0807));
    }
    let payload = join(&[&header(2, [0x08, 0x00]), &inner()]);
    expect_inner(entered(
        Tunnel::Geneve,
        &ipv4(17, &udp(50_000, 6081, &payload)),
    ));
}

#[test]
fn enters_gtp_user_data_past_its_extensions() {
    let gtp = |header: &[u8]| ipv4(17, &udp(2152, 2152, &join(&[header, &inner()])));
    let values = expect_inner(entered(Tunnel::GtpU, &gtp(&[0x30, 255, 0, 33, 0, 0, 1, 2])));
    assert_eq!(values.get(Input::Teid), Some(0x0102));
    expect_inner(entered(
        Tunnel::GtpU,
        &gtp(&[0x32, 255, 0, 37, 0, 0, 1, 2, 0, 1, 0, 0x85]),
    ));
    let extended = [
        0x34, 255, 0, 45, 0, 0, 1, 2, 0, 0, 0, 0x85, 1, 0, 9, 0xc0, 1, 0, 0, 0,
    ];
    expect_inner(entered(Tunnel::GtpU, &gtp(&extended)));
    expect_outer(&gtp(&[0x30, 1, 0, 33, 0, 0, 1, 2]));
    expect_outer(&gtp(&[
        0x34, 255, 0, 41, 0, 0, 1, 2, 0, 0, 0, 0x85, 0, 0, 9, 0,
    ]));
    expect_outer(&ipv4(
        17,
        &udp(2152, 2152, &[0x30, 255, 0, 4, 0, 0, 1, 2, 1, 2, 3, 4]),
    ));
}

#[test]
fn enters_teredo_past_its_headers() {
    let authentication = [0, 1, 1, 2, 9, 9, 9, 1, 2, 3, 4, 5, 6, 7, 8, 0];
    let origin = [0, 0, 1, 2, 3, 4, 5, 6];
    for headers in [vec![], origin.to_vec(), join(&[&authentication, &origin])] {
        let datagram = ipv4(17, &udp(3544, 40_000, &join(&[&headers, &inner_v6()])));
        let (packet, _) = entered(Tunnel::Teredo, &datagram);
        assert_eq!((flow(&packet), packet.ip_length_bytes), (INNER, 53));
    }
}

#[test]
fn enters_l2tp_data_but_not_control() {
    let l2tp = |header: &[u8]| ipv4(17, &udp(1701, 1701, &join(&[header, &inner()])));
    expect_inner(entered(Tunnel::L2tp, &l2tp(&[0, 2, 0, 1, 0, 2, 0, 0x21])));
    let full = [
        0x4a, 2, 0, 60, 0, 1, 0, 2, 0, 3, 0, 4, 0, 2, 9, 9, 0xff, 3, 0, 0x21,
    ];
    expect_inner(entered(Tunnel::L2tp, &l2tp(&full)));
    expect_outer(&l2tp(&[0xc8, 2, 0, 60, 0, 1, 0, 2, 0, 3, 0, 4]));
    expect_outer(&l2tp(&[0, 3, 0, 1, 0, 2, 0, 0x21]));
}

#[test]
fn tunnels_inside_tunnels_are_entered_to_a_bounded_depth() {
    let mut datagram = inner();
    for _ in 0..MAX_TUNNEL_DEPTH {
        datagram = ipv4(4, &datagram);
    }
    expect_inner(entered(Tunnel::Ipip, &datagram));
    datagram = ipv4(4, &datagram);
    let (packet, _) = values_of(&ethernet(0x0800, &datagram), TunnelSet::ALL);
    assert_eq!((flow(&packet), packet.ip_length_bytes), ((4, 0, 0), 53));
}

#[test]
fn tunnels_that_cannot_be_parsed_stay_with_the_outer_flow() {
    expect_outer(&ipv4(4, &inner()[..19]));
    expect_outer(&ipv4(4, &inner_v6()));
    expect_outer(&ipv4(41, &inner()));
    expect_outer(&ipv4(47, &[0, 0]));
    expect_outer(&ipv4_fragment(4, 7, 1, &inner()));
    let packet = values_of(
        &ethernet(0x0800, &ipv4_fragment(4, 7, 0x2000, &inner())),
        TunnelSet::ALL,
    );
    expect_inner(packet);
}

#[test]
fn an_unlisted_tunnel_does_not_hide_a_listed_one() {
    let gtp = join(&[&[0x30, 255, 0, 33, 0, 0, 0, 7], &inner()]);
    // From GTP-U's port to those of GENEVE and Teredo.
    for destination in [6081, 3544] {
        let bytes = ethernet(0x0800, &ipv4(17, &udp(2152, destination, &gtp)));
        for listed in [TunnelSet::EMPTY.with(Tunnel::GtpU), TunnelSet::ALL] {
            let (packet, values) = values_of(&bytes, listed);
            assert_eq!((flow(&packet), values.get(Input::Teid)), (INNER, Some(7)));
        }
    }
}

#[test]
fn a_total_length_of_0_ends_with_the_packet_around_it() {
    let mut unsaid = inner();
    unsaid[2..4].fill(0);
    let datagram = ipv4(4, &unsaid);
    let padded = join(&[&ethernet(0x0800, &datagram), &[0xee; 9]]);
    let (packet, _) = values_of(&padded, TunnelSet::ALL);
    assert_eq!((flow(&packet), packet.ip_length_bytes), (INNER, 33));
}

#[test]
fn an_inner_header_must_lie_inside_the_outer_length() {
    let mut bytes = ethernet(0x0800, &ipv4(4, &[]));
    bytes.extend(inner());
    let (packet, _) = values_of(&bytes, TunnelSet::ALL);
    assert_eq!(flow(&packet), (4, 0, 0));
}

#[test]
fn tunnel_sets_parse_from_and_display_as_lists() {
    let all = "ipip,6in4,gre,vxlan,geneve,gtp-u,teredo,l2tp,pseudowire";
    assert_eq!(all.parse(), Ok(TunnelSet::ALL));
    assert_eq!(TunnelSet::ALL.to_string(), all);
    assert_eq!("all".parse(), Ok(TunnelSet::ALL));
    assert_eq!("none".parse(), Ok(TunnelSet::EMPTY));
    let two: TunnelSet = "vxlan, gre".parse().unwrap();
    assert_eq!(two, TunnelSet::EMPTY.with(Tunnel::Gre).with(Tunnel::Vxlan));
    assert_eq!(two.to_string(), "gre,vxlan");
    let error = "vxlan,wireguard"
        .parse::<TunnelSet>()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("`wireguard`") && error.contains("6in4"),
        "{error}"
    );
}

#[test]
fn enters_ethernet_in_mpls_with_or_without_a_control_word() {
    let labels = [0, 0x01, 0x31, 64];
    let pseudowire = |control_word: &[u8], first: u8, inner: &[u8]| {
        let mut frame = ethernet(0x8100, &tag(9, 0x0800, inner));
        frame[0] = first;
        ethernet(0x8847, &join(&[&labels, control_word, &frame]))
    };
    let only = |bytes: &[u8], entered: TunnelSet| {
        let mut parser = Parser::new(ParserConfig {
            decapsulate: entered,
            ..Default::default()
        });
        parser.parse(&frame_of(bytes, LinkType::Ethernet))
    };
    for control_word in [&[][..], &[0; 4], &[0, 0, 0, 7]] {
        // Addresses that begin like IPv4, like IPv6, and like a control word.
        for first in [0x44, 0x45, 0x60, 0x00, 0x02] {
            let bytes = pseudowire(control_word, first, &inner());
            let packet = only(&bytes, TunnelSet::EMPTY.with(Tunnel::Pseudowire)).unwrap();
            assert_eq!(flow(&packet), (17, 53, 5353), "{control_word:?} {first:x}");
            assert_eq!(packet.ip_length_bytes, 33);
            assert_eq!(only(&bytes, TunnelSet::EMPTY), Err(Rejected::MplsNotIp));
        }
    }
    // A control channel, and payload that is not Ethernet with IP.
    let channel = ethernet(0x8847, &join(&[&labels, &[0x10, 0, 0, 7], &inner()]));
    assert_eq!(only(&channel, TunnelSet::ALL), Err(Rejected::MplsNotIp));
    let other = ethernet(0x8847, &join(&[&labels, &[0; 60]]));
    assert_eq!(only(&other, TunnelSet::ALL), Err(Rejected::MplsNotIp));
}
