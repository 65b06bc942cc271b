// SPDX-License-Identifier: Apache-2.0
//! The sources and options of `record`, for somebody who looks at packets and meters none.

use std::time::Duration;

use anyhow::bail;
use turboflow_capture::filter::FileFilter;
use turboflow_capture::{CaptureFile, ReadError};
use turboflow_packet::{Frame, Parser, ParserConfig};
use turboflow_run::{PipelineConfig, RunConfig};

use super::inputs::is_stop;
use super::settings::Settings;
use super::{Sources, live};
use crate::engines::Engine;
use crate::exit::Outcome;
use crate::keys::Key;
use crate::log::say;
use crate::signals::STOP;
use crate::units::counted;

/// Frames read at a time.
const BATCH_FRAMES: usize = 1_024;

/// Sources that are open.
pub(crate) struct Frames {
    run: RunConfig,
    config: PipelineConfig,
    sources: Sources,
}

/// What was not given, and why.
#[derive(Debug, Default)]
pub(crate) struct NotGiven {
    damaged: Vec<ReadError>,
    packets_unknown_link_type: u64,
    /// Packets that the kernel dropped.
    pub(super) dropped: u64,
    /// Interfaces that were removed.
    pub(super) gone: Vec<String>,
    stopped: bool,
}

impl Frames {
    /// Opens all sources, or none, and listens to signals.
    pub(crate) fn open(run: RunConfig) -> anyhow::Result<Self> {
        let settings = Settings::new(&run)?;
        if settings.engine != Engine::Software {
            bail!(
                "packets are looked at here, and engine `{}` keeps them to itself; leave out {}",
                run.engine.name,
                Key::Engine.with(&run.engine.name)
            );
        }
        let sources = Sources::open_and_listen(&run, &settings, None)?;
        Ok(Self {
            run,
            config: settings.config,
            sources,
        })
    }

    /// What is captured or read, in words.
    pub(crate) fn name(&self) -> String {
        self.sources.name(&self.run)
    }

    /// What reads the frames.
    pub(crate) fn parser(&self) -> Parser {
        Parser::new(ParserConfig {
            decapsulate: self.config.decapsulate,
            ..ParserConfig::default()
        })
    }

    /// Gives all frames of files, or those of interfaces for so long, to `take`, unless somebody asks to
    /// stop.
    pub(crate) fn give(
        self,
        lasts: Duration,
        mut take: impl FnMut(&[Frame<'_>]),
    ) -> anyhow::Result<NotGiven> {
        match self.sources {
            Sources::Files(files, filter) => {
                let mut not_given = NotGiven::default();
                for file in files {
                    not_given.file(file, filter.as_deref(), &mut take);
                }
                Ok(not_given)
            }
            Sources::Kernel(_) => unreachable!("refused when it was opened"),
            Sources::Interfaces(readers) => live::give(readers, lasts, take),
        }
    }
}

impl NotGiven {
    fn file(
        &mut self,
        mut file: CaptureFile,
        filter: Option<&FileFilter>,
        take: &mut impl FnMut(&[Frame<'_>]),
    ) {
        loop {
            if STOP.asked() {
                self.stopped = true;
                break;
            }
            match file.next_batch(BATCH_FRAMES) {
                Ok(None) => break,
                Ok(Some(mut batch)) => {
                    if let Some(filter) = filter {
                        batch.filter(filter);
                    }
                    take(batch.frames());
                }
                Err(error) => {
                    // A pipe that a signal ended is cut, not damaged.
                    self.stopped = is_stop(&error);
                    if !self.stopped {
                        self.damaged.push(error);
                    }
                    break;
                }
            }
        }
        self.packets_unknown_link_type += file.counters().packets_unknown_link_type;
    }

    /// Says what was damaged or lost.
    pub(crate) fn say(&self) -> Outcome {
        for error in &self.damaged {
            say!(Error CaptureDamaged; "{error}");
        }
        if self.packets_unknown_link_type > 0 {
            say!(Error UnknownLinkType, packets = self.packets_unknown_link_type;
                "{} of unknown link types were not looked at",
                counted(self.packets_unknown_link_type, "packet"));
        }
        if self.dropped > 0 {
            say!(Error PacketsDropped, packets = self.dropped;
                "the kernel dropped {}, which the answer does not know of; raise {}",
                counted(self.dropped, "packet"), Key::RingSize);
        }
        for name in &self.gone {
            say!(Error InterfaceGone, interface = name.as_str();
                "{name} was removed while it was watched");
        }
        if self.stopped {
            say!(Error Stopped; "stopped by a signal: the input was not read to its end");
        }
        if self.is_nothing() {
            Outcome::Well
        } else {
            Outcome::Lossy
        }
    }

    /// Whether everything was given.
    pub(crate) fn is_nothing(&self) -> bool {
        self.damaged.is_empty()
            && self.packets_unknown_link_type + self.dropped == 0
            && self.gone.is_empty()
            && !self.stopped
    }
}
