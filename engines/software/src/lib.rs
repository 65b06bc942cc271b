// SPDX-License-Identifier: Apache-2.0
//! The user-space forwarding engine: the paper's microflow table (TurboFlow, section 4, Figure 4)
//! in front of the aggregator. It is the golden model for engines in other places: the suite of
//! `turboflow_engine::conformance` compares their records with its own, and its own with those of a
//! table in the plainest code.
//!
//! Packets come in as microflow records of one packet, in the order of their arrival; a
//! direct-mapped table merges those of one flow that come close together; what a collision, the
//! end of a cell, or a rule of `docs/decisions/0001-cells.md` displaces goes to the aggregator.

mod bypass;
mod table;

pub use bypass::Sizing;
pub use table::{EngineConfig, SoftwareEngine, SoftwareEngines};

#[cfg(test)]
mod tests;
