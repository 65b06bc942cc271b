// SPDX-License-Identifier: Apache-2.0
//! The P4 program on DPDK's software pipeline. One program for all tests, so that the suite of
//! engines is compiled once.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

mod captures;
mod conformance;
mod loss;
mod support;
