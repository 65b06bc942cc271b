// SPDX-License-Identifier: Apache-2.0
//! Metering for somebody who watches: the sources and options of `record`, one output in memory.

use anyhow::bail;
use turboflow_record::Schema;
use turboflow_run::{
    Controls, Ledger, Limits, Output, PipelineConfig, RunConfig, RunOutputs, Snapshots,
};

use super::report::Report;
use super::settings::Settings;
use super::sources::OpenSource;
use crate::exit::Outcome;
use crate::signals::STOP;

/// Sources that are open, and what is to be done with their packets.
pub(crate) struct Watched {
    settings: Settings,
    source: OpenSource,
}

/// How a run ended.
pub(crate) struct Ended {
    report: Report,
    config: PipelineConfig,
    why_records_are_lost: String,
}

impl Watched {
    /// Opens all sources, or none. Rights are dropped then, so there must be no other thread yet.
    pub(crate) fn open(run: &RunConfig) -> anyhow::Result<Self> {
        let mut settings = Settings::new(run)?;
        if let Some(path) = settings.engine.unparsed_to() {
            bail!(
                "nothing is written here: frames go to {} with `turboflow record`",
                path.display()
            );
        }
        // Somebody waits for the records of files, too.
        settings.config = settings.config.live();
        if let Some(active_ns) = settings.config.timeouts.active_ns {
            settings.config.sweep_ns = settings.config.sweep_ns.min(active_ns);
        }
        let source = OpenSource::open(run, &settings)?;
        Ok(Self { settings, source })
    }

    /// The columns of the records.
    pub(crate) fn schema(&self) -> &Schema {
        self.settings.layout.schema()
    }

    /// What is captured or read, in words.
    pub(crate) fn name(&self) -> String {
        self.source.name.clone()
    }

    pub(crate) const fn is_live(&self) -> bool {
        self.source.source.is_live()
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
        let why_records_are_lost = self.settings.engine.why_records_are_lost();
        let config = self.settings.config;
        let source = self.source.at_speed(speed);
        let controls = Controls {
            limits: Limits::default(),
            stop: &STOP,
            snapshots,
        };
        let outputs = RunOutputs::fixed(vec![output]);
        let ran = turboflow_run::run(&config, source.source, outputs, controls, |_| ())?;
        let mut report = Report::of(ran);
        // Leaving the screen before the end of a file is no loss.
        report.stopped = false;
        Ok(Ended {
            report,
            config,
            why_records_are_lost,
        })
    }
}

impl Ended {
    pub(crate) const fn ledger(&self) -> &Ledger {
        &self.report.ledger
    }

    /// Says what was damaged or lost.
    pub(crate) fn say_losses(&self) -> Outcome {
        self.report
            .say_losses(&self.config, &self.why_records_are_lost);
        self.report.outcome()
    }
}
