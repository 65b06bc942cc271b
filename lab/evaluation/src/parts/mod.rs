// SPDX-License-Identifier: Apache-2.0
//! The parts of the evaluation. Each part is measured in its own process, and its report is made
//! from the stored facts.

mod accuracy;
mod aggregator;
mod benches;
mod classify;
mod features;
mod figure11;
mod figure13;
mod figure14;
mod links;
mod offload;
mod offload_kernel;
mod paper_tables;
mod saptm;
mod sweep;
mod table10;
mod table11;

use std::path::PathBuf;

use crate::facts::{Fact, Raw};
use crate::report::Section;

/// How much is measured.
#[derive(Clone, Debug)]
pub struct Scale {
    /// Takes seconds per part, but the numbers are not reliable.
    pub quick: bool,
    /// Address of a Redis server, `host:port`. Without one, its rows are left out.
    pub redis: Option<String>,
    /// Folder of captures of real traffic, which may be missing.
    pub captures: PathBuf,
}

impl Scale {
    /// A scale for parts that are computed, without access to anything outside the program.
    pub(crate) fn of_computation(quick: bool) -> Self {
        Self {
            quick,
            redis: None,
            captures: PathBuf::new(),
        }
    }

    /// Chooses between the numbers for a quick and a full run.
    pub(crate) fn pick<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    /// The address for benchmarks. Without a server it is empty, and no connection succeeds.
    fn redis(&self) -> String {
        self.redis.clone().unwrap_or_default()
    }
}

/// Receives each fact as soon as it is measured.
pub(crate) type FactSink<'a> = &'a mut dyn FnMut(Fact);

/// A part of the evaluation.
pub(crate) struct Part {
    /// Name on the command line and in `raw.jsonl`.
    pub(crate) name: &'static str,
    /// The heading in the report.
    pub(crate) title: &'static str,
    pub(crate) measure: fn(&Scale, FactSink<'_>) -> anyhow::Result<()>,
    /// May also use facts of other parts, if they were measured.
    pub(crate) report: fn(&Raw, &mut Section),
    /// Whether the facts do not depend on time and machine. If a run lacks the part, its report
    /// computes them.
    pub(crate) is_computed: bool,
}

impl Part {
    /// A copy of the run that includes the facts of this part, computed now.
    ///
    /// # Errors
    /// If the part fails.
    pub(crate) fn computed(&self, raw: &Raw, scale: &Scale) -> anyhow::Result<Raw> {
        let mut facts = Vec::new();
        (self.measure)(scale, &mut |fact| facts.push(fact))?;
        Ok(raw.with_part(self.name, facts))
    }
}

/// All parts, in the order of the report.
pub(crate) const PARTS: [Part; 16] = [
    paper_tables::TABLE_5,
    figure11::PART,
    aggregator::PART,
    features::PART,
    table10::PART,
    table11::PART,
    figure13::PART,
    figure14::PART,
    classify::PART,
    paper_tables::TABLE_12,
    paper_tables::TABLE_13,
    sweep::PART,
    offload::PART,
    offload_kernel::PART,
    saptm::PART,
    accuracy::PART,
];

/// The part with that name.
pub(crate) fn part(name: &str) -> anyhow::Result<&'static Part> {
    const ALL: &[Part] = &PARTS;
    ALL.iter().find(|part| part.name == name).ok_or_else(|| {
        let names: Vec<&str> = ALL.iter().map(|part| part.name).collect();
        anyhow::anyhow!("there is no part {name:?}: use one of {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_by_name_and_errors_list_the_names() {
        for expected in &PARTS {
            assert_eq!(part(expected.name).unwrap().title, expected.title);
        }
        let error = part("figure99").err().unwrap().to_string();
        assert!(
            error.contains("figure99") && error.contains("figure12"),
            "{error}"
        );
    }
}
