// SPDX-License-Identifier: Apache-2.0
//! The table of current results in a document, made from the rows of `turboflow-lab bench --json`.
//!
//! The document names the run:
//!
//! ```text
//! <!-- results: bench/runs/2026-11-26-machine -->
//! <!-- end of results -->
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

use crate::report::axis::short;

const BEGIN: &str = "<!-- results: ";
const END: &str = "<!-- end of results -->";

/// The fields of a row of `raw.jsonl` that the table needs.
#[derive(Debug, Deserialize)]
struct Row {
    bench: String,
    design: String,
    flows: u64,
    traffic: String,
    ns_per_item: f64,
    #[serde(default)]
    bytes_per_flow: Option<f64>,
}

/// Rows by benchmark, design, number of flows and traffic.
struct Rows(BTreeMap<(String, String, u64, String), Row>);

impl Rows {
    fn read(path: &Path) -> anyhow::Result<Self> {
        let text =
            fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        let mut rows = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let row: Row = serde_json::from_str(line)
                .with_context(|| format!("{}:{} is not a row", path.display(), index + 1))?;
            let key = (
                row.bench.clone(),
                row.design.clone(),
                row.flows,
                row.traffic.clone(),
            );
            rows.insert(key, row);
        }
        Ok(Self(rows))
    }

    fn row(&self, bench: &str, design: &str, flows: u64, traffic: &str) -> Option<&Row> {
        let key = (bench.into(), design.into(), flows, traffic.into());
        self.0.get(&key)
    }

    fn ns(&self, bench: &str, design: &str, flows: u64, traffic: &str) -> Option<f64> {
        let row = self.row(bench, design, flows, traffic);
        row.map(|row| row.ns_per_item)
    }

    /// The combinations of number of flows and kind of traffic that were measured for the
    /// aggregator.
    fn places(&self) -> Vec<(u64, String)> {
        let ours = |row: &&Row| row.bench == "aggregate" && row.design == "turboflow";
        let mut places: Vec<(u64, String)> = self
            .0
            .values()
            .filter(ours)
            .map(|row| (row.flows, row.traffic.clone()))
            .collect();
        places.sort();
        places
    }
}

/// Rewrites the table of the document. With `check`, only compares it, and fails if it differs.
///
/// # Errors
/// If the document or its run cannot be read, the document does not name a run between the two
/// markers, it cannot be written, or, with `check`, its table differs.
pub fn results(document: &Path, check: bool) -> anyhow::Result<()> {
    let text =
        fs::read_to_string(document).with_context(|| format!("reading {}", document.display()))?;
    let name = document.display();
    let (before, rest) = text
        .split_once(BEGIN)
        .with_context(|| format!("{name} has no line {BEGIN:?}"))?;
    let (run, rest) = rest
        .split_once(" -->\n")
        .with_context(|| format!("{name} does not name the run of its results"))?;
    let (_, after) = rest
        .split_once(END)
        .with_context(|| format!("{name} has no line {END:?}"))?;
    ensure!(
        !run.contains("..") && run.starts_with("bench/runs/"),
        "{name} names no run of bench/runs: {run}"
    );
    // Documents are one folder below the root.
    let root = document.parent().and_then(Path::parent);
    let root = root.with_context(|| format!("{name} lies in no folder of the project"))?;
    let rows = Rows::read(&root.join(run).join("raw.jsonl"))?;
    let made = format!(
        "{before}{BEGIN}{run} -->\n{}{END}{after}",
        block(run, &rows)
    );
    if made == text {
        return Ok(());
    }
    if check {
        bail!("{name} does not show the results of {run}: run `turboflow-lab evaluation results`");
    }
    fs::write(document, made).with_context(|| format!("writing {name}"))
}

fn block(run: &str, rows: &Rows) -> String {
    let mut text = format!(
        "From the run [{}](../{run}/raw.jsonl), on this [machine](../{run}/machine.md), at this \
         [commit](../{run}/commit.txt), by these [commands](../{run}/command.txt).\n\n",
        run.trim_start_matches("bench/runs/"),
    );
    text += "| flows | traffic | aggregator, ns a record | paper's method | hashbrown | std \
             | Redis | four more features, ns | pipeline, ns a packet | M packets/s |\n\
             |---|---|---|---|---|---|---|---|---|---|\n";
    for (flows, traffic) in rows.places() {
        let ours = rows.ns("aggregate", "turboflow", flows, &traffic);
        let times = |design| {
            let ratio = rows.ns("aggregate", design, flows, &traffic).zip(ours);
            ratio.map_or(String::new(), |(other, ours)| times(other / ours))
        };
        let features = rows
            .ns("features", "default_and_4", flows, &traffic)
            .zip(rows.ns("features", "default", flows, &traffic));
        let pipeline = rows.ns("pipeline", "turboflow", flows, &traffic);
        let cells = [
            short(flows as f64),
            traffic.clone(),
            ours.map_or(String::new(), |ns| format!("{ns:.1}")),
            times("paper"),
            times("hashbrown"),
            times("std"),
            times("redis"),
            features.map_or(String::new(), |(more, few)| format!("{:.1}", more - few)),
            pipeline.map_or(String::new(), |ns| format!("{ns:.1}")),
            pipeline.map_or(String::new(), |ns| format!("{:.0}", 1e3 / ns)),
        ];
        writeln!(text, "| {} |", cells.join(" | ")).expect("a string takes any text");
    }
    text.push('\n');
    others(&mut text, rows);
    text
}

/// The factor by which another design is slower, as text.
fn times(ratio: f64) -> String {
    if ratio < 100.0 {
        format!("{ratio:.1}x")
    } else {
        format!("{ratio:.0}x")
    }
}

/// Benchmarks with only one or two rows, in one sentence each.
fn others(text: &mut String, rows: &Rows) {
    let mut say = |sentence: String| {
        writeln!(text, "- {sentence}").expect("a string takes any text");
    };
    let (flows, _) = rows.places().last().cloned().unwrap_or_default();
    let bytes = rows.row("aggregate", "turboflow", flows, "uniform");
    if let Some(bytes) = bytes.and_then(|row| row.bytes_per_flow) {
        let flows = short(flows as f64);
        say(format!(
            "Memory: {bytes:.0} bytes a flow at {flows} flows (IPv4, default definition)."
        ));
    }
    for flows in [256, 1_000_000] {
        let of = |design| rows.ns("plan", design, flows, "uniform");
        if let (Some(program), Some(by_hand)) = (of("plan"), of("by_hand")) {
            say(format!(
                "A definition of 18 features at {} flows: {program:.1} ns a packet, {:.2} times \
                 the same written by hand.",
                short(flows as f64),
                program / by_hand
            ));
        }
    }
    if let Some(ns) = rows.ns("flood", "turboflow", 50_000_000, "uniform") {
        say(format!(
            "50 M distinct keys through a flow cache of 1 M flows: {ns:.0} ns a packet, nothing \
             lost."
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAW: &str = r#"{"bench":"aggregate","design":"turboflow","flows":10000,"traffic":"zipf","ns_per_item":2.5,"bytes_per_flow":83.2}
{"bench":"aggregate","design":"paper","flows":10000,"traffic":"zipf","ns_per_item":5.0}
{"bench":"pipeline","design":"turboflow","flows":10000,"traffic":"zipf","ns_per_item":8.0}
"#;

    #[test]
    fn a_table_is_made_from_its_run_and_a_changed_one_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("bench/runs/x");
        fs::create_dir_all(&run).unwrap();
        fs::create_dir(folder.path().join("docs")).unwrap();
        fs::write(run.join("raw.jsonl"), RAW).unwrap();
        let document = folder.path().join("docs/page.md");
        let page = format!("Before.\n{BEGIN}bench/runs/x -->\nold\n{END}\nAfter.\n");
        fs::write(&document, page).unwrap();
        assert!(
            results(&document, true).is_err(),
            "an outdated table is an error"
        );
        results(&document, false).unwrap();
        results(&document, true).unwrap();
        let text = fs::read_to_string(&document).unwrap();
        assert!(
            text.contains("| 10K | zipf | 2.5 | 2.0x |  |  |  |  | 8.0 | 125 |"),
            "{text}"
        );
        assert!(text.starts_with("Before.\n") && text.ends_with("After.\n"));
        fs::write(&document, text.replace("2.0x", "3.0x")).unwrap();
        assert!(
            results(&document, true).is_err(),
            "a changed number is an error"
        );
    }

    #[test]
    fn a_document_that_names_no_run_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let document = folder.path().join("page.md");
        for text in [
            "nothing",
            "<!-- results: elsewhere -->\n<!-- end of results -->",
        ] {
            fs::write(&document, text).unwrap();
            assert!(results(&document, false).is_err(), "{text}");
        }
    }
}
