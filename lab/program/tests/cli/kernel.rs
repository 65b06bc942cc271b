// SPDX-License-Identifier: Apache-2.0
//! `turboflow-lab bench --engine xdp` on this machine's kernel. It needs root; without root the
//! tests are skipped, or fail if `TURBOFLOW_CI` is set.

use std::process::Command;

use serde_json::Value;

use crate::support::lab;

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    let is_root = id.stdout.trim_ascii() == b"0";
    if !is_root {
        let in_ci = std::env::var_os("TURBOFLOW_CI").is_some();
        assert!(!in_ci, "the engine in the kernel needs root");
        eprintln!(
            "############ SKIPPED: the engine in the kernel was not measured: it needs root ############"
        );
    }
    is_root
}

/// Checks that every design has a row and a cost, and that the empty program is the cheapest.
#[test]
fn the_bench_of_the_engine_measures_every_design() {
    if !is_root() {
        return;
    }
    let words = "bench --engine xdp --flows 1K --items 100K --repetitions 1 --json";
    let rows: Vec<Value> = lab(words.split(' '))
        .exits(0)
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let cost = |design: &str| {
        let row = rows.iter().find(|row| row["design"] == design);
        row.unwrap_or_else(|| panic!("no {design}: {rows:?}"))["ns_per_item"]
            .as_f64()
            .unwrap()
    };
    for design in [
        "parse",
        "per_cpu",
        "per_cpu_coarse",
        "row_lock",
        "row_lock_coarse",
    ] {
        assert!(cost(design) > 0.0);
    }
    assert!(cost("per_cpu") > cost("empty"));
}

/// A missing interface is an error that names it.
#[test]
fn a_missing_interface_is_an_error() {
    if !is_root() {
        return;
    }
    let words = "bench --engine xdp --send nowhere0 --items 1K --flows 1K --json";
    let ran = lab(words.split(' ')).exits(2);
    ran.says(&["turboflow-lab: there is no interface nowhere0"]);
}
