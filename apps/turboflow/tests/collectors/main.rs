// SPDX-License-Identifier: Apache-2.0
//! Flow records sent to real collectors, received from real exporters, and read by other programs.
//! Each collector decodes every flow without an error, even after lost templates or a restart of
//! the collector or the exporter.
//!
//! The tests need `scripts/install-test-tools.sh`. A test whose collector is missing is skipped.
//! docs/interop.md has the command lines.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

#[path = "../cli/certificates.rs"]
mod certificates;
mod clickhouse;
mod collect;
mod daemon;
mod exporters;
mod fabric;
mod faults;
mod flow;
mod goflow2;
mod kafka;
mod kafka_tls;
mod lakehouse;
mod netgauze;
mod nfacctd;
mod nfcapd;
mod python;
mod questions;
mod relay;
mod sink;
#[path = "../cli/support.rs"]
#[allow(dead_code, reason = "the other tests use the rest of it")]
mod support;
mod tshark;
