// SPDX-License-Identifier: Apache-2.0
//! The answers of `turboflow show` beside those of DuckDB.

use crate::lakehouse::python;
use crate::support::{Folder, finish, office, project, turboflow};

#[test]
fn two_hundred_random_questions_are_answered_as_by_duckdb() {
    let Some(mut python) = python(&[]) else {
        return;
    };
    let folder = Folder::new();
    let [flows, biflows] = ["flows.parquet", "biflows.parquet"].map(|name| folder.file(name));
    let office = office();
    for (file, more) in [(&flows, &[][..]), (&biflows, &["--biflow"])] {
        let args = ["record", "-q", "-r", &office, "-w", file];
        turboflow(args.iter().chain(more)).exits(0);
    }
    let test = project("apps/turboflow/tests/collectors/questions.py");
    let ran = finish(python.args([&*test, "200", &flows, &biflows])).exits(0);
    assert!(
        ran.stdout.contains("200 questions") && ran.stdout.contains("all equal"),
        "{ran:?}"
    );
}
