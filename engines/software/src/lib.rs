// SPDX-License-Identifier: Apache-2.0
//! The user-space forwarding engine: the paper's microflow table (TurboFlow, section 4, Figure 4)
//! in front of the aggregator. It is the golden model for other engines: the suite of
//! `turboflow_engine::conformance` compares them with this engine, and this engine with a table in
//! the plainest code.
//!
//! Packets come in as microflow records of one packet, in order of arrival. A direct-mapped table
//! merges packets of a flow that arrive close together. Records that leave the table go to the
//! aggregator: on a collision, at the end of a cell, or by a rule of
//! `docs/decisions/0001-cells.md`.

mod bypass;
mod table;

pub use bypass::Sizing;
pub use table::{EngineConfig, SoftwareEngine, SoftwareEngines};

#[cfg(test)]
mod tests;
