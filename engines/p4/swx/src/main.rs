// SPDX-License-Identifier: Apache-2.0
//! Runs a P4 program, compiled by p4c for DPDK (a `.spec`), on DPDK's software pipeline. TurboFlow
//! starts this as a separate program, because DPDK takes over the process in which it runs.
//!
//! Standard input is a stream socket. Each message is preceded by its length, 32 bits in network
//! byte order. The first message is the `.spec`. Then frames come in, and the frames that the
//! pipeline sends to port 1 go out, until the other side closes.

#[cfg(feature = "dpdk")]
mod pipeline;
#[cfg(any(feature = "dpdk", test))]
mod spec;

use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("turboflow-swx: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(feature = "dpdk"))]
fn run() -> anyhow::Result<()> {
    anyhow::bail!("this program was built without DPDK: build it with the feature `dpdk`")
}

#[cfg(feature = "dpdk")]
fn run() -> anyhow::Result<()> {
    use anyhow::Context;
    use std::io::Read;
    use std::os::fd::{AsFd, AsRawFd};

    // Not through the buffer of `Stdin`: the messages after the program are read elsewhere.
    let stream = std::io::stdin().as_fd().try_clone_to_owned()?;
    let mut stream = std::fs::File::from(stream);
    let mut length = [0; 4];
    stream.read_exact(&mut length).context("no program came")?;
    let mut text = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut text).context("the program is cut")?;
    let text = String::from_utf8(text).context("the program is not text")?;
    let spec = spec::Spec::parse(&text)?;
    pipeline::run(&spec, stream.as_raw_fd())
}
