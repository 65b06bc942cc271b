// SPDX-License-Identifier: Apache-2.0
//! Compares layouts with information elements and the examples in `docs/definition.md`.

use turboflow_record::{Definition, ElementOptions, Feature, Op};

use crate::Layout;

#[test]
fn every_column_of_the_schema_has_an_element() {
    for biflow in [false, true] {
        let mut definition = Definition::default();
        definition.features.push(Feature {
            per_biflow: true,
            ..Feature::new("f", Op::Duration, None)
        });
        let schema = Layout::compile(&definition, biflow)
            .unwrap()
            .schema()
            .clone();
        let elements = definition.elements(biflow, &ElementOptions::default());
        assert_eq!(elements.len(), schema.len());
    }
}

/// Every ```toml block in `docs/definition.md` is a definition that compiles.
#[test]
fn the_examples_of_the_reference_compile() {
    let reference = include_str!("../../../../../docs/definition.md");
    let mut blocks = 0;
    for block in reference.split("```toml\n").skip(1) {
        let (text, _) = block.split_once("```").expect("every block ends");
        let definition = Definition::parse(text).unwrap_or_else(|e| panic!("{e}:\n{text}"));
        Layout::compile(&definition, true).unwrap_or_else(|e| panic!("{e}:\n{text}"));
        blocks += 1;
    }
    assert!(blocks > 3, "the reference has examples");
}
