// SPDX-License-Identifier: Apache-2.0
//! `turboflow record`: capture files or interfaces in, flow records out.

mod args;
mod change;
mod check;
mod collectors;
mod filter;
mod frames;
mod inputs;
#[cfg_attr(
    not(all(target_os = "linux", feature = "kernel")),
    path = "kernel_elsewhere.rs"
)]
mod kernel;
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
mod shared;
mod summary;
mod tables;
mod unparsed;
mod watch;

use std::io::Write;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use turboflow_capture::CaptureFile;
use turboflow_capture::filter::FileFilter;
use turboflow_formats::ExportError;
use turboflow_run::{LiveOutputs, MetricsAt, Output, RunConfig, RunSizes, record_files};

use crate::beside::Beside;
use crate::engines::Engine;
use crate::exit::{Outcome, print};
use crate::keys::Key;
use crate::log::{self, say};
use crate::metrics;
use crate::signals::{self, Hangups, STOP};
use crate::units::{counted, grouped};

pub(crate) use args::RecordArgs;
use change::Following;
pub(crate) use check::{FilesRead, check};
use collectors::TlsRead;
pub(crate) use filter::{joined as joined_filter, separate as separate_filter};
pub(crate) use frames::{Frames, NotGiven};
use ledger_file::LedgerFile;
use outputs::Outputs;
use progress::ProgressBar;
use report::Report;
use settings::Settings;
pub(crate) use settings::read_definition;
pub(crate) use shared::{check_use, concerns};
use summary::{Summary, SummaryWriter};
pub(crate) use watch::{Ended, Watched};

/// How long the end of a service waits for a stream that takes nothing, as for a collector. Together with the deadline of collectors
/// that is less than the service manager waits (`TimeoutStopSec`), so that all other outputs are complete and what is lost is counted.
const END_PATIENCE: Duration = Duration::from_secs(4);

/// What has to be there when packets are metered, and is not here now.
pub(crate) fn absent(run: &RunConfig) -> Vec<String> {
    let interfaces = live::absent(run).into_iter();
    let interfaces = interfaces.map(|name| format!("interface {name}"));
    interfaces.chain(outputs::absent_folders(run)).collect()
}

/// Applies another configuration to a run that goes on.
pub(crate) type Apply<'a> = dyn FnMut(RunConfig) -> anyhow::Result<()> + 'a;

/// What a service does at SIGHUP: finds out what is meant from now on, and applies it.
pub(crate) type Reread = Box<dyn FnMut(&mut Apply<'_>) + Send>;

/// Does what the flags say, to the end.
pub(crate) fn run(args: RecordArgs) -> anyhow::Result<Outcome> {
    log::set_format(args.log_format);
    let is_printed = args.print_config;
    let run = args.into_run()?;
    if is_printed {
        print(
            &run.to_toml()
                .context("these options are no configuration")?,
        )?;
        return Ok(Outcome::Well);
    }
    record(&run, None)
}

/// Does what a configuration file says, as a service that may be told something else later.
pub(crate) fn serve(run: &RunConfig, reread: Reread) -> anyhow::Result<Outcome> {
    log::set_format(run.service.log_format);
    record(run, Some(reread))
}

/// Everything is opened and created before the first packet is metered.
fn record(run: &RunConfig, reread: Option<Reread>) -> anyhow::Result<Outcome> {
    let settings = Arc::new(Settings::new(run)?);
    // Before rights are given up: a key is for root alone.
    let tls = TlsRead::new(run, &[])?;
    let (hangups, heard) = channel();
    let sources = Sources::open_and_listen(run, &settings, reread.is_some().then_some(hangups))?;
    let mut outputs = match Outputs::create(run, &settings, &tls) {
        Err(error) if is_broken_pipe(&error) => return Ok(Outcome::Well),
        outputs => outputs?,
    };
    let summary = run
        .outputs
        .is_empty()
        .then(|| summarise(&settings, &mut outputs));
    let end_patience = reread.is_some().then_some(END_PATIENCE);
    let changes = match reread {
        Some(reread) => Following::new(run, &settings, tls).start(reread, heard)?,
        None => channel().1,
    };
    serve_metrics(run)?;
    let sizes = settings.config.sizes(&settings.layout);
    if !run.service.quiet {
        announce(&settings, &sizes);
    }
    let mut bar = ProgressBar::new(run.service.quiet);
    let records = LiveOutputs {
        first: outputs.records,
        changes,
        end_patience,
    };
    let mut report = sources.record(run, &settings, records, outputs.unparsed, &mut bar)?;
    let elapsed = bar.finish();
    if let Some(mut file) = outputs.ledger {
        let json = LedgerFile::new(run, &settings, sizes, &report).to_json()?;
        let written = file
            .write_all(json.as_bytes())
            .and_then(|()| file.complete());
        report.ledger_failed(written);
    }
    if let Some(summary) = summary {
        let summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
        print(&tables::render(&report, &summary, elapsed))?;
    } else if !run.service.quiet {
        report.say_finished(elapsed);
    }
    report.say_losses(&settings.config);
    Ok(report.outcome())
}

fn serve_metrics(run: &RunConfig) -> anyhow::Result<()> {
    if let Some(MetricsAt(Some(address))) = run.service.metrics {
        let bound = metrics::serve(address)?;
        if !run.service.quiet {
            say!(Info Serving, address = bound.to_string();
                "metrics at http://{bound}/metrics, health at http://{bound}/healthz");
        }
    }
    Ok(())
}

/// Where packets come from.
enum Sources {
    Files(Vec<CaptureFile>, Option<Box<FileFilter>>),
    /// For each reader its ring of every interface.
    Interfaces(Vec<Vec<live::Interface>>),
    /// The engine in the kernel, on its interfaces.
    Kernel(Box<kernel::Engine>),
}

impl Sources {
    /// Opens all of them, or none, and listens to signals.
    fn open_and_listen(
        run: &RunConfig,
        settings: &Settings,
        hangups: Option<Hangups>,
    ) -> anyhow::Result<Self> {
        let first = "finishing: what was read is written";
        let turns_files = hangups.is_some() || rotation::turns_files(run);
        let listen = || signals::listen(first, turns_files, hangups);
        if run.source.interfaces.is_empty() {
            // Before they are opened: a pipe may keep its reader waiting.
            listen()?;
            return Self::open(run, settings);
        }
        // After they are opened: rights are dropped before there is any other thread.
        let sources = Self::open(run, settings)?;
        listen()?;
        Ok(sources)
    }

    /// Opens all of them, or none.
    fn open(run: &RunConfig, settings: &Settings) -> anyhow::Result<Self> {
        if let Engine::Xdp(options) = &settings.engine {
            let engine = kernel::open(run, options, settings)?;
            return Ok(Self::Kernel(Box::new(engine)));
        }
        if !run.source.interfaces.is_empty() {
            return Ok(Self::Interfaces(live::open_all(run)?));
        }
        let files = inputs::open_all(&run.source.files)?;
        let filter = filter::for_files(run, &files)?;
        Ok(Self::Files(files, filter.map(Box::new)))
    }

    /// What is captured or read, in words.
    fn name(&self, run: &RunConfig) -> String {
        match self {
            Self::Files(files, _) => match &files[..] {
                [file] => file.name().to_owned(),
                files => format!("{} files", files.len()),
            },
            Self::Interfaces(_) | Self::Kernel(_) => run.source.interfaces.join(" "),
        }
    }

    fn record(
        self,
        run: &RunConfig,
        settings: &Settings,
        outputs: LiveOutputs,
        unparsed: Option<Beside>,
        bar: &mut ProgressBar,
    ) -> anyhow::Result<Report> {
        match self {
            Self::Files(files, filter) => {
                let draw = |progress| bar.draw(&progress);
                let filter = filter.as_deref();
                let ran =
                    record_files(&settings.config, files, filter, outputs.first, &STOP, draw)?;
                Ok(Report::of_files(ran))
            }
            Self::Interfaces(readers) => live::record(run, settings, readers, outputs, bar),
            Self::Kernel(engine) => kernel::record(run, settings, *engine, outputs, unparsed, bar),
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
        may_stall: false,
    });
    summary
}

fn announce(settings: &Settings, sizes: &RunSizes) {
    let config = &settings.config;
    let mut threads = counted(config.threads as u64, "thread");
    if config.readers > 1 {
        threads = format!("{} readers with {threads} each", config.readers);
    } else if config.meters_apart {
        threads.push_str(" and one that reads");
    }
    let mib = |bytes: usize| grouped(bytes.div_ceil(1 << 20) as u64);
    say!(Info Started, version = env!("CARGO_PKG_VERSION"), seed = config.seed,
        max_bytes = sizes.microflow_table_bytes + sizes.flow_cache_max_bytes;
        "tables of {} MiB now and at most {} MiB with {} ({}); {}; seed {}",
        mib(sizes.microflow_table_bytes),
        mib(sizes.microflow_table_bytes + sizes.flow_cache_max_bytes),
        counted(config.max_flows as u64, "open flow"),
        Key::MaxFlows,
        threads,
        config.seed,
    );
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ExportError::BrokenPipe))
}
