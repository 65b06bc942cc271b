// SPDX-License-Identifier: Apache-2.0
//! Tests the P4 program on DPDK's software pipeline. All tests are in one program, so that the
//! conformance suite is compiled once.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

mod captures;
mod loss;
#[path = "../../../tests/support/mod.rs"]
mod support;

use std::path::Path;

use turboflow_engine_p4::{PROGRAMS, SwxPort};
use turboflow_testing::{Need, is_missing};

const SWX: Need<'static> = Need::Engine("swx", cfg!(feature = "dpdk"));

/// A pipeline that runs the program for this definition.
fn port(definition: &str) -> SwxPort {
    let runner = Path::new(env!("CARGO_BIN_EXE_turboflow-swx"));
    let mut programs = PROGRAMS.iter();
    let program = programs.find(|program| program.definition == definition);
    SwxPort::start(runner, program.unwrap().spec).unwrap()
}

#[test]
fn keeps_the_laws_on_sequences_made_by_hand() {
    if !is_missing(&[SWX]) {
        support::conformance::keeps_the_laws_on_sequences_made_by_hand(port("default"));
    }
}

#[test]
fn keeps_the_laws_on_random_sequences() {
    if !is_missing(&[SWX]) {
        support::conformance::keeps_the_laws_on_random_sequences(port("default"));
    }
}
