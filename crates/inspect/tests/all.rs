// SPDX-License-Identifier: Apache-2.0
//! Inspections of real captures by the real library, in its process.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod inspector_process;
mod reader;
mod shares;
mod tls;
