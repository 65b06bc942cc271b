// SPDX-License-Identifier: Apache-2.0
//! On systems other than Linux, nothing can be sent out of interfaces.

use super::{GenerateArgs, Generator, Outcome};

pub(super) fn run(
    _args: &GenerateArgs,
    _name: &str,
    _generator: &mut dyn Generator,
) -> anyhow::Result<Outcome> {
    anyhow::bail!("packets can be sent out of interfaces (-i) only on Linux: write a file with -w")
}
