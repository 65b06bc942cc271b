// SPDX-License-Identifier: Apache-2.0
//! Configurations of `turboflow run`: printed, checked, refused with line and mend.

use std::fs;

use crate::support::{Folder, libpcap, project, turboflow};

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
fn a_check_finds_what_the_start_would_refuse() {
    let (folder, with_filters) = (Folder::new(), libpcap().is_met());
    let there = folder.file("flows.csv");
    let needed = format!("interface = \"lo\"\nwrite = \"{there}\"\n");
    let written = |name: &str| format!("interface = \"lo\"\nwrite = [{name}]\n");
    let by_udp = "\"netflow5+udp://127.0.0.1\"";
    for (text, words) in [
        (written("\"flows.xyz\""), "flows.xyz"),
        (written("\"a.csv\", \"./a.csv\""), "written twice"),
        (written(""), "`write` is empty"),
        (written("\"a-%j.csv\""), "%Y (year)"),
        (written(by_udp) + "biflow = true", "biflow"),
        (needed.clone() + "rotate = \"5m\"", "name has a time"),
        (
            needed.replace("\"lo\"", "[\"lo\", \"lo\"]"),
            "lo is named twice",
        ),
        (needed.replace("\"lo\"", "\"any\""), "any"),
        (
            needed.clone() + "ring-size = \"1KiB\"",
            "--ring-size must be from",
        ),
        (
            needed.clone() + "engine = \"xdp\"\nbiflow = true",
            if cfg!(feature = "kernel") {
                "does not know --biflow"
            } else {
                "built without the engine in the kernel"
            },
        ),
        (needed.clone() + "user = \"no-such-user\"", "no such user"),
        (
            needed.clone() + "filter = \"tpc port 1\"",
            if with_filters {
                "tpc port 1"
            } else {
                "libpcap"
            },
        ),
    ] {
        let config = folder.write("turboflow.toml", &text);
        let ran = turboflow(["run", "--config", &config, "--check"]).exits(2);
        assert_eq!(
            ran.says(&[words, "turboflow.toml"]).stderr.lines().count(),
            1
        );
    }
    let filter = if with_filters {
        "filter = \"tcp port 443\""
    } else {
        ""
    };
    let config = folder.write("turboflow.toml", needed + filter);
    let ran = turboflow(["run", "--config", &config, "--check"]).exits(0);
    assert!(ran.stderr.ends_with("is right\n"), "{}", ran.stderr);
    assert_eq!(folder.names(), ["turboflow.toml"]);
}

#[test]
fn a_check_says_what_is_not_here_yet() {
    let folder = Folder::new();
    let text = "interface = [\"nowhere0\"]\nwrite = [\"/no/such/folder/a.csv\"]\n";
    let config = folder.write("turboflow.toml", text);
    let ran = turboflow(["run", "--config", &config, "--check"]).exits(0);
    ran.says(&["is right", "interface nowhere0, folder /no/such/folder"]);
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
