// SPDX-License-Identifier: Apache-2.0
//! The SystemVerilog package is that of the default definition. There is no package for a
//! definition for which a slot has no room.

use std::path::Path;

use turboflow_engine_rtl::{
    HASH_CLOCKS, PackageError, SPREAD_CLOCKS, STAGE_CLOCKS, Unsupported, record_package,
};
use turboflow_record::{Definition, Feature, Input, KeyField, Op};

#[test]
fn the_package_is_derived_from_the_default_definition() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("rtl/tf_record_pkg.sv");
    let derived = record_package(&Definition::default()).unwrap();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &derived).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap();
    assert_eq!(
        written, derived,
        "write it anew: UPDATE=1 cargo test -p turboflow-engine-rtl package"
    );
}

/// The latencies that documents and the evaluation quote.
#[test]
fn clocks_are_those_of_the_systemverilog() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("rtl/tf_pkg.sv");
    let text = std::fs::read_to_string(path).unwrap();
    for (name, clocks) in [
        ("HashLatency", HASH_CLOCKS),
        ("SpreadLatency", SPREAD_CLOCKS),
        ("StageLatency", STAGE_CLOCKS),
    ] {
        let of = |line: &str| {
            let (declared, value) = line.split_once('=')?;
            let is_it = declared.split_whitespace().last() == Some(name);
            is_it.then(|| value.split(';').next().unwrap().trim().to_owned())
        };
        let found = text.lines().find_map(of);
        assert_eq!(found, Some(clocks.to_string()), "{name}");
    }
}

#[test]
fn there_is_no_package_for_what_a_slot_has_no_room_for() {
    let unsupported = |definition: &Definition| match record_package(definition) {
        Err(PackageError::Unsupported(unsupported)) => unsupported,
        other => panic!("{other:?}"),
    };
    let mut definition = Definition::default();
    let sizes = Feature::new("sizes", Op::List { k: 3 }, Some(Input::IpLength));
    definition.features.push(sizes);
    assert_eq!(unsupported(&definition), Unsupported::State);
    let addresses = Definition {
        key: vec![KeyField::SourceAddress],
        ..Definition::default()
    };
    assert_eq!(unsupported(&addresses), Unsupported::Key);
}

#[test]
fn a_part_of_the_default_definition_has_the_same_fields() {
    let whole = Definition::default();
    let mut part = whole.clone();
    part.features.truncate(2);
    let fields = |definition: &Definition| {
        let package = record_package(definition).unwrap();
        let from = package.find("package tf_record_pkg").unwrap();
        package[from..].to_owned()
    };
    assert_eq!(fields(&part), fields(&whole));
}
