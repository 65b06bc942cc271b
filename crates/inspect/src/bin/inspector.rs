// SPDX-License-Identifier: Apache-2.0
//! The inspector's process by itself, for tests and measurements of the crate.

fn main() -> std::process::ExitCode {
    turboflow_inspect::child_main()
}
