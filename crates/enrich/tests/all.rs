// SPDX-License-Identifier: Apache-2.0
//! Columns of addresses and ports, from texts and databases.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

mod columns;
mod maxmind;
mod refused;
