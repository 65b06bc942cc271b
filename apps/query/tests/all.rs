// SPDX-License-Identifier: Apache-2.0
//! The integration tests of this crate in one program, which links once.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

mod apart;
mod applications;
mod drill;
mod files;
mod forms;
mod groups;
mod language;
mod pseudonyms;
mod show;
mod width;
mod within;
