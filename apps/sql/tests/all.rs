// SPDX-License-Identifier: Apache-2.0
//! The program alone. What it answers is tested where `turboflow sql` runs it, in
//! `apps/turboflow/tests/cli/sql.rs`.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

use std::process::{Command, Output};

fn query(args: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_turboflow-query"));
    program.args(args).output().unwrap()
}

#[test]
fn it_answers_and_says_which_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.csv");
    std::fs::write(&file, "src_addr,bytes\n10.0.0.1,5\n10.0.0.1,6\n").unwrap();
    let file = file.display().to_string();
    let sums = "select src_addr, sum(bytes) b from flows group by 1";
    let answer = query(&["sql", sums, &file, "--format", "csv"]);
    assert_eq!(
        String::from_utf8(answer.stdout).unwrap(),
        "src_addr,b\n10.0.0.1,11\n"
    );
    let version = query(&["--version"]);
    let expected = format!("turboflow-query {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(String::from_utf8(version.stdout).unwrap(), expected);
    assert_eq!(query(&[]).status.code(), Some(2));
}
