// SPDX-License-Identifier: Apache-2.0
//! Outputs that cannot be written, or whose reader closes its end.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use turboflow_testing::{Blocked, Need, Talk, is_blocked, is_missing, until};

use crate::support::{
    Folder, command, finish, make_pipe, office, rows, signal, turboflow, udp_capture,
};

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
    .says(&["standard output would be written twice"]);
    let twice = ["ipfix+udp://127.0.0.1", "ipfix+udp://127.0.0.1:4739"];
    turboflow(["record", "-r", &office, "-w", twice[0], "-w", twice[1]])
        .exits(2)
        .says(&["ipfix+udp://127.0.0.1:4739 would be written twice"]);
    assert_eq!(folder.names(), [""; 0]);
}

/// In containers, every run may have the same process id, and a killed run leaves unfinished files.
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
    // Whether it polls for a reader.
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
    // While it waits, it still reacts to signals.
    let child = command(args).stderr(Stdio::piped()).spawn().unwrap();
    looks_for_reader(&child);
    let mut child = child;
    let mut talk = Talk::of(child.stderr.take().unwrap());
    talk.wait_for("pipe.csv: this named pipe has no reader; the run begins once there is one");
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(2));
    let said = talk.rest();
    assert!(
        said.contains("this named pipe has no reader; start it first"),
        "{said}"
    );
}

#[test]
fn a_run_on_an_interface_says_how_long_it_waits_for_the_reader_of_a_pipe() {
    if is_missing(&[Need::Root]) {
        return;
    }
    let folder = Folder::new();
    let pipe = make_pipe(&folder, "pipe.csv");
    let ran = turboflow(["record", "-i", "lo", "-w", &pipe]).exits(2);
    ran.says(&[
        "no reader; it is refused unless there is one within 1 s",
        "no reader; start it first",
    ]);
}

/// An unfinished file that a killed run has left.
#[test]
fn files_of_a_killed_run_are_named_at_the_next_start() {
    let (folder, office) = (Folder::new(), office());
    let csv = folder.file("a.csv");
    let mut killed = command(["record", "-r", "-", "-w", &csv])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = killed.stdin.take().unwrap();
    pipe.write_all(&udp_capture(10)).unwrap();
    until("it has begun", || !folder.names().is_empty());
    let left = folder.names().remove(0);
    // A file that is still being written is not left over.
    let ran = turboflow(["record", "-r", &office, "-w", &csv]).exits(0);
    assert!(!ran.stderr.contains("left over"), "{}", ran.stderr);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let ran = turboflow(["record", "-r", &office, "-w", &csv]).exits(0);
    ran.says(&[&left, "left over", "whole lines"]);
    let other = folder.file("b.csv");
    let ran = turboflow(["record", "-r", &office, "-w", &other]).exits(0);
    assert!(!ran.stderr.contains("left over"), "{}", ran.stderr);
    // A service puts another time into the name.
    for name in [
        ".f-20240229.parquet.7-0.tmp",
        ".f-20240229-1.parquet.7-1.tmp",
        ".g.csv.7-1.tmp",
    ] {
        folder.write(name, "x");
    }
    if is_missing(&[Need::Root]) {
        return;
    }
    let rotating = folder.file("f-%Y%m%d.parquet");
    let live = ["record", "-i", "lo", "--duration", "10ms", "-w", &rotating];
    let ran = turboflow(live);
    assert_eq!(ran.stderr.matches("left over").count(), 2, "{}", ran.stderr);
    ran.says(&[
        ".f-20240229.parquet.7-0.tmp",
        ".f-20240229-1.parquet",
        "remove it",
    ]);
}

#[test]
fn root_writes_through_no_link_unless_asked() {
    if is_missing(&[Need::Root]) {
        return;
    }
    let (folder, office) = (Folder::new(), office());
    let real = folder.write("real.csv", "precious");
    let link = folder.file("link.csv");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let ledger = folder.file("link.json");
    std::os::unix::fs::symlink(folder.file("nowhere"), &ledger).unwrap();
    let capture = folder.file("link.pcap");
    std::os::unix::fs::symlink(&real, &capture).unwrap();
    let names = folder.names();
    for args in [
        &["record", "-r", &office, "-w", &link][..],
        &["record", "-r", &office, "--ledger", &ledger],
        &["generate", "--packets", "10", "-w", &capture],
    ] {
        turboflow(args)
            .exits(2)
            .says(&["is a symbolic link to", "name the file"]);
        assert_eq!(folder.names(), names);
    }
    assert_eq!(folder.read("real.csv"), "precious");
    turboflow(["record", "-q", "-r", &office, "-w", &link, "--follow-links"]).exits(0);
    assert_eq!(rows(&folder.read("real.csv")).len(), 742);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    // Symbolic links of the system (/dev/stdout) lead to open files.
    let ran = turboflow([
        "record",
        "-q",
        "-r",
        &office,
        "-w",
        "/dev/stdout",
        "--format",
        "csv",
    ]);
    assert_eq!(rows(&ran.exits(0).stdout).len(), 742);
}

#[test]
fn an_existing_file_keeps_its_owner_and_mode() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

    if is_missing(&[Need::Root]) {
        return;
    }
    let (folder, office) = (Folder::new(), office());
    for name in ["a.csv", "l.json"] {
        let path = folder.write(name, "");
        chown(&path, Some(12_345), Some(54_321)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    }
    let [csv, ledger] = ["a.csv", "l.json"].map(|name| folder.file(name));
    turboflow([
        "record", "-q", "-r", &office, "-w", &csv, "--ledger", &ledger,
    ])
    .exits(0);
    for path in [csv, ledger] {
        let now = fs::metadata(&path).unwrap();
        assert!(now.len() > 0);
        assert_eq!(
            (now.uid(), now.gid(), now.mode() & 0o7777),
            (12_345, 54_321, 0o640)
        );
    }
}

/// The system calls of a run on files, in order: `sync NAME`, `rename NAME`.
fn calls(args: &[&str]) -> Vec<String> {
    let folder = Folder::new();
    let trace = folder.file("trace");
    let run = command(args);
    let mut traced = Command::new("strace");
    traced.args(["-f", "-y", "-qq", "-o", &trace, "-e"]);
    traced.arg("trace=fsync,fdatasync,rename,renameat,renameat2");
    finish(traced.arg(run.get_program()).args(run.get_args())).exits(0);
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let call = |line: &str| {
        let line = line.split_once(' ')?.1.trim_start();
        assert!(line.ends_with("= 0"), "{line}");
        match line.split_once('(')? {
            ("fsync" | "fdatasync", rest) => {
                let path = rest.split_once('<')?.1.split_once('>')?.0;
                Some(format!("sync {}", name(path)))
            }
            (_, rest) => {
                let path = rest.split('"').nth(1)?;
                Some(format!("rename {}", name(path)))
            }
        }
    };
    folder.read("trace").lines().filter_map(call).collect()
}

/// Stands in for a power failure: data synced before the rename is complete under its final name.
#[test]
fn files_are_on_the_disk_before_they_get_their_names() {
    if is_missing(&[Need::Tool("strace"), Need::Root]) {
        return;
    }
    let (folder, office) = (Folder::new(), office());
    let inside = folder.path().file_name().unwrap().to_str().unwrap();
    let of_names = |calls: Vec<String>| -> Vec<String> {
        // Removes process and number from the names of temporary files.
        let short = |call: String| match call.strip_suffix(".tmp").and_then(|c| c.rsplit_once('.'))
        {
            Some((name, _)) => name.to_owned(),
            None => call,
        };
        calls.into_iter().map(short).collect()
    };
    let wanted = |names: &[&str]| -> Vec<String> {
        let of_one = |name: &&str| {
            [
                format!("sync .{name}"),
                format!("rename .{name}"),
                format!("sync {inside}"),
            ]
        };
        names.iter().flat_map(of_one).collect()
    };
    for name in ["a.csv", "a.jsonl", "a.parquet", "a.ipfix"] {
        let (to, ledger) = (folder.file(name), folder.file("l.json"));
        let args = [
            "record", "-q", "-r", &office, "-w", &to, "--ledger", &ledger,
        ];
        let synced = calls(&[&args[..], &["--sync"]].concat());
        assert_eq!(of_names(synced), wanted(&[name, "l.json"]));
        let plain = calls(&args);
        assert!(
            plain.iter().all(|call| call.starts_with("rename")),
            "{plain:?}"
        );
    }
    // A service does this by default.
    let to = folder.file("s-%Y.csv");
    let config = format!(
        "[source]\ninterfaces = \"lo\"\nduration = \"10ms\"\n[service]\nmetrics = \"none\"\n\
         quiet = true\n[[output]]\nto = \"{to}\"\n"
    );
    let config = folder.write("turboflow.toml", config);
    let calls = calls(&["run", "--config", &config]);
    let kinds: Vec<_> = calls
        .iter()
        .map(|call| call.split(' ').next().unwrap())
        .collect();
    assert_eq!(kinds, ["sync", "rename", "sync"], "{calls:?}");
}

/// A new folder is durable once the folder above it is synced.
#[test]
fn folders_that_are_made_are_on_the_disk_before_their_files() {
    if is_missing(&[Need::Tool("strace"), Need::Root]) {
        return;
    }
    let folder = Folder::new();
    let inside = folder.path().file_name().unwrap().to_str().unwrap();
    let to = folder.file("y%Y/m%m/s.csv");
    let args = ["record", "-q", "-i", "lo", "--duration", "10ms", "-w", &to];
    let synced = calls(&[&args[..], &["--sync"]].concat());
    let places: Vec<_> = synced
        .iter()
        .map(|call| match call.strip_prefix("sync ") {
            Some(name) if name == inside => "sync outer",
            Some(name) if name.starts_with('y') => "sync year",
            Some(name) if name.starts_with('m') => "sync month",
            Some(_) => "sync file",
            None => "rename",
        })
        .collect();
    assert_eq!(
        places,
        [
            "sync outer",
            "sync year",
            "sync file",
            "rename",
            "sync month"
        ],
        "{synced:?}"
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
    // The format must agree with the output's name, or belong to another output.
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
        .says(&[
            "/dev/full",
            "No space left",
            "742 records not written",
            "; /dev/full: 742 records lost",
        ]);
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

/// Runs in a mount namespace of its own, so that nothing stays mounted.
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
    // Mounting needs root, and some containers forbid it even to root.
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
