// SPDX-License-Identifier: Apache-2.0
//! `turboflow-lab bench`: options without effect, and a reader that closes its end.

use std::fs::OpenOptions;
use std::process::Stdio;

use crate::support::{command, lab};

const SHORT: [&str; 6] = ["bench", "plan", "--items", "1K", "--repetitions", "1"];

#[test]
fn a_reader_that_went_away_ends_it_and_a_full_disk_is_said() {
    for words in [&[][..], &["--json"]] {
        let mut child = command(SHORT.iter().chain(words))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let ended = child.wait_with_output().unwrap();
        assert_eq!((ended.status.code(), ended.stderr), (Some(0), Vec::new()));
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut child = command(SHORT.iter().chain(words));
        let child = child.stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(2), "{said}");
        assert!(said.contains("cannot write standard output"), "{said}");
    }
    let rows = lab(SHORT).exits(0).stdout;
    assert!(
        rows.starts_with("bench ") && rows.lines().count() > 1,
        "{rows}"
    );
}

#[test]
fn options_that_no_benchmark_looks_at_are_refused() {
    for (words, said) in [
        (
            &["plan", "--flows", "100"][..],
            "--flows is of no use with plan",
        ),
        (
            &["export", "generate", "--flows", "1K"],
            "no use with export, generate",
        ),
        (
            &["flood", "--items", "1K"],
            "--items is of no use with flood",
        ),
        (
            &["features", "--redis", "::1:1"],
            "--redis is of no use with features",
        ),
        (
            &["--send", "veth0"],
            "--send is of no use without --engine xdp",
        ),
        (
            &["--engine", "xdp", "--redis", "::1:1"],
            "--redis is of no use with --engine xdp",
        ),
        (
            &["plan", "--items", "-1"],
            "use a whole number from 1 to 100M",
        ),
    ] {
        let ran = lab(["bench"].iter().chain(words)).exits(2);
        assert_eq!(ran.stdout, "", "{words:?}");
        ran.says(&[said]);
    }
}
