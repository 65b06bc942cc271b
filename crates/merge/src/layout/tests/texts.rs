// SPDX-License-Identifier: Apache-2.0
//! Results of inspection, in records that merge and in columns. Community IDs.

use std::net::IpAddr;

use proptest::prelude::*;

use super::strategies::packet;
use super::*;
use turboflow_record::{ApplicationNames, FiveTuple, Texts, Value};

fn inspected_features(op: &Op) -> Vec<Feature> {
    let named = |input: Input| Feature::new(input.name(), op.clone(), Some(input));
    Input::INSPECTED.into_iter().map(named).collect()
}

fn definition(features: Vec<Feature>) -> Definition {
    Definition {
        features,
        ..Definition::default()
    }
}

fn texts() -> (Arc<Texts>, Arc<InspectedTexts>) {
    let texts = Arc::new(Texts::new(1 << 16));
    let names = ApplicationNames {
        applications: vec![(91, "TLS".to_owned(), 5), (133, "NetFlix".to_owned(), 17)],
        ..ApplicationNames::default()
    };
    let inspected = InspectedTexts::new(Arc::clone(&texts), Arc::new(names));
    (texts, Arc::new(inspected))
}

#[test]
fn definitions_without_inspection_have_nothing_to_annotate() {
    for biflow in [false, true] {
        let layout = Layout::compile(&Definition::default(), biflow).unwrap();
        assert!(layout.annotation().is_empty());
    }
    let layout = Layout::compile(&definition(inspected_features(&Op::Last)), false).unwrap();
    assert!(!layout.annotation().is_empty());
    assert!(layout.needs().is_empty(), "no parser sees them");
}

#[test]
fn a_biflow_has_one_column_of_what_is_of_the_flow() {
    let mut features = inspected_features(&Op::Last);
    features.push(Feature::new("id", Op::CommunityId, None));
    let layout = Layout::compile(&definition(features), true).unwrap();
    let names = names(&layout);
    assert!(
        !names.iter().any(|name| name.starts_with(REVERSE)),
        "{names:?}"
    );
    assert!(
        layout
            .schema()
            .iter()
            .all(|column| { (column.kind == ColumnKind::Text) == column.nullable })
    );
    assert!(!layout.clone().in_two_way_form().is_two_way());
}

#[test]
fn texts_are_resolved_when_records_are_exported() {
    let (texts, inspected) = texts();
    for biflow in [false, true] {
        let layout = Layout::compile(&definition(inspected_features(&Op::Last)), biflow).unwrap();
        assert_eq!(layout.state_words(), 24);
        let mut records = [1, 2].map(|number| {
            layout.open::<WORDS_V4, 24>(&packet(number, false), &InputValues::default())
        });
        let mut found = InspectedValues::default();
        found[0] = Some(91 << 16 | 133);
        found[4] = Some(texts.intern("www.netflix.com"));
        found[5] = Some(u64::MAX - 1);
        layout.annotation().write(&mut records[1].state, &found);
        let shown = |layout: &Layout| {
            let mut batch = FlowBatch::new(layout.schema());
            layout.append(&records, &mut batch);
            let column = |name| names(layout).iter().position(|its| *its == name).unwrap();
            ["application", "server_name", "ja3"].map(|name| {
                [0, 1].map(|row| match batch.value(row, column(name)) {
                    Value::Text(text) => Some(text.to_owned()),
                    value => (value != Value::Absent).then(|| panic!("{value:?}")),
                })
            })
        };
        assert_eq!(shown(&layout), [[None, None], [None, None], [None, None]]);
        let some = |text: &str| [None, Some(text.to_owned())];
        let with_texts = layout.clone().with_texts(Arc::clone(&inspected));
        let expected = [some("TLS.NetFlix"), some("www.netflix.com"), [None, None]];
        assert_eq!(shown(&with_texts), expected);
    }
}

/// The Community ID of one packet's record.
fn community_id(layout: &Layout, packet: &Packet, inputs: &InputValues) -> Option<String> {
    let mut batch = FlowBatch::new(layout.schema());
    match packet.tuple.words().len() {
        WORDS_V4 => layout.append(&[layout.open::<WORDS_V4, 8>(packet, inputs)], &mut batch),
        _ => layout.append(&[layout.open::<WORDS_V6, 8>(packet, inputs)], &mut batch),
    }
    let column = names(layout).iter().position(|name| *name == "id").unwrap();
    match batch.value(0, column) {
        Value::Text(text) => Some(text.to_owned()),
        value => (value != Value::Absent).then(|| panic!("{value:?}")),
    }
}

#[test]
fn community_ids_equal_those_of_the_reference_implementation() {
    let features = vec![Feature::new("id", Op::CommunityId, None)];
    let layouts =
        [false, true].map(|biflow| Layout::compile(&definition(features.clone()), biflow).unwrap());
    let vectors = include_str!("../../../../record/tests/community_id/vectors.csv");
    let rows = vectors
        .lines()
        .filter(|line| !line.starts_with('#'))
        .skip(1);
    for row in rows {
        let cells: Vec<&str> = row.split(',').collect();
        let [source, destination] = [1, 2].map(|at| cells[at].parse::<IpAddr>().unwrap());
        let ports = [3, 4].map(|at: usize| cells[at].parse::<u16>().unwrap_or(0));
        let protocol = cells[0].parse().unwrap();
        let mut inputs = InputValues::default();
        let is_icmp = [1, 58].contains(&protocol);
        // Flows of ICMP have no ports.
        let [first, second] = if is_icmp { [0; 2] } else { ports };
        let tuple = FiveTuple::new(source, destination, first, second, protocol);
        let packet = Packet {
            tuple,
            ..packet(1, false)
        };
        if is_icmp {
            let unknown = community_id(&layouts[0], &packet, &inputs);
            assert_eq!(unknown, None, "the type is not known");
            inputs.set(Input::IcmpType, ports[0].into());
            inputs.set(Input::IcmpCode, ports[1].into());
        }
        for layout in &layouts {
            assert!(!is_icmp || layout.needs().contains(Input::IcmpType));
            let id = community_id(layout, &packet, &inputs);
            assert_eq!(id.as_deref(), Some(cells[5]), "{row}");
        }
    }
}

proptest! {
    /// Records are annotated with what is known at the time. However they are grouped, they merge
    /// into the latest known value of each input, or into the first.
    #[test]
    fn the_latest_known_value_is_that_of_the_flow(
        known in prop::collection::vec(
            prop::array::uniform9(prop::option::weighted(0.4, 0..u64::MAX - 1)),
            1..12,
        ),
        split in any::<prop::sample::Index>(),
        biflow: bool,
    ) {
        for op in [Op::First, Op::Last] {
            let layout = Layout::compile(&definition(inspected_features(&op)), biflow).unwrap();
            let records: Vec<_> = known.iter().enumerate().map(|(index, values)| {
                let packet = packet(index as u64, biflow && index % 2 == 1);
                let mut record = layout.open::<WORDS_V4, 24>(&packet, &InputValues::default());
                layout.annotation().write(&mut record.state, values);
                record
            }).collect();
            let merged = |records: &[MicroflowRecord<WORDS_V4, 24>]| {
                let mut whole = records[0];
                records[1..].iter().for_each(|later| whole.merge(later, layout.plan()));
                whole
            };
            let whole = merged(&records);
            let split = split.index(records.len());
            if split > 0 {
                let mut parts = merged(&records[..split]);
                parts.merge(&merged(&records[split..]), layout.plan());
                prop_assert_eq!(parts, whole);
            }
            for (place, step) in layout.annotation().words() {
                let mut there = known.iter().filter_map(|values| values[place]);
                let expected = if op == Op::First { there.next() } else { there.next_back() };
                prop_assert_eq!(whole.state[step].checked_sub(1), expected);
            }
        }
    }
}
