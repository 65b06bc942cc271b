// SPDX-License-Identifier: Apache-2.0
//! `turboflow-lab evaluation` as `make evaluation` runs it: it continues after a part that fails,
//! and resumes an interrupted run.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::support::command;

/// Parts that take no time, one of which reads captures.
const PARTS: &str = "figure14,table12,table13";

fn run(folder: &Path, captures: &Path, parts: &str) -> Output {
    command(["evaluation", "run", "--quick", "--parts", parts])
        .args(["--redis", "127.0.0.1:1", "--out"])
        .arg(folder)
        .arg("--captures")
        .arg(captures)
        .output()
        .unwrap()
}

fn talk(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_part_that_fails_is_named_and_measured_by_the_next_run() {
    let folder = tempfile::tempdir().unwrap();
    let (out, captures) = (folder.path().join("run"), folder.path().join("captures"));
    fs::create_dir(&captures).unwrap();
    let broken = captures.join("broken.pcap");
    fs::write(&broken, "no capture").unwrap();

    let first = run(&out, &captures, PARTS);
    let said = talk(&first);
    assert_eq!(first.status.code(), Some(1), "{said}");
    assert!(
        said.contains("FAILED: figure14") && said.contains("broken.pcap"),
        "{said}"
    );
    assert!(said.contains("table13 took"), "{said}");
    let report = fs::read_to_string(out.join("report.md")).unwrap();
    let (measured, not_measured) = report.split_once("## Not measured in this run").unwrap();
    assert!(!measured.contains("## Figure 14"));
    assert!(not_measured.contains("- Figure 14: worst case to measured\n"));
    assert!(report.contains("42 of 42 computed cells agree"));

    fs::remove_file(broken).unwrap();
    let second = run(&out, &captures, PARTS);
    let said = talk(&second);
    assert_eq!(second.status.code(), Some(0), "{said}");
    assert!(
        said.contains("[1/1] Figure 14"),
        "measured more than the missing part: {said}"
    );
    let report = fs::read_to_string(out.join("report.md")).unwrap();
    assert!(report.contains("Note: a quick run"));
    assert!(report.contains("The bound holds") && out.join("figure14.svg").exists());
    for name in ["machine.md", "commit.txt", "raw.jsonl"] {
        assert!(out.join(name).exists(), "{name}");
    }
    let command = fs::read_to_string(out.join("command.txt")).unwrap();
    assert_eq!(
        command,
        format!("make evaluation-quick ARGS=\"--parts {PARTS}\"\n")
    );
}

#[test]
fn an_unknown_part_is_refused_with_a_list_of_the_known_ones() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), folder.path(), "figure12,table99");
    let said = talk(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("table99") && said.contains("figure11"),
        "{said}"
    );
}

#[test]
fn the_committed_results_are_those_of_their_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().expect("the project is a checkout");
    let output = command(["evaluation", "results", "--check"])
        .arg(root.join("docs/evaluation.md"))
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{}", talk(&output));
}

#[test]
fn a_report_is_written_anew_without_measuring() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let first = run(&out, folder.path(), "table12");
    assert_eq!(first.status.code(), Some(0), "{}", talk(&first));
    let (page, raw) = (out.join("report.md"), out.join("raw.jsonl"));
    let kept = [&page, &raw].map(|path| fs::read_to_string(path).unwrap());
    fs::remove_file(&page).unwrap();
    let again = command(["evaluation", "report"])
        .arg(&out)
        .output()
        .expect("the program starts");
    assert!(again.status.success(), "{}", talk(&again));
    assert_eq!(
        [&page, &raw].map(|path| fs::read_to_string(path).unwrap()),
        kept
    );
}

#[test]
fn a_report_takes_parts_that_its_run_lacks_from_others() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
    for (out, part) in [(&one, "table12"), (&two, "table13")] {
        let ran = run(out, folder.path(), part);
        assert_eq!(ran.status.code(), Some(0), "{}", talk(&ran));
    }
    let redraw = |with: &Path| {
        let report = folder.path().join("report");
        let mut command = command(["evaluation", "report"]);
        command.arg(&one).arg("--with").arg(with);
        command.arg("--report").arg(report).output().unwrap()
    };
    let drawn = redraw(&two);
    assert!(drawn.status.success(), "{}", talk(&drawn));
    let page = fs::read_to_string(folder.path().join("report/report.md")).unwrap();
    assert!(page.contains("do not compare numbers of two runs"));
    let (own, others) = page.split_once("## Table 13").unwrap();
    assert!(own.contains("from the run [one](") && own.contains("## Table 12"));
    assert!(!own.contains("From another run"));
    assert!(others.contains("\n\nFrom another run, [two]("));
    // A run that adds nothing would be ignored.
    let refused = redraw(&one);
    assert_eq!(refused.status.code(), Some(2), "{}", talk(&refused));
    assert!(talk(&refused).contains("has no part that the runs before it lack"));
}
