// SPDX-License-Identifier: Apache-2.0
//! Comparison with etherparse, an independent parser, on generated and mutated frames. [`Excuse`]
//! lists the accepted differences; each is checked against the frame.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::generate;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Mutex;

use crate::build::frame_of;
use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice};
use proptest::prelude::*;
use proptest::test_runner::{FileFailurePersistence, TestRunner};
use turboflow_packet::{LinkType, Parser, ParserConfig, Rejected};
use turboflow_record::Packet;

/// Why the results may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Excuse {
    /// etherparse supports at most three tags, and neither MPLS, PPPoE nor LLC/SNAP.
    LinkLayerItDoesNotRead,
    /// etherparse takes the version from the nibble and ignores the EtherType.
    VersionNibble,
    /// The lax parser of etherparse treats an impossible IPv4 total length as missing.
    TotalLength,
    /// etherparse follows AH in IPv4 as in IPv6. TurboFlow treats AH as the protocol.
    AuthenticationInIpv4,
    /// etherparse stops at a hop-by-hop header that is not the first, or at an invalid AH length.
    ExtensionOrder,
    /// etherparse continues after the fragment header of a later fragment.
    LaterFragment,
    /// etherparse reads an IPv6 payload length of 0 as "to the end of the slice".
    PayloadLengthZero,
    /// etherparse continues after the SecTAG of an unencrypted MACsec frame. TurboFlow treats it as
    /// an EtherType other than IP.
    Macsec,
}

/// Whether both parsers agree (`Ok`) or differ for a verified reason (`Err`).
fn compare(bytes: &[u8]) -> Result<(), Excuse> {
    let ours = Parser::new(ParserConfig::default()).parse(&frame_of(bytes, LinkType::Ethernet));
    let theirs = LaxSlicedPacket::from_ethernet(bytes).ok();
    let net = theirs.as_ref().and_then(|theirs| theirs.net.as_ref());
    match (ours, net) {
        (Err(_), None | Some(LaxNetSlice::Arp(_))) => Ok(()),
        (Ok(_), None | Some(LaxNetSlice::Arp(_))) => {
            let (tags, ether_type) = behind_tags(bytes);
            assert!(
                tags > 3 || ![0x0800, 0x86dd].contains(&ether_type),
                "{bytes:02x?}"
            );
            Err(Excuse::LinkLayerItDoesNotRead)
        }
        (Err(Rejected::VersionMismatch | Rejected::NotIpv6), Some(_)) => Err(Excuse::VersionNibble),
        (Err(Rejected::TotalLengthTooSmall), Some(LaxNetSlice::Ipv4(_))) => {
            Err(Excuse::TotalLength)
        }
        (Err(Rejected::OtherEtherType), Some(_)) if behind_tags(bytes).1 == 0x88e5 => {
            Err(Excuse::Macsec)
        }
        (Err(reason), Some(_)) => panic!("only etherparse reads ({reason:?}) {bytes:02x?}"),
        (Ok(packet), Some(net)) => {
            let theirs = theirs.as_ref().expect("net is part of it");
            match net {
                LaxNetSlice::Ipv4(ip) => compare_v4(&packet, ip)?,
                LaxNetSlice::Ipv6(ip) => compare_v6(&packet, ip, theirs)?,
                LaxNetSlice::Arp(_) => unreachable!("matched above"),
            }
            compare_transport(&packet, theirs.transport.as_ref(), bytes);
            Ok(())
        }
    }
}

fn behind_tags(bytes: &[u8]) -> (u32, u16) {
    let mut tags = 0;
    for at in (12..).step_by(4) {
        let Some(&[high, low]) = bytes.get(at..).and_then(|rest| rest.first_chunk()) else {
            break;
        };
        match u16::from_be_bytes([high, low]) {
            0x8100 | 0x88a8 | 0x9100 => tags += 1,
            ether_type => return (tags, ether_type),
        }
    }
    (tags, 0)
}

fn compare_v4(packet: &Packet, theirs: &etherparse::LaxIpv4Slice<'_>) -> Result<(), Excuse> {
    let header = theirs.header();
    assert_eq!(packet.tuple.source(), IpAddr::V4(header.source_addr()));
    assert_eq!(
        packet.tuple.destination(),
        IpAddr::V4(header.destination_addr())
    );
    assert_eq!(packet.tuple.protocol(), header.protocol().0);
    assert_eq!(packet.ttl, header.ttl());
    assert_eq!(packet.tos, header.dcp().value() << 2 | header.ecn().value());
    if header.total_len() != 0 {
        assert_eq!(packet.ip_length_bytes, u32::from(header.total_len()));
    }
    if header.protocol().0 == 51 {
        return Err(Excuse::AuthenticationInIpv4);
    }
    Ok(())
}

fn compare_v6(
    packet: &Packet,
    ip: &etherparse::LaxIpv6Slice<'_>,
    theirs: &LaxSlicedPacket<'_>,
) -> Result<(), Excuse> {
    let header = ip.header();
    assert_eq!(packet.tuple.source(), IpAddr::V6(header.source_addr()));
    assert_eq!(
        packet.tuple.destination(),
        IpAddr::V6(header.destination_addr())
    );
    assert_eq!(packet.ttl, header.hop_limit());
    assert_eq!(packet.tos, header.traffic_class());
    if header.payload_length() == 0 {
        return Err(Excuse::PayloadLengthZero);
    }
    assert_eq!(
        packet.ip_length_bytes,
        40 + u32::from(header.payload_length())
    );
    if let Some((etherparse::err::packet::SliceError::Ipv6Exts(_), _)) = theirs.stop_err {
        return Err(Excuse::ExtensionOrder);
    }
    if ip.is_payload_fragmented() && packet.tuple.source_port() == 0 {
        return Err(Excuse::LaterFragment);
    }
    // At a truncated extension header, etherparse reports that header, and TurboFlow the next one,
    // which it announces.
    if theirs.stop_err.is_none() {
        assert_eq!(packet.tuple.protocol(), ip.payload().ip_number.0);
    }
    Ok(())
}

fn compare_transport(packet: &Packet, theirs: Option<&TransportSlice<'_>>, bytes: &[u8]) {
    let ports = (packet.tuple.source_port(), packet.tuple.destination_port());
    match theirs {
        Some(TransportSlice::Tcp(tcp)) => {
            assert_eq!(
                ports,
                (tcp.source_port(), tcp.destination_port()),
                "{bytes:02x?}"
            );
            let bits = [
                tcp.fin(),
                tcp.syn(),
                tcp.rst(),
                tcp.psh(),
                tcp.ack(),
                tcp.urg(),
                tcp.ece(),
                tcp.cwr(),
                tcp.ns(),
            ];
            let flags = (0..)
                .zip(bits)
                .map(|(bit, set)| u16::from(set) << bit)
                .sum::<u16>();
            assert_eq!(packet.tcp_flags & 0x1ff, flags);
        }
        Some(TransportSlice::Udp(udp)) => {
            assert_eq!(
                ports,
                (udp.source_port(), udp.destination_port()),
                "{bytes:02x?}"
            );
            assert_eq!(packet.tcp_flags, 0);
        }
        Some(_) => assert_eq!((ports, packet.tcp_flags), ((0, 0), 0)),
        None => {}
    }
}

#[test]
fn agrees_with_etherparse_except_for_listed_reasons() {
    let tally: Mutex<BTreeMap<Option<Excuse>, u32>> = Mutex::default();
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 30_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        source_file: Some(file!()),
        ..ProptestConfig::default()
    });
    let outcome = runner.run(&generate::frames(), |bytes| {
        let excuse = compare(&bytes).err();
        *tally.lock().unwrap().entry(excuse).or_default() += 1;
        Ok(())
    });
    let tally = tally.into_inner().unwrap();
    eprintln!("frames by excuse: {tally:?}");
    outcome.unwrap();
    assert!(
        tally[&None] > 15_000,
        "most frames are compared without an excuse"
    );
}

#[test]
fn macsec_frames_are_not_ip() {
    // A tag, an unencrypted SecTAG, an 802.1ad tag, IPv4: found by a random frame.
    let mut bytes = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 0x91, 0, 0x89, 0xb1];
    bytes.extend([0x88, 0xe5, 0x43, 0x66, 0x88, 0xa8, 0xb6, 0x46, 0x08, 0x00]);
    bytes.extend([0x45, 0xb8, 0, 0x3b, 0x12, 0x34, 0, 0, 0x3d, 6, 0, 0]);
    bytes.extend([192, 0, 2, 1, 198, 51, 100, 2]);
    bytes.extend([4; 40]);
    assert_eq!(compare(&bytes), Err(Excuse::Macsec));
}
