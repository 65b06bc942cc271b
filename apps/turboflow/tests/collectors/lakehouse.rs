// SPDX-License-Identifier: Apache-2.0
//! Files of `--parquet-types lake`, added to Iceberg tables without a copy, and read by DuckDB.

use std::fs;
use std::process::Command;

use turboflow_testing::{Need, is_missing};

use crate::support::{Folder, finish, project, turboflow};

/// The Python of the environment with the packages in `scripts/python`; `None` if the test is
/// skipped without it.
pub(crate) fn python(further: &[Need<'_>]) -> Option<Command> {
    let python = project("target/tools/python-lakehouse/bin/python3");
    let needs: Vec<_> = [Need::Tool(&python)]
        .into_iter()
        .chain(further.iter().copied())
        .collect();
    (!is_missing(&needs)).then(|| {
        let mut command = Command::new(python);
        command.env("TURBOFLOW", env!("CARGO_BIN_EXE_turboflow"));
        command
    })
}

/// Columns of every kind, required and optional.
const EVERY_KIND: &str = r#"
[key]
fields = ["source_address", "destination_address", "outer_source_address",
          "outer_destination_address", "source_mac", "destination_mac"]

[[feature]]
name = "packets"
op = "count"

[[feature]]
name = "bytes"
op = "sum"
of = "ip_length"

[[feature]]
name = "seen"
op = "max"
of = "timestamp"

[[feature]]
name = "mean_length"
op = "mean"
of = "ip_length"

[[feature]]
name = "options"
op = "bit_or"
of = "tcp_options"

[[feature]]
name = "lengths"
op = "list"
of = "ip_length"
k = 3

[[feature]]
name = "first_vlan"
op = "first"
of = "vlan"
"#;

/// The definitions in docs/definition.md that need no inspection, each as a name and a text.
fn definitions() -> Vec<(String, String)> {
    let document = fs::read_to_string(project("docs/definition.md")).unwrap();
    let blocks = document.split("```toml\n").skip(1);
    let texts = blocks.filter_map(|block| block.split("```").next());
    let texts = texts.filter(|text| text.contains("[[feature]]") && !text.contains("application"));
    let named = texts.enumerate();
    let named = named.map(|(number, text)| (format!("document_{number}"), text.to_owned()));
    named
        .chain([("every_kind".to_owned(), EVERY_KIND.to_owned())])
        .collect()
}

/// The lines of a CSV, sorted, because their order depends on threads.
fn sorted(csv: &str) -> Vec<&str> {
    let mut lines: Vec<_> = csv.lines().collect();
    lines[1..].sort_unstable();
    lines
}

/// Whether two lines have equal values. A float may be written in different ways.
fn is_same(one: &str, other: &str) -> bool {
    let float = |text: &str| text.parse::<f64>().ok().filter(|_| text.contains('.'));
    let is_one = |(one, other): (&str, &str)| {
        one == other || float(one).is_some_and(|value| float(other) == Some(value))
    };
    let is_even = one.split(',').count() == other.split(',').count();
    is_even && one.split(',').zip(other.split(',')).all(is_one)
}

#[test]
fn iceberg_and_duckdb_have_the_sums_of_the_csv() {
    let Some(mut python) = python(&[]) else {
        return;
    };
    let folder = Folder::new();
    let [office, links] =
        ["office.pcap", "two-links.pcapng"].map(|name| project(&format!("samples/{name}")));
    let write = |name: &str, capture: &str, types: &str, further: &[&str]| {
        let [parquet, csv] = ["parquet", "csv"].map(|end| folder.file(&format!("{name}.{end}")));
        let run = [
            "record",
            "-q",
            "-r",
            capture,
            "--parquet-types",
            types,
            "-w",
            &parquet,
            "-w",
            &csv,
        ];
        turboflow(run.iter().chain(further)).exits(0);
        // Our own reader returns the records unchanged.
        let written = fs::read_to_string(&csv).unwrap();
        let columns = written.lines().next().unwrap();
        let show = ["show", &parquet, "--format", "csv", "--select", columns];
        let shown = turboflow(show).exits(0);
        let (shown, written) = (sorted(&shown.stdout), sorted(&written));
        assert_eq!(shown.len(), written.len(), "{name}");
        let mut both = shown.iter().zip(&written);
        if let Some((shown, written)) = both.find(|(shown, written)| !is_same(shown, written)) {
            panic!("{name}: {shown}\nis not {written}");
        }
    };
    write("flows-1", &office, "lake", &[]);
    write("flows-2", &links, "lake", &[]);
    write("binary-1", &office, "lake-binary", &["--biflow"]);
    let definitions = definitions();
    assert!(definitions.len() > 5, "{definitions:#?}");
    for (name, text) in &definitions {
        let file = folder.write(&format!("{name}.toml"), text);
        write(
            &format!("{name}-1"),
            &office,
            "lake",
            &["--definition", &file, "--biflow"],
        );
    }
    let scripts = [
        "apps/turboflow/tests/collectors/lakehouse.py",
        "contrib/lakehouse/add_files.py",
    ];
    let ran = finish(python.args(scripts.map(project)).arg(folder.path())).exits(0);
    let said = format!(
        "{} tables, {} files",
        definitions.len() + 2,
        definitions.len() + 3
    );
    assert!(ran.stdout.contains(&said), "{ran:?}");
}
