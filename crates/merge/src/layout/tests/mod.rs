// SPDX-License-Identifier: Apache-2.0
//! Compares layouts with plain arithmetic over lists of packets.

mod keys;
mod naive;
mod properties;
mod strategies;
mod texts;
mod vocabulary;

use super::*;
use turboflow_record::{Op, Value};

fn names(layout: &Layout) -> Vec<&str> {
    layout
        .schema()
        .iter()
        .map(|column| column.name.as_str())
        .collect()
}

fn compile(features: Vec<Feature>) -> Result<Layout, InvalidDefinition> {
    Layout::compile(
        &Definition {
            features,
            ..Definition::default()
        },
        false,
    )
}

#[test]
fn default_columns_are_those_that_flow_tools_expect() {
    let layout = Layout::compile(&Definition::default(), false).unwrap();
    let expected = "src_addr,dst_addr,src_port,dst_port,protocol,packets,bytes,first_ns,last_ns,\
                    tcp_flags,min_length,max_length,min_ttl,max_ttl,tos,end_reason";
    assert_eq!(names(&layout).join(","), expected);
    assert!(layout.schema().iter().all(|column| !column.nullable));
    let kinds: Vec<ColumnKind> = layout.schema().iter().map(|column| column.kind).collect();
    let unsigned = |bits| ColumnKind::Unsigned { bits };
    assert_eq!(
        kinds[..5],
        [
            ColumnKind::Address,
            ColumnKind::Address,
            unsigned(16),
            unsigned(16),
            unsigned(8)
        ]
    );
    assert_eq!(
        kinds[5..9],
        [
            unsigned(64),
            unsigned(64),
            ColumnKind::TimestampNs,
            ColumnKind::TimestampNs
        ]
    );
    assert_eq!(kinds[9..], [16, 32, 32, 8, 8, 8, 8].map(unsigned));
}

#[test]
fn default_definition_needs_neither_words_nor_inputs() {
    let layout = Layout::compile(&Definition::default(), false).unwrap();
    assert_eq!(layout.state_words(), 0);
    assert_eq!(layout.key_widths(), KeyWidths::ByFamily);
    assert!(layout.needs().is_empty());
    assert_eq!(layout.ending_fins(), Marks::FIN);
    let biflow = Layout::compile(&Definition::default(), true).unwrap();
    assert_eq!(biflow.state_words(), 24);
    assert!(biflow.needs().is_empty());
    assert_eq!(biflow.ending_fins(), Marks::FIN | Marks::REVERSE_FIN);
    assert_eq!(
        names(&biflow)[14..17],
        ["tos", "reverse_packets", "reverse_bytes"]
    );
    assert_eq!(names(&biflow).last(), Some(&"end_reason"));
}

#[test]
fn fields_of_base_take_no_words() {
    let of = |name, op, of| Feature::new(name, op, Some(of));
    let layout = compile(vec![
        of("a", Op::Mean, Input::IpLength),
        of("b", Op::Count, Input::Ttl),
        of("c", Op::Rate, Input::IpLength),
        Feature::new("d", Op::Duration, None),
        Feature::new("e", Op::Rate, None),
        of("f", Op::Count, Input::Gap),
    ]);
    // The two arrival times, from which gaps between records are measured.
    assert_eq!(layout.unwrap().state_words(), 8);
}

#[test]
fn features_share_words() {
    let of = |name: &str, op| Feature::new(name, op, Some(Input::TcpWindow));
    let mut features = vec![of("mean", Op::Mean), of("variance", Op::Variance)];
    features.push(of("sum", Op::Sum));
    features.push(of("count", Op::Count));
    features.push(of("third", Op::Nth { k: 3 }));
    features.push(of("first_two", Op::List { k: 2 }));
    // Count, sum, two words of squares, and a list of 3.
    let layout = compile(features).unwrap();
    let mut words = Words::default();
    let definition = Definition {
        features: (0..2)
            .map(|i| of(&format!("x{i}"), Op::Nth { k: 3 - i }))
            .collect(),
        ..Definition::default()
    };
    feature_columns(&definition, false, &mut words);
    assert_eq!(words.count(), 4);
    assert_eq!(layout.state_words(), 8);
    assert_eq!(
        layout.needs().iter().collect::<Vec<_>>(),
        [Input::TcpWindow]
    );
}

#[test]
fn refuses_more_state_than_a_record_has() {
    let list = |name: &str, of| Feature::new(name, Op::List { k: 256 }, Some(of));
    let error = compile(vec![
        list("a", Input::IpLength),
        list("b", Input::Timestamp),
    ]);
    assert_eq!(
        error.unwrap_err().to_string(),
        "feature `b`: no room for this one: the features need 514 words of state, \
         10 more than a record has (504); keep fewer or shorter lists and histograms"
    );
    assert_eq!(
        compile(vec![list("a", Input::IpLength)])
            .unwrap()
            .state_words(),
        504
    );
}

#[test]
fn refuses_directions_and_unpaired_ends_without_meaning() {
    let directions = Feature::new("directions", Op::List { k: 4 }, Some(Input::Direction));
    assert_eq!(
        compile(vec![directions]).unwrap_err().to_string(),
        "feature `directions`: `direction` exists in biflows only; add `flow.biflow` or remove it"
    );
    let keyed = |key: &[KeyField]| {
        let definition = Definition {
            key: key.to_vec(),
            ..Definition::default()
        };
        Layout::compile(&definition, true).unwrap_err().to_string()
    };
    assert_eq!(
        keyed(&[KeyField::SourceAddress]),
        "key: a biflow joins two ends, but `source_address` is in the key without \
         `destination_address`; add it, or leave out `flow.biflow`"
    );
    assert_eq!(
        keyed(&[KeyField::Protocol]),
        "key: a biflow joins two ends, but the key has none; add source_address and \
         destination_address, or leave out `flow.biflow`"
    );
}

#[test]
fn refuses_what_no_layout_allows() {
    let error = compile(vec![Feature::new("x", Op::Sum, Some(Input::Vlan))]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "feature `x`: op `sum` makes no sense of `vlan`; ops that do: \
         count, min, max, first, last, nth, bit_or, histogram, list"
    );
}

#[test]
fn exports_more_rows_than_one_run_takes() {
    let features = vec![Feature::new("window", Op::Max, Some(Input::TcpWindow))];
    let layout = compile(features).unwrap();
    let records: Vec<MicroflowRecord<2, 8>> = (0..700u64)
        .map(|index| {
            let packet = strategies::packet(index, false);
            let mut inputs = InputValues::default();
            if index % 3 > 0 {
                inputs.set(Input::TcpWindow, index);
            }
            layout.open(&packet, &inputs)
        })
        .collect();
    let mut batch = FlowBatch::new(layout.schema());
    layout.append(&records[..100], &mut batch);
    layout.append(&records[100..], &mut batch);
    assert_eq!(batch.rows(), 700);
    for row in 0..700 {
        let window = if row % 3 > 0 {
            Value::Unsigned(row as u64)
        } else {
            Value::Absent
        };
        assert_eq!(batch.value(row, 5), window, "row {row}");
    }
}
