// SPDX-License-Identifier: Apache-2.0

use turboflow_packet::{LinkType, MAX_LINK_HEADERS, Parser, ParserConfig, RejectClass, Rejected};

use super::{flow, flow_of, inner, parse, parse_as};
use crate::build::{ethernet, frame_of, ipv4, ipv6, join, tag, udp};

const UDP_53: (u8, u16, u16) = (17, 53, 5353);

#[test]
fn reads_plain_ethernet_of_both_families() {
    let v4 = parse(&ethernet(0x0800, &inner())).unwrap();
    assert_eq!(flow(&v4), UDP_53);
    assert_eq!(v4.tuple.source().to_string(), "10.0.0.1");
    assert_eq!(v4.tuple.destination().to_string(), "10.0.0.2");
    assert_eq!((v4.ip_length_bytes, v4.frame_length_bytes), (33, 47));
    assert_eq!((v4.ttl, v4.tos, v4.timestamp_ns), (61, 0xb8, 1_000));
    let v6 = parse(&ethernet(0x86dd, &ipv6(17, &udp(53, 5353, &[0; 20])))).unwrap();
    assert_eq!(flow(&v6), UDP_53);
    assert_eq!(v6.tuple.source().to_string(), "2001:db8::1");
    assert_eq!(v6.tuple.destination().to_string(), "2001:db8::2");
    assert_eq!((v6.ip_length_bytes, v6.ttl, v6.tos), (68, 62, 0xab));
}

#[test]
fn skips_tags_of_every_type_at_any_depth() {
    for ether_type in [0x8100, 0x88a8, 0x9100] {
        let once = tag(7, 0x0800, &inner());
        assert_eq!(flow_of(&ethernet(ether_type, &once)), UDP_53);
        let mut deep = once;
        for _ in 0..40 {
            deep = tag(8, ether_type, &deep);
        }
        assert_eq!(flow_of(&ethernet(0x8100, &deep)), UDP_53);
    }
    let mut endless = vec![];
    for _ in 0..MAX_LINK_HEADERS {
        endless = tag(8, 0x8100, &endless);
    }
    assert_eq!(
        parse(&ethernet(0x8100, &endless)),
        Err(Rejected::TagDepthExceeded)
    );
}

#[test]
fn skips_mpls_stacks_and_reads_the_version_nibble() {
    let stack = |labels: usize, payload: &[u8]| {
        let mut bytes = [0, 0x01, 0x20, 64].repeat(labels - 1);
        bytes.extend([0, 0x01, 0x31, 64]);
        bytes.extend(payload);
        bytes
    };
    for ether_type in [0x8847, 0x8848] {
        assert_eq!(flow_of(&ethernet(ether_type, &stack(1, &inner()))), UDP_53);
        assert_eq!(flow_of(&ethernet(ether_type, &stack(5, &inner()))), UDP_53);
    }
    let v6 = ipv6(17, &udp(53, 5353, b""));
    assert_eq!(flow_of(&ethernet(0x8847, &stack(2, &v6))), UDP_53);
    let pseudowire = stack(1, &[0; 60]);
    assert_eq!(
        parse(&ethernet(0x8847, &pseudowire)),
        Err(Rejected::MplsNotIp)
    );
    let bottomless = [0, 0x01, 0x20, 64].repeat(MAX_LINK_HEADERS + 1);
    assert_eq!(
        parse(&ethernet(0x8847, &bottomless)),
        Err(Rejected::TagDepthExceeded)
    );
}

#[test]
fn behind_labels_is_ip_only_what_can_be() {
    let behind = |payload: &[u8]| parse(&ethernet(0x8847, &join(&[&[0, 0x01, 0x31, 64], payload])));
    assert_eq!(behind(&inner()).map(|packet| flow(&packet)), Ok(UDP_53));
    for (at, value) in [(0, 0x44), (3, 19), (10, 0xff), (12, 9)] {
        let mut broken = inner();
        broken[at] = value;
        assert_eq!(behind(&broken), Err(Rejected::MplsNotIp), "byte {at}");
    }
    let mut v6 = ipv6(17, &udp(53, 5353, b""));
    v6[5] += 1;
    assert_eq!(behind(&v6), Err(Rejected::MplsNotIp));
    // An explicit null determines what follows, even with a wrong checksum.
    let mut unchecked = inner();
    (unchecked[10], unchecked[11]) = (0, 0);
    assert_eq!(behind(&unchecked), Err(Rejected::MplsNotIp));
    let null = |label: u8, payload: &[u8]| {
        let entry = [0, 0, label << 4 | 1, 64];
        parse(&ethernet(0x8847, &join(&[&entry, payload]))).map(|packet| flow(&packet))
    };
    assert_eq!(null(0, &unchecked), Ok(UDP_53));
    assert_eq!(null(2, &v6), Ok(UDP_53));
    assert_eq!(null(2, &unchecked), Err(Rejected::MplsNotIp));
    // A header that was cut gives no evidence.
    assert_eq!(behind(&inner()[..19]), Err(Rejected::Ipv4HeaderNotCaptured));
}

#[test]
fn skips_headers_of_switches_and_taps() {
    let shims: [(u16, &[u8]); 8] = [
        (0x8909, &[1, 1, 0, 1, 0, 2]),
        (0x8909, &[1, 2, 0, 1, 0, 2, 0, 3, 0, 4]),
        (0x8926, &[0x80, 0x12, 0, 0x34]),
        (0x8988, &[0, 1, 2, 3, 4, 5]),
        (0xd28b, &[0, 1, 0, 0x10, 1, 2, 3, 4, 5, 6, 7, 8]),
        (0xd28b, &[0, 1, 1, 0x10, 1, 2, 3, 4, 5, 6, 7, 8]),
        (0xd28b, &[0, 1, 0, 0x20, 1, 2, 3, 4, 5, 6]),
        (0xd28b, &[0, 1, 1, 0x20, 1, 2, 3, 4, 5, 6]),
    ];
    for (ether_type, shim) in shims {
        let plain = ethernet(ether_type, &join(&[shim, &[0x08, 0x00], &inner()]));
        assert_eq!(flow_of(&plain), UDP_53, "{ether_type:x}");
        let tagged = join(&[shim, &[0x81, 0x00], &tag(7, 0x0800, &inner())]);
        assert_eq!(flow_of(&ethernet(ether_type, &tagged)), UDP_53);
        for length in 0..shim.len() + 2 {
            let cut = &plain[..14 + length];
            assert_eq!(parse(cut), Err(Rejected::LinkHeaderNotCaptured), "{length}");
        }
    }
    for (ether_type, shim) in [
        (0x8909, &[2, 1, 0, 1][..]),
        (0x8909, &[1, 0, 8, 0]),
        (0xd28b, &[0, 2, 0, 0x10]),
        (0xd28b, &[0, 1, 0, 0x30]),
    ] {
        let unknown = ethernet(ether_type, &join(&[shim, &[0; 40]]));
        assert_eq!(parse(&unknown), Err(Rejected::OtherEtherType));
    }
}

#[test]
fn names_the_ethernet_types_that_are_not_read() {
    let mut parser = Parser::new(ParserConfig::default());
    for (ether_type, frames) in [(0x88f7, 3), (0x8903, 5), (0x0806, 2)] {
        for _ in 0..frames {
            let bytes = ethernet(0x8100, &tag(7, ether_type, &[0; 40]));
            let _ = parser.parse(&frame_of(&bytes, LinkType::Ethernet));
        }
    }
    let unread = parser.unread_ether_types();
    assert_eq!(unread.commonest(), [(0x8903, 5), (0x88f7, 3)]);
    assert_eq!(unread.others(), 0);
    for ether_type in 0x9101..0x9200 {
        let bytes = ethernet(ether_type, &[0; 40]);
        let _ = parser.parse(&frame_of(&bytes, LinkType::Ethernet));
    }
    let mut unread = *parser.unread_ether_types();
    assert_eq!((unread.commonest().len(), unread.others()), (32, 225));
    unread.merge(parser.unread_ether_types());
    assert_eq!(unread.commonest()[0], (0x8903, 10));
    assert_eq!(unread.others(), 450);
}

#[test]
fn skips_pppoe_session_headers_but_rejects_discovery() {
    let session = |protocol: &[u8], payload: &[u8]| {
        ethernet(0x8864, &join(&[&[0x11, 0, 0, 1, 0, 40], protocol, payload]))
    };
    assert_eq!(flow_of(&session(&[0x00, 0x21], &inner())), UDP_53);
    assert_eq!(flow_of(&session(&[0x21], &inner())), UDP_53);
    let v6 = ipv6(17, &udp(53, 5353, b""));
    assert_eq!(flow_of(&session(&[0x00, 0x57], &v6)), UDP_53);
    assert_eq!(
        parse(&session(&[0xc0, 0x21], &[1, 1, 0, 4])),
        Err(Rejected::OtherPppProtocol)
    );
    assert_eq!(
        parse(&ethernet(0x8863, &[0; 46])),
        Err(Rejected::PppoeDiscovery)
    );
}

#[test]
fn skips_llc_headers_that_announce_ip() {
    let snap = |organisation: [u8; 3]| {
        let header = [&[0xaa, 0xaa, 0x03][..], &organisation, &[0x08, 0x00]].concat();
        ethernet(60, &join(&[&header, &inner()]))
    };
    assert_eq!(flow_of(&snap([0, 0, 0])), UDP_53);
    assert_eq!(flow_of(&snap([0, 0, 0xf8])), UDP_53);
    assert_eq!(parse(&snap([0, 0, 0x0c])), Err(Rejected::Llc));
    assert_eq!(
        flow_of(&ethernet(60, &join(&[&[6, 6, 3], &inner()]))),
        UDP_53
    );
    assert_eq!(
        parse(&ethernet(38, &[0x42, 0x42, 0x03, 0, 0])),
        Err(Rejected::Llc)
    );
    assert_eq!(
        parse(&ethernet(1510, &inner())),
        Err(Rejected::OtherEtherType)
    );
}

#[test]
fn reads_every_link_type() {
    let v6 = ipv6(17, &udp(53, 5353, b""));
    let cooked = join(&[&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 8, 0, 0, 8, 0], &inner()]);
    let cooked_2 = join(&[
        &[8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 2, 0, 0, 0, 0, 8, 0, 0],
        &inner(),
    ]);
    let cases = [
        (LinkType::Raw, inner()),
        (LinkType::Raw, v6.clone()),
        (LinkType::RawIpv4, inner()),
        (LinkType::RawIpv6, v6.clone()),
        (LinkType::Null, join(&[&[2, 0, 0, 0], &inner()])),
        (LinkType::Null, join(&[&[0, 0, 0, 2], &inner()])),
        (LinkType::Null, join(&[&[30, 0, 0, 0], &v6])),
        (LinkType::Null, join(&[&[0, 0, 0, 24], &v6])),
        (LinkType::Null, join(&[&[0x0f, 0, 0x08, 0], &inner()])),
        (LinkType::Null, join(&[&[0x0f, 0, 0x86, 0xdd], &v6])),
        (LinkType::LinuxCooked, cooked),
        (LinkType::LinuxCooked2, cooked_2),
        (LinkType::Ppp, join(&[&[0xff, 0x03, 0x00, 0x21], &inner()])),
        (LinkType::Ppp, join(&[&[0x00, 0x57], &v6])),
        (LinkType::Ppp, join(&[&[0x21], &inner()])),
        (LinkType::Ppp, join(&[&[0x0f, 0x00, 0x08, 0x00], &inner()])),
    ];
    for (link_type, bytes) in cases {
        let packet = parse_as(link_type, &bytes);
        assert_eq!(
            packet.map(|packet| flow(&packet)),
            Ok(UDP_53),
            "{link_type:?}"
        );
    }
}

#[test]
fn rejects_other_protocols_by_name() {
    let cases = [
        (0x0806, Rejected::Arp),
        (0x8035, Rejected::Arp),
        (0x88cc, Rejected::Lldp),
        (0x888e, Rejected::Eapol),
        (0x8809, Rejected::SlowProtocol),
        (0x9000, Rejected::EthernetLoopback),
        (0x88b8, Rejected::OtherEtherType),
    ];
    for (ether_type, reason) in cases {
        assert_eq!(parse(&ethernet(ether_type, &[0; 46])), Err(reason));
        assert_eq!(
            parse(&ethernet(0x8100, &tag(1, ether_type, &[0; 46]))),
            Err(reason)
        );
    }
    let family = join(&[&[7, 0, 0, 0], &inner()]);
    assert_eq!(
        parse_as(LinkType::Null, &family),
        Err(Rejected::OtherAddressFamily)
    );
    assert_eq!(
        parse_as(LinkType::Raw, &[0x50; 40]),
        Err(Rejected::RawNotIp)
    );
    assert_eq!(
        parse_as(LinkType::Ppp, &[0xff, 3, 0xc0, 0x21, 1]),
        Err(Rejected::OtherPppProtocol)
    );
    let netlink = join(&[&[0, 0, 3, 56, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0], &inner()]);
    assert_eq!(
        parse_as(LinkType::LinuxCooked, &netlink),
        Err(Rejected::OtherCookedProtocol)
    );
}

#[test]
fn frames_truncated_in_the_link_layer_are_rejected() {
    let stacks = [
        (
            LinkType::Ethernet,
            ethernet(0x8100, &tag(1, 0x8847, &[0, 0, 0x11, 64])),
        ),
        (
            LinkType::Ethernet,
            ethernet(0x8864, &[0x11, 0, 0, 1, 0, 2, 0, 0x21]),
        ),
        (
            LinkType::Ethernet,
            ethernet(60, &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]),
        ),
        (LinkType::LinuxCooked, vec![0; 16]),
        (LinkType::LinuxCooked2, vec![0; 20]),
        (LinkType::Null, vec![2, 0, 0, 0]),
        (LinkType::Ppp, vec![0xff, 3, 0, 0x21]),
        (LinkType::Raw, vec![0x45]),
    ];
    for (link_type, bytes) in stacks {
        for captured in 0..bytes.len() {
            let rejected = parse_as(link_type, &bytes[..captured]).unwrap_err();
            assert_eq!(
                rejected,
                Rejected::LinkHeaderNotCaptured,
                "{link_type:?} {captured}"
            );
            assert_eq!(rejected.class(), RejectClass::NonIp);
        }
    }
}

#[test]
fn reasons_have_unique_names_and_their_own_index() {
    for (index, reason) in Rejected::ALL.into_iter().enumerate() {
        assert_eq!(reason.index(), index);
        let same = Rejected::ALL
            .into_iter()
            .filter(|other| other.name() == reason.name());
        assert_eq!(same.count(), 1);
    }
    assert_eq!(Rejected::ALL.len(), Rejected::COUNT);
}

#[test]
fn ethernet_padding_is_not_part_of_the_packet() {
    // 2 bytes of UDP inside the IP length, 18 of padding: too few for ports.
    let mut bytes = ethernet(0x0800, &ipv4(17, &[0x12, 0x34]));
    bytes.extend([0xff; 18]);
    let packet = parse(&bytes).unwrap();
    assert_eq!(flow(&packet), (17, 0, 0));
    assert_eq!(
        (packet.ip_length_bytes, packet.frame_length_bytes),
        (22, 54)
    );
}
