// SPDX-License-Identifier: Apache-2.0
//! Stands for the tests of `tests/kernel` if the engine is not compiled: they count as skipped.

#![cfg(not(feature = "kernel"))]

use turboflow_testing::{Need, is_missing};

#[test]
fn the_table_in_the_kernel_loses_no_packet() {
    assert!(is_missing(&[Need::Engine("xdp", false)]));
}
