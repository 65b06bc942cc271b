// SPDX-License-Identifier: Apache-2.0
//! The sources and options of `record`, for commands that inspect packets without metering.

use std::time::Duration;

use anyhow::bail;
use turboflow_packet::{Frame, Parser, ParserConfig};
use turboflow_run::{Limits, PipelineConfig, RunConfig, inspect};

use super::report::{Live, Report};
use super::settings::Settings;
use super::sources::OpenSource;
use crate::exit::Outcome;
use crate::keys::Key;
use crate::log::say;
use crate::signals::STOP;
use crate::units::counted;

/// An open source.
pub(crate) struct Frames {
    config: PipelineConfig,
    source: OpenSource,
}

/// Report of the frames that were not handed over, and why.
pub(crate) struct NotGiven(Report);

impl Frames {
    /// Opens the source, and starts to listen for signals.
    pub(crate) fn open(run: &RunConfig) -> anyhow::Result<Self> {
        let settings = Settings::new(run)?;
        if settings.engine.remote.is_some() {
            bail!(
                "this command inspects packets, which engine `{}` does not hand over; leave out {}",
                run.engine.name,
                Key::Engine.with(&run.engine.name)
            );
        }
        let source = OpenSource::open_and_listen(run, &settings, None)?;
        Ok(Self {
            config: settings.config,
            source,
        })
    }

    /// What is captured or read, in words.
    pub(crate) fn name(&self) -> String {
        self.source.name.clone()
    }

    /// The parser for the frames.
    pub(crate) fn parser(&self) -> Parser {
        Parser::new(ParserConfig {
            decapsulate: self.config.decapsulate,
            ..ParserConfig::default()
        })
    }

    /// Hands frames to `take`: all frames of files, or those of interfaces within the time `lasts`.
    /// Stops early if a signal asks for it.
    pub(crate) fn give(
        self,
        lasts: Duration,
        take: impl FnMut(&[Frame<'_>]),
    ) -> anyhow::Result<NotGiven> {
        let limits = Limits {
            duration: Some(lasts),
            packets: None,
        };
        let ran = inspect(self.source.source, limits, &STOP, take)?;
        Ok(NotGiven(Report::of(ran)))
    }
}

impl NotGiven {
    fn packets_unknown_link_type(&self) -> u64 {
        self.0.ledger.packets_unknown_link_type
    }

    /// Packets that the kernel dropped. Losses that a capture file reports are only informational.
    fn packets_dropped(&self) -> u64 {
        let live = self.0.live.iter();
        let interfaces = live.flat_map(|live| &live.interfaces);
        interfaces.map(|seen| seen.packets_dropped).sum()
    }

    /// Reports what was damaged or lost.
    pub(crate) fn say(&self) -> Outcome {
        for error in &self.0.damaged {
            say!(Error CaptureDamaged; "{error}");
        }
        let unknown = self.packets_unknown_link_type();
        if unknown > 0 {
            say!(Error UnknownLinkType, packets = unknown;
                "{} of unknown link types were not inspected", counted(unknown, "packet"));
        }
        let dropped = self.packets_dropped();
        if dropped > 0 {
            say!(Error PacketsDropped, packets = dropped;
                "the kernel dropped {}, which are missing from the answer; raise {}",
                counted(dropped, "packet"), Key::RingSize);
        }
        if let Some(live) = &self.0.live {
            live.say_ended_early();
            live.say_failure(0);
        }
        if self.0.stopped {
            say!(Error Stopped; "stopped by a signal: the input was not read to its end");
        }
        if self.is_nothing() {
            Outcome::Well
        } else {
            Outcome::Lossy
        }
    }

    /// Whether every frame was handed over.
    pub(crate) fn is_nothing(&self) -> bool {
        let is_lossy = self.0.live.as_ref().is_some_and(Live::is_lossy);
        self.0.damaged.is_empty()
            && self.packets_unknown_link_type() == 0
            && !is_lossy
            && !self.0.stopped
    }
}
