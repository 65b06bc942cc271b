// SPDX-License-Identifier: Apache-2.0
//! The rules of `docs/semantics.md`: one hand-made frame per sentence.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fragments;
mod inputs;
mod ip;
mod link;
mod telemetry;
mod telemetry_faults;
mod transport;
mod tunnels;

use crate::build;
use crate::build::frame_of;
use turboflow_packet::{LinkType, PARSED_INPUTS, Parser, ParserConfig, Rejected, TunnelSet};
use turboflow_record::{InputValues, Packet};

/// The usual inner packet: IPv4, UDP from port 53 to 5353.
fn inner() -> Vec<u8> {
    let mut datagram = build::ipv4(17, &build::udp(53, 5353, b"inner"));
    datagram[12..16].copy_from_slice(&[10, 0, 0, 1]);
    datagram[16..20].copy_from_slice(&[10, 0, 0, 2]);
    build::with_checksum(datagram)
}

fn parse_as(link_type: LinkType, bytes: &[u8]) -> Result<Packet, Rejected> {
    Parser::new(ParserConfig::default()).parse(&frame_of(bytes, link_type))
}

fn parse(bytes: &[u8]) -> Result<Packet, Rejected> {
    parse_as(LinkType::Ethernet, bytes)
}

/// Protocol, source port, destination port.
fn flow(packet: &Packet) -> (u8, u16, u16) {
    let tuple = &packet.tuple;
    (
        tuple.protocol(),
        tuple.source_port(),
        tuple.destination_port(),
    )
}

fn flow_of(bytes: &[u8]) -> (u8, u16, u16) {
    flow(&parse(bytes).unwrap())
}

/// The packet and all inputs that a capture file can provide, with `decapsulate` applied.
fn values_of(bytes: &[u8], decapsulate: TunnelSet) -> (Packet, InputValues) {
    let needs = PARSED_INPUTS;
    let mut parser = Parser::new(ParserConfig {
        decapsulate,
        needs,
        ..Default::default()
    });
    let mut values = InputValues::default();
    let frame = frame_of(bytes, LinkType::Ethernet);
    let packet = parser.parse_with_inputs(&frame, &mut values).unwrap();
    assert_eq!(parser.parse(&frame), Ok(packet), "both entry points agree");
    (packet, values)
}
