// SPDX-License-Identifier: Apache-2.0
//! All integration tests of this crate in one program, which has to be linked only once.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

mod arrow;
mod files;
mod foreign;
mod goflow2;
mod golden;
mod hostile;
mod hostile_parquet;
mod ipfix;
mod lake;
mod packed;
mod round_trip;
mod sets;
mod support;
mod texts;
#[path = "wire/main.rs"]
mod wire;
