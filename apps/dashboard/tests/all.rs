// SPDX-License-Identifier: Apache-2.0
//! The integration tests of this crate in one program, which links once.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

mod answers;
mod client;
mod enriched;
mod hostile;
mod plan;
mod times;
mod watching;
