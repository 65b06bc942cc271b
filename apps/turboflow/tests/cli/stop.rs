// SPDX-License-Identifier: Apache-2.0
//! Ctrl-C and SIGTERM.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use rustix::io::ioctl_fionread;
use rustix::process::{Pid, Signal, kill_process};
use turboflow_testing::{Blocked, Talk, is_blocked, is_done_within, until};

use crate::support::{Folder, command, make_pipe, rows, signal, turboflow, udp_capture};

/// A run that waits for more input: it has read `packets` packets, and its pipe stays open.
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
    for name in ["INT", "TERM", "HUP"] {
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
fn a_signal_that_is_sent_twice_at_once_aborts_nothing() {
    for _ in 0..50 {
        let folder = Folder::new();
        let (mut child, pipe) = waiting(&folder, 100);
        let process = Pid::from_child(&child);
        // If a busy machine delays the second signal, it no longer counts as a repetition.
        let is_repeated = is_done_within(Duration::from_millis(100), || {
            kill_process(process, Signal::TERM).unwrap();
            // The run may have ended before the second signal.
            let _ = kill_process(process, Signal::TERM);
        });
        let mut talk = Talk::of(child.stderr.take().unwrap());
        let said = talk.rest().to_owned();
        drop(pipe);
        let code = child.wait().unwrap().code();
        if !is_repeated {
            continue;
        }
        assert_eq!(code, Some(1), "{said}");
        assert_eq!(said.matches("finishing").count(), 1, "{said}");
        assert_eq!(rows(&folder.read("a.csv")).len(), 100);
    }
}

#[test]
fn a_run_started_by_nohup_outlives_its_terminal() {
    let folder = Folder::new();
    let run = command(["record", "-q", "-r", "-", "-w", &folder.file("a.csv")]);
    let mut child = Command::new("sh")
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh"])
        .arg(run.get_program())
        .args(run.get_args())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let capture = udp_capture(100);
    let (before, after) = capture.split_at(capture.len() / 2);
    pipe.write_all(before).unwrap();
    until("the first half is read", || {
        is_empty(&pipe) && is_blocked(child.id(), Blocked::Reading(0))
    });
    signal(&child, "HUP");
    pipe.write_all(after).unwrap();
    drop(pipe);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(rows(&folder.read("a.csv")).len(), 100);
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
    // A pipe that no one reads, and more records than an output's queue holds, block the other
    // output too. (Runs over a stream or an interface have larger queues.)
    let inputs = Folder::new();
    let capture = inputs.file("many.pcap");
    let many = [
        "generate",
        "-w",
        &capture,
        "--packets",
        "1M",
        "--flows",
        "500k",
    ];
    turboflow(many).exits(0);
    let mut child = command(["record", "-r", &capture, "-w", "-", "--format", "csv"])
        .args([
            "-w",
            &folder.file("a.csv"),
            "--ledger",
            &folder.file("l.json"),
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let records = child.stdout.take().unwrap();
    until("it waits for its reader", || {
        // The pipe of 64 KiB is almost full.
        ioctl_fionread(&records).unwrap() > 60_000 && is_blocked(child.id(), Blocked::Writing)
    });
    // Files of a process with the same number in another container.
    let others = [
        format!(".a.csv.{}-9.tmp", child.id()),
        format!(".b.{}-0.csv.7-1.tmp", child.id()),
    ];
    others.iter().for_each(|name| drop(folder.write(name, "")));
    signal(&child, "INT");
    let mut talk = Talk::of(child.stderr.take().unwrap());
    talk.wait_for("once more aborts at once");
    // Signals within the first half second repeat the first.
    let mut status = None;
    until("a second signal counts", || {
        signal(&child, "INT");
        status = child.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(130));
    assert_eq!(folder.names(), others);
}
