// SPDX-License-Identifier: Apache-2.0
//! The program on a real kernel, by test runs: no network is needed, root and BPF are.

#![cfg(feature = "kernel")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

// The parser's own tests make frames; these read the same ones.
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
mod support;
mod table;
