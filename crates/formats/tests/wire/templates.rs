// SPDX-License-Identifier: Apache-2.0
//! Templates, absent values, and type information.

use std::collections::BTreeMap;

use turboflow_formats::wire::{Message, Protocol, WireOptions};
use turboflow_record::{Definition, ElementOptions, Feature, Input, KeyField, Op, TimeUnit};

use super::decode::{T0_NS, decode, messages, number, options, schema_of};
use crate::support::Owned;

/// A definition with absent values and lists.
pub(crate) fn rich() -> Definition {
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

pub(crate) fn rich_row(
    address: &str,
    vlan: Option<u64>,
    window: Option<u64>,
    list: Vec<u64>,
) -> Vec<Owned> {
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
    let schema = schema_of(&definition, false);
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
    // Address, VLAN, packets, mean, list, end reason; then address, packets, window, ...
    assert_eq!(lengths[0], [4, 2, 8, 8, 9 + 4, 1]);
    assert_eq!(lengths[1], [16, 8, 2, 8, 9, 1]);
    assert_eq!(lengths[2], [4, 2, 8, 8, 9 + 800, 1]);
    let list = &flows[0][4];
    assert_eq!(list[0], 4, "ordered");
    assert_eq!(list[3..5], [0, 2], "two octets per element");
    assert_eq!(list[5..9], 32_473_u32.to_be_bytes());
    assert_eq!(list[9..], [0, 40, 5, 220]);
}

/// The ids of the templates in some messages, with their fields.
fn templates(messages: &[Message]) -> BTreeMap<u16, Vec<u8>> {
    let two = |bytes: &[u8], at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let mut found = BTreeMap::new();
    for message in messages {
        let mut sets = &message.bytes[16..];
        while sets.len() > 4 {
            let (set, rest) = sets.split_at(usize::from(two(sets, 2)));
            let mut records = if two(set, 0) == 2 { &set[4..] } else { &[] };
            while !records.is_empty() {
                let mut end = 4;
                for _ in 0..two(records, 2) {
                    end += if records[end] & 0x80 == 0 { 4 } else { 8 };
                }
                found.insert(two(records, 0), records[4..end].to_vec());
                records = &records[end..];
            }
            sets = rest;
        }
    }
    found
}

/// Rows of [`rich`], in which the bits of each number say which values are present.
fn rich_rows(numbers: impl Iterator<Item = u64>) -> Vec<Vec<Owned>> {
    let row = |bits: u64| {
        let address = ["192.0.2.1", "2001:db8::1"][(bits & 1) as usize];
        let optional = |bit: u64| (bits >> bit & 1 == 1).then_some(bits);
        rich_row(address, optional(1), optional(2), vec![bits])
    };
    numbers.map(row).collect()
}

#[test]
fn numbers_of_templates_do_not_depend_on_the_order_of_records() {
    let definition = rich();
    let schema = schema_of(&definition, false);
    let options = options(&definition, TimeUnit::Milliseconds);
    let of = |rows: &[Vec<Owned>]| {
        let (messages, lost) = messages(Protocol::Ipfix, &schema, &options, rows);
        assert_eq!((lost, decode(&messages).len()), (0, rows.len()));
        templates(&messages)
    };
    let all = of(&rich_rows(0..8));
    assert_eq!(all.len(), 8, "{all:?}");
    assert_eq!(of(&rich_rows((0..8).rev())), all);
    for one in 0..8 {
        let (number, fields) = of(&rich_rows(one..one + 1)).pop_first().unwrap();
        assert_eq!(all[&number], fields);
    }
}

#[test]
fn numbers_of_two_definitions_differ() {
    let one = rich();
    let mut other = rich();
    other.features.pop();
    let of = |definition: &Definition, rows: &[Vec<Owned>]| {
        let options = options(definition, TimeUnit::Milliseconds);
        let schema = schema_of(definition, false);
        templates(&messages(Protocol::Ipfix, &schema, &options, rows).0)
    };
    let rows = rich_rows(0..8);
    let without_list = |row: &Vec<Owned>| {
        let mut row = row.clone();
        row.remove(5);
        row
    };
    let shorter: Vec<_> = rows.iter().map(without_list).collect();
    let (one, other) = (of(&one, &rows), of(&other, &shorter));
    assert!(one.keys().all(|number| !other.contains_key(number)));
}

/// Type information (RFC 5610) in the messages: type, semantics and unit of each element.
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
    let schema = schema_of(&definition, false);
    let options = options(&definition, TimeUnit::Milliseconds);
    let (messages, _) = messages(Protocol::Ipfix, &schema, &options, &[]);
    let types = type_information(&messages);
    let of = |column: usize| types[&options.elements[column].v4.id];
    // Types, semantics and units, with the numbers of IANA's IPFIX registries.
    assert_eq!(of(1), (4, 3, 3), "unsigned64, deltaCounter, packets");
    assert_eq!(of(2), (10, 1, 2), "float64, quantity, octets");
    assert_eq!(of(3), (10, 1, 11), "float64, quantity, hops");
    assert_eq!(of(4), (4, 1, 8), "unsigned64, quantity, nanoseconds");
    assert_eq!(of(5), (10, 1, 0), "float64, quantity, none");
}

#[test]
fn a_record_too_large_for_a_message_is_counted() {
    let definition = rich();
    let schema = schema_of(&definition, false);
    let options = options(&definition, TimeUnit::Milliseconds);
    let rows = [
        rich_row("192.0.2.1", None, None, vec![u64::MAX; 180]),
        rich_row("192.0.2.1", None, None, vec![1]),
    ];
    let (messages, lost) = messages(Protocol::Ipfix, &schema, &options, &rows);
    assert_eq!((lost, decode(&messages).len()), (1, 1));
}

#[test]
fn the_number_of_templates_is_bounded() {
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
    let schema = schema_of(&definition, false);
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
            "no record is lost"
        );
    }
    let fields: std::collections::BTreeSet<_> = flows[64..].iter().map(Vec::len).collect();
    assert_eq!(fields.len(), 1, "one template for all other shapes");
}

/// A biflow whose reverse direction may have no packets, with enough nullable values for more
/// shapes than the limit on exact templates.
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
fn absent_times_of_a_biflow_stay_absent_in_the_shared_template() {
    let definition = biflow_with_times();
    let schema = schema_of(&definition, true);
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
            // A basicList of at most one element: semantic, element id, length and enterprise take
            // 9 octets.
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
