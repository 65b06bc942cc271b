// SPDX-License-Identifier: Apache-2.0
//! Input for tests and benchmarks, and the oracle that their results are compared with.
//!
//! - [`mod@reference`]: the oracle, a per-packet flow meter that keeps every packet.
//! - [`traffic`]: frames of millions of flows with given skew, rates and protocol mix.
//! - [`workloads`]: the paper's traffic, calibrated: an Internet link and data-centre switches.
//! - [`links`]: many links, made from the capture of one link.
//! - [`sequences`]: random packet sequences around the edge cases of the rules.
//! - [`definitions`]: random record definitions.
//! - [`frames`]: makes frames of given packets.
//! - [`telemetry`]: packets with in-band telemetry, and a network with faults.
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
