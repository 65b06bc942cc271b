// SPDX-License-Identifier: Apache-2.0
//! Writes a definition as commented TOML, which parses back to an equal definition.

use std::fmt::Write;

use crate::{Definition, Feature, Op};

const HEAD: &str = "\
# What a flow record holds.
#
# [key]        packets that agree in these fields are one flow; without this table, the 5-tuple
# [[feature]]  one column: `op` folds the values that `of` has in the packets of the flow
#
# All fields, ops and inputs: docs/definition.md.
";

impl Definition {
    /// The definition as TOML with comments. [`Definition::parse`] returns an equal definition.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text = HEAD.to_owned();
        text.push_str("\n[key]\nfields = [\n");
        for field in &self.key {
            text.push_str(&aligned(
                &format!("    \"{}\",", field.name()),
                field.describe(),
            ));
        }
        text.push_str("]\n");
        for feature in &self.features {
            feature.write(&mut text);
        }
        text
    }
}

impl Feature {
    fn write(&self, text: &mut String) {
        text.push_str("\n[[feature]]\n");
        let name = self.name.escape_default();
        writeln!(text, "name = \"{name}\"").expect("text takes any text");
        let op = self.op.name();
        let says = Op::describe(op).unwrap_or_default();
        text.push_str(&aligned(&format!("op = \"{op}\""), says));
        if let Some(of) = self.of {
            text.push_str(&aligned(&format!("of = \"{}\"", of.name()), of.describe()));
        }
        match &self.op {
            Op::Nth { k } | Op::List { k } => {
                writeln!(text, "k = {k}").expect("text takes any text");
            }
            Op::Histogram { edges } => {
                writeln!(text, "edges = {edges:?}").expect("text takes any text");
            }
            _ => {}
        }
        if self.per_biflow {
            text.push_str(&aligned(
                "per = \"biflow\"",
                "both directions in one column",
            ));
        }
    }
}

/// A line followed by a comment at column 32.
fn aligned(line: &str, comment: &str) -> String {
    format!("{line:<31} # {comment}\n")
}
