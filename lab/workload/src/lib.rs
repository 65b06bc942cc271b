// SPDX-License-Identifier: Apache-2.0
//! Input for tests and benchmarks, and the oracle that they compare with.
//!
//! - [`mod@reference`]: the oracle, a per-packet flow meter that keeps every packet.
//! - [`traffic`]: frames of millions of flows with stated skew, rates and mix.
//! - [`workloads`]: the paper's traffic, calibrated: an Internet link and data-centre switches.
//! - [`links`]: many links made from the capture of one.
//! - [`sequences`]: random packet sequences around the edge cases of the rules.
//! - [`definitions`]: random record definitions.
//! - [`frames`]: frames of given packets.
//! - [`telemetry`]: packets with in-band telemetry, and networks in which something is wrong.
//! - [`random`]: the random numbers used by all of these.

pub mod definitions;
mod flow_set;
pub mod frames;
pub mod links;
pub mod random;
pub mod reference;
pub mod sequences;
pub mod telemetry;
pub mod traffic;
pub mod workloads;
