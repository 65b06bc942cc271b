// SPDX-License-Identifier: Apache-2.0
//! Ctrl-C and SIGTERM.

use std::fs::{self, File};
use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use crate::support::{Folder, command, rows, turboflow, udp_capture};

/// Tells a process that a signal has come.
pub(crate) fn signal(child: &Child, name: &str) {
    // The shell's own: small installations have no program of that name.
    let status = Command::new("sh")
        .args(["-c", &format!("kill -{name} {}", child.id())])
        .status();
    assert!(status.unwrap().success());
}

/// A run that waits for more of its input: it has `packets` packets and an open pipe.
fn waiting(folder: &Folder, packets: u16) -> (Child, ChildStdin) {
    let csv = folder.file("a.csv");
    let ledger = folder.file("l.json");
    let mut child = command(["record", "-r", "-", "-w", &csv, "--ledger", &ledger])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(&udp_capture(packets)).unwrap();
    // The outputs are there, so reading has begun.
    until(|| folder.names().len() == 2);
    // What is in the pipe is read at once; nothing outside tells when.
    pause(Duration::from_millis(300));
    (child, pipe)
}

#[allow(clippy::disallowed_methods, reason = "the other process decides when")]
fn pause(duration: Duration) {
    std::thread::sleep(duration);
}

fn until(condition: impl Fn() -> bool) {
    for _ in 0..1_000 {
        if condition() {
            return;
        }
        pause(Duration::from_millis(10));
    }
    panic!("it did not come true in 10 s");
}

#[test]
fn the_first_signal_finishes_the_outputs() {
    for name in ["INT", "TERM"] {
        let folder = Folder::new();
        let (child, pipe) = waiting(&folder, 100);
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        drop(pipe);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("not read to its end"), "{said}");
        assert!(!said.contains("packet 101"), "a stop is no damage: {said}");
        assert_eq!(rows(&folder.read("a.csv")).len(), 100);
        assert_eq!(folder.names(), ["a.csv", "l.json"]);
        let json: serde_json::Value = serde_json::from_str(&folder.read("l.json")).unwrap();
        assert_eq!(json["stopped"], true);
        assert_eq!(json["balanced"], true);
        turboflow(["show", &folder.file("a.csv")]).exits(0);
    }
}

#[test]
fn a_pipe_that_nobody_writes_to_can_be_stopped() {
    let folder = Folder::new();
    let fifo = folder.file("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let child = command(["record", "-r", &fifo, "-w", &folder.file("a.csv")])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    pause(Duration::from_millis(300));
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(2),
        "nothing was read, nothing is written"
    );
    assert_eq!(folder.names(), ["fifo"]);
}

#[test]
fn reads_a_named_pipe_to_its_end() {
    let folder = Folder::new();
    let fifo = folder.file("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let child = command(["record", "-q", "-r", &fifo, "-w", &folder.file("a.csv")])
        .spawn()
        .unwrap();
    let mut pipe = File::options().write(true).open(&fifo).unwrap();
    for piece in udp_capture(50).chunks(100) {
        pipe.write_all(piece).unwrap();
        pause(Duration::from_millis(1));
    }
    drop(pipe);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
    assert_eq!(rows(&folder.read("a.csv")).len(), 50);
}

#[test]
fn the_second_signal_aborts_and_removes_unfinished_outputs() {
    let folder = Folder::new();
    // A pipe that nobody reads, and more records than wait for an output: the file stops with it.
    let many = ["generate", "-w", "-", "--packets", "1M", "--flows", "500k"];
    let mut traffic = command(many).stdout(Stdio::piped()).spawn().unwrap();
    let mut child = command(["record", "-r", "-", "-w", "-", "--format", "csv"])
        .args(["-w", &folder.file("a.csv")])
        .stdin(traffic.stdout.take().unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(traffic.wait().unwrap().success());
    until(|| folder.names().len() == 1);
    pause(Duration::from_millis(300));
    signal(&child, "INT");
    pause(Duration::from_millis(300));
    assert!(
        child.try_wait().unwrap().is_none(),
        "it waits for its reader"
    );
    signal(&child, "INT");
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    assert_eq!(folder.names(), [""; 0]);
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
}
