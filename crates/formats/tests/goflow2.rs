// SPDX-License-Identifier: Apache-2.0
//! goflow2's protobuf, read by a decoder that knows only `contrib/kafka/turboflow.proto`.

use std::net::IpAddr;
use std::path::Path;

use proptest::prelude::*;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, Value as Field};
use turboflow_formats::{Goflow2Messages, Identity};
use turboflow_merge::Layout;
use turboflow_record::{Column, ColumnKind, Definition, FlowBatch, Schema, Value};

use crate::support::{batch, default_batch, default_schema, table};

fn descriptor() -> MessageDescriptor {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/kafka");
    let files = protox::compile(["turboflow.proto"], [folder]).unwrap();
    let pool = DescriptorPool::from_file_descriptor_set(files).unwrap();
    pool.get_message_by_name("flowpb.FlowMessage").unwrap()
}

fn decoded(descriptor: &MessageDescriptor, mut bytes: &[u8]) -> Vec<DynamicMessage> {
    let mut messages = Vec::new();
    while !bytes.is_empty() {
        let length = prost_reflect::prost::decode_length_delimiter(&mut bytes).unwrap();
        let (record, rest) = bytes.split_at(length);
        bytes = rest;
        let message = DynamicMessage::decode(descriptor.clone(), record).unwrap();
        // The decoder reports a field that the .proto file does not describe as unknown.
        assert_eq!(message.unknown_fields().count(), 0, "{message:?}");
        messages.push(message);
    }
    messages
}

fn encoded(schema: &Schema, exporter: &str, batch: &FlowBatch) -> Vec<u8> {
    let identity = Identity::new(exporter, u64::MAX).unwrap();
    let mut messages = Goflow2Messages::new(schema, &identity);
    let mut encoded = || {
        let mut bytes = Vec::new();
        let mut rows = 0..batch.rows();
        messages.encode(batch, |row, record| {
            assert_eq!(rows.next(), Some(row));
            bytes.extend_from_slice(record);
        });
        assert_eq!(rows.next(), None);
        bytes
    };
    let bytes = encoded();
    assert_eq!(
        encoded(),
        bytes,
        "what an encoder did before must not matter"
    );
    bytes
}

fn number(message: &DynamicMessage, name: &str) -> u64 {
    match message.get_field_by_name(name).unwrap().as_ref() {
        Field::U32(number) => (*number).into(),
        Field::U64(number) => *number,
        other => panic!("{name}: {other:?}"),
    }
}

fn address(message: &DynamicMessage, name: &str) -> IpAddr {
    let field = message.get_field_by_name(name).unwrap();
    let bytes = field.as_bytes().unwrap();
    let v4 = <[u8; 4]>::try_from(&bytes[..]).map(IpAddr::from);
    v4.unwrap_or_else(|_| <[u8; 16]>::try_from(&bytes[..]).unwrap().into())
}

fn text(message: &DynamicMessage, name: &str) -> String {
    let field = message.get_field_by_name(name).unwrap();
    field.as_str().unwrap().to_owned()
}

#[test]
fn every_column_of_the_default_definition_has_its_field() {
    let mut batch = default_batch(&[
        "10.0.0.1 192.0.2.9 1025 443 6 300 40000 1700000000000000000 1700000001000000000 \
         27 40 1500 60 64 184 3",
        "2001:db8::1 2001:db8::2 0 0 58 18446744073709551615 1 0 1 0 72 72 255 255 0 4",
    ]);
    batch.number_from(u64::from(u32::MAX));
    let bytes = encoded(&default_schema(), "tap-7", &batch);
    let messages = decoded(&descriptor(), &bytes);
    let [first, second] = &messages[..] else {
        panic!("{messages:?}")
    };
    for (message, source, destination) in [
        (first, "10.0.0.1", "192.0.2.9"),
        (second, "2001:db8::1", "2001:db8::2"),
    ] {
        assert_eq!(address(message, "src_addr").to_string(), source);
        assert_eq!(address(message, "dst_addr").to_string(), destination);
        assert_eq!(text(message, "exporter"), "tap-7");
        assert_eq!(number(message, "run"), i64::MAX as u64);
        assert_eq!(number(message, "sampling_rate"), 1);
        assert_eq!(number(message, "type"), 4);
        let sampler = address(message, "sampler_address").to_string();
        assert_eq!(sampler, "fd00::11ac:7b2a:a9c:953e");
    }
    for (name, values) in [
        ("src_port", [1025, 0]),
        ("dst_port", [443, 0]),
        ("proto", [6, 58]),
        ("etype", [0x0800, 0x86dd]),
        ("packets", [300, u64::MAX]),
        ("bytes", [40_000, 1]),
        ("time_flow_start_ns", [1_700_000_000_000_000_000, 0]),
        ("time_flow_end_ns", [1_700_000_001_000_000_000, 1]),
        ("time_received_ns", [1_700_000_001_000_000_000, 1]),
        ("tcp_flags", [27, 0]),
        ("min_length", [40, 72]),
        ("max_length", [1500, 72]),
        ("min_ttl", [60, 255]),
        ("ip_ttl", [64, 255]),
        ("ip_tos", [184, 0]),
        ("end_reason", [3, 4]),
        ("sequence", [u64::from(u32::MAX), 1 << 32]),
        ("sequence_num", [u64::from(u32::MAX), 0]),
    ] {
        assert_eq!(
            [first, second].map(|its| number(its, name)),
            values,
            "{name}"
        );
    }
}

/// Records are encoded in blocks: a record has its own values wherever it is in one.
#[test]
fn every_record_of_a_long_batch_has_its_own_values() {
    let octets = |row: u64| 1_u64.checked_shl(row as u32).unwrap_or(u64::MAX - row);
    let lines: Vec<String> = (0..100)
        .map(|row| {
            let source = if row % 3 == 0 {
                "2001:db8::1"
            } else {
                "10.0.0.1"
            };
            let (tos, bytes) = (row % 2, octets(row));
            format!("{source} 10.0.0.2 {row} 2 6 {row} {bytes} {bytes} 8 9 40 50 60 70 {tos} 3")
        })
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let mut batch = default_batch(&lines);
    batch.number_from(7);
    let messages = decoded(&descriptor(), &encoded(&default_schema(), "a", &batch));
    assert_eq!(messages.len(), 100);
    for (row, message) in (0..).zip(&messages) {
        for (name, value) in [
            ("src_port", row),
            ("packets", row),
            ("bytes", octets(row)),
            ("time_flow_start_ns", octets(row)),
            ("ip_tos", row % 2),
            ("sequence", row + 7),
            ("etype", if row % 3 == 0 { 0x86dd } else { 0x0800 }),
        ] {
            assert_eq!(number(message, name), value, "{name} of record {row}");
        }
    }
}

#[test]
fn exporters_that_are_addresses_are_their_own_sampler() {
    let batch = default_batch(&["10.0.0.1 10.0.0.2 1 2 6 3 4 5 6 7 8 9 10 11 12 3"]);
    for exporter in ["192.0.2.1", "2001:db8::7"] {
        let bytes = encoded(&default_schema(), exporter, &batch);
        let message = decoded(&descriptor(), &bytes).remove(0);
        assert_eq!(address(&message, "sampler_address").to_string(), exporter);
    }
}

#[test]
fn applications_have_fields_and_what_has_none_is_named() {
    let definition = Definition::with_applications();
    let layout = Layout::compile(&definition, false).unwrap();
    let schema = layout.schema();
    let identity = Identity::new("a", 1).unwrap();
    assert!(
        Goflow2Messages::new(schema, &identity)
            .left_out()
            .is_empty()
    );
    let long = "x".repeat(5_000);
    // More records than are encoded side by side; the longest texts come late, and some are absent.
    let text_of = |row: usize| &long[..3 * row * row];
    let mut batch = FlowBatch::new(schema);
    for row in 0..40 {
        let value = |kind| match kind {
            ColumnKind::Address => Value::Address([10, 0, 0, 1].into()),
            ColumnKind::Text if row % 5 == 4 => Value::Absent,
            ColumnKind::Text => Value::Text(text_of(row)),
            _ => Value::Unsigned(7),
        };
        let row: Vec<_> = schema.iter().map(|column| value(column.kind)).collect();
        batch.push_row(&row);
    }
    let messages = decoded(&descriptor(), &encoded(schema, "a", &batch));
    for (row, message) in messages.iter().enumerate() {
        let meant = if row % 5 == 4 { "" } else { text_of(row) };
        for name in ["application", "server_name", "community_id", "http_host"] {
            assert_eq!(text(message, name), meant, "{name} of record {row}");
        }
    }
    assert_eq!(messages.len(), 40);
    // The second feature has the name of a field of a different kind.
    let definition = "[[feature]]\nname = \"spread\"\nop = \"variance\"\nof = \"ip_length\"\n\
                      [[feature]]\nname = \"rule\"\nop = \"count\"\n";
    let definition = Definition::parse(definition).unwrap();
    let layout = Layout::compile(&definition, false).unwrap();
    let messages = Goflow2Messages::new(layout.schema(), &identity);
    assert_eq!(messages.left_out(), ["spread", "rule"]);
}

/// Columns of numbers, the fields they become, and the size of those in bits.
const NUMBERS: [(&str, &str, u8); 8] = [
    ("src_port", "src_port", 32),
    ("protocol", "proto", 32),
    ("packets", "packets", 64),
    ("bytes", "bytes", 64),
    ("first_ns", "time_flow_start_ns", 64),
    ("last_ns", "time_flow_end_ns", 64),
    ("max_ttl", "ip_ttl", 32),
    ("end_reason", "end_reason", 32),
];
/// Columns of addresses and texts, and the fields they become.
const ADDRESSES: [(&str, &str); 2] = [("src_addr", "src_addr"), ("dst_addr", "dst_addr")];
const TEXTS: [(&str, &str); 2] = [("server_name", "server_name"), ("ja4", "ja4")];

/// Values of a record; `None` is absent.
#[derive(Clone, Debug)]
struct Row {
    numbers: [Option<u64>; NUMBERS.len()],
    addresses: [Option<IpAddr>; ADDRESSES.len()],
    texts: [Option<String>; TEXTS.len()],
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let number = (any::<u64>(), 0..64_u32).prop_map(|(bits, shift)| bits >> shift);
    let text = "[a-z]{0,40}|[a-z]{200,300}";
    let row = (
        prop::array::uniform(prop::option::of(number)),
        prop::array::uniform(prop::option::of(any::<IpAddr>())),
        prop::array::uniform(prop::option::of(text)),
    );
    let row = row.prop_map(|(mut numbers, addresses, texts)| {
        for (number, (_, _, bits)) in numbers.iter_mut().zip(NUMBERS) {
            *number = number.map(|its: u64| its & u64::MAX >> (64 - bits));
        }
        Row {
            numbers,
            addresses,
            texts,
        }
    });
    prop::collection::vec(row, 0..100)
}

proptest! {
    #[test]
    fn every_value_is_in_its_field(rows in rows()) {
        let column = |name: &str, kind| Column {
            name: name.to_owned(),
            kind,
            nullable: true,
        };
        let numbers = NUMBERS.map(|(name, _, bits)| column(name, ColumnKind::Unsigned { bits }));
        let addresses = ADDRESSES.map(|(name, _)| column(name, ColumnKind::Address));
        let texts = TEXTS.map(|(name, _)| column(name, ColumnKind::Text));
        let schema: Schema = numbers.into_iter().chain(addresses).chain(texts).collect();
        let mut batch = FlowBatch::new(&schema);
        for Row { numbers, addresses, texts } in &rows {
            let numbers = numbers.iter().map(|its| its.map_or(Value::Absent, Value::Unsigned));
            let addresses = addresses.iter().map(|its| its.map_or(Value::Absent, Value::Address));
            let texts = texts.iter().map(|its| its.as_deref().map_or(Value::Absent, Value::Text));
            batch.push_row(&numbers.chain(addresses).chain(texts).collect::<Vec<_>>());
        }
        let messages = decoded(&descriptor(), &encoded(&schema, "a", &batch));
        prop_assert_eq!(messages.len(), rows.len());
        for (message, row) in messages.iter().zip(&rows) {
            for ((_, field, _), value) in NUMBERS.iter().zip(row.numbers) {
                prop_assert_eq!(number(message, field), value.unwrap_or(0), "{}", field);
            }
            for ((_, field), value) in ADDRESSES.iter().zip(row.addresses) {
                prop_assert_eq!(message.has_field_by_name(field), value.is_some(), "{}", field);
                if let Some(value) = value {
                    prop_assert_eq!(address(message, field), value, "{}", field);
                }
            }
            for ((_, field), value) in TEXTS.iter().zip(&row.texts) {
                prop_assert_eq!(&text(message, field), value.as_deref().unwrap_or(""), "{}", field);
            }
        }
    }

    /// Records of any schema are framed correctly, with the right number of records.
    #[test]
    fn any_schema_can_be_decoded((schema, rows) in table(0..60)) {
        let meant = batch(&schema, &rows);
        let messages = decoded(&descriptor(), &encoded(&schema, "a", &meant));
        prop_assert_eq!(messages.len(), rows.len());
        for (row, message) in messages.iter().enumerate() {
            prop_assert_eq!(number(message, "sequence"), row as u64);
        }
    }
}
