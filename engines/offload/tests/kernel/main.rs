// SPDX-License-Identifier: Apache-2.0
//! Tests the engine in a real kernel with test runs: they need no network, but root and BPF.

#![cfg(feature = "kernel")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bridge;
mod captures;
// The conformance suite of the engine in the kernel, run on this engine.
#[path = "../../../xdp/tests/kernel/conformance.rs"]
mod conformance;
mod faults;
// The conformance suite uses the frames of the parser's tests.
#[allow(dead_code, reason = "they are used there in other ways")]
#[path = "../../../../crates/packet/tests/support/build.rs"]
mod build;
#[path = "../../../../crates/packet/tests/support/generate.rs"]
mod generate;
mod learn;
mod race;
mod run;
mod subject;
#[allow(dead_code, reason = "other tests use other parts")]
#[path = "../../../xdp/tests/kernel/support.rs"]
mod support;
