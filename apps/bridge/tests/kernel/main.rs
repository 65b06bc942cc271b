// SPDX-License-Identifier: Apache-2.0
//! Tests of ports and fail modes on veth pairs, in a network namespace that each test creates.
//!
//! They need root and `scripts/install-test-tools.sh`; otherwise they are skipped.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

mod fail;
mod frames;
mod namespace;
mod ports;
