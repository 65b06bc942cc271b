// SPDX-License-Identifier: Apache-2.0
//! The program's marks equal those of crates/record.

use turboflow_merge::Marks;

#[test]
fn both_sides_have_the_same_marks() {
    let header = include_str!("../bpf/row.h");
    let bit_of = |name: &str| {
        let define = format!("#define MARK_{name} (1 << ");
        let (_, rest) = header.split_once(&define).expect("it is defined");
        let (bit, _) = rest.split_once(')').expect("its end");
        1u8 << bit.parse::<u32>().expect("a number")
    };
    assert_eq!(bit_of("STARTS_WITH_SYN"), Marks::STARTS_WITH_SYN);
    assert_eq!(bit_of("SYN"), Marks::SYN);
    assert_eq!(bit_of("FIN"), Marks::FIN);
    assert_eq!(bit_of("REVERSE_FIN"), Marks::REVERSE_FIN);
    assert_eq!(bit_of("RST"), Marks::RST);
}
