// SPDX-License-Identifier: Apache-2.0
//! The `turboflow` program.
fn main() {}
