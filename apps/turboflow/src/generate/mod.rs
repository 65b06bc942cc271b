// SPDX-License-Identifier: Apache-2.0
//! `turboflow generate`: traffic of stated rates, sizes and skew, or after published measurements.

mod args;
mod copies;
mod report;
mod request;
#[cfg(target_os = "linux")]
mod sending;
#[cfg(not(target_os = "linux"))]
#[path = "sending_elsewhere.rs"]
mod sending;

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;

use anyhow::{Context, bail};
use turboflow_capture::write::PcapWriter;
use turboflow_formats::FileOptions;
use turboflow_packet::LinkType;
use turboflow_workload::telemetry::Network;
use turboflow_workload::traffic::{FrameBuffer, Traffic};
use turboflow_workload::workloads::Workload;

pub(crate) use args::GenerateArgs;

use crate::exit::Outcome;
use crate::log::say;
use crate::signals::{self, STOP};
use crate::unfinished_file::UnfinishedFile;

/// Frames generated at a time. Their bytes fit into the L2 cache.
const FRAMES_AT_ONCE: usize = 1_024;

/// Generates frames in time order.
trait Generator {
    /// Replaces the content of `buffer`. Returns the number of frames, 0 at the end.
    fn fill(&mut self, buffer: &mut FrameBuffer, frames: usize) -> anyhow::Result<usize>;
    /// The requested and the generated rates.
    fn report(&self, seed: u64) -> String;
}

impl Generator for Traffic {
    fn fill(&mut self, buffer: &mut FrameBuffer, frames: usize) -> anyhow::Result<usize> {
        Ok(Self::fill(self, buffer, frames))
    }

    fn report(&self, _seed: u64) -> String {
        report::of_traffic(self.config(), &self.statistics())
    }
}

impl Generator for Workload {
    fn fill(&mut self, buffer: &mut FrameBuffer, frames: usize) -> anyhow::Result<usize> {
        Ok(Self::fill(self, buffer, frames))
    }

    fn report(&self, seed: u64) -> String {
        report::of_workload(self.asked(), &self.statistics(), seed)
    }
}

impl Generator for Network {
    fn fill(&mut self, buffer: &mut FrameBuffer, frames: usize) -> anyhow::Result<usize> {
        Ok(Self::fill(self, buffer, frames))
    }

    fn report(&self, seed: u64) -> String {
        report::of_network(self, seed)
    }
}

pub(crate) fn run(args: &GenerateArgs) -> anyhow::Result<Outcome> {
    let mut generator = args.generator()?;
    if let Some(name) = &args.interface {
        return sending::run(args, name, generator.as_mut());
    }
    signals::listen("stopping: the capture is not kept", false, None)?;
    match &args.write {
        Some(path) => write_capture(generator.as_mut(), path)?,
        None => make(generator.as_mut())?,
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

/// Generates all frames and discards them.
fn make(generator: &mut dyn Generator) -> anyhow::Result<()> {
    let mut buffer = FrameBuffer::with_capacity(FRAMES_AT_ONCE, 64);
    while generator.fill(&mut buffer, FRAMES_AT_ONCE)? > 0 && !STOP.asked() {}
    Ok(())
}

/// Root writes through no symbolic link. Captures are not synced, because they can be generated
/// again.
fn file_options() -> FileOptions {
    FileOptions {
        refuses_links: rustix::process::geteuid().is_root(),
        ..FileOptions::default()
    }
}

fn write_capture(generator: &mut dyn Generator, path: &Path) -> anyhow::Result<()> {
    if path.as_os_str() == "-" {
        if io::stdout().is_terminal() {
            bail!("a capture is not text for a terminal: redirect standard output");
        }
        let stdout = io::stdout().as_fd().try_clone_to_owned();
        let file = File::from(stdout.context("cannot write standard output")?);
        let written = write(generator, file, "standard output");
        // A reader that has closed the pipe is not an error.
        return match written.map(drop) {
            Err(error) if is_broken_pipe(&error) => Ok(()),
            written => written,
        };
    }
    let cannot_write = || format!("cannot write {}", path.display());
    let file = UnfinishedFile::create(path, file_options(), None).with_context(cannot_write)?;
    let file = write(generator, file, &path.display().to_string())?;
    if STOP.asked() {
        return Ok(());
    }
    file.complete().with_context(cannot_write)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

fn write<W: Write>(generator: &mut dyn Generator, file: W, name: &str) -> anyhow::Result<W> {
    let cannot_write = || format!("cannot write {name}");
    let mut writer = PcapWriter::new(file, LinkType::Ethernet).with_context(cannot_write)?;
    let mut buffer = FrameBuffer::with_capacity(FRAMES_AT_ONCE, 64);
    while generator.fill(&mut buffer, FRAMES_AT_ONCE)? > 0 && !STOP.asked() {
        for frame in buffer.frames() {
            writer.write_frame(&frame).with_context(cannot_write)?;
        }
    }
    writer.finish().with_context(cannot_write)
}
