// SPDX-License-Identifier: Apache-2.0
//! `--parquet-types` and `--rotate-by`. `tests/collectors/lakehouse.rs` tests that Iceberg and
//! DuckDB read the files.

use crate::support::{Folder, office, turboflow};

#[test]
fn files_for_table_formats_are_shown_and_replayed_as_others_are() {
    let folder = Folder::new();
    let office = office();
    let [csv, lake, exact, again] =
        ["a.csv", "lake.parquet", "exact.parquet", "again.parquet"].map(|name| folder.file(name));
    let types = ["--parquet-types", "lake-binary", "--exporter", "tap-7"];
    let run = ["record", "-q", "-r", &office, "-w", &csv, "-w", &lake];
    turboflow(run.iter().chain(&types)).exits(0);
    let show = |file: &str, further: &[&str]| {
        let shown = turboflow(["show", file, "--format", "csv"].iter().chain(further)).exits(0);
        let mut lines: Vec<String> = shown.stdout.lines().map(str::to_owned).collect();
        lines[1..].sort_unstable();
        lines
    };
    let names = folder.read("a.csv").lines().next().unwrap().to_owned();
    let columns = ["--select", &names];
    let records = show(&csv, &columns);
    assert_eq!(records.len(), 743);
    assert_eq!(show(&lake, &columns), records);
    // After the columns of the definition come those of the identity, and no derived ones.
    let all = show(&lake, &[]);
    assert_eq!(all[0], format!("{names},exporter,run,sequence"));
    assert!(all[1].contains(",tap-7,"), "{}", all[1]);
    // The identity is another run's, and is left out.
    let replayed = folder.file("replayed.csv");
    turboflow(["replay", &lake, "-w", &replayed]).exits(0);
    assert_eq!(show(&replayed, &[]), records);
    let refused = turboflow(["replay", &lake, "-w", "kafka://127.0.0.1:9/flows"]);
    assert!(refused.exits(2).stderr.contains("by `turboflow record`"));
    // Converts the types in both directions.
    turboflow(["replay", &csv, "-w", &exact]).exits(0);
    turboflow(["replay", &exact, "--parquet-types", "lake", "-w", &again]).exits(0);
    assert_eq!(show(&again, &[]), records);
}

#[test]
fn types_and_names_by_record_are_refused_where_they_have_no_place() {
    let folder = Folder::new();
    let office = office();
    let taken = folder.write(
        "taken.toml",
        "[[feature]]\nname = \"run\"\nop = \"count\"\n",
    );
    let derived = "[[feature]]\nname = \"first_ns\"\nop = \"min\"\nof = \"timestamp\"\n\
                   [[feature]]\nname = \"first_time\"\nop = \"count\"\n";
    let derived = folder.write("derived.toml", derived);
    let [csv, parquet] = ["a.csv", "a.parquet"].map(|name| folder.file(name));
    for (further, words) in [
        (
            ["-w", &csv, "--parquet-types", "lake"],
            "--parquet-types is for Parquet: -w flows.parquet",
        ),
        (["-w", &parquet, "--parquet-types", "hive"], "lake-binary"),
    ] {
        let args = ["record", "-r", &office];
        turboflow(args.iter().chain(&further))
            .exits(2)
            .says(&[words]);
    }
    for (definition, words) in [
        (&taken, "a column `run`"),
        (&derived, "two columns `first_time`"),
    ] {
        let args = [
            "record",
            "-r",
            &office,
            "-w",
            &parquet,
            "--parquet-types",
            "lake",
        ];
        turboflow(args.iter().chain(&["--definition", definition]))
            .exits(2)
            .says(&[words]);
    }
    let args = [
        "record",
        "-i",
        "missing0",
        "-w",
        &parquet,
        "--rotate-by",
        "record",
    ];
    turboflow(args)
        .exits(2)
        .says(&["--rotate-by needs an output whose name has a time"]);
    let files = folder.file("%H%M%S.csv");
    // There is no such interface, but the options are checked first.
    let many = format!("record -i missing0 -w {files} --rotate 10s --rotate-by record");
    turboflow(many.split(' '))
        .exits(2)
        .says(&["lower --active-timeout, or raise --rotate"]);
    assert_eq!(folder.names(), ["derived.toml", "taken.toml"]);
}
