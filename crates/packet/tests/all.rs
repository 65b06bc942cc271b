// SPDX-License-Identifier: Apache-2.0
//! The integration tests of this crate in one program, which links once.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

#[path = "support/build.rs"]
mod build;
mod differential;
#[path = "support/generate.rs"]
mod generate;
#[path = "support/marks.rs"]
mod marks;
mod properties;
#[path = "sentences/main.rs"]
mod sentences;
mod support;
mod telemetry;
mod truth;
