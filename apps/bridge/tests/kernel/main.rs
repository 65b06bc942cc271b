// SPDX-License-Identifier: Apache-2.0
//! Ports and what forwards in a failure, on veth pairs in a network namespace that each test makes.
//!
//! The tests need root and `scripts/install-test-tools.sh`, and are skipped without.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

mod fail;
mod frames;
mod namespace;
mod ports;
