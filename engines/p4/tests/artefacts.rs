// SPDX-License-Identifier: Apache-2.0
//! What is generated or compiled is up to date.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

use std::path::{Path, PathBuf};

use turboflow_engine_p4::P4Record;
use turboflow_merge::Layout;
use turboflow_record::Definition;

fn p4(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("p4").join(path)
}

/// The record definitions that programs come compiled with.
fn definitions() -> [(&'static str, Definition); 1] {
    [("default", Definition::default())]
}

#[test]
fn record_definitions_are_as_generated() {
    for (name, definition) in definitions() {
        let layout = Layout::compile(&definition, false).unwrap();
        let expected = P4Record::new(&definition, &layout).unwrap().source(name);
        let path = p4(&format!("shared/records/{name}/record.p4"));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &expected).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        let update = "UPDATE=1 cargo test -p turboflow-engine-p4 writes it anew";
        assert_eq!(found, expected, "{}: {update}", path.display());
    }
}
