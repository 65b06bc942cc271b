// SPDX-License-Identifier: Apache-2.0
//! Records that a format cannot hold.

use turboflow_formats::wire::{Protocol, WireOptions, encoder};
use turboflow_record::{Definition, ElementOptions, Feature, Input, KeyField, Op, TimeUnit};

use super::decode::{T0_NS, messages, options, schema_of};
use super::templates::rich;
use crate::support::{Owned, default_rows};

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

/// NetFlow's headers have 32 bits for seconds since 1970. IPFIX has 32 bits for NTP's seconds since
/// 1900, of which readers can distinguish two eras.
#[test]
fn times_that_would_wrap_are_counted_and_left_out() {
    const S: u64 = 1_000_000_000;
    let (last_netflow, last_ntp) = ((1 << 32) * S - 1, 4_233_462_144 * S - 1);
    let definition = Definition::default();
    let schema = schema_of(&definition, false);
    let place = |name: &str| {
        schema
            .iter()
            .position(|column| column.name == name)
            .unwrap()
    };
    let line = "10.0.0.1 10.0.0.2 1 2 6 3 4 5 6 7 8 9 10 11 12 3";
    let left_out = |protocol, time, last_ns: u64| {
        let mut row: Vec<_> = default_rows(&[line]).remove(0);
        row[place("first_ns")] = Owned::Unsigned(last_ns - 1);
        row[place("last_ns")] = Owned::Unsigned(last_ns);
        let (_, left_out) = messages(protocol, &schema, &options(&definition, time), &[row]);
        left_out
    };
    use TimeUnit::{Microseconds, Milliseconds, Nanoseconds};
    for (protocol, time, last_ns) in [
        (Protocol::Netflow5, Milliseconds, last_netflow),
        (Protocol::Netflow9, Milliseconds, last_netflow),
        (Protocol::Ipfix, Microseconds, last_ntp),
        (Protocol::Ipfix, Nanoseconds, last_ntp),
    ] {
        assert_eq!(left_out(protocol, time, T0_NS), 0);
        assert_eq!(
            left_out(protocol, time, last_ns),
            0,
            "{protocol:?} {time:?}"
        );
        assert_eq!(
            left_out(protocol, time, last_ns + 1),
            1,
            "{protocol:?} {time:?}"
        );
        assert_eq!(left_out(protocol, time, u64::MAX - 1), 1);
    }
    assert_eq!(left_out(Protocol::Ipfix, Milliseconds, u64::MAX - 1), 0);
}

/// The reason why IPFIX refuses a definition.
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
