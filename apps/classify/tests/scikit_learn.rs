// SPDX-License-Identifier: Apache-2.0
//! Every record gets the class that scikit-learn gives it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use turboflow_testing::{Need, is_missing};

use crate::support::classified;

const MODELS: [&str; 7] = [
    "tree",
    "deep-tree",
    "forest",
    "deep-forest",
    "forest-of-two",
    "linear",
    "linear-of-two",
];

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

#[test]
fn classes_and_shares_equal_those_of_scikit_learn() {
    let python = project("target/tools/python-classify/bin/python3");
    if is_missing(&[Need::Tool(&python.to_string_lossy())]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ran = Command::new(python)
        .arg("-B")
        .arg(project("apps/classify/tests/oracle.py"))
        .arg(project("contrib/classifier/train.py"))
        .arg(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let records = read("records.csv");
    for name in MODELS {
        let found = classified(&read(&format!("{name}.model")), &records);
        let expected = read(&format!("{name}.csv"));
        assert_eq!(found.len(), 6000);
        assert_eq!(expected.lines().count(), 6000);
        for (row, ((class, share), line)) in found.iter().zip(expected.lines()).enumerate() {
            let (expected, of) = line.split_once(',').unwrap();
            let of: f64 = of.parse().unwrap();
            assert_eq!(class, expected, "{name}, record {row}: {share} {of}");
            // Trees add the same numbers in the same order. Linear scores are added in a different
            // order.
            let tolerance = if name.starts_with("linear") {
                1e-9
            } else {
                0.0
            };
            assert!(
                (share - of).abs() <= tolerance,
                "{name}, record {row}: {share} {of}"
            );
        }
    }
}
