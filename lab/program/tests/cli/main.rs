// SPDX-License-Identifier: Apache-2.0
//! The laboratory's program, run from the outside.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

mod bench;
mod evaluation;
mod help;
#[cfg(all(target_os = "linux", feature = "kernel"))]
mod kernel;
mod support;
