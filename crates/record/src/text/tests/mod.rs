// SPDX-License-Identifier: Apache-2.0
//! Text to definition and back.

mod errors;

use proptest::prelude::*;

use crate::{ColumnKind, Definition, Feature, Input, KeyField, Op};

#[test]
fn reads_every_key() {
    let text = "[key]\nfields = [\"vlan\", \"source_address\"]\n\
                [[feature]]\nname = \"a\"\nop = \"nth\"\nof = \"ttl\"\nk = 0x10\n\
                [[feature]]\nname = \"b\"\nop = \"histogram\"\nof = \"gap\"\n\
                edges = [0, 1_000]\nper = \"biflow\"\n";
    let histogram = Op::Histogram {
        edges: vec![0, 1_000],
    };
    let b = Feature::new("b", histogram, Some(Input::Gap));
    let expected = Definition {
        key: vec![KeyField::Input(Input::Vlan), KeyField::SourceAddress],
        features: vec![
            Feature::new("a", Op::Nth { k: 16 }, Some(Input::Ttl)),
            Feature {
                per_biflow: true,
                ..b
            },
        ],
    };
    assert_eq!(Definition::parse(text), Ok(expected));
}

#[test]
fn keys_default_to_the_five_tuple() {
    let text = "[[feature]]\nname = \"packets\"\nop = \"count\"\n";
    assert_eq!(Definition::parse(text).unwrap().key, KeyField::FIVE_TUPLE);
}

#[test]
fn default_definition_reads_back() {
    let text = Definition::default().to_toml();
    assert_eq!(Definition::parse(&text), Ok(Definition::default()));
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
}

#[test]
fn unbounded_nesting_is_rejected() {
    for open in [
        "[",
        "x = [",
        "x = {y = ",
        "[[feature]]\nname = [[",
        "a.",
        "[a.",
    ] {
        assert!(Definition::parse(&open.repeat(100_000)).is_err());
    }
}

/// The tables in `docs/definition.md` name every op, input and field.
#[test]
fn the_reference_is_complete() {
    let reference = include_str!("../../../../../docs/definition.md");
    let inputs = Input::ALL.into_iter().map(Input::name);
    for name in Op::NAMES
        .into_iter()
        .chain(inputs)
        .chain(KeyField::all().map(KeyField::name))
    {
        assert!(
            reference.contains(&format!("| `{name}` |")),
            "{name} is not in the reference"
        );
    }
    let (_, inputs) = reference.split_once("## Inputs").expect("a section");
    for input in Input::ALL {
        let row = format!("| `{}` | {}", input.name(), input.describe());
        let row = inputs.lines().find(|line| line.starts_with(&row));
        let row = row.unwrap_or_else(|| panic!("{input:?} is described otherwise"));
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let bits = match input.column_kind() {
            ColumnKind::Unsigned { bits } => bits,
            _ => input.bits(),
        };
        let kind = format!("{:?}", input.meaning()).to_lowercase();
        let in_keys = match KeyField::INPUTS.contains(&input) {
            true => "yes",
            false => "",
        };
        assert_eq!(
            cells[3..6],
            [bits.to_string().as_str(), &kind, in_keys],
            "{input:?}"
        );
    }
}

fn any_feature() -> impl Strategy<Value = Feature> {
    let op = (
        proptest::sample::select(Op::NAMES.to_vec()),
        1usize..=256,
        1u64..u64::MAX,
    );
    let of = proptest::option::of(proptest::sample::select(Input::ALL.to_vec()));
    (op, of, any::<bool>()).prop_filter_map("makes sense", |((name, k, edge), of, per_biflow)| {
        let op = match Op::with_name(name)? {
            Op::Nth { .. } => Op::Nth { k },
            Op::List { .. } => Op::List { k },
            Op::Histogram { .. } => Op::Histogram {
                edges: vec![edge - 1, edge, u64::MAX],
            },
            op => op,
        };
        let feature = Feature {
            name: "x".to_owned(),
            op,
            of,
            per_biflow,
        };
        let alone = Definition {
            features: vec![feature.clone()],
            ..Definition::default()
        };
        alone.check().is_ok().then_some(feature)
    })
}

proptest! {
    #[test]
    fn written_definitions_read_back(
        features in proptest::collection::vec(any_feature(), 1..8),
        key in proptest::sample::subsequence(KeyField::all().collect::<Vec<_>>(), 1..8),
    ) {
        let name = |(index, feature)| Feature { name: format!("f{index}"), ..feature };
        let features = features.into_iter().enumerate().map(name).collect();
        let definition = Definition { key, features };
        // A Community ID needs the 5-tuple in the key.
        prop_assume!(definition.check().is_ok());
        prop_assert_eq!(Definition::parse(&definition.to_toml()), Ok(definition));
    }

    #[test]
    fn any_text_is_parsed_or_rejected(text in "([\\[\\]a-z_=\"'#, 0-9.\n-]|name|op|feature|\\[key\\]|k = ){0,40}") {
        if let Err(error) = Definition::parse(&text) {
            prop_assert_eq!(error.to_string().lines().count(), 1);
        }
    }
}
