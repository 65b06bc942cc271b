// SPDX-License-Identifier: Apache-2.0
//! Packets, bytes and flows of each protocol, compared with `ndpiReader` of the same library.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use turboflow_testing::{Need, is_missing};

use crate::support::{LIBRARY, Texts, Totals, captures, config, inspect};

/// The protocols of a capture as `ndpiReader` counts them.
fn reader(path: &Path, arguments: &[&str]) -> BTreeMap<String, Totals> {
    let name = format!("turboflow-reader-{}", std::process::id());
    let file = std::env::temp_dir().join(name);
    let output = Command::new("ndpiReader")
        .args(["-q", "-i"])
        .arg(path)
        .arg("-w")
        .arg(&file)
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success());
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let _ = std::fs::remove_file(&file);
    let rows = text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('\t').collect();
        let [name, packets, bytes, flows] = cells[..] else {
            return None;
        };
        let totals = Totals {
            packets: packets.parse().ok()?,
            bytes: bytes.parse().ok()?,
            flows: flows.parse().ok()?,
        };
        Some((name.to_owned(), totals))
    });
    rows.collect()
}

/// The same from an inspection: a flow counts for its application or, without one, for its master.
fn ours(path: &Path) -> BTreeMap<String, Totals> {
    let inspected = inspect(path, config(), &Texts::default());
    let mut rows: BTreeMap<String, Totals> = BTreeMap::new();
    for (_, totals, verdict) in &inspected.flows {
        let number = verdict.map_or(0, |verdict| verdict.application);
        let number = match number & 0xffff {
            0 => number >> 16,
            application => application,
        };
        let row = rows.entry(inspected.names[&number].clone()).or_default();
        row.packets += totals.packets;
        row.bytes += totals.bytes;
        row.flows += totals.flows;
    }
    rows
}

#[test]
fn protocols_equal_those_of_the_reader() {
    if is_missing(&[LIBRARY, Need::Captures, Need::Tool("ndpiReader")]) {
        return;
    }
    let mut different = 0;
    for path in captures("l7") {
        let (expected, found) = (reader(&path, &[]), ours(&path));
        if expected != found {
            different += 1;
            println!("{}", path.display());
            for name in expected
                .keys()
                .chain(found.keys().filter(|name| !expected.contains_key(*name)))
            {
                let (a, b) = (expected.get(name), found.get(name));
                if a != b {
                    println!("   {name}: {a:?} {b:?}");
                }
            }
        }
    }
    assert_eq!(different, 0);
}
