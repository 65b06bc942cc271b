// SPDX-License-Identifier: Apache-2.0
//! The commands in docs/usage.md work as printed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::support::{Folder, project};

#[test]
fn every_command_in_the_manual_runs() {
    let folder = Folder::new();
    symlink(
        fs::canonicalize(project("samples")).unwrap(),
        folder.path().join("samples"),
    )
    .unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_turboflow")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let manual = fs::read_to_string(project("docs/usage.md")).unwrap();
    let blocks: Vec<&str> = manual.split("```sh\n").skip(1).collect();
    assert!(blocks.len() >= 7);
    for block in blocks {
        for line in block.split("```").next().unwrap().lines() {
            let output = Command::new("sh")
                .args(["-c", line])
                .env("PATH", &path)
                .current_dir(folder.path())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{line}: {said}");
            assert!(
                !output.stdout.is_empty() || line.contains("-w") || line.contains('>'),
                "{line}"
            );
        }
    }
}
