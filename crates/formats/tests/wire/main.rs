// SPDX-License-Identifier: Apache-2.0
//! Decodes messages with an independent decoder (the crate `netflow_parser`).
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

mod decode;
mod refused;
mod sessions;
mod templates;
mod values;
