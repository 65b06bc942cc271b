// SPDX-License-Identifier: Apache-2.0
//! The wheel in an empty environment, and its features compared with those of NFStream.
//! `python/tests` tests the module itself.

use turboflow_testing::{Need, captures_folder};

use crate::lakehouse::python;
use crate::support::{finish, project};

#[test]
fn a_wheel_reads_every_sample_as_the_program_writes_it() {
    let Some(mut python) = python(&[]) else {
        return;
    };
    let test = [
        project("python/tests/wheel.py"),
        env!("CARGO_BIN_EXE_turboflow").to_owned(),
    ];
    let ran = finish(python.args(test).arg(project("samples"))).exits(0);
    assert!(ran.stderr.contains("\nOK\n"), "{}", ran.stderr);
}

#[test]
fn features_equal_those_of_nfstream() {
    let Some(mut python) = python(&[Need::Captures]) else {
        return;
    };
    let captures = captures_folder().unwrap().join("l7");
    let test = project("python/tests/compare_nfstream.py");
    let ran = finish(python.arg(test).arg(captures)).exits(0);
    assert!(
        ran.stdout.contains("20 captures") && ran.stdout.contains(" 0 differ"),
        "{ran:?}"
    );
}
