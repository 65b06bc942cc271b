// SPDX-License-Identifier: Apache-2.0
//! Full disks and a killed program: losses are counted or bounded.

use std::fs;
use std::process::Command;

use turboflow_testing::{Need, is_missing};

use crate::link::Link;
use crate::support::{Folder, office, rows, udp_capture};

/// A small disk mounted on a folder until it is dropped.
struct Disk(String);

impl Disk {
    /// `None` if the test is skipped because mounting is not possible.
    fn new(folder: &Folder, name: &str, size: &str) -> Option<Self> {
        let path = folder.file(name);
        fs::create_dir(&path).unwrap();
        let size = format!("size={size}");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs", &path])
            .status();
        let may_mount = mounted.is_ok_and(|status| status.success());
        if is_missing(&[Need::Right("mount", may_mount)]) {
            return None;
        }
        Some(Self(path))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["--lazy", &self.0]).status();
    }
}

#[test]
fn a_full_disk_costs_only_its_own_output_records() {
    let Some(link) = Link::new() else { return };
    let folder = Folder::new();
    let Some(disk) = Disk::new(&folder, "disk", "16k") else {
        return;
    };
    folder.write(
        "turboflow.toml",
        "interface = [\"vb\"]\nwrite = [\"disk/flows-%s.csv\", \"whole.csv\"]\n\
         ledger = \"ledger.json\"\nidle-timeout = \"1s\"\nmetrics = \"none\"\n",
    );
    let mut running = link.start(folder, &["run", "--config", "turboflow.toml"], &[]);
    assert!(link.replay(&office(), &["--pps", "10000"]));
    running.wait_for("No space left");
    running.signal("TERM");
    let ended = running.end().balanced(1);
    let exported: u64 = ended.ledger["flows_exported"]
        .as_object()
        .unwrap()
        .values()
        .map(|count| count.as_u64().unwrap())
        .sum();
    assert_eq!(rows(&ended.folder.read("whole.csv")).len() as u64, exported);
    let (written, dropped) = (
        ended.count("records_written"),
        ended.count("records_dropped"),
    );
    assert_eq!(written + dropped, 2 * exported);
    assert!(dropped > 0 && dropped < exported, "{dropped} of {exported}");
    drop(disk);
}

#[test]
fn a_kill_loses_no_finished_file() {
    let Some(link) = Link::new() else { return };
    let folder = Folder::new();
    let capture = folder.write("many.pcap", udp_capture(500));
    folder.write(
        "turboflow.toml",
        "interface = [\"vb\"]\nwrite = [\"flows-%s.csv\"]\nrotate = \"1s\"\nidle-timeout = \"1s\"\n\
         metrics = \"none\"\n",
    );
    let mut running = link.start(folder, &["run", "--config", "turboflow.toml"], &[]);
    assert!(link.replay(&capture, &["--pps", "10000"]));
    while records_in(&running.folder) < 500 {
        running.wait_for(".csv is complete");
    }
    running.signal("KILL");
    let folder = running.killed();
    assert_eq!(records_in(&folder), 500);
    // An unfinished file has another name.
    let names = folder.names();
    let unfinished = names.iter().filter(|name| name.ends_with(".tmp"));
    assert!(unfinished.count() <= 1, "{names:?}");
}

/// Records in the finished files.
fn records_in(folder: &Folder) -> usize {
    let names = folder.names();
    let files = names.iter().filter(|name| name.ends_with(".csv"));
    files.map(|name| rows(&folder.read(name)).len()).sum()
}
