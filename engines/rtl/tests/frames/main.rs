// SPDX-License-Identifier: Apache-2.0
//! Tests of what comes before the meter on a card: frames to packets. Everything runs simulated, so
//! there is nothing without the feature `rtl`.
#![cfg(feature = "rtl")]
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

mod captures;
mod card;
mod faults;
mod generate;
mod model;
mod parser;
