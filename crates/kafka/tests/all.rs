// SPDX-License-Identifier: Apache-2.0
//! Sends records to librdkafka's own mock brokers, which run in this process, and reads them back.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

#[cfg(feature = "kafka")]
mod brokers;
mod messages;
mod support;
#[cfg(feature = "kafka")]
mod ticks;
