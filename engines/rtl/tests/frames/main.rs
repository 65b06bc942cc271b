// SPDX-License-Identifier: Apache-2.0
//! Tests of the part of a card before the meter, which turns frames into packets. All of it is
//! simulated, so there are no tests without the feature `rtl`.
#![cfg(feature = "rtl")]
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

mod captures;
mod card;
mod faults;
mod generate;
mod model;
mod parser;
