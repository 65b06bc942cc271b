// SPDX-License-Identifier: Apache-2.0
//! What tests and benchmarks feed the product, and what they hold its answers against.
//!
//! - [`mod@reference`]: the oracle, a per-packet flow meter that keeps every packet.
//! - [`traffic`]: frames of millions of flows with stated skew, rates and mix.
//! - [`workloads`]: the paper's traffic: an Internet link and data-centre switches, calibrated.
//! - [`links`]: many links from the capture of one.
//! - [`sequences`]: random packet sequences that sit on the edges of the rules.
//! - [`definitions`]: random record definitions.
//! - [`random`]: the numbers that all of these are made from.

pub mod definitions;
mod flow_set;
pub mod links;
pub mod random;
pub mod reference;
pub mod sequences;
pub mod traffic;
pub mod workloads;
