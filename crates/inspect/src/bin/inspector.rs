// SPDX-License-Identifier: Apache-2.0
//! The inspector's process as a program of its own, for tests and measurements of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    if turboflow_inspect::is_child() {
        return turboflow_inspect::child_main();
    }
    eprintln!("this program is started by tests and measurements of turboflow-inspect");
    ExitCode::from(2)
}
