// SPDX-License-Identifier: Apache-2.0
//! The program's reasons equal those of the parser, by name and order.

use turboflow_packet::Rejected;

#[test]
fn both_sides_have_the_same_reasons_in_the_same_order() {
    let header = include_str!("../bpf/reasons.h");
    let (_, list) = header.split_once("enum reason {").expect("an enum");
    let (list, _) = list.split_once("REASON_COUNT").expect("its end");
    let theirs: Vec<String> = list
        .split(',')
        .map(|name| name.trim().to_lowercase())
        .filter(|name| !name.is_empty())
        .collect();
    assert_eq!(theirs, Rejected::ALL.map(Rejected::name));
}
