// SPDX-License-Identifier: Apache-2.0
//! Tests of the line: the model on its own, and the SystemVerilog against the model.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

#[cfg(feature = "rtl")]
mod background;
#[cfg(feature = "rtl")]
mod bench;
#[cfg(feature = "rtl")]
mod faults;
#[cfg(feature = "rtl")]
mod lint;
#[cfg(feature = "rtl")]
mod meter;
mod package;
#[cfg(feature = "rtl")]
mod sequence;
mod studies;
#[cfg_attr(
    not(feature = "rtl"),
    allow(dead_code, reason = "the model alone is tested with less")
)]
mod traffic;
mod wide;
