// SPDX-License-Identifier: Apache-2.0
//! Flow records of all captures equal those of the software engine, byte by byte, whatever the size
//! of the table.

use turboflow_testing::{Need, is_missing};

use crate::support::all_captures_through;
use crate::{SWX, port};

fn all_captures_with(slots: u32) {
    if !is_missing(&[SWX, Need::Captures, Need::Cases]) {
        all_captures_through(port("default"), slots);
    }
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
