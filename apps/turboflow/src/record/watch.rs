// SPDX-License-Identifier: Apache-2.0
//! Metering for somebody who watches: the sources and options of `record`, one output in memory.

use turboflow_record::Schema;
use turboflow_run::{Ledger, Output, Pace, PipelineConfig, RunConfig, Snapshots, replay_files};

use super::report::Report;
use super::settings::Settings;
use super::{Sources, kernel, live};
use crate::exit::Outcome;
use crate::signals::STOP;

/// Sources that are open, and what is to be done with their packets.
pub(crate) struct Watched {
    run: RunConfig,
    settings: Settings,
    sources: Sources,
}

/// How a run ended.
pub(crate) struct Ended {
    report: Report,
    config: PipelineConfig,
}

impl Watched {
    /// Opens all sources, or none. Rights are dropped then, so there must be no other thread yet.
    pub(crate) fn open(run: RunConfig) -> anyhow::Result<Self> {
        let mut settings = Settings::new(&run)?;
        // Somebody waits for the records of files, too.
        settings.config = settings.config.live();
        if let Some(active_ns) = settings.config.timeouts.active_ns {
            settings.config.sweep_ns = settings.config.sweep_ns.min(active_ns);
        }
        let sources = Sources::open(&run, &settings)?;
        Ok(Self {
            run,
            settings,
            sources,
        })
    }

    /// The columns of the records.
    pub(crate) fn schema(&self) -> &Schema {
        self.settings.layout.schema()
    }

    /// What is captured or read, in words.
    pub(crate) fn name(&self) -> String {
        self.sources.name(&self.run)
    }

    pub(crate) const fn is_live(&self) -> bool {
        matches!(self.sources, Sources::Interfaces(_) | Sources::Kernel(_))
    }

    pub(crate) const fn config(&self) -> &PipelineConfig {
        &self.settings.config
    }

    /// Meters until the sources end or somebody asks for it; files at that speed.
    pub(crate) fn meter(
        self,
        output: Output,
        speed: Option<f64>,
        snapshots: &Snapshots,
    ) -> anyhow::Result<Ended> {
        let config = self.settings.config;
        let report = match self.sources {
            Sources::Files(files, filter) => {
                let filter = filter.as_deref();
                let outputs = vec![output];
                let pace = speed.map(Pace::of);
                let ran = replay_files(&config, files, filter, outputs, pace, &STOP, snapshots)?;
                let mut report = Report::of_files(ran);
                // Whoever leaves the screen has seen enough: nothing is lost.
                report.stopped = false;
                report
            }
            Sources::Interfaces(readers) => live::watch(&config, readers, output, snapshots)?,
            Sources::Kernel(engine) => kernel::watch(&config, *engine, output, snapshots)?,
        };
        Ok(Ended { report, config })
    }
}

impl Ended {
    pub(crate) const fn ledger(&self) -> &Ledger {
        &self.report.ledger
    }

    /// Says what was damaged or lost.
    pub(crate) fn say_losses(&self) -> Outcome {
        self.report.say_losses(&self.config);
        self.report.outcome()
    }
}
