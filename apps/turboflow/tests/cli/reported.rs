// SPDX-License-Identifier: Apache-2.0
//! Public bug reports of flow tools as small captures, with what the program writes, logs and
//! returns for each of them (`reported.toml`).

use serde::Deserialize;
use turboflow_testing::{Need, cases_folder, is_missing, is_missing_in_part};

use crate::support::{libpcap, turboflow};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    case: Vec<Case>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    file: String,
    #[serde(default)]
    options: Vec<String>,
    #[serde(default)]
    needs_libpcap: bool,
    #[serde(default)]
    exit: i32,
    /// Words on standard error.
    #[serde(default)]
    says: Vec<String>,
    /// The command that reads the file: `record`, unless it holds flow records.
    #[serde(default = "record")]
    command: String,
    /// `None`: only their number is given.
    rows: Option<Vec<String>>,
    row_count: Option<usize>,
}

fn record() -> String {
    "record".to_owned()
}

impl Case {
    /// The arguments that read the capture or the flow records, and print rows.
    fn args<'a>(&'a self, file: &'a str) -> Vec<&'a str> {
        let mut args = match self.command.as_str() {
            "show" => vec!["show", file, "--format", "csv"],
            _ => vec!["record", "-r", file, "-w", "-", "--format", "csv"],
        };
        args.extend(self.options.iter().map(String::as_str));
        args
    }

    fn has(&self, found: &[String]) -> bool {
        let row_count = self.row_count.or(self.rows.as_ref().map(Vec::len));
        row_count == Some(found.len()) && self.rows.as_ref().is_none_or(|rows| rows == found)
    }
}

/// Columns of a row. Only biflows have the last two.
const COLUMNS: [&str; 9] = [
    "src_addr",
    "dst_addr",
    "src_port",
    "dst_port",
    "protocol",
    "packets",
    "bytes",
    "reverse_packets",
    "reverse_bytes",
];

/// The chosen columns of each row of a CSV, sorted.
fn rows(csv: &str) -> Vec<String> {
    let mut lines = csv.lines();
    let header: Vec<_> = lines.next().unwrap_or_default().split(',').collect();
    let place = |name: &&str| header.iter().position(|column| column == name);
    let places: Vec<_> = COLUMNS.iter().filter_map(place).collect();
    let mut rows: Vec<_> = lines
        .map(|line| {
            let values: Vec<_> = line.split(',').collect();
            let chosen: Vec<_> = places.iter().map(|&place| values[place]).collect();
            chosen.join(" ")
        })
        .collect();
    rows.sort();
    rows
}

#[test]
fn reported_bugs_are_not_ours() {
    if is_missing(&[Need::Cases]) {
        return;
    }
    let folder = cases_folder().unwrap();
    let table: Table = toml::from_str(include_str!("reported.toml")).unwrap();
    let has_libpcap = !is_missing_in_part(&[libpcap()]);
    let mut wrong = Vec::new();
    for case in table.case {
        if case.needs_libpcap && !has_libpcap {
            continue;
        }
        let file = folder.join(&case.file).display().to_string();
        let ran = turboflow(case.args(&file));
        let found = rows(&ran.stdout);
        let is_said = case.says.iter().all(|words| ran.stderr.contains(words));
        if !case.has(&found) || ran.code != Some(case.exit) || !is_said {
            wrong.push(format!("{case:#?}\nfound {found:#?}\n{ran:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
