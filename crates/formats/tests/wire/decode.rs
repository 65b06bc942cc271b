// SPDX-License-Identifier: Apache-2.0
//! Encodes records as messages, and decodes them with an independent decoder.

use netflow_parser::variable_versions::{ipfix, v9};
use netflow_parser::{FieldValue, NetflowPacket, NetflowParser};
use turboflow_formats::wire::{
    DATAGRAM_BYTES, Message, Protocol, Refresh, Session, WireOptions, encoder,
};
use turboflow_merge::Layout;
use turboflow_record::{Definition, ElementOptions, Schema, TimeUnit};

use crate::support::{Owned, batch};

/// Export time: shortly after the times of the records.
pub(crate) const NOW_MS: u64 = 1_700_000_100_000;
pub(crate) const T0_NS: u64 = 1_700_000_000_000_000_000;

/// The columns of a definition's records.
pub(crate) fn schema_of(definition: &Definition, biflow: bool) -> Schema {
    Layout::compile(definition, biflow)
        .unwrap()
        .schema()
        .clone()
}

pub(crate) fn options(definition: &Definition, time: TimeUnit) -> WireOptions {
    let elements = ElementOptions {
        time,
        ..ElementOptions::default()
    };
    WireOptions {
        elements: definition.elements(false, &elements),
        domain: 7,
        ..WireOptions::default()
    }
}

/// The messages of some records, and the number of records that could not be encoded.
pub(crate) fn messages(
    protocol: Protocol,
    schema: &Schema,
    options: &WireOptions,
    rows: &[Vec<Owned>],
) -> (Vec<Message>, u64) {
    let mut units = Vec::new();
    let mut encoder = encoder(protocol, schema, options, "test").unwrap();
    for rows in rows.chunks(40) {
        encoder.encode(&batch(schema, rows), &mut |unit| units.push(unit));
    }
    encoder.flush(&mut |unit| units.push(unit));
    let mut session = Session::new(protocol, options, Refresh::DATAGRAMS);
    let mut messages = Vec::new();
    for unit in &units {
        session.unit(unit, NOW_MS, &mut |message| messages.push(message));
    }
    session.finish(NOW_MS, &mut |message| messages.push(message));
    for message in &mut messages {
        send(&mut session, message);
    }
    (messages, encoder.unexportable().total())
}

/// Gives a message its sequence number and counts it, as sending does.
pub(crate) fn send(session: &mut Session, message: &mut Message) {
    session.number(message);
    session.count_sent(message);
}

/// The octets of a value.
pub(crate) fn octets(value: &FieldValue) -> Vec<u8> {
    let mut octets = Vec::new();
    value.write_be_bytes(&mut octets).unwrap();
    octets
}

/// The flow records in messages, each as the octets of its fields. Also checks the headers.
pub(crate) fn decode(messages: &[Message]) -> Vec<Vec<Vec<u8>>> {
    let mut parser = NetflowParser::default();
    let (mut flows, mut sequence) = (Vec::new(), 0);
    for message in messages {
        assert!(
            message.bytes.len() <= DATAGRAM_BYTES,
            "{}",
            message.bytes.len()
        );
        let parsed = parser.parse_bytes(&message.bytes);
        assert!(parsed.error.is_none(), "{:?}", parsed.error);
        assert_eq!(parsed.packets.len(), 1);
        match &parsed.packets[0] {
            NetflowPacket::IPFix(packet) => {
                assert_eq!(packet.header.sequence_number, sequence);
                assert_eq!(packet.header.observation_domain_id, 7);
                sequence += ipfix_records(packet, &mut flows);
            }
            NetflowPacket::V9(packet) => {
                assert_eq!(packet.header.sequence_number, sequence);
                v9_records(packet, &mut flows);
                sequence += 1;
            }
            NetflowPacket::V5(packet) => {
                assert_eq!(packet.header.flow_sequence, sequence);
                assert_eq!(
                    (packet.header.engine_id, packet.header.sampling_interval),
                    (7, 1)
                );
                sequence += u32::from(packet.header.count);
            }
            other => panic!("{other:?}"),
        }
    }
    flows
}

pub(crate) fn ipfix_records(packet: &ipfix::IPFix, flows: &mut Vec<Vec<Vec<u8>>>) -> u32 {
    let mut records = 0;
    for set in &packet.flowsets {
        match &set.body {
            ipfix::FlowSetBody::Data(data) => {
                records += data.fields.len() as u32;
                let of = |record: &Vec<_>| record.iter().map(|(_, value)| octets(value)).collect();
                flows.extend(data.fields.iter().map(of));
            }
            ipfix::FlowSetBody::OptionsData(data) => records += data.fields.len() as u32,
            ipfix::FlowSetBody::NoTemplate(_) => panic!("data before its template"),
            _ => {}
        }
    }
    records
}

pub(crate) fn v9_records(packet: &v9::V9, flows: &mut Vec<Vec<Vec<u8>>>) {
    let boot_ms = u64::from(packet.header.unix_secs) * 1_000 - u64::from(packet.header.sys_up_time);
    for set in &packet.flowsets {
        match &set.body {
            v9::FlowSetBody::Data(data) => {
                for record in &data.fields {
                    let mut fields: Vec<_> =
                        record.iter().map(|(_, value)| octets(value)).collect();
                    // Converts uptimes to times, so that all protocols can be compared.
                    for field in &mut fields[7..9] {
                        let uptime_ms = number(field);
                        *field = (boot_ms + uptime_ms).to_be_bytes().to_vec();
                    }
                    flows.push(fields);
                }
            }
            v9::FlowSetBody::NoTemplate(_) => panic!("data before its template"),
            _ => {}
        }
    }
}

pub(crate) fn number(octets: &[u8]) -> u64 {
    octets
        .iter()
        .fold(0, |number, octet| number << 8 | u64::from(*octet))
}
