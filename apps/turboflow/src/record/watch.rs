// SPDX-License-Identifier: Apache-2.0
//! Metering for a screen: the sources and options of `record`, with a single output in memory.

use anyhow::bail;
use turboflow_record::Schema;
use turboflow_run::{
    Controls, Ledger, Limits, Output, PipelineConfig, RunConfig, RunOutputs, Snapshots,
};

use super::memory;
use super::report::Report;
use super::settings::Settings;
use super::sources::OpenSource;
use crate::engines;
use crate::exit::Outcome;
use crate::interfaces;
use crate::keys::Key;
use crate::signals::STOP;

/// Open sources, and what is needed to meter their packets.
pub(crate) struct Watched {
    settings: Settings,
    source: OpenSource,
}

/// A run that has ended.
pub(crate) struct FinishedRun {
    report: Report,
    config: PipelineConfig,
    why_records_are_lost: String,
}

impl Watched {
    /// Opens all sources, or none, and drops root. Must be called before there are other threads.
    pub(crate) fn open(run: &RunConfig) -> anyhow::Result<Self> {
        let run = &interfaces::with_kernel_names(run);
        let mut settings = Settings::new(run)?;
        let sizes = settings.sizes();
        memory::check_start(&settings.config, &sizes)?;
        let kind = engines::kind_of(run)?;
        if !kind.meters_interfaces() {
            let name = kind.abilities().name;
            bail!(
                "engine `{name}` is for `turboflow record`: leave out {}",
                Key::Engine.with(name)
            );
        }
        if let Some(path) = settings.engine.unparsed_to() {
            bail!(
                "this command writes no files; to write {}, use `turboflow record`",
                path.display()
            );
        }
        // The screen needs records promptly, even those of files.
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

    /// Meters until the sources end or a stop is requested. Files are read at `speed`.
    pub(crate) fn meter(
        self,
        output: Output,
        speed: Option<f64>,
        snapshots: &Snapshots,
    ) -> anyhow::Result<FinishedRun> {
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
        report.passed_over = source.passed_over;
        report.add_captures(&source.read);
        // It is not a loss to leave the screen before the end of a file.
        report.stopped = false;
        Ok(FinishedRun {
            report,
            config,
            why_records_are_lost,
        })
    }
}

impl FinishedRun {
    pub(crate) const fn ledger(&self) -> &Ledger {
        &self.report.ledger
    }

    /// Reports what was damaged or lost.
    pub(crate) fn say_losses(&self) -> Outcome {
        self.report
            .say_losses(&self.config, &self.why_records_are_lost, None);
        self.report.outcome()
    }
}
