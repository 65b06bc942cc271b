// SPDX-License-Identifier: Apache-2.0
//! `--engine records`: the program's side of the engine that replays microflow records.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use serde::{Deserialize, Serialize};
use turboflow_capture::CaptureFile;
use turboflow_engine::{Abilities, RemoteEngine};
use turboflow_engine_records::{FrameMessages, FrameSource, RecordsEngine};
use turboflow_merge::Layout;
use turboflow_packet::Frame;
use turboflow_run::{PipelineConfig, RunConfig, list};

use super::options::{self, EngineOption, Options, WrittenAs, WrittenOptions};
use super::{EngineKind, OpenEngines, RemoteSetup};
use crate::keys::Key;
use crate::record::{CapturesOfEngine, CapturesRead, is_stdin, open_stream};
use crate::signals::STOP;

/// `[engine.records]`.
#[derive(Clone, Debug, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[command(next_help_heading = "Engine")]
pub(super) struct RecordsOptions {
    /// records: files of microflow records in the wire form; `-` is standard input
    ///
    /// The records of all files are merged as if the engines that wrote them ran here. All must
    /// have the definition of this run (--definition).
    #[arg(long = "records-from", value_name = "FILE", num_args = 1..)]
    #[arg(hide_short_help = true)]
    #[serde(
        deserialize_with = "list::deserialize",
        skip_serializing_if = "Vec::is_empty"
    )]
    from: Vec<PathBuf>,

    /// records: captures of frames that the senders handed over whole, not as records
    ///
    /// These frames are metered in this run: a flow with packets in both records and frames is one
    /// flow.
    #[arg(long = "frames-from", value_name = "FILE", num_args = 1..)]
    #[arg(hide_short_help = true)]
    #[serde(
        deserialize_with = "list::deserialize",
        skip_serializing_if = "Vec::is_empty"
    )]
    frames: Vec<PathBuf>,
}

const FROM: &EngineOption = &EngineOption::of(
    "engine.records",
    "records-from",
    "from",
    "\"microflows.records\"",
);

const FRAMES: &EngineOption =
    &EngineOption::of("engine.records", "frames-from", "frames", "\"whole.pcap\"");

/// Frames read at a time.
const BATCH_FRAMES: usize = 1_024;

/// The frames of a capture.
struct Captured {
    file: CaptureFile,
    read: CapturesRead,
}

impl FrameSource for Captured {
    fn next(&mut self, each: &mut dyn FnMut(&Frame<'_>)) -> io::Result<bool> {
        let ended = match self.file.next_batch(BATCH_FRAMES) {
            Ok(Some(batch)) => {
                batch.frames().iter().for_each(each);
                return Ok(true);
            }
            Ok(None) => Ok(false),
            Err(error) => Err(io::Error::other(error)),
        };
        self.read.count(&self.file);
        ended
    }
}

/// The engine of the crate `turboflow-engine-records`.
pub(super) struct Records;

impl Options for RecordsOptions {
    const ENGINE: &'static str = "records";
}

impl EngineKind for Records {
    fn abilities(&self) -> Abilities {
        turboflow_engine_records::abilities()
    }

    fn is_built(&self) -> bool {
        true
    }

    fn about(&self) -> &'static str {
        "microflow records that another engine wrote to files, in the wire form"
    }

    fn example(&self) -> &'static str {
        "  Merge microflow records that another engine wrote\n    \
         turboflow record --engine records --records-from microflows.records -w flows.parquet\n"
    }

    fn options(&self) -> &'static [&'static EngineOption] {
        &[FROM, FRAMES]
    }

    fn meters_interfaces(&self) -> bool {
        false
    }

    fn file_options(&self) -> &'static [&'static EngineOption] {
        &[FROM, FRAMES]
    }

    fn written(&self) -> Option<&'static dyn WrittenOptions> {
        Some(&WrittenAs::<RecordsOptions>::HERE)
    }

    fn remote_engine(&self, run: &RunConfig) -> anyhow::Result<Option<Box<dyn RemoteSetup>>> {
        options::setup::<RecordsOptions>(run)
    }
}

impl RemoteSetup for RecordsOptions {
    fn unknown_options(&self, run: &RunConfig) -> Vec<String> {
        options::given([
            (options::has_ring_size(run), Key::RingSize),
            (!run.source.promiscuous, Key::Promiscuous),
            (run.source.snap_length.is_some(), Key::SnapLength),
            (run.source.readers.0 > 1, Key::Readers),
            (run.engine.microflow_slots.is_some(), Key::MicroflowSlots),
            // The records were cut by the engine that wrote them.
            (run.timeouts.align.is_some(), Key::Align),
        ])
    }

    fn check(&self, _: &RunConfig, _: &PipelineConfig, _: &Layout) -> anyhow::Result<()> {
        if self.from.is_empty() {
            bail!(
                "engine `records` needs a file: add {}",
                Key::Of(FROM).with("FILE")
            );
        }
        let all = self.from.iter().chain(&self.frames);
        if all.filter(|path| is_stdin(path)).count() > 1 {
            bail!("standard input ({} -) can be read only once", Key::Of(FROM));
        }
        Ok(())
    }

    fn open(
        &self,
        run: &RunConfig,
        config: &PipelineConfig,
        layout: &Layout,
    ) -> anyhow::Result<OpenEngines> {
        self.check(run, config, layout)?;
        let captures = CapturesOfEngine::default();
        let mut engines: Vec<Box<dyn RemoteEngine>> = Vec::new();
        let mut streams: Vec<(&Path, Box<dyn io::Read + Send>)> = Vec::new();
        for path in &self.from {
            streams.push((path.as_path(), open_stream(path)?));
        }
        for path in &self.frames {
            let frames = Captured {
                file: CaptureFile::open(path)?,
                read: captures.read.clone(),
            };
            let messages = FrameMessages::new(frames, layout);
            streams.push((path.as_path(), Box::new(messages)));
        }
        for (path, stream) in streams {
            let cell_ns = config.timeouts.cell_ns(config.max_age_ns);
            let engine = RecordsEngine::new(path.to_owned(), stream, layout);
            let mut engine = engine.in_cells_of(cell_ns);
            while !engine.begin()? {
                if STOP.asked() {
                    bail!("{}: stopped by a signal before it began", path.display());
                }
                pause();
            }
            engines.push(Box::new(engine));
        }
        Ok(OpenEngines {
            name: match (&self.from[..], &self.frames[..]) {
                ([path], []) => path.display().to_string(),
                (records, frames) => format!("{} files", records.len() + frames.len()),
            },
            engines,
            held: Vec::new(),
            captures,
        })
    }

    fn why_records_are_lost(&self) -> String {
        "they did not arrive, or the sender dropped them".to_owned()
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a pipe says nothing when its writer is slow"
)]
fn pause() {
    std::thread::sleep(Duration::from_millis(10));
}
