// SPDX-License-Identifier: Apache-2.0
//! The program's numbers of inputs are those of record definitions, name by name and in their order.

use turboflow_record::Input;

#[test]
fn both_sides_have_the_same_inputs_in_the_same_order() {
    let header = include_str!("../bpf/values.h");
    let (_, list) = header.split_once("enum value {").expect("an enum");
    let (list, _) = list.split_once("INPUT_COUNT").expect("its end");
    let theirs: Vec<String> = list
        .split(',')
        .map(|name| name.trim().to_lowercase())
        .filter(|name| !name.is_empty())
        .collect();
    assert_eq!(theirs, Input::ALL.map(Input::name));
}
