// SPDX-License-Identifier: Apache-2.0
//! `turboflow record -i` on real interfaces: tcpreplay replays captures through a veth pair, in a
//! network namespace that each test makes.
//!
//! The tests need root and `scripts/install-test-tools.sh`, and are skipped otherwise. They wait
//! for outputs and states of the program, never for time to pass.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

mod agreement;
mod apart;
mod attached;
mod bound;
mod bridge;
mod captures;
mod clock;
mod collectors;
mod drops;
mod exact;
mod faults;
mod generate;
mod kernel;
mod link;
mod names;
mod offload;
mod plan;
#[path = "../cli/reader.rs"]
mod reader;
mod refusals;
mod service;
mod silence;
mod stalled;
mod states;
#[path = "../cli/support.rs"]
#[allow(dead_code, reason = "the other tests use the rest of it")]
mod support;
mod top;
mod unparsed;
mod witness;
