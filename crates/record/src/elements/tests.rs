// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeMap;

use super::*;
use crate::Input;

fn feature(op: Op, of: Option<Input>) -> Feature {
    Feature::new("f", op, of)
}

fn ids(elements: &[ColumnElement], v6: bool) -> Vec<u16> {
    let of = |column: &ColumnElement| if v6 { column.v6.id } else { column.v4.id };
    elements.iter().map(of).collect()
}

#[test]
fn the_default_definition_needs_only_iana_elements() {
    let elements = Definition::default().elements(false, &ElementOptions::default());
    assert!(elements.iter().all(|column| column.v4.enterprise.is_none()));
    let v4 = [8, 12, 7, 11, 4, 2, 1, 152, 153, 6, 25, 26, 52, 53, 5, 136];
    let v6 = [27, 28, 7, 11, 4, 2, 1, 152, 153, 6, 25, 26, 52, 53, 5, 136];
    assert_eq!(ids(&elements, false), v4);
    assert_eq!(ids(&elements, true), v6);
}

#[test]
fn times_are_in_the_unit_asked_for() {
    for (time, start) in [(TimeUnit::Microseconds, 154), (TimeUnit::Nanoseconds, 156)] {
        let options = ElementOptions {
            time,
            ..ElementOptions::default()
        };
        let elements = Definition::default().elements(false, &options);
        assert_eq!(ids(&elements, false)[7..9], [start, start + 1]);
    }
}

#[test]
fn the_other_direction_has_the_reverse_enterprise() {
    let elements = Definition::default().elements(true, &ElementOptions::default());
    let reverse = &elements[15].v4;
    assert_eq!((reverse.id, reverse.enterprise), (2, Some(29305)));
    assert_eq!(reverse.name, "reversePacketDeltaCount");
    assert_eq!(elements.last().unwrap().v4.name, "flowEndReason");
}

#[test]
fn an_element_of_iana_is_used_once() {
    let definition = Definition {
        key: vec![KeyField::SourceAddress, KeyField::Input(Input::Tos)],
        features: vec![
            feature(Op::First, Some(Input::Tos)),
            feature(Op::Count, None),
        ],
    };
    let elements = definition.elements(false, &ElementOptions::default());
    assert_eq!(elements[1].v4.id, 5);
    assert_eq!(elements[2].v4.enterprise, Some(DOCUMENTATION_ENTERPRISE));
    assert_eq!(elements[2].v4.name, "firstTos");
}

#[test]
fn icmp_without_addresses_has_no_family() {
    let definition = |key| Definition {
        key,
        features: vec![feature(Op::First, Some(Input::IcmpType))],
    };
    let options = ElementOptions::default();
    let with = definition(vec![KeyField::SourceAddress]).elements(false, &options);
    assert_eq!((with[1].v4.id, with[1].v6.id), (176, 178));
    let without = definition(vec![KeyField::Protocol]).elements(false, &options);
    assert_eq!(without[1].v4.enterprise, Some(DOCUMENTATION_ENTERPRISE));
}

/// Every op over every input that it accepts.
fn all_features() -> Vec<Feature> {
    let ops = |name: &str| match name {
        "nth" => vec![Op::Nth { k: 1 }, Op::Nth { k: 2 }, Op::Nth { k: 256 }],
        name => Op::with_name(name).into_iter().collect(),
    };
    let inputs = || std::iter::once(None).chain(Input::ALL.into_iter().map(Some));
    let features = Op::NAMES.into_iter().flat_map(ops);
    features
        .flat_map(|op| inputs().map(move |of| feature(op.clone(), of)))
        .filter(|feature| feature.of.is_some() || !matches!(feature.op, Op::Nth { .. }))
        .collect()
}

#[test]
fn enterprise_numbers_are_in_range_and_unique() {
    let mut names = BTreeMap::new();
    let mut columns: Vec<ColumnElement> = KeyField::INPUTS
        .into_iter()
        .map(KeyField::Input)
        .chain([
            KeyField::OuterSourceAddress,
            KeyField::OuterDestinationAddress,
        ])
        .map(|field| enterprise::of_key(field, 1))
        .collect();
    for feature in all_features() {
        for side in [Side::Forward, Side::Reverse, Side::Joined] {
            let is_nth = matches!(feature.op, Op::Nth { .. });
            // These have no number, because the numbers of `nth` have room for 48 inputs only.
            let is_beyond = feature.of.is_some_and(|input| input as u16 >= 48);
            if is_nth && (side == Side::Joined || is_beyond) {
                continue;
            }
            columns.push(enterprise::of_feature(&feature, side, 1));
        }
    }
    for element in columns.iter().flat_map(|column| [&column.v4, &column.v6]) {
        assert!((1..1 << 15).contains(&element.id), "{element:?}");
        let before = names.insert(element.id, element.name.clone());
        assert!(
            before.is_none_or(|name| name == element.name),
            "{element:?}"
        );
    }
}

#[test]
fn enterprise_numbers_never_change() {
    let id = |op, of| {
        enterprise::of_feature(&feature(op, of), Side::Forward, 1)
            .v4
            .id
    };
    assert_eq!(id(Op::Count, Some(Input::TcpWindow)), 1 << 6 | 4);
    assert_eq!(id(Op::Max, Some(Input::QueueDepth)), 4 << 6 | 29);
    assert_eq!(id(Op::Duration, None), 17 << 6 | 63);
    assert_eq!(id(Op::Nth { k: 2 }, Some(Input::IpLength)), 4096 + 48);
    let nth = feature(Op::Nth { k: 2 }, Some(Input::IpLength));
    let joined = enterprise::of_feature(&nth, Side::Joined, 1);
    assert_eq!(joined.v4.id, 0, "it has no number, rather than another's");
    let reverse = enterprise::of_feature(&feature(Op::Duration, None), Side::Reverse, 1);
    assert_eq!(reverse.v4.id, 1 << 14 | 17 << 6 | 63);
    assert_eq!(reverse.v4.name, "reverseDuration");
}

#[test]
fn inputs_from_63_on_have_numbers_while_ops_leave_room() {
    let mut taken = BTreeMap::new();
    let mut has_room = true;
    for input in (0..256).map(Some).chain([None]) {
        let numbers = (1..=21).map(|op| (op, enterprise::number(op, input)));
        let free = numbers.clone().all(|(_, id)| id != 0);
        assert!(free || numbers.clone().all(|(_, id)| id == 0), "{input:?}");
        assert!(has_room || !free || input.is_none(), "{input:?}");
        has_room = free;
        for (op, id) in numbers.filter(|(_, id)| *id != 0) {
            assert!(id < 1 << 11, "{id} reaches into the bit of both directions");
            assert_eq!(taken.insert(id, (op, input)), None);
        }
    }
    assert!(taken.values().any(|(_, input)| *input == Some(82)));
    assert!(!taken.values().any(|(_, input)| *input == Some(83)));
    assert_eq!(enterprise::number_of_nth(1, 47), 4096 + 47);
    assert_eq!(
        enterprise::number_of_nth(1, 48),
        0,
        "that is the second value of the first input"
    );
}
