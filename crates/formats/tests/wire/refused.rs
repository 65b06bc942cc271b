// SPDX-License-Identifier: Apache-2.0
//! Records that a format cannot hold.

use turboflow_formats::wire::{Protocol, WireOptions, encoder};
use turboflow_record::{Definition, ElementOptions, Feature, Input, KeyField, Op, TimeUnit};

use super::decode::{options, schema_of};
use super::templates::rich;

#[test]
fn records_that_a_protocol_cannot_hold_are_refused_with_a_reason() {
    let definition = rich();
    let schema = schema_of(&definition, false);
    let options = options(&definition, TimeUnit::Milliseconds);
    let refused = |protocol| {
        let error = encoder(protocol, &schema, &options, "test")
            .map(|_| ())
            .unwrap_err();
        error.to_string()
    };
    assert!(refused(Protocol::Netflow5).contains("destination address"));
    let biflow = schema_of(&Definition::default(), true);
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
        let schema = schema_of(&definition, false);
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

/// The reason for which IPFIX refuses a definition.
fn ipfix_refusal(features: Vec<Feature>, biflow: bool) -> Option<String> {
    let definition = Definition {
        key: KeyField::FIVE_TUPLE.to_vec(),
        features,
    };
    let schema = schema_of(&definition, biflow);
    let options = WireOptions {
        elements: definition.elements(biflow, &ElementOptions::default()),
        ..WireOptions::default()
    };
    encoder(Protocol::Ipfix, &schema, &options, "test")
        .err()
        .map(|error| error.to_string())
}

#[test]
fn two_columns_with_one_element_are_refused() {
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
