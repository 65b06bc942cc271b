// SPDX-License-Identifier: Apache-2.0
//! `docs/turboflow-elements.xml` lists the enterprise-specific elements for collectors. This test
//! generates it. Refresh it with `UPDATE=1 cargo test -p turboflow-record --test element_file`.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use turboflow_record::{
    DOCUMENTATION_ENTERPRISE, DataType, Definition, Element, ElementOptions, Feature, Input,
    InputSet, KeyField, Op, Semantics, Units,
};

/// Every op, and `nth` for the first few `k`.
fn ops() -> Vec<Op> {
    let mut ops = vec![
        Op::Count,
        Op::Sum,
        Op::Min,
        Op::Max,
        Op::First,
        Op::Last,
        Op::BitOr,
    ];
    ops.extend([
        Op::Mean,
        Op::Variance,
        Op::GapMin,
        Op::GapMax,
        Op::GapMean,
        Op::GapVariance,
    ]);
    ops.extend([Op::Duration, Op::Rate, Op::CommunityId, Op::List { k: 1 }]);
    ops.push(Op::Histogram { edges: vec![1] });
    ops.extend((1..=8).map(|k| Op::Nth { k }));
    ops
}

/// The enterprise-specific elements that definitions can produce, by number.
fn elements() -> BTreeMap<u16, Element> {
    let mut elements = BTreeMap::new();
    let mut add = |definition: &Definition, biflow: bool| {
        for column in definition.elements(biflow, &ElementOptions::default()) {
            for element in [column.v4, column.v6] {
                // Bit 14 marks the reverse direction. The file describes it only once.
                let is_ours = element.enterprise == Some(DOCUMENTATION_ENTERPRISE);
                if is_ours && element.id != 0 && element.id >> 14 == 0 {
                    elements.insert(element.id, element);
                }
            }
        }
    };
    let five_tuple = KeyField::FIVE_TUPLE;
    for field in KeyField::all().filter(|field| !five_tuple.contains(field)) {
        let features = vec![Feature::new("n", Op::Count, None)];
        // Without addresses, no element depends on the family.
        add(
            &Definition {
                key: vec![field],
                features,
            },
            false,
        );
    }
    let inputs = || std::iter::once(None).chain(Input::ALL.into_iter().map(Some));
    let pairs = ops()
        .into_iter()
        .flat_map(|op| inputs().map(move |of| (op.clone(), of)));
    for (op, of) in pairs {
        for per_biflow in [false, true] {
            let feature = Feature {
                per_biflow,
                ..Feature::new("f", op.clone(), of)
            };
            let is_inspected = of.is_some_and(|input| InputSet::INSPECTED.contains(input));
            let key = match op == Op::CommunityId || is_inspected {
                true => five_tuple.to_vec(),
                false => vec![KeyField::Protocol],
            };
            let features = vec![feature];
            let definition = Definition { key, features };
            if definition.check().is_ok() {
                add(&definition, per_biflow);
            }
        }
    }
    elements
}

const fn type_name(data_type: DataType) -> &'static str {
    match data_type {
        DataType::OctetArray => "octetArray",
        DataType::String => "string",
        DataType::Unsigned8 => "unsigned8",
        DataType::Unsigned16 => "unsigned16",
        DataType::Unsigned32 => "unsigned32",
        DataType::Unsigned64 => "unsigned64",
        DataType::Float64 => "float64",
        DataType::MacAddress => "macAddress",
        DataType::DateTimeMilliseconds => "dateTimeMilliseconds",
        DataType::DateTimeMicroseconds => "dateTimeMicroseconds",
        DataType::DateTimeNanoseconds => "dateTimeNanoseconds",
        DataType::Ipv4Address => "ipv4Address",
        DataType::Ipv6Address => "ipv6Address",
    }
}

const fn semantics_name(semantics: Semantics) -> &'static str {
    match semantics {
        Semantics::Default => "default",
        Semantics::Quantity => "quantity",
        Semantics::DeltaCounter => "deltaCounter",
        Semantics::Identifier => "identifier",
        Semantics::Flags => "flags",
    }
}

const fn units_name(units: Units) -> &'static str {
    match units {
        Units::None => "none",
        Units::Octets => "octets",
        Units::Nanoseconds => "nanoseconds",
        Units::Packets => "packets",
        Units::Hops => "hops",
    }
}

fn file() -> String {
    let mut text = format!(
        "<!-- TurboFlow's own information elements; docs/export.md says how they are numbered. -->\n\
         <ipfix-elements>\n  <scope>\n    <pen>{DOCUMENTATION_ENTERPRISE}</pen>\n    \
         <name>turboflow</name>\n    <biflow mode=\"split\">14</biflow>\n"
    );
    for (id, element) in elements() {
        text += &format!(
            "    <element><id>{id}</id><name>{}</name><dataType>{}</dataType>\
             <dataSemantics>{}</dataSemantics><units>{}</units><status>current</status></element>\n",
            element.name,
            type_name(element.data_type),
            semantics_name(element.semantics),
            units_name(element.units),
        );
    }
    text + "  </scope>\n</ipfix-elements>\n"
}

#[test]
fn the_element_file_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/turboflow-elements.xml");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, file()).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        kept == file(),
        "docs/turboflow-elements.xml is out of date: run with UPDATE=1"
    );
    let elements = elements();
    let names: BTreeSet<_> = elements.values().map(|element| &element.name).collect();
    assert_eq!(names.len(), elements.len(), "a name means one element");
}
