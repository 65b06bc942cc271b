// SPDX-License-Identifier: Apache-2.0
//! Tests the program in a real kernel with test runs: they need no network, but root and BPF.

#![cfg(feature = "kernel")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

// The frames of the parser's tests are used here too.
#[allow(dead_code, reason = "they are used there in other ways")]
#[path = "../../../../crates/packet/tests/support/build.rs"]
mod build;
mod conformance;
mod driver;
mod fire;
#[path = "../../../../crates/packet/tests/support/generate.rs"]
mod generate;
mod handed_up;
mod laws;
mod links;
mod parser;
mod planned;
mod subject;
mod support;
mod table;
