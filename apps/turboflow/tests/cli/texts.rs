// SPDX-License-Identifier: Apache-2.0
//! The formats of times, and the names of numbers, in CSV and JSON lines.

use crate::support::{Folder, command, finish, office, turboflow};

/// They agree with what `turboflow show` prints for the same records.
#[test]
fn texts_have_times_and_names_in_the_form_that_is_asked_for() {
    let folder = Folder::new();
    let parquet = folder.file("a.parquet");
    let [csv, json] = ["a.csv", "a.jsonl"].map(|name| folder.file(name));
    let office = office();
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    turboflow(["record", "-q", "-r", &office, "-w", &csv]).exits(0);
    let plain = folder.read("a.csv");
    for form in ["ns", "s", "iso"] {
        for names in [&["--names"][..], &[]] {
            let mut run = command(["record", "-q", "-r", &office, "--time", form]);
            run.args(["-w", &csv, "-w", &parquet, "-w", &json]);
            finish(run.args(names)).exits(0);
            for (file, format) in [("a.csv", "csv"), ("a.jsonl", "json")] {
                let mut show = command(["show", &parquet, "--time", form, "--select", "all"]);
                let shown = finish(show.args(["--format", format]).args(names)).exits(0);
                let written = folder.read(file);
                assert_eq!(sorted(&written), sorted(&shown.stdout), "{form} {format}");
                // They can be read back without loss.
                let replay = ["replay", &folder.file(file), "-w", "-"];
                let again = turboflow(replay).exits(0).stdout;
                assert_eq!(sorted(&again), sorted(&plain), "{form} {format}");
            }
        }
    }
    turboflow(["record", "-q", "-r", &office, "-w", &parquet, "--names"])
        .exits(2)
        .says(&["--names is for CSV and JSON lines", "-w flows.csv"]);
}
