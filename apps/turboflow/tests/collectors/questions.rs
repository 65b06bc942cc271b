// SPDX-License-Identifier: Apache-2.0
//! Compares answers of `turboflow show` and `turboflow sql` with those of DuckDB.

use std::path::Path;

use turboflow_testing::{Need, is_missing};

use crate::lakehouse::python;
use crate::support::{Folder, finish, office, project, turboflow};

/// Flows and biflows of the sample, as Parquet.
fn recorded(folder: &Folder) -> [String; 2] {
    let [flows, biflows] = ["flows.parquet", "biflows.parquet"].map(|name| folder.file(name));
    let office = office();
    for (file, more) in [(&flows, &[][..]), (&biflows, &["--biflow"])] {
        let args = ["record", "-q", "-r", &office, "-w", file];
        turboflow(args.iter().chain(more)).exits(0);
    }
    [flows, biflows]
}

#[test]
fn two_hundred_random_questions_are_answered_as_by_duckdb() {
    let Some(mut python) = python(&[]) else {
        return;
    };
    let folder = Folder::new();
    let [flows, biflows] = recorded(&folder);
    let test = project("apps/turboflow/tests/collectors/questions.py");
    let ran = finish(python.args([&*test, "200", &flows, &biflows])).exits(0);
    assert!(
        ran.stdout.contains("200 questions") && ran.stdout.contains("all equal"),
        "{ran:?}"
    );
}

#[test]
fn queries_in_sql_are_answered_as_by_duckdb() {
    let query = Path::new(env!("CARGO_BIN_EXE_turboflow")).with_file_name("turboflow-query");
    if is_missing(&[Need::Tool(&query.display().to_string())]) {
        return;
    }
    let Some(mut python) = python(&[]) else {
        return;
    };
    let folder = Folder::new();
    let [flows, biflows] = recorded(&folder);
    let test = project("apps/turboflow/tests/collectors/sql.py");
    let ran = finish(python.args([&*test, &flows, &biflows])).exits(0);
    assert!(ran.stdout.contains("all equal"), "{ran:?}");
}
