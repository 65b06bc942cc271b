// SPDX-License-Identifier: Apache-2.0
//! Flow records sent to real collectors: each gets every flow as it is, without an error, also when
//! it was started anew, when templates were lost, when the exporter was started anew.
//!
//! They need `scripts/install-test-tools.sh`; a test whose collector is absent is skipped. docs/interop.md has the command lines.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

mod daemon;
mod faults;
mod flow;
mod goflow2;
mod netgauze;
mod nfacctd;
mod nfcapd;
mod relay;
mod sink;
#[path = "../cli/support.rs"]
#[allow(dead_code, reason = "the other tests use the rest of it")]
mod support;
mod tshark;
