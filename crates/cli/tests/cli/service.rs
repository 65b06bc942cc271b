// SPDX-License-Identifier: Apache-2.0
//! Configurations of `turboflow run`: printed, checked, refused with line and mend.

use std::fs;

use crate::support::{Folder, project, turboflow};

#[test]
fn the_printed_configuration_is_right() {
    let folder = Folder::new();
    let printed = turboflow(["run", "--print-config"]).exits(0).stdout;
    assert!(printed.contains("\nidle-timeout = \"30s\"\n"), "{printed}");
    let config = folder.write("turboflow.toml", &printed);
    turboflow(["run", "--config", &config, "--check"])
        .exits(0)
        .says(&["is right"]);
}

#[test]
fn the_packaged_configuration_is_the_printed_one() {
    let printed = turboflow(["run", "--print-config"]).exits(0).stdout;
    let packaged = project("packaging/turboflow.toml");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&packaged, &printed).unwrap();
    }
    let mend = "UPDATE=1 cargo test -p turboflow --test cli writes it";
    assert!(fs::read_to_string(packaged).unwrap() == printed, "{mend}");
}

#[test]
fn a_wrong_configuration_is_refused_with_its_line() {
    let folder = Folder::new();
    for (text, words) in [
        (
            "interface = \"lo\"\nwrite = \"a.csv\"\nidel-timeout = \"1s\"",
            vec!["line 3", "did you mean `idle-timeout`"],
        ),
        (
            "interface = \"lo\"\nwrite = \"a.csv\"\n\nmax-flows = 0",
            vec!["turboflow.toml", "--max-flows"],
        ),
        ("write = \"a.csv\"", vec!["`interface` is missing"]),
        ("interface = ", vec!["line 1"]),
    ] {
        let config = folder.write("turboflow.toml", text);
        let ran = turboflow(["run", "--config", &config, "--check"]).exits(2);
        assert_eq!(ran.says(&words).stderr.lines().count(), 1);
        turboflow(["run", "--config", &config])
            .exits(2)
            .says(&words);
    }
    let missing = folder.file("missing.toml");
    turboflow(["run", "--config", &missing])
        .exits(2)
        .says(&["missing.toml", "cannot read"]);
    turboflow(["run"]).exits(2).says(&["--config"]);
}

#[test]
fn rotation_needs_names_with_a_time() {
    let folder = Folder::new();
    let rotated = |name: &str, option: &str| {
        turboflow(["record", "-i", "lo", "-w", &folder.file(name), option])
    };
    for (name, option, words) in [
        ("a.csv", "--rotate=5m", "name has a time"),
        ("a-%H.csv", "--rotate=10ms", "at least 1s"),
        ("a-%j.csv", "--rotate=5m", "%Y (year)"),
    ] {
        rotated(name, option).exits(2).says(&[words]);
    }
    assert!(folder.names().is_empty());
}
