// SPDX-License-Identifier: Apache-2.0
//! `turboflow record`: capture files or interfaces in, flow records out.

mod args;
mod collectors;
mod filter;
mod inputs;
mod ledger_file;
#[cfg_attr(not(target_os = "linux"), path = "live_elsewhere.rs")]
mod live;
mod outputs;
#[cfg(target_os = "linux")]
mod privileges;
mod progress;
mod report;
mod rotation;
mod settings;
mod summary;
mod tables;
mod watch;

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use turboflow_capture::CaptureFile;
use turboflow_capture::filter::FileFilter;
use turboflow_export::ExportError;
use turboflow_pipeline::{Output, RunSizes, record_files};

use crate::exit::{Outcome, print, say};
use crate::metrics::{self, MetricsAt};
use crate::signals::{self, STOP};
use crate::units::{counted, grouped};

pub(crate) use args::RecordArgs;
use ledger_file::LedgerFile;
use outputs::Outputs;
use progress::ProgressBar;
use report::Report;
use settings::Settings;
pub(crate) use settings::read_definition;
use summary::{Summary, SummaryWriter};
pub(crate) use watch::{Ended, Watched};

/// Says what is wrong with the options, as far as that can be told without opening anything.
pub(crate) fn check(args: &RecordArgs) -> anyhow::Result<()> {
    Settings::new(args).map(|_| ())
}

/// Everything is opened and created before the first packet is metered.
pub(crate) fn run(mut args: RecordArgs) -> anyhow::Result<Outcome> {
    filter::separate(&mut args);
    let settings = Settings::new(&args)?;
    let sources = Sources::open_and_listen(&args)?;
    let mut outputs = match Outputs::create(&args, &settings) {
        Err(error) if is_broken_pipe(&error) => return Ok(Outcome::Well),
        outputs => outputs?,
    };
    let summary = args
        .write
        .is_empty()
        .then(|| summarise(&settings, &mut outputs));
    serve_metrics(&args)?;
    let sizes = settings.config.sizes(&settings.layout);
    if !args.quiet {
        announce(&settings, &sizes);
    }
    let mut bar = ProgressBar::new(args.quiet);
    let mut report = sources.record(&args, &settings, outputs.records, &mut bar)?;
    let elapsed = bar.finish();
    if let Some(mut file) = outputs.ledger {
        let json = LedgerFile::new(&args, &settings, sizes, &report).to_json()?;
        let written = file
            .write_all(json.as_bytes())
            .and_then(|()| file.complete());
        report.ledger_failed(written);
    }
    if let Some(summary) = summary {
        let summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
        print(&tables::render(&report, &summary, elapsed))?;
    } else if !args.quiet {
        say!("{}", report.paragraph(elapsed));
    }
    report.say_losses(&settings.config);
    Ok(report.outcome())
}

fn serve_metrics(args: &RecordArgs) -> anyhow::Result<()> {
    if let Some(MetricsAt(Some(address))) = args.metrics {
        let bound = metrics::serve(address)?;
        if !args.quiet {
            say!("turboflow: metrics at http://{bound}/metrics, health at http://{bound}/healthz");
        }
    }
    Ok(())
}

/// Where packets come from.
enum Sources {
    Files(Vec<CaptureFile>, Option<Box<FileFilter>>),
    Interfaces(Vec<live::Interface>),
}

impl Sources {
    /// Opens all of them, or none, and listens to signals.
    fn open_and_listen(args: &RecordArgs) -> anyhow::Result<Self> {
        let first = "finishing: what was read is written";
        let listen = || signals::listen(first, rotation::turns_files(args));
        if args.interface.is_empty() {
            // Before they are opened: a pipe may keep its reader waiting.
            listen()?;
            return Self::open(args);
        }
        // After they are opened: rights are dropped before there is any other thread.
        let sources = Self::open(args)?;
        listen()?;
        Ok(sources)
    }

    /// Opens all of them, or none.
    fn open(args: &RecordArgs) -> anyhow::Result<Self> {
        if !args.interface.is_empty() {
            return Ok(Self::Interfaces(live::open_all(args)?));
        }
        let files = inputs::open_all(&args.read)?;
        let filter = filter::for_files(args, &files)?;
        Ok(Self::Files(files, filter.map(Box::new)))
    }

    fn record(
        self,
        args: &RecordArgs,
        settings: &Settings,
        outputs: Vec<Output>,
        bar: &mut ProgressBar,
    ) -> anyhow::Result<Report> {
        match self {
            Self::Files(files, filter) => {
                let draw = |progress| bar.draw(&progress);
                let filter = filter.as_deref();
                let ran = record_files(&settings.config, files, filter, outputs, &STOP, draw)?;
                Ok(Report::of_files(ran))
            }
            Self::Interfaces(interfaces) => live::record(args, settings, interfaces, outputs, bar),
        }
    }
}

/// Adds the output that people read where no file was asked for.
fn summarise(settings: &Settings, outputs: &mut Outputs) -> Arc<Mutex<Summary>> {
    let summary = Summary::new(&settings.config.definition, &settings.layout);
    let summary = Arc::new(Mutex::new(summary));
    let writer = Box::new(SummaryWriter::new(Arc::clone(&summary)));
    outputs.records.push(Output {
        name: "summary".to_owned(),
        writer,
    });
    summary
}

fn announce(settings: &Settings, sizes: &RunSizes) {
    let config = &settings.config;
    let mib = |bytes: usize| grouped(bytes.div_ceil(1 << 20) as u64);
    say!(
        "turboflow: tables of {} MiB now and at most {} MiB with {} (--max-flows); {}; seed {}",
        mib(sizes.microflow_table_bytes),
        mib(sizes.microflow_table_bytes + sizes.flow_cache_max_bytes),
        counted(config.max_flows as u64, "open flow"),
        counted(config.threads as u64, "thread"),
        config.seed,
    );
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ExportError::BrokenPipe))
}
