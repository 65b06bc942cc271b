// SPDX-License-Identifier: Apache-2.0
//! Stands for the tests of `tests/kernel` if the engine is not compiled: they count as skipped.

#![cfg(not(feature = "kernel"))]

use turboflow_testing::{Need, is_missing};

#[test]
fn the_program_in_the_kernel_does_what_the_software_engine_does() {
    assert!(is_missing(&[Need::Engine("xdp", false)]));
}
