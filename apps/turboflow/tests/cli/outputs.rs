// SPDX-License-Identifier: Apache-2.0
//! Outputs that cannot be written, or whose reader closes its end.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use turboflow_testing::{Blocked, Need, is_blocked, is_missing, until};

use crate::support::{Folder, command, finish, make_pipe, office, rows, signal, turboflow};

#[test]
fn names_that_cannot_be_written_stop_the_run_before_it_starts() {
    let folder = Folder::new();
    let office = office();
    let good = folder.file("good.csv");
    let refused = |bad: &str, words: &[&str]| {
        turboflow(["record", "-r", &office, "-w", &good, "-w", bad])
            .exits(2)
            .says(words);
        assert_eq!(folder.names(), [""; 0], "no file remains");
    };
    refused(
        &folder.file("no/such/dir/a.csv"),
        &["there is no directory"],
    );
    refused("a.xlsx", &["unknown format", "parquet"]);
    refused("noextension", &["unknown format"]);
    refused("-", &["--format"]);
    refused(&good, &["twice"]);
    refused(&folder.file("./good.csv"), &["twice"]);
    let ledger = folder.file("no/such/ledger.json");
    turboflow(["record", "-r", &office, "-w", &good, "--ledger", &ledger])
        .exits(2)
        .says(&["there is no directory"]);
    turboflow(["record", "-r", &office, "-w", &good, "--ledger", &good])
        .exits(2)
        .says(&["twice"]);
    turboflow([
        "record", "-r", &office, "-w", "-", "-w", "-", "--format", "csv",
    ])
    .exits(2)
    .says(&["standard output is to be written twice"]);
    let twice = ["ipfix+udp://127.0.0.1", "ipfix+udp://127.0.0.1:4739"];
    turboflow(["record", "-r", &office, "-w", twice[0], "-w", twice[1]])
        .exits(2)
        .says(&["ipfix+udp://127.0.0.1:4739 is to be written twice"]);
    assert_eq!(folder.names(), [""; 0]);
}

/// In containers, every run may have one and the same process id, and a killed run leaves
/// unfinished files behind.
#[test]
fn unfinished_files_of_an_earlier_process_with_this_id_are_replaced() {
    let folder = Folder::new();
    let program = command([""; 0]).get_program().to_os_string();
    let script = "touch .a.csv.$$-0.tmp .a.csv.$$-1.tmp .l.json.$$-0.tmp .l.json.$$-1.tmp .l.json.$$-file.tmp
                  exec \"$0\" record -q -r \"$1\" -w a.csv --ledger l.json";
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(program).arg(office());
    finish(shell.current_dir(folder.path())).exits(0);
    assert!(folder.names().contains(&"a.csv".to_owned()));
    assert!(folder.read("l.json").contains("\"balanced\""));
}

#[test]
fn named_pipes_wait_for_their_reader_but_not_for_ever() {
    let folder = Folder::new();
    let pipe = make_pipe(&folder, "pipe.csv");
    let office = office();
    let args = ["record", "-q", "-r", &office, "-w", &pipe];
    // It polls for a reader.
    let looks_for_reader = |child: &Child| {
        until("it looks for a reader", || {
            is_blocked(child.id(), Blocked::Sleeping)
        });
    };
    let child = command(args).spawn().unwrap();
    looks_for_reader(&child);
    let records = fs::read_to_string(&pipe).unwrap();
    assert_eq!(rows(&records).len(), 742);
    assert!(child.wait_with_output().unwrap().status.success());
    // It still reacts to signals.
    let child = command(args).stderr(Stdio::piped()).spawn().unwrap();
    looks_for_reader(&child);
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("this named pipe has no reader; start it first"),
        "{said}"
    );
}

#[test]
fn a_format_that_no_output_has_is_refused() {
    let (folder, office) = (Folder::new(), office());
    let csv = folder.file("a.csv");
    for (words, said) in [
        (&["--format", "csv"][..], "--format is of no use without -w"),
        (
            &["-w", &csv, "--format", "parquet"],
            "--format parquet is of no use with",
        ),
        (
            &["-w", "ipfix+udp://127.0.0.1:9", "--format", "csv"],
            "--format csv is of no use with ipfix+udp://127.0.0.1:9",
        ),
    ] {
        let ran = turboflow(["record", "-r", &office].iter().chain(words)).exits(2);
        assert_eq!((ran.stdout.as_str(), folder.names()), ("", Vec::new()));
        ran.says(&[said]);
    }
    // The format must agree with the output's name, or must be that of another output.
    let same = ["record", "-q", "-r", &office, "-w", &csv, "--format", "csv"];
    turboflow(same).exits(0);
    let other = ["-w", &csv, "-w", "-", "--format", "jsonl"];
    turboflow(["record", "-q", "-r", &office].iter().chain(&other)).exits(0);
}

#[test]
fn a_capture_is_never_overwritten_by_its_own_records() {
    let folder = Folder::new();
    let capture = folder.write("office.pcap", fs::read(office()).unwrap());
    turboflow(["record", "-r", &capture, "-w", &capture, "--format", "csv"])
        .exits(2)
        .says(&["read and written"]);
    assert_eq!(fs::read(capture).unwrap(), fs::read(office()).unwrap());
}

#[test]
fn a_failed_run_leaves_an_old_output_as_it_was() {
    let folder = Folder::new();
    let old = folder.write("a.csv", "old");
    turboflow(["record", "-r", "/nonexistent.pcap", "-w", &old]).exits(2);
    turboflow([
        "record",
        "-r",
        &office(),
        "-w",
        &old,
        "-w",
        "/nonexistent/b.csv",
    ])
    .exits(2);
    assert_eq!(folder.read("a.csv"), "old");
    assert_eq!(folder.names(), ["a.csv"]);
}

#[test]
fn a_full_device_is_reported_and_other_outputs_are_complete() {
    let folder = Folder::new();
    let csv = folder.file("a.csv");
    let ledger = folder.file("l.json");
    let args = [
        "record",
        "-r",
        &office(),
        "-w",
        &csv,
        "-w",
        "/dev/full",
        "--format",
        "jsonl",
    ];
    turboflow(args.iter().copied().chain(["--ledger", &ledger]))
        .exits(1)
        .says(&["/dev/full", "No space left", "742 records not written"]);
    assert_eq!(folder.read("a.csv").lines().count(), 743);
    let json: serde_json::Value = serde_json::from_str(&folder.read("l.json")).unwrap();
    assert_eq!(json["records_dropped"], 742);
    assert_eq!(json["balanced"], true);
}

#[test]
fn a_device_that_is_full_from_the_start_stops_the_run() {
    let folder = Folder::new();
    let csv = folder.file("a.csv");
    let ran = turboflow([
        "record",
        "-r",
        &office(),
        "-w",
        &csv,
        "-w",
        "/dev/full",
        "--format",
        "csv",
    ])
    .exits(2);
    assert_eq!(
        ran.stderr.matches("No space left").count(),
        1,
        "not reported once: {}",
        ran.stderr
    );
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn a_ledger_or_a_summary_that_cannot_be_written_is_an_error() {
    turboflow(["record", "-r", &office(), "--ledger", "/dev/full"])
        .exits(1)
        .says(&["cannot write the ledger", "No space left"]);
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let status = command(["record", "-q", "-r", &office()])
        .stdout(full)
        .status()
        .unwrap();
    assert_ne!(status.code(), Some(0));
}

/// Runs in its own mount namespace, so that nothing stays mounted.
#[test]
fn a_full_disk_keeps_complete_records() {
    let folder = Folder::new();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=32k tmpfs '{disk}' || exit 99; \
         '{program}' record -r '{capture}' -w '{disk}/a.csv' -w '{other}'; code=$?; \
         cp '{disk}'/* '{kept}'; exit $code",
        disk = disk.display(),
        program = env!("CARGO_BIN_EXE_turboflow"),
        capture = office(),
        other = folder.file("whole.csv"),
        kept = folder.path().display(),
    );
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // Neither without root, nor with root in some containers, is mounting allowed.
    let may_mount = output.status.code() != Some(99) && !said.starts_with("unshare:");
    if is_missing(&[Need::Right("mount", may_mount)]) {
        return;
    }
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("No space left") && said.contains("a.csv.part"),
        "{said}"
    );
    let part = folder.read("a.csv.part");
    let whole = folder.read("whole.csv");
    assert!(
        part.ends_with('\n') && whole.starts_with(&part),
        "the first records, complete"
    );
    assert!(part.lines().count() > 100);
    assert!(!folder.names().contains(&"a.csv".to_owned()));
}

#[test]
fn a_reader_that_closes_its_end_is_no_error() {
    let office = office();
    for args in [
        &["record", "-r", &office, "-w", "-", "--format", "csv"][..],
        &["record", "-r", &office],
        &["definition"],
        &["definition", "--list"],
        &["generate", "-w", "-", "--packets", "100k"],
    ] {
        let mut child = command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = Vec::new();
        BufReader::with_capacity(16, child.stdout.take().unwrap())
            .read_until(b'\n', &mut line)
            .unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {said}");
        assert!(
            !said.contains("panicked") && !said.contains("roken pipe"),
            "{said}"
        );
    }
}
