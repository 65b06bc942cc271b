// SPDX-License-Identifier: Apache-2.0
//! What goes on the wire, read by a decoder that others wrote (the crate `netflow_parser`).
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

mod support;

use std::collections::BTreeMap;
use std::net::IpAddr;

use netflow_parser::variable_versions::{ipfix, v9};
use netflow_parser::{FieldValue, NetflowPacket, NetflowParser};
use proptest::prelude::*;
use support::{Owned, batch, default_schema};
use turboflow_export::wire::{
    DATAGRAM_BYTES, Message, Protocol, Refresh, Session, WireOptions, encoder,
};
use turboflow_export::{Format, to_writer};
use turboflow_record::{
    Definition, ElementOptions, Feature, Input, KeyField, Layout, Op, Schema, TimeUnit,
};

/// When messages are sent: shortly after the records' times.
const NOW_MS: u64 = 1_700_000_100_000;
const T0_NS: u64 = 1_700_000_000_000_000_000;

fn options(definition: &Definition, time: TimeUnit) -> WireOptions {
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

/// The messages of records, and how many records no message holds.
fn messages(
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

/// What a message goes through on its way out.
fn send(session: &mut Session, message: &mut Message) {
    session.number(message);
    session.count_sent(message);
}

/// A value's octets.
fn octets(value: &FieldValue) -> Vec<u8> {
    let mut octets = Vec::new();
    value.write_be_bytes(&mut octets).unwrap();
    octets
}

/// The flow records in messages: of each the octets of its fields. Checks headers on the way.
fn decode(messages: &[Message]) -> Vec<Vec<Vec<u8>>> {
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

fn ipfix_records(packet: &ipfix::IPFix, flows: &mut Vec<Vec<Vec<u8>>>) -> u32 {
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

fn v9_records(packet: &v9::V9, flows: &mut Vec<Vec<Vec<u8>>>) {
    let boot_ms = u64::from(packet.header.unix_secs) * 1_000 - u64::from(packet.header.sys_up_time);
    for set in &packet.flowsets {
        match &set.body {
            v9::FlowSetBody::Data(data) => {
                for record in &data.fields {
                    let mut fields: Vec<_> =
                        record.iter().map(|(_, value)| octets(value)).collect();
                    // Uptime becomes time, so that all protocols compare alike.
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

fn number(octets: &[u8]) -> u64 {
    octets
        .iter()
        .fold(0, |number, octet| number << 8 | u64::from(*octet))
}

/// Records of the default definition.
fn default_rows() -> impl Strategy<Value = Vec<Vec<Owned>>> {
    let addresses = prop_oneof![
        any::<[[u8; 4]; 2]>().prop_map(|pair| pair.map(IpAddr::from)),
        any::<[[u16; 8]; 2]>().prop_map(|pair| pair.map(IpAddr::from)),
    ];
    let times = (0..40_000_000_000_u64, 0..50_000_000_000_u64);
    let numbers = (
        any::<[u16; 2]>(),
        any::<u8>(),
        any::<[u64; 2]>(),
        any::<[u32; 2]>(),
    );
    let row = (
        addresses,
        times,
        numbers,
        any::<u16>(),
        any::<[u8; 3]>(),
        1..6_u64,
    );
    let row = row.prop_map(
        |(addresses, times, (ports, protocol, counts, lengths), flags, ttl, end)| {
            let first = T0_NS + times.0;
            let mut row = addresses.map(Owned::Address).to_vec();
            row.extend(ports.map(|port| Owned::Unsigned(port.into())));
            row.push(Owned::Unsigned(protocol.into()));
            row.extend(counts.map(Owned::Unsigned));
            row.extend([first, first + times.1].map(Owned::Unsigned));
            row.push(Owned::Unsigned((flags & 0xfff).into()));
            row.extend(lengths.map(|length| Owned::Unsigned(length.into())));
            row.extend(ttl.map(|value| Owned::Unsigned(value.into())));
            row.push(Owned::Unsigned(end));
            row
        },
    );
    prop::collection::vec(row, 0..200)
}

/// What a record's fields should read as, `time` over nanoseconds.
fn expected(row: &[Owned], flags_mask: u64, time: impl Fn(u64) -> u64) -> Vec<u64> {
    let numbers = row.iter().enumerate().map(|(index, value)| match value {
        Owned::Address(IpAddr::V4(address)) => u64::from(u32::from(*address)),
        // The low half of it tells it apart.
        Owned::Address(IpAddr::V6(address)) => u128::from(*address) as u64,
        Owned::Unsigned(ns) if index == 7 || index == 8 => time(*ns),
        Owned::Unsigned(flags) if index == 9 => flags & flags_mask,
        Owned::Unsigned(number) => *number,
        other => panic!("{other:?}"),
    });
    numbers.collect()
}

fn compare(protocol: Protocol, rows: &[Vec<Owned>], flags_mask: u64) {
    let (schema, definition) = (default_schema(), Definition::default());
    let options = options(&definition, TimeUnit::Milliseconds);
    let (messages, lost) = messages(protocol, &schema, &options, rows);
    assert_eq!(lost, 0);
    let flows = decode(&messages);
    let read: Vec<Vec<u64>> = flows
        .iter()
        .map(|flow| flow.iter().map(|field| number(field)).collect())
        .collect();
    let wanted: Vec<_> = rows
        .iter()
        .map(|row| expected(row, flags_mask, |ns| ns / 1_000_000))
        .collect();
    assert_eq!(read, wanted);
    let sent: u64 = messages.iter().map(|message| message.flows).sum();
    assert_eq!(sent, rows.len() as u64);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn ipfix_reads_back(rows in default_rows()) {
        // The decoder's type for flags has nine of the twelve bits that are sent.
        compare(Protocol::Ipfix, &rows, 0x1ff);
    }

    #[test]
    fn netflow9_reads_back(rows in default_rows()) {
        compare(Protocol::Netflow9, &rows, 0xff);
    }

    #[test]
    fn netflow5_adds_up_and_counts_what_it_cannot_tell(rows in default_rows()) {
        let rows: Vec<_> = rows.into_iter().map(with_plausible_counts).collect();
        let options = options(&Definition::default(), TimeUnit::Milliseconds);
        let (messages, lost) = messages(Protocol::Netflow5, &default_schema(), &options, &rows);
        decode(&messages);
        let v4 = |row: &&Vec<Owned>| matches!(row[0], Owned::Address(IpAddr::V4(_)));
        prop_assert_eq!(lost as usize, rows.iter().filter(|row| !v4(row)).count());
        let sum = |index: usize| -> u64 {
            rows.iter().filter(v4).map(|row| expected(row, 0xff, |ns| ns)[index]).sum()
        };
        let (mut packets, mut bytes, mut parser) = (0, 0, NetflowParser::default());
        for message in &messages {
            for packet in parser.parse_bytes(&message.bytes).packets {
                let NetflowPacket::V5(packet) = packet else { panic!("not v5") };
                packets += packet.flowsets.iter().map(|flow| u64::from(flow.d_pkts)).sum::<u64>();
                bytes += packet.flowsets.iter().map(|flow| u64::from(flow.d_octets)).sum::<u64>();
            }
        }
        prop_assert_eq!((packets, bytes), (sum(5), sum(6)));
    }
}

/// Counts that need splitting now and then, and not hundreds of records each.
fn with_plausible_counts(mut row: Vec<Owned>) -> Vec<Owned> {
    let [Owned::Unsigned(packets), Owned::Unsigned(bytes)] = &mut row[5..7] else {
        panic!("counts")
    };
    *packets = *packets % (1 << 34) + 8;
    *bytes %= 1 << 34;
    row
}

#[test]
fn times_are_exact_in_the_unit_asked_for() {
    let ns = [T0_NS + 123_456_789, T0_NS + 987_654_321];
    let row = |ns: [u64; 2]| {
        let line = format!(
            "192.0.2.1 192.0.2.2 1 2 6 1 40 {} {} 2 40 40 64 64 0 4",
            ns[0], ns[1]
        );
        line.split(' ')
            .enumerate()
            .map(|(index, text)| match index {
                0 | 1 => Owned::Address(text.parse().unwrap()),
                _ => Owned::Unsigned(text.parse().unwrap()),
            })
            .collect::<Vec<_>>()
    };
    for (time, unit_ns) in [(TimeUnit::Microseconds, 1_000), (TimeUnit::Nanoseconds, 1)] {
        let options = options(&Definition::default(), time);
        let (messages, _) = messages(Protocol::Ipfix, &default_schema(), &options, &[row(ns)]);
        // The raw octets: the decoder's own idea of NTP's format is not at stake here.
        let data = messages.iter().find(|message| message.flows == 1).unwrap();
        let at = 16 + 4 + 8 + 4 + 1 + 16;
        for (place, ns) in [(at, ns[0]), (at + 8, ns[1])] {
            let ntp = number(&data.bytes[place..place + 8]);
            let seconds = (ntp >> 32) - 2_208_988_800;
            let units = ((ntp & 0xffff_ffff) * (1_000_000_000 / unit_ns)) >> 32;
            assert_eq!(seconds * 1_000_000_000 / unit_ns + units, ns / unit_ns);
        }
    }
}

/// A definition with absent values and lists.
fn rich() -> Definition {
    let feature = Feature::new;
    Definition {
        key: vec![KeyField::SourceAddress, KeyField::Input(Input::Vlan)],
        features: vec![
            feature("packets", Op::Count, None),
            feature("window", Op::Max, Some(Input::TcpWindow)),
            feature("mean", Op::Mean, Some(Input::IpLength)),
            feature("lengths", Op::List { k: 200 }, Some(Input::IpLength)),
        ],
    }
}

fn rich_row(address: &str, vlan: Option<u64>, window: Option<u64>, list: Vec<u64>) -> Vec<Owned> {
    let optional = |value: Option<u64>| value.map_or(Owned::Absent, Owned::Unsigned);
    vec![
        Owned::Address(address.parse().unwrap()),
        optional(vlan),
        Owned::Unsigned(3),
        optional(window),
        Owned::Float(1.5),
        Owned::List(list),
        Owned::Unsigned(4),
    ]
}

#[test]
fn absent_values_have_no_field_and_lists_are_basic_lists() {
    let definition = rich();
    let schema = Layout::compile(&definition, false)
        .unwrap()
        .schema()
        .clone();
    let options = options(&definition, TimeUnit::Milliseconds);
    let rows = [
        rich_row("192.0.2.1", Some(100), None, vec![40, 1500]),
        rich_row("2001:db8::1", None, Some(65_535), vec![]),
        rich_row("192.0.2.2", Some(7), None, vec![70_000; 200]),
    ];
    let (messages, lost) = messages(Protocol::Ipfix, &schema, &options, &rows);
    assert_eq!(lost, 0);
    let flows = decode(&messages);
    let lengths: Vec<Vec<usize>> = flows
        .iter()
        .map(|flow| flow.iter().map(Vec::len).collect())
        .collect();
    // Address, VLAN, packets, mean, list, end reason; address, packets, window, ...
    assert_eq!(lengths[0], [4, 2, 8, 8, 9 + 4, 1]);
    assert_eq!(lengths[1], [16, 8, 2, 8, 9, 1]);
    assert_eq!(lengths[2], [4, 2, 8, 8, 9 + 800, 1]);
    let list = &flows[0][4];
    assert_eq!(list[0], 4, "ordered");
    assert_eq!(list[3..5], [0, 2], "in two octets each");
    assert_eq!(list[5..9], 32_473_u32.to_be_bytes());
    assert_eq!(list[9..], [0, 40, 5, 220]);
}

/// Type information (RFC 5610) in the messages: of each element its type, semantics and unit.
fn type_information(messages: &[Message]) -> BTreeMap<u16, (u8, u8, u16)> {
    let two = |bytes: &[u8], at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let mut found = BTreeMap::new();
    for message in messages {
        let mut sets = &message.bytes[16..];
        while sets.len() > 4 {
            let (set, rest) = sets.split_at(usize::from(two(sets, 2)));
            let mut records = if two(set, 0) == 259 { &set[4..] } else { &[] };
            while !records.is_empty() {
                found.insert(two(records, 0), (records[6], records[7], two(records, 8)));
                let name_bytes = usize::from(records[10]);
                let description_bytes = usize::from(records[11 + name_bytes]);
                records = &records[12 + name_bytes + description_bytes..];
            }
            sets = rest;
        }
    }
    found
}

#[test]
fn type_information_has_the_numbers_of_the_registry() {
    let feature = Feature::new;
    let definition = Definition {
        key: vec![KeyField::SourceAddress],
        features: vec![
            feature(
                "sizes",
                Op::Histogram { edges: vec![9] },
                Some(Input::IpLength),
            ),
            feature("mean", Op::Mean, Some(Input::IpLength)),
            feature("hops", Op::Mean, Some(Input::Ttl)),
            feature("duration", Op::Duration, None),
            feature("rate", Op::Rate, None),
        ],
    };
    let schema = Layout::compile(&definition, false)
        .unwrap()
        .schema()
        .clone();
    let options = options(&definition, TimeUnit::Milliseconds);
    let (messages, _) = messages(Protocol::Ipfix, &schema, &options, &[]);
    let types = type_information(&messages);
    let of = |column: usize| types[&options.elements[column].v4.id];
    // Types, semantics and units as IANA's registries of IPFIX number them.
    assert_eq!(of(1), (4, 3, 3), "unsigned64, deltaCounter, packets");
    assert_eq!(of(2), (10, 1, 2), "float64, quantity, octets");
    assert_eq!(of(3), (10, 1, 11), "float64, quantity, hops");
    assert_eq!(of(4), (4, 1, 8), "unsigned64, quantity, nanoseconds");
    assert_eq!(of(5), (10, 1, 0), "float64, quantity, none");
}

#[test]
fn a_record_that_no_message_holds_is_counted() {
    let definition = rich();
    let schema = Layout::compile(&definition, false)
        .unwrap()
        .schema()
        .clone();
    let options = options(&definition, TimeUnit::Milliseconds);
    let rows = [
        rich_row("192.0.2.1", None, None, vec![u64::MAX; 180]),
        rich_row("192.0.2.1", None, None, vec![1]),
    ];
    let (messages, lost) = messages(Protocol::Ipfix, &schema, &options, &rows);
    assert_eq!((lost, decode(&messages).len()), (1, 1));
}

#[test]
fn templates_never_outgrow_their_bound() {
    let inputs = [
        Input::Vlan,
        Input::InnerVlan,
        Input::VlanPriority,
        Input::MplsLabel,
        Input::Vni,
        Input::Teid,
        Input::GreKey,
        Input::TcpFlags,
    ];
    let key: Vec<_> = inputs.into_iter().map(KeyField::Input).collect();
    let definition = Definition {
        key,
        features: vec![Feature::new("packets", Op::Count, None)],
    };
    let schema = Layout::compile(&definition, false)
        .unwrap()
        .schema()
        .clone();
    let options = options(&definition, TimeUnit::Milliseconds);
    let rows: Vec<_> = (0..256_u64)
        .map(|bits| {
            let mut row: Vec<_> = (0..8)
                .map(|bit| {
                    if bits >> bit & 1 == 1 {
                        Owned::Unsigned(bit)
                    } else {
                        Owned::Absent
                    }
                })
                .collect();
            row.extend([Owned::Unsigned(bits), Owned::Unsigned(1)]);
            row
        })
        .collect();
    let (messages, lost) = messages(Protocol::Ipfix, &schema, &options, &rows);
    let flows = decode(&messages);
    assert_eq!((lost, flows.len()), (0, 256));
    for (bits, flow) in flows.iter().enumerate() {
        assert_eq!(
            number(&flow[flow.len() - 2]),
            bits as u64,
            "nothing is lost"
        );
    }
    let fields: std::collections::BTreeSet<_> = flows[64..].iter().map(Vec::len).collect();
    assert_eq!(fields.len(), 1, "one template serves all the rest");
}

/// A biflow whose other direction may have no packets, with enough values that may be absent for
/// more shapes than get a template of their own.
fn biflow_with_times() -> Definition {
    let inputs = [
        Input::Vlan,
        Input::InnerVlan,
        Input::VlanPriority,
        Input::MplsLabel,
        Input::Vni,
        Input::Teid,
        Input::GreKey,
    ];
    let mut key = vec![KeyField::SourceAddress, KeyField::DestinationAddress];
    key.extend(inputs.into_iter().map(KeyField::Input));
    Definition {
        key,
        features: vec![
            Feature::new("start", Op::Min, Some(Input::Timestamp)),
            Feature::new("end", Op::Max, Some(Input::Timestamp)),
        ],
    }
}

#[test]
fn times_that_a_biflow_lacks_stay_absent_past_the_bound() {
    let definition = biflow_with_times();
    let schema = Layout::compile(&definition, true).unwrap().schema().clone();
    assert!(schema[11].nullable && schema[12].nullable, "{schema:?}");
    let row = |bits: u64| {
        let is_there = |bit: u64| bits >> bit & 1 == 1;
        let optional = |bit, value| {
            if is_there(bit) {
                Owned::Unsigned(value)
            } else {
                Owned::Absent
            }
        };
        let mut row = vec![Owned::Address([192, 0, 2, 1].into()); 2];
        row.extend((0..7).map(|bit| optional(bit, bit)));
        row.extend([Owned::Unsigned(T0_NS), Owned::Unsigned(T0_NS + 1_000_000)]);
        row.extend([
            optional(0, T0_NS + 7_000_000),
            optional(0, T0_NS + 9_000_000),
        ]);
        row.push(Owned::Unsigned(4));
        row
    };
    let rows: Vec<_> = (0..128).map(row).collect();
    for time in [
        TimeUnit::Milliseconds,
        TimeUnit::Microseconds,
        TimeUnit::Nanoseconds,
    ] {
        let options = WireOptions {
            elements: definition.elements(
                true,
                &ElementOptions {
                    time,
                    ..ElementOptions::default()
                },
            ),
            ..options(&definition, time)
        };
        let (messages, lost) = messages(Protocol::Ipfix, &schema, &options, &rows);
        let flows = decode(&messages);
        assert_eq!((lost, flows.len()), (0, 128));
        for (bits, flow) in flows.iter().enumerate().skip(64) {
            // A basicList of none or one: semantic, element, length and enterprise are 9 octets.
            let value = |column: usize| &flow[column][9..];
            let seconds = |column| match time {
                TimeUnit::Milliseconds => number(value(column)) / 1_000,
                _ => (number(value(column)) >> 32) - 2_208_988_800,
            };
            for column in [11, 12] {
                assert_eq!(value(column).len(), if bits & 1 == 1 { 8 } else { 0 });
                assert!(bits & 1 == 0 || seconds(column) == T0_NS / 1_000_000_000);
            }
        }
    }
}

#[test]
fn sessions_begin_with_templates_and_repeat_them_in_time() {
    let (schema, definition) = (default_schema(), Definition::default());
    let options = options(&definition, TimeUnit::Milliseconds);
    let mut session = Session::new(Protocol::Ipfix, &options, Refresh::DATAGRAMS);
    let mut encoder = encoder(Protocol::Ipfix, &schema, &options, "test").unwrap();
    let line = "192.0.2.1 192.0.2.2 1 2 6 1 40 1 2 2 40 40 64 64 0 4";
    let mut units = Vec::new();
    encoder.encode(&support::default_batch(&[line]), &mut |unit| {
        units.push(unit)
    });
    encoder.flush(&mut |unit| units.push(unit));
    let mut sent = Vec::new();
    let count = |sent: &mut Vec<Message>| std::mem::take(sent).len();
    for unit in &units {
        session.unit(unit, 1_000, &mut |message| sent.push(message));
    }
    assert_eq!(
        sent[0].bytes[16..18],
        [0, 2],
        "the first set is one of templates"
    );
    assert_eq!(count(&mut sent), 2);
    session.tick(30_999, &mut |message| sent.push(message));
    assert_eq!(count(&mut sent), 0);
    session.tick(31_000, &mut |message| sent.push(message));
    assert_eq!(sent[0].bytes[16..18], [0, 2]);
    send(&mut session, &mut sent[0]);
    assert_eq!(count(&mut sent), 1);
    session.restart();
    session.unit(&units[1], 31_500, &mut |message| sent.push(message));
    session.number(&mut sent[0]);
    assert_eq!(sent[0].bytes[8..12], [0; 4], "a new session counts from 0");
    assert_eq!(sent[0].bytes[16..18], [0, 2]);
}

#[test]
fn what_is_made_and_never_sent_leaves_no_gap() {
    let (schema, definition) = (default_schema(), Definition::default());
    let options = options(&definition, TimeUnit::Milliseconds);
    let line = "192.0.2.1 192.0.2.2 1 2 6 1 40 1 2 2 40 40 64 64 0 4";
    for (protocol, at, first, one) in [
        // Three data records of options, and one flow a message.
        (Protocol::Ipfix, 8, 3, 1),
        (Protocol::Netflow9, 12, 1, 1),
        (Protocol::Netflow5, 16, 0, 1),
    ] {
        let mut session = Session::new(protocol, &options, Refresh::DATAGRAMS);
        let mut encoder = encoder(protocol, &schema, &options, "test").unwrap();
        let mut messages = Vec::new();
        for _ in 0..3 {
            let batch = support::default_batch(&[line]);
            let mut send =
                |unit| session.unit(&unit, NOW_MS, &mut |message| messages.push(message));
            encoder.encode(&batch, &mut send);
            encoder.flush(&mut send);
        }
        let flows = messages
            .iter()
            .position(|message| message.flows > 0)
            .unwrap();
        let mut sequences = Vec::new();
        for (index, message) in messages.iter_mut().enumerate() {
            session.number(message);
            let sequence = message.bytes[at..at + 4].try_into().unwrap();
            sequences.push(u32::from_be_bytes(sequence));
            // The first message of flows is refused.
            if index != flows {
                session.count_sent(message);
            }
        }
        assert_eq!(
            sequences[flows..],
            [first, first, first + one],
            "{protocol}"
        );
    }
}

#[test]
fn what_a_protocol_cannot_hold_is_refused_with_a_reason() {
    let definition = rich();
    let schema = Layout::compile(&definition, false)
        .unwrap()
        .schema()
        .clone();
    let options = options(&definition, TimeUnit::Milliseconds);
    let refused = |protocol| {
        let error = encoder(protocol, &schema, &options, "test")
            .map(|_| ())
            .unwrap_err();
        error.to_string()
    };
    assert!(refused(Protocol::Netflow5).contains("destination address"));
    let biflow = Layout::compile(&Definition::default(), true)
        .unwrap()
        .schema()
        .clone();
    let elements = Definition::default().elements(true, &ElementOptions::default());
    let options = WireOptions {
        elements,
        ..options.clone()
    };
    let error = encoder(Protocol::Netflow9, &biflow, &options, "test")
        .map(|_| ())
        .unwrap_err();
    assert!(error.to_string().contains("use IPFIX"), "{error}");
}

#[test]
fn netflow9_refuses_records_that_look_like_padding() {
    let refusal = |features: Vec<Feature>| {
        let definition = Definition {
            key: vec![KeyField::Protocol],
            features,
        };
        let schema = Layout::compile(&definition, false)
            .unwrap()
            .schema()
            .clone();
        let options = options(&definition, TimeUnit::Milliseconds);
        encoder(Protocol::Netflow9, &schema, &options, "test")
            .err()
            .map(|error| error.to_string())
    };
    let window = || Feature::new("window", Op::Max, Some(Input::TcpWindow));
    let refused = refusal(vec![window()]).unwrap();
    assert!(refused.contains("padding"), "{refused}");
    let packets = Feature::new("packets", Op::Count, None);
    assert_eq!(refusal(vec![window(), packets]), None);
}

/// A stream that somebody reads while it is written.
#[derive(Clone, Default)]
struct Shared(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_flush_hands_over_every_record() {
    let (schema, stream) = (default_schema(), Shared::default());
    let mut writer = to_writer(
        Box::new(stream.clone()),
        Format::Ipfix,
        &schema,
        &support::default_options(),
    )
    .unwrap();
    let line = "192.0.2.1 192.0.2.2 1 2 6 1 40 1 2 2 40 40 64 64 0 4";
    let flows = |bytes: &[u8]| {
        let parsed = NetflowParser::default().parse_bytes(bytes);
        assert!(parsed.error.is_none(), "{:?}", parsed.error);
        let mut flows = Vec::new();
        for packet in &parsed.packets {
            let NetflowPacket::IPFix(packet) = packet else {
                panic!("{packet:?}")
            };
            ipfix_records(packet, &mut flows);
        }
        flows.len()
    };
    for count in 1..=3 {
        writer.write(&support::default_batch(&[line])).unwrap();
        writer.flush().unwrap();
        assert_eq!(flows(&stream.0.lock().unwrap()), count);
    }
    assert_eq!(writer.finish().unwrap().records, 3);
}

/// Why IPFIX refuses a definition.
fn ipfix_refusal(features: Vec<Feature>, biflow: bool) -> Option<String> {
    let definition = Definition {
        key: KeyField::FIVE_TUPLE.to_vec(),
        features,
    };
    let schema = Layout::compile(&definition, biflow)
        .unwrap()
        .schema()
        .clone();
    let options = WireOptions {
        elements: definition.elements(biflow, &ElementOptions::default()),
        ..WireOptions::default()
    };
    encoder(Protocol::Ipfix, &schema, &options, "test")
        .err()
        .map(|error| error.to_string())
}

#[test]
fn no_two_columns_have_one_element() {
    let sizes = |name: &str, edge| {
        Feature::new(
            name,
            Op::Histogram { edges: vec![edge] },
            Some(Input::IpLength),
        )
    };
    let refused = ipfix_refusal(vec![sizes("small", 9), sizes("large", 900)], false).unwrap();
    assert!(refused.contains("small and large"), "{refused}");
    assert_eq!(ipfix_refusal(vec![sizes("small", 9)], true), None);
}

#[test]
fn nth_over_both_directions_is_refused() {
    let nth = |per_biflow| Feature {
        per_biflow,
        ..Feature::new("second", Op::Nth { k: 2 }, Some(Input::IpLength))
    };
    let refused = ipfix_refusal(vec![nth(true)], true).unwrap();
    assert!(refused.contains("second"), "{refused}");
    assert_eq!(ipfix_refusal(vec![nth(false)], true), None);
}
