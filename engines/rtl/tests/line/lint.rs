// SPDX-License-Identifier: Apache-2.0
//! Verilator reports nothing about the SystemVerilog, except warnings that are waived with a
//! reason.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Packages first, then everything else.
fn sources() -> Vec<PathBuf> {
    let entries = fs::read_dir(folder().join("rtl")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut sources: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "sv"))
        .collect();
    let order = ["tf_pkg.sv", "tf_record_pkg.sv", "tf_frame_pkg.sv"];
    let rank = |path: &Path| order.iter().position(|name| path.ends_with(name));
    sources.sort_by_key(|path| (rank(path).unwrap_or(order.len()), path.clone()));
    sources
}

#[test]
fn lint_has_nothing_to_say_in_any_size() {
    let verilator = std::env::var("VERILATOR").unwrap_or_else(|_| "verilator".to_owned());
    for (top, parameters) in [
        (
            "tf_array",
            &["NumStages=1", "BucketBits=2", "Slots=1", "Subtables=1"][..],
        ),
        (
            "tf_array",
            &["NumStages=2", "BucketBits=6", "Slots=2", "KeyBits=296"],
        ),
        ("tf_array", &["NumStages=8", "BucketBits=9", "TagBits=8"]),
        ("tf_array", &["NumStages=4", "EntryBits=0"]),
        ("tf_meter", &["NumStages=4", "TagsApart=1'b1"]),
        ("tf_meter", &["NumStages=1", "KeyBits=296"]),
        ("tf_parser", &["TimeOfDay=1'b1"]),
        ("tf_opennic", &["NumStages=4"]),
        ("tf_corundum", &["NumStages=1"]),
    ] {
        let output = Command::new(&verilator)
            .args(["--lint-only", "-Wall", "--top-module", top])
            .arg(format!("-I{}", folder().join("rtl").display()))
            .args(parameters.iter().map(|parameter| format!("-G{parameter}")))
            .arg(folder().join("lint/waivers.vlt"))
            .args(sources())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{parameters:?}:\n{said}");
        assert_eq!(said, "", "{parameters:?}");
    }
}

#[test]
fn every_waiver_has_a_sentence() {
    let waivers = fs::read_to_string(folder().join("lint/waivers.vlt")).unwrap();
    let lines: Vec<&str> = waivers.lines().collect();
    let mut found = 0;
    for pair in lines.windows(2) {
        if pair[1].starts_with("lint_off") {
            found += 1;
            let is_sentence = pair[0].starts_with("// ") && pair[0].ends_with('.');
            assert!(is_sentence, "{}: without a sentence before it", pair[1]);
        }
    }
    assert!(found > 0);
}
