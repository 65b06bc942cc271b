// SPDX-License-Identifier: Apache-2.0
//! Opens the source of packets or microflow records completely, or not at all.

use std::any::Any;
use std::sync::Arc;

use turboflow_capture::OpenError;
use turboflow_run::{Engines, Files, Pace, RunConfig, Source};

use super::captures_read::CapturesRead;
use super::inputs::Opened;
use super::settings::Settings;
use super::{filter, inputs, rotation};
#[cfg(target_os = "linux")]
use crate::privileges;
use crate::signals::{self, Hangups};

/// An open source.
pub(super) struct OpenSource {
    pub(super) source: Source,
    /// What is captured or read, in words.
    pub(super) name: String,
    /// Files that were skipped because they cannot be metered.
    pub(super) passed_over: Vec<OpenError>,
    /// What the engine read, if it reads captures itself.
    pub(super) read: CapturesRead,
    /// Guards that keep the ports of engines configured.
    _held: Vec<Box<dyn Any + Send>>,
}

impl OpenSource {
    /// Opens the source, and starts to listen for signals.
    pub(super) fn open_and_listen(
        run: &RunConfig,
        settings: &Settings,
        hangups: Option<Hangups>,
    ) -> anyhow::Result<Self> {
        let first = "finishing: writing what was read";
        let turns_files = hangups.is_some() || rotation::turns_files(run);
        let listen = || signals::listen(first, turns_files, hangups);
        if !run.is_live() && run.service.user.is_none() {
            // Listen before files are opened, because opening a pipe may block.
            listen()?;
            return Self::open(run, settings);
        }
        // Listen only after the source is open: root must be dropped before other threads exist.
        let source = Self::open(run, settings)?;
        listen()?;
        Ok(source)
    }

    /// Opens the source and drops root. Must be called before there are other threads.
    pub(super) fn open(run: &RunConfig, settings: &Settings) -> anyhow::Result<Self> {
        if let Some(remote) = &settings.engine.remote {
            let user = run.service.user.as_deref();
            #[cfg(target_os = "linux")]
            user.map_or(Ok(()), privileges::check)?;
            let opened = remote.open(run, &settings.config, &settings.layout)?;
            #[cfg(target_os = "linux")]
            user.map_or(Ok(()), privileges::drop_to)?;
            if run.goes_on() {
                crate::log::tell_times();
            }
            return Ok(Self {
                source: Source::Engines(Engines {
                    engines: opened.engines,
                    files: Arc::clone(&opened.captures.read.counters),
                }),
                name: opened.name,
                passed_over: opened.captures.passed_over,
                read: opened.captures.read,
                _held: opened.held,
            });
        }
        #[cfg(target_os = "linux")]
        if run.is_live() {
            let readers = crate::interfaces::open_all(run)?;
            run.service
                .user
                .as_deref()
                .map_or(Ok(()), privileges::drop_to)?;
            crate::log::tell_times();
            if !run.service.quiet {
                crate::interfaces::announce_all(run, &readers);
            }
            return Ok(Self {
                source: Source::Interfaces(readers),
                name: run.source.interfaces.join(" "),
                passed_over: Vec::new(),
                read: Default::default(),
                _held: Vec::new(),
            });
        }
        #[cfg(not(target_os = "linux"))]
        if run.is_live() {
            crate::interfaces::check_rings(run)?;
        }
        let Opened { files, passed_over } = inputs::open_all(&run.source.files)?;
        let filter = filter::for_files(run, &files)?;
        let name = inputs::name_of(&files);
        let source = Source::Files(Files {
            files,
            filter: filter.map(Box::new),
            pace: None,
        });
        Ok(Self {
            source,
            name,
            passed_over,
            read: Default::default(),
            _held: Vec::new(),
        })
    }

    /// Reads files at this speed. `None`: as fast as possible.
    pub(super) fn at_speed(mut self, speed: Option<f64>) -> Self {
        if let Source::Files(files) = &mut self.source {
            files.pace = speed.map(Pace::of);
        }
        self
    }
}
