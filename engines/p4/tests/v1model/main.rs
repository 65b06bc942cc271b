// SPDX-License-Identifier: Apache-2.0
//! The P4 program for bmv2's `simple_switch`, run from its compiled JSON.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

mod chip;
mod expression;
mod lane;
mod live;
mod ports;
mod program;
mod queue;
#[path = "../support/mod.rs"]
mod support;
mod switch;

use turboflow_testing::{Need, is_missing};

use switch::Switch;

/// The programs: a tap, a tap that batches reports, one that forwards frames, and two that meter
/// frames behind the queue.
const TAP: &str = include_str!("../../compiled/v1model/default.json");
const BATCH: &str = include_str!("../../compiled/v1model/default-batch.json");
const INLINE: &str = include_str!("../../compiled/v1model/default-inline.json");
const QUEUE: &str = include_str!("../../compiled/v1model/queue.json");
const PAPER_EIGHT: &str = include_str!("../../compiled/v1model/paper_eight.json");

/// Flow records of all captures equal those of the software engine, byte by byte, whatever the size
/// of the table.
fn all_captures_with(slots: u32) {
    if !is_missing(&[Need::Captures, Need::Cases]) {
        support::all_captures_through(Switch::new(TAP), slots);
    }
}

#[test]
fn captures_with_64_slots() {
    all_captures_with(64);
}

#[test]
fn captures_with_1024_slots() {
    all_captures_with(1_024);
}

#[test]
fn captures_with_65536_slots() {
    all_captures_with(65_536);
}

/// The tap as it is, and the tap with several reports in a frame.
const TAPS: [&str; 2] = [TAP, BATCH];

#[test]
fn keeps_the_laws_on_sequences_made_by_hand() {
    for program in TAPS {
        support::conformance::keeps_the_laws_on_sequences_made_by_hand(Switch::new(program));
    }
}

#[test]
fn keeps_the_laws_on_random_sequences() {
    for program in TAPS {
        support::conformance::keeps_the_laws_on_random_sequences(Switch::new(program));
    }
}
