// SPDX-License-Identifier: Apache-2.0
//! Flow records of all captures by the P4 program on DPDK's pipeline, beside those of the software
//! engine: byte by byte the same, whatever the size of the table.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

#[path = "../../tests/support/mod.rs"]
mod support;

use std::path::Path;

use turboflow_engine_p4::{PROGRAMS, SwxPort};
use turboflow_testing::{Need, is_missing};

fn all_captures_with(slots: u32) {
    let swx = Need::Engine("swx", cfg!(feature = "dpdk"));
    if is_missing(&[swx, Need::Captures, Need::Cases]) {
        return;
    }
    let runner = Path::new(env!("CARGO_BIN_EXE_turboflow-swx"));
    let mut programs = PROGRAMS.iter();
    let program = programs.find(|program| program.definition == "default");
    let port = SwxPort::start(runner, program.unwrap().spec).unwrap();
    support::all_captures_through(port, slots);
}

#[test]
fn with_64_slots() {
    all_captures_with(64);
}

#[test]
fn with_1024_slots() {
    all_captures_with(1_024);
}

#[test]
fn with_65536_slots() {
    all_captures_with(65_536);
}
