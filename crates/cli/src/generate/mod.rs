// SPDX-License-Identifier: Apache-2.0
//! `turboflow generate`: traffic of stated rates, sizes and skew, or after published measurements.

mod args;
mod report;
mod wishes;

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;

use anyhow::{Context, bail};
use turboflow_capture::write::PcapWriter;
use turboflow_packet::LinkType;
use turboflow_workload::traffic::{FrameBuffer, Traffic};
use turboflow_workload::workloads::Workload;

pub(crate) use args::GenerateArgs;

use crate::beside::Beside;
use crate::exit::Outcome;
use crate::log::say;
use crate::signals::{self, STOP};

/// Frames made at a time: their bytes stay in the second-level cache.
const FRAMES_AT_ONCE: usize = 1_024;

/// What makes frames, in order of time.
trait Generator {
    /// Replaces the content of `buffer`; returns how many frames there are now, 0 at the end.
    fn fill(&mut self, buffer: &mut FrameBuffer, frames: usize) -> usize;
    /// What was asked for, and what came out.
    fn report(&self, seed: u64) -> String;
}

impl Generator for Traffic {
    fn fill(&mut self, buffer: &mut FrameBuffer, frames: usize) -> usize {
        Self::fill(self, buffer, frames)
    }

    fn report(&self, _seed: u64) -> String {
        report::of_traffic(self.config(), &self.statistics())
    }
}

impl Generator for Workload {
    fn fill(&mut self, buffer: &mut FrameBuffer, frames: usize) -> usize {
        Self::fill(self, buffer, frames)
    }

    fn report(&self, seed: u64) -> String {
        report::of_workload(self.asked(), &self.statistics(), seed)
    }
}

pub(crate) fn run(args: &GenerateArgs) -> anyhow::Result<Outcome> {
    let mut generator = args.generator()?;
    signals::listen("stopping: the capture is not kept", false, None)?;
    match &args.write {
        Some(path) => write_capture(generator.as_mut(), path)?,
        None => make(generator.as_mut()),
    }
    if STOP.asked() {
        say!(Error Stopped; "stopped by a signal: the capture is not complete");
        return Ok(Outcome::Lossy);
    }
    if !args.quiet {
        let report = generator.report(args.seed);
        say!(Info Generated; "{report}");
    }
    Ok(Outcome::Well)
}

/// Makes all frames and keeps none.
fn make(generator: &mut dyn Generator) {
    let mut buffer = FrameBuffer::with_capacity(FRAMES_AT_ONCE, 64);
    while generator.fill(&mut buffer, FRAMES_AT_ONCE) > 0 && !STOP.asked() {}
}

fn write_capture(generator: &mut dyn Generator, path: &Path) -> anyhow::Result<()> {
    let to_stdout = path.as_os_str() == "-";
    let written = if to_stdout {
        if io::stdout().is_terminal() {
            bail!("a capture is no text for a terminal: redirect standard output");
        }
        let stdout = io::stdout().as_fd().try_clone_to_owned();
        let file = File::from(stdout.context("cannot write standard output")?);
        write(generator, file).map(drop)
    } else {
        let file = Beside::create(path)?;
        write(generator, file).and_then(|file| match STOP.asked() {
            true => Ok(()),
            false => file.complete(),
        })
    };
    match written {
        Err(error) if to_stdout && error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.with_context(|| format!("cannot write {}", path.display())),
    }
}

fn write<W: Write>(generator: &mut dyn Generator, file: W) -> io::Result<W> {
    let mut writer = PcapWriter::new(file, LinkType::Ethernet)?;
    let mut buffer = FrameBuffer::with_capacity(FRAMES_AT_ONCE, 64);
    while generator.fill(&mut buffer, FRAMES_AT_ONCE) > 0 && !STOP.asked() {
        for frame in buffer.frames() {
            writer.write_frame(&frame)?;
        }
    }
    writer.finish()
}
