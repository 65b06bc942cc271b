// SPDX-License-Identifier: Apache-2.0
//! Ctrl-C and SIGTERM.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, Stdio};

use rustix::io::ioctl_fionread;
use turboflow_testing::{Blocked, Talk, is_blocked, until};

use crate::support::{Folder, command, make_pipe, rows, signal, turboflow, udp_capture};

/// A run that waits for more input: it has `packets` packets and an open pipe.
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
    until("all of it is read", || {
        is_empty(&pipe) && is_blocked(child.id(), Blocked::Reading(0))
    });
    (child, pipe)
}

/// Whether the reader of a pipe has read everything written to it.
fn is_empty(pipe: &impl AsFd) -> bool {
    ioctl_fionread(pipe).unwrap() == 0
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
        assert!(!said.contains("packet 101"), "a stop is not damage: {said}");
        assert_eq!(rows(&folder.read("a.csv")).len(), 100);
        assert_eq!(folder.names(), ["a.csv", "l.json"]);
        let json: serde_json::Value = serde_json::from_str(&folder.read("l.json")).unwrap();
        assert_eq!(json["stopped"], true);
        assert_eq!(json["balanced"], true);
        turboflow(["show", &folder.file("a.csv")]).exits(0);
    }
}

#[test]
fn a_run_on_a_pipe_without_a_writer_can_be_stopped() {
    let folder = Folder::new();
    let fifo = make_pipe(&folder, "fifo");
    let child = command(["record", "-r", &fifo, "-w", &folder.file("a.csv")])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("it opens the pipe", || {
        is_blocked(child.id(), Blocked::Opening)
    });
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(2),
        "without input there is no output"
    );
    assert_eq!(folder.names(), ["fifo"]);
}

#[test]
fn reads_a_named_pipe_to_its_end() {
    let folder = Folder::new();
    let fifo = make_pipe(&folder, "fifo");
    let child = command(["record", "-q", "-r", &fifo, "-w", &folder.file("a.csv")])
        .spawn()
        .unwrap();
    let mut pipe = File::options().write(true).open(&fifo).unwrap();
    for piece in udp_capture(50).chunks(100) {
        pipe.write_all(piece).unwrap();
        until("the piece is read", || is_empty(&pipe));
    }
    drop(pipe);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
    assert_eq!(rows(&folder.read("a.csv")).len(), 50);
}

#[test]
fn the_second_signal_aborts_and_removes_unfinished_outputs() {
    let folder = Folder::new();
    // A pipe without a reader, and more records than the queue of an output holds, stop the other
    // output as well.
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
    let records = child.stdout.take().unwrap();
    until("it waits for its reader", || {
        // The pipe of 64 KiB is almost full.
        ioctl_fionread(&records).unwrap() > 60_000 && is_blocked(child.id(), Blocked::Writing)
    });
    signal(&child, "INT");
    let mut talk = Talk::of(child.stderr.take().unwrap());
    talk.wait_for("once more aborts at once");
    signal(&child, "INT");
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    assert_eq!(folder.names(), [""; 0]);
}
