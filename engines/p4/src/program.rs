// SPDX-License-Identifier: Apache-2.0
//! The compiled programs that come with the engine.

/// A program for DPDK's software pipeline, compiled from `p4/pna`.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// The name of its record definition.
    pub definition: &'static str,
    /// The `.spec` that p4c made.
    pub spec: &'static str,
}

/// The programs.
pub const PROGRAMS: [Program; 1] = [Program {
    definition: "default",
    spec: include_str!("../compiled/pna/default.spec"),
}];
