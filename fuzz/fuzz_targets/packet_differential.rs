// SPDX-License-Identifier: Apache-2.0
//! Compares the parser with etherparse on Ethernet frames: they agree on every frame that both
//! accept. `crates/packet/tests/differential.rs` lists the frames that only one accepts, and why.

#![no_main]

use std::net::IpAddr;

use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice};
use libfuzzer_sys::fuzz_target;
use turboflow_packet::{Frame, LinkType, Parser, ParserConfig};
use turboflow_record::Packet;

fuzz_target!(|bytes: &[u8]| {
    let frame = Frame {
        bytes,
        wire_length_bytes: bytes.len() as u32,
        timestamp_ns: 0,
        interface: 0,
        link_type: LinkType::Ethernet,
    };
    let Ok(ours) = Parser::new(ParserConfig::default()).parse(&frame) else {
        return;
    };
    let Ok(theirs) = LaxSlicedPacket::from_ethernet(bytes) else {
        return;
    };
    let same_protocol = match &theirs.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            let header = ip.header();
            same_addresses(
                &ours,
                header.source_addr().into(),
                header.destination_addr().into(),
            );
            assert_eq!(ours.tuple.protocol(), header.protocol().0);
            assert_eq!(ours.ttl, header.ttl());
            // etherparse skips AH in IPv4.
            header.protocol().0 != 51
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            let header = ip.header();
            same_addresses(
                &ours,
                header.source_addr().into(),
                header.destination_addr().into(),
            );
            assert_eq!(ours.ttl, header.hop_limit());
            // etherparse reads 0 as "to the end of the slice".
            header.payload_length() != 0
        }
        _ => return,
    };
    if !same_protocol {
        return;
    }
    let ports = (ours.tuple.source_port(), ours.tuple.destination_port());
    match &theirs.transport {
        Some(TransportSlice::Tcp(tcp)) => {
            assert_eq!(ports, (tcp.source_port(), tcp.destination_port()));
        }
        Some(TransportSlice::Udp(udp)) => {
            assert_eq!(ports, (udp.source_port(), udp.destination_port()));
        }
        Some(_) => assert_eq!(ports, (0, 0)),
        None => {}
    }
});

fn same_addresses(ours: &Packet, source: IpAddr, destination: IpAddr) {
    assert_eq!(ours.tuple.source(), source);
    assert_eq!(ours.tuple.destination(), destination);
}
