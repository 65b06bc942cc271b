// SPDX-License-Identifier: Apache-2.0
//! Measurements, one JSON object per line: `raw.jsonl` of a run.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};

/// One measurement, or the mark that a part is complete.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Fact {
    /// The part of the evaluation.
    pub(crate) part: String,
    /// Labels and their names: design, workload, traffic, ...
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) of: BTreeMap<String, String>,
    /// Numbers. Their keys end with the unit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) values: BTreeMap<String, f64>,
    /// Duration of the whole part, in seconds. Only the part's last line has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) complete_after_s: Option<f64>,
}

impl Fact {
    pub(crate) fn new(part: &str) -> Self {
        Self {
            part: part.to_owned(),
            of: BTreeMap::new(),
            values: BTreeMap::new(),
            complete_after_s: None,
        }
    }

    pub(crate) fn of(mut self, label: &str, name: impl Into<String>) -> Self {
        self.of.insert(label.to_owned(), name.into());
        self
    }

    pub(crate) fn value(mut self, name: &str, value: f64) -> Self {
        self.values.insert(name.to_owned(), value);
        self
    }

    /// The name under a label; empty if there is none.
    pub(crate) fn label(&self, label: &str) -> &str {
        self.of.get(label).map_or("", String::as_str)
    }

    /// The number under a key; NaN if there is none. Tables and plots skip NaN.
    pub(crate) fn get(&self, name: &str) -> f64 {
        self.values.get(name).copied().unwrap_or(f64::NAN)
    }
}

/// The facts of one part.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts(pub(crate) Vec<Fact>);

impl Facts {
    /// The facts that have this name under the label.
    pub(crate) fn with(&self, label: &str, name: &str) -> Self {
        let with = self.0.iter().filter(|fact| fact.label(label) == name);
        Self(with.cloned().collect())
    }

    /// The facts that have this number under the key `name`.
    pub(crate) fn at(&self, name: &str, value: f64) -> Self {
        let at = self.0.iter().filter(|fact| fact.get(name) == value);
        Self(at.cloned().collect())
    }

    /// The distinct names under a label, in the order of their first appearance.
    pub(crate) fn names(&self, label: &str) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for fact in &self.0 {
            let name = fact.label(label);
            if !name.is_empty() && !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        names
    }

    /// The distinct numbers under a key, ascending.
    pub(crate) fn numbers(&self, name: &str) -> Vec<f64> {
        let mut numbers: Vec<f64> = self.0.iter().map(|fact| fact.get(name)).collect();
        numbers.retain(|number| !number.is_nan());
        numbers.sort_by(f64::total_cmp);
        numbers.dedup();
        numbers
    }

    /// A pair of numbers from each fact.
    pub(crate) fn points(&self, x: &str, y: &str) -> Vec<(f64, f64)> {
        let points = self.0.iter().map(|fact| (fact.get(x), fact.get(y)));
        points.filter(|(x, y)| !x.is_nan() && !y.is_nan()).collect()
    }

    /// The first number under that key.
    pub(crate) fn first(&self, name: &str) -> Option<f64> {
        self.0
            .iter()
            .find_map(|fact| fact.values.get(name).copied())
    }
}

/// `raw.jsonl` of a run. It grows line by line, and an interrupted run can be resumed.
#[derive(Clone)]
pub(crate) struct Raw {
    path: PathBuf,
    facts: Vec<Fact>,
}

impl Raw {
    /// Reads the existing file, ignoring parts that are not complete.
    pub(crate) fn open(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join("raw.jsonl");
        let mut facts = Vec::new();
        if path.exists() {
            let text =
                fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
            // A truncated last line belongs to an incomplete part.
            facts.extend(
                text.lines()
                    .filter_map(|line| serde_json::from_str(line).ok()),
            );
        }
        let complete: Vec<String> = facts
            .iter()
            .filter(|fact: &&Fact| fact.complete_after_s.is_some())
            .map(|fact| fact.part.clone())
            .collect();
        facts.retain(|fact| complete.contains(&fact.part));
        let mut text = String::new();
        for fact in &facts {
            text += &line(fact);
        }
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        Ok(Self { path, facts })
    }

    pub(crate) fn is_complete(&self, part: &str) -> bool {
        let last = |fact: &Fact| fact.part == part && fact.complete_after_s.is_some();
        self.facts.iter().any(last)
    }

    pub(crate) fn add(&mut self, fact: Fact) -> anyhow::Result<()> {
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&self.path)
            .and_then(|mut file| file.write_all(line(&fact).as_bytes()).map(|()| file))
            .with_context(|| format!("writing {}", self.path.display()))?;
        file.flush()?;
        self.facts.push(fact);
        Ok(())
    }

    /// A copy of this run with another complete part. The file is not changed.
    pub(crate) fn with_part(&self, part: &str, facts: Vec<Fact>) -> Self {
        let mut with = self.clone();
        with.facts.extend(facts);
        with.facts.push(Fact {
            complete_after_s: Some(0.0),
            ..Fact::new(part)
        });
        with
    }

    /// The measurements of a part; empty if the part is not complete.
    pub(crate) fn part(&self, part: &str) -> Facts {
        if !self.is_complete(part) {
            return Facts::default();
        }
        let of_part = |fact: &&Fact| fact.part == part && fact.complete_after_s.is_none();
        Facts(self.facts.iter().filter(of_part).cloned().collect())
    }
}

fn line(fact: &Fact) -> String {
    serde_json::to_string(fact).expect("names and numbers are JSON") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(part: &str) -> Fact {
        Fact {
            complete_after_s: Some(1.0),
            ..Fact::new(part)
        }
    }

    #[test]
    fn a_run_resumes_after_its_last_complete_part() {
        let folder = tempfile::tempdir().unwrap();
        let mut raw = Raw::open(folder.path()).unwrap();
        raw.add(Fact::new("a").of("design", "x").value("n", 1.5))
            .unwrap();
        raw.add(complete("a")).unwrap();
        raw.add(Fact::new("b").value("n", 2.0)).unwrap();
        drop(raw);
        let path = folder.path().join("raw.jsonl");
        let cut = fs::read_to_string(&path).unwrap() + "{\"part\":\"b\",\"val";
        fs::write(&path, cut).unwrap();

        let raw = Raw::open(folder.path()).unwrap();
        assert!(raw.is_complete("a") && !raw.is_complete("b"));
        assert_eq!(raw.part("a").first("n"), Some(1.5));
        assert!(raw.part("b").0.is_empty());
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
    }

    #[test]
    fn facts_are_found_by_name_and_number() {
        let fact = |design: &str, n: f64| Fact::new("a").of("design", design).value("n", n);
        let facts = Facts(vec![fact("y", 3.0), fact("x", 1.0), fact("y", 2.0)]);
        assert_eq!(facts.names("design"), ["y", "x"]);
        assert_eq!(facts.numbers("n"), [1.0, 2.0, 3.0]);
        assert_eq!(
            facts.with("design", "y").points("n", "n"),
            [(3.0, 3.0), (2.0, 2.0)]
        );
        assert_eq!(facts.at("n", 1.0).names("design"), ["x"]);
    }
}
