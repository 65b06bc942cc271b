// SPDX-License-Identifier: Apache-2.0
//! Checks what the reference says about every input: whether capture files have it, and whether the
//! engine provides it.

use turboflow_engine_xdp::INPUTS;
use turboflow_packet::{PARSED_INPUTS, TELEMETRY_INPUTS};
use turboflow_record::{Input, InputSet};

#[test]
fn the_reference_says_who_sees_an_input() {
    let reference = include_str!("../../../docs/definition.md");
    let (_, reference) = reference.split_once("## Inputs").expect("a section");
    for input in Input::ALL {
        let row = format!("| `{}` |", input.name());
        let row = reference.lines().find(|line| line.starts_with(&row));
        let cells: Vec<&str> = row.expect("a row").split('|').map(str::trim).collect();
        let seen = |by: InputSet| match (InputSet::DERIVED.contains(input), by.contains(input)) {
            (true, _) => "derived",
            (_, true) => "yes",
            (_, false) => "",
        };
        // The engine does not make biflows.
        let by_engine = match input {
            Input::Direction => "",
            _ => seen(INPUTS),
        };
        let in_files = seen(PARSED_INPUTS.union(TELEMETRY_INPUTS));
        assert_eq!(cells[6..8], [in_files, by_engine], "{input:?}");
    }
}
