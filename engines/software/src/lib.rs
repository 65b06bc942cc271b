// SPDX-License-Identifier: Apache-2.0
//! The user-space forwarding engine: the paper's microflow table (TurboFlow, section 4, Figure 4)
//! in front of the aggregator. It is the golden model for the other engines: the conformance suite
//! in `turboflow_engine::conformance` compares each of them with this engine. This engine itself is
//! compared with a table written in the simplest possible code.
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
