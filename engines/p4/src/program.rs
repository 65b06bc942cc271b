// SPDX-License-Identifier: Apache-2.0
//! The compiled programs that come with the engine.

use crate::P4Record;

/// A program for DPDK's software pipeline, compiled from `p4/pna`.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// The name of its record definition.
    pub definition: &'static str,
    /// The `.spec` compiled by p4c.
    pub spec: &'static str,
}

impl Program {
    /// Whether it was compiled for these records.
    #[must_use]
    pub fn is_for(&self, record: &P4Record) -> bool {
        // The compiler writes the number in this form.
        self.spec.contains(&format!("0x{:X}", record.id()))
    }
}

/// The programs.
pub const PROGRAMS: [Program; 2] = [
    Program {
        definition: "default",
        spec: include_str!("../compiled/pna/default.spec"),
    },
    Program {
        definition: "paper_four",
        spec: include_str!("../compiled/pna/paper_four.spec"),
    },
];
