// SPDX-License-Identifier: Apache-2.0
//! The parts of the evaluation: each measures by itself, in a process of its own, and reports from
//! what was measured.

mod accuracy;
mod aggregator;
mod benches;
mod features;
mod figure11;
mod figure13;
mod figure14;
mod links;
mod paper_tables;
mod sweep;
mod table10;
mod table11;

use std::path::PathBuf;

use crate::facts::{Fact, Raw};
use crate::report::Section;

/// How much to measure.
#[derive(Clone, Debug)]
pub struct Scale {
    /// Little: every part within seconds, numbers for nobody to rely on.
    pub quick: bool,
    /// Where a Redis server listens, `host:port`; without one its rows are left out.
    pub redis: Option<String>,
    /// Folder of captures of real traffic; it need not be there.
    pub captures: PathBuf,
}

impl Scale {
    /// One of two numbers.
    pub(crate) fn pick<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    /// Where a benchmark looks for a Redis server; where none is named, none answers.
    fn redis(&self) -> String {
        self.redis.clone().unwrap_or_default()
    }
}

/// Takes each fact as it is there.
pub(crate) type Give<'a> = &'a mut dyn FnMut(Fact);

/// A part of the evaluation.
pub(crate) struct Part {
    /// As on the command line and in `raw.jsonl`.
    pub(crate) name: &'static str,
    /// Its heading in the report.
    pub(crate) title: &'static str,
    pub(crate) measure: fn(&Scale, Give<'_>) -> anyhow::Result<()>,
    /// Also from what other parts measured, as far as they did.
    pub(crate) report: fn(&Raw, &mut Section),
}

/// All of them, in the order of the report.
pub(crate) const PARTS: [Part; 12] = [
    paper_tables::TABLE_5,
    figure11::PART,
    aggregator::PART,
    features::PART,
    table10::PART,
    table11::PART,
    figure13::PART,
    figure14::PART,
    paper_tables::TABLE_12,
    paper_tables::TABLE_13,
    sweep::PART,
    accuracy::PART,
];

/// The part of that name.
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
    fn parts_are_found_by_their_names_and_names_are_told() {
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
