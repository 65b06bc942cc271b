// SPDX-License-Identifier: Apache-2.0
//! Keys of any fields can be read back, tell flows apart, and join directions.

use std::net::IpAddr;

use proptest::prelude::*;

use super::naive::Expected;
use super::*;
use turboflow_record::FiveTuple;

#[derive(Clone, Debug)]
struct TestPacket {
    packet: Packet,
    inputs: InputValues,
    outer: Option<[IpAddr; 2]>,
}

fn addresses() -> impl Strategy<Value = [IpAddr; 2]> {
    // Few addresses of each family, so that keys are often equal.
    let v4 = |low: u8| IpAddr::from([10, 0, low, 0xff]);
    let v6 = |low: u8| IpAddr::from([0x2001, 0xdb8, 0, 0, low.into(), 0, 0, 9]);
    (any::<bool>(), 0u8..3, 0u8..3).prop_map(move |(is_v4, a, b)| {
        if is_v4 {
            [v4(a), v4(b)]
        } else {
            [v6(a), v6(b)]
        }
    })
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&v4.octets());
            bytes
        }
        IpAddr::V6(v6) => v6.octets(),
    }
}

fn carried() -> impl Strategy<Value = TestPacket> {
    let input = |input: Input| {
        let max = u64::MAX >> (64 - input.bits());
        proptest::option::of(prop_oneof![Just(0), Just(1), Just(max)])
    };
    let inputs: Vec<_> = KeyField::INPUTS.into_iter().map(input).collect();
    let outer = proptest::option::of(addresses());
    let ports = [
        prop_oneof![Just(0u16), Just(0x1234)],
        prop_oneof![Just(0u16), Just(80)],
    ];
    (addresses(), ports, 0u8..3, inputs, outer).prop_map(
        |([source, destination], [sport, dport], protocol, values, outer)| {
            let tuple = FiveTuple::new(source, destination, sport, dport, protocol);
            let mut packet = Packet {
                tuple,
                ..strategies::packet(0, false)
            };
            let mut inputs = InputValues::default();
            for (input, value) in KeyField::INPUTS.into_iter().zip(values) {
                let Some(value) = value else { continue };
                match input {
                    Input::Tos => packet.tos = value as u8,
                    Input::Ttl => packet.ttl = value as u8,
                    input => inputs.set(input, value),
                }
            }
            if let Some(outer) = outer {
                inputs.outer_addresses = outer.map(octets);
            }
            TestPacket {
                packet,
                inputs,
                outer,
            }
        },
    )
}

/// The values that the key columns must have for a packet.
fn expected(fields: &[KeyField], carried: &TestPacket, swapped: bool) -> Vec<Expected> {
    let TestPacket {
        packet,
        inputs,
        outer,
    } = carried;
    let tuple = packet.tuple;
    let field = |field: &KeyField| {
        let field = if swapped {
            counterpart(*field).unwrap_or(*field)
        } else {
            *field
        };
        let number = |value: Option<u64>| value.map_or(Expected::Absent, Expected::Unsigned);
        let outer =
            |end: usize| outer.map_or(Expected::Absent, |both| Expected::Address(both[end]));
        match field {
            KeyField::SourceAddress => Expected::Address(tuple.source()),
            KeyField::DestinationAddress => Expected::Address(tuple.destination()),
            KeyField::SourcePort => Expected::Unsigned(tuple.source_port().into()),
            KeyField::DestinationPort => Expected::Unsigned(tuple.destination_port().into()),
            KeyField::Protocol => Expected::Unsigned(tuple.protocol().into()),
            KeyField::OuterSourceAddress => outer(0),
            KeyField::OuterDestinationAddress => outer(1),
            KeyField::Input(Input::Tos) => Expected::Unsigned(packet.tos.into()),
            KeyField::Input(Input::Ttl) => Expected::Unsigned(packet.ttl.into()),
            KeyField::Input(input) => number(inputs.get(input)),
        }
    };
    fields.iter().map(field).collect()
}

fn exported(layout: &Layout, carried: &TestPacket) -> Result<Vec<bool>, TestCaseError> {
    let mut batch = FlowBatch::new(layout.schema());
    let TestPacket { packet, inputs, .. } = carried;
    match (layout.key_widths(), packet.tuple.family()) {
        (KeyWidths::Wide, _) => layout.append(&[layout.open::<16, 0>(packet, inputs)], &mut batch),
        (_, turboflow_record::Family::V4) => {
            layout.append(&[layout.open::<2, 0>(packet, inputs)], &mut batch)
        }
        (_, turboflow_record::Family::V6) => {
            layout.append(&[layout.open::<5, 0>(packet, inputs)], &mut batch)
        }
    }
    let expected = expected(fields(layout).as_slice(), carried, false);
    let values = expected.iter().enumerate();
    Ok(values
        .map(|(index, value)| value.matches(batch.value(0, index)))
        .collect())
}

fn fields(layout: &Layout) -> Vec<KeyField> {
    let columns = layout.schema().iter();
    let field = |name: &str| KeyField::all().find(|field| field.column_name() == name);
    columns.filter_map(|column| field(&column.name)).collect()
}

fn packets() -> Definition {
    Definition {
        key: KeyField::FIVE_TUPLE.to_vec(),
        features: vec![Feature::new("packets", Op::Count, None)],
    }
}

fn any_fields() -> impl Strategy<Value = Vec<KeyField>> {
    let all: Vec<KeyField> = KeyField::all().collect();
    let count = all.len();
    prop_oneof![
        proptest::sample::subsequence(all, 1..=count).prop_shuffle(),
        Just(KeyField::FIVE_TUPLE.to_vec()).prop_shuffle(),
    ]
    .prop_filter("a key that fits", |fields| KeyPlan::new(fields).is_some())
}

proptest! {
    #[test]
    fn keys_read_back_and_tell_flows_apart(
        key in any_fields(),
        a in carried(),
        b in carried(),
    ) {
        let layout = Layout::compile(&Definition { key: key.clone(), ..packets() }, false).unwrap();
        prop_assert!(exported(&layout, &a)?.into_iter().all(|same| same));
        let same = expected(&key, &a, false) == expected(&key, &b, false);
        let both = [a, b].map(|c| layout.open::<16, 0>(&c.packet, &c.inputs).key);
        let keyed_by_family = key.iter().any(|field| {
            matches!(field, KeyField::SourceAddress | KeyField::DestinationAddress)
        });
        if layout.key_widths() == KeyWidths::Wide || keyed_by_family {
            prop_assert_eq!(both[0] == both[1], same);
        }
        prop_assert_ne!(both[0], [0; 16]);
    }

    #[test]
    fn the_five_tuple_is_found_in_keys_that_have_it(key in any_fields(), carried in carried()) {
        let layout = Layout::compile(&Definition { key: key.clone(), ..packets() }, false).unwrap();
        let record = layout.open::<16, 0>(&carried.packet, &carried.inputs);
        let is_whole = KeyField::FIVE_TUPLE.iter().all(|field| key.contains(field));
        let expected = is_whole.then_some(carried.packet.tuple);
        prop_assert_eq!(layout.five_tuple(&record.key), expected);
    }

    #[test]
    fn both_directions_have_one_key(mut key in any_fields(), there in carried()) {
        let halves: Vec<KeyField> = key.iter().filter_map(|field| counterpart(*field)).collect();
        for other in halves {
            if !key.contains(&other) {
                key.push(other);
            }
        }
        prop_assume!(key.iter().any(|field| counterpart(*field).is_some()));
        prop_assume!(KeyPlan::new(&key).is_some());
        let definition = Definition { key: key.clone(), ..packets() };
        let layout = Layout::compile(&definition, true).unwrap();
        let mut back = there.clone();
        back.packet.tuple = there.packet.tuple.reversed();
        back.inputs.outer_addresses.reverse();
        back.outer = there.outer.map(|[source, destination]| [destination, source]);
        back.inputs.clear();
        back.inputs.outer_addresses = [1, 0].map(|end| there.inputs.outer_addresses[end]);
        for input in KeyField::INPUTS {
            let other = match input {
                Input::SourceMac => Input::DestinationMac,
                Input::DestinationMac => Input::SourceMac,
                other => other,
            };
            if let Some(value) = there.inputs.get(other) {
                back.inputs.set(input, value);
            }
        }
        let records = [&there, &back].map(|c| layout.open::<16, 8>(&c.packet, &c.inputs));
        prop_assert_eq!(records[0].key, records[1].key);
        // Each packet is alone in its record, so its source is the initiator.
        for (carried, record) in [&there, &back].into_iter().zip(records) {
            let mut batch = FlowBatch::new(layout.schema());
            if layout.key_widths() == KeyWidths::Wide {
                layout.append(&[record], &mut batch);
            } else if carried.packet.tuple.family() == turboflow_record::Family::V4 {
                layout.append(&[layout.open::<2, 8>(&carried.packet, &carried.inputs)], &mut batch);
            } else {
                layout.append(&[layout.open::<5, 8>(&carried.packet, &carried.inputs)], &mut batch);
            }
            for (index, value) in expected(&key, carried, false).iter().enumerate() {
                prop_assert!(value.matches(batch.value(0, index)), "{:?}", key[index]);
            }
        }
    }
}

#[test]
fn all_fields_but_the_largest_fit_together() {
    let fields: Vec<KeyField> = KeyField::all()
        .filter(|field| *field != KeyField::Input(Input::Path))
        .collect();
    let Some(KeyPlan::Wide(wide)) = KeyPlan::new(&fields) else {
        panic!("a wide key")
    };
    let mut used = [0u64; WORDS_WIDE];
    used[0] = (1 << 48) - 1;
    for key_slot in &wide.key_slots {
        let words = if key_slot.bits == 128 { 2 } else { 1 };
        let mask = u64::MAX >> (64 - key_slot.bits.min(64)) << key_slot.shift;
        for word in &mut used[usize::from(key_slot.word)..][..words] {
            assert_eq!(*word & mask, 0, "{key_slot:?} overlaps another field");
            *word |= mask;
        }
    }
    assert_eq!(wide.key_slots.len(), fields.len());
}

#[test]
fn a_key_that_is_too_large_is_refused() {
    let fits = |fields: &[KeyField]| KeyPlan::new(fields).is_some();
    let addresses = [KeyField::SourceAddress; 8];
    assert!(fits(&addresses[..7]) && !fits(&addresses));
    // There is room for the values of more than this, but not for their presence bits.
    let optional = [KeyField::Input(Input::VlanPriority); 25];
    assert!(fits(&optional[..24]) && !fits(&optional));
}
