// SPDX-License-Identifier: Apache-2.0
//! The program on a real kernel, by test runs: no network is needed, root and BPF are.

#![cfg(feature = "kernel")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cost;
mod laws;
mod parser;
mod support;
mod table;
