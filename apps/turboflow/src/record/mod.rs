// SPDX-License-Identifier: Apache-2.0
//! `turboflow record`: capture files or interfaces in, flow records out.

mod args;
mod captures_read;
mod change;
mod check;
mod collectors;
mod filter;
mod frames;
mod help;
mod identity;
mod inputs;
mod kafka;
mod ledger_file;
mod memory;
mod observe;
mod output_keys;
mod outputs;
mod probe;
mod progress;
mod report;
mod rotation;
mod sends;
mod settings;
mod shared;
mod sources;
mod summary;
mod tables;
mod telemetry;
mod times;
mod unparsed;
mod value_names;
mod watch;

use std::io::Write;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use turboflow_formats::ExportError;
use turboflow_run::{Controls, LogFormat, MetricsAt, Output, RunConfig, RunOutputs, RunSizes};

use crate::engines::RereadByEngine;
use crate::exit::{Outcome, print};
use crate::interfaces;
use crate::keys::Key;
use crate::log::{self, say};
use crate::metrics::{self, SNAPSHOTS};
use crate::signals::STOP;
use crate::unfinished_file::UnfinishedFile;
use crate::units::{counted, grouped};

pub(crate) use args::RecordArgs;
pub(crate) use captures_read::{CapturesOfEngine, CapturesRead};
use change::OutputChanger;
pub(crate) use check::{FilesRead, check};
pub(crate) use collectors::{CLOCK, FILE_DOMAIN, own_domain, sending};
pub(crate) use filter::{joined as joined_filter, separate as separate_filter};
pub(crate) use frames::{Frames, NotGiven};
pub(crate) use inputs::{is_stdin, open_captures, open_stream};
use ledger_file::LedgerFile;
use observe::{Observer, limits};
use output_keys::OutputKeys;
use outputs::Outputs;
pub(crate) use outputs::{
    as_files, check_paths, file, format_of, is_stdout, name_of, origin, stdout,
};
use progress::ProgressBar;
use report::Report;
use settings::Settings;
pub(crate) use settings::{AvailableInputs, read_definition};
pub(crate) use shared::{applies_to, check_use};
use sources::OpenSource;
use summary::{Summary, SummaryWriter};
use times::ClockOf;
use unparsed::UnparsedFile;
pub(crate) use value_names::{format, parquet_types, time_form};
pub(crate) use watch::{FinishedRun, Watched};

/// How long the shutdown of a service waits for a stalled stream, as for a collector. Together with
/// the deadline of collectors it is shorter than the service manager's timeout (`TimeoutStopSec`),
/// so that all other outputs are completed and losses are counted.
const END_PATIENCE: Duration = Duration::from_secs(4);

/// Missing prerequisites: interfaces and output folders.
pub(crate) fn absent(run: &RunConfig) -> Vec<String> {
    let interfaces = interfaces::absent(run).into_iter();
    let interfaces = interfaces.map(|name| format!("interface {name}"));
    interfaces.chain(outputs::absent_folders(run)).collect()
}

/// Applies another configuration to the current run.
pub(crate) type Apply<'a> = dyn FnMut(RunConfig) -> anyhow::Result<()> + 'a;

/// The SIGHUP handler of a service: rereads the configuration and applies it.
pub(crate) type Reread = Box<dyn FnMut(&mut Apply<'_>) + Send>;

/// Runs `turboflow record` to the end.
pub(crate) fn run(args: RecordArgs) -> anyhow::Result<Outcome> {
    log::set_format(args.log_format);
    let is_printed = args.print_config;
    let run = args.into_run()?;
    match is_printed {
        true => print_config(&run),
        false => record(&run, None),
    }
}

/// Prints a run as the configuration of a service.
pub(crate) fn print_config(run: &RunConfig) -> anyhow::Result<Outcome> {
    if !run.goes_on() {
        bail!(
            "a service meters interfaces or listens for records: to print its configuration, \
             add {}, or use `turboflow collect` with an address to listen on",
            Key::Interfaces.with("IFACE")
        );
    }
    print(
        &run.to_toml()
            .context("these options cannot be written as a configuration")?,
    )?;
    Ok(Outcome::Well)
}

/// Runs `turboflow collect` to the end.
pub(crate) fn collect(run: &RunConfig, log_format: LogFormat) -> anyhow::Result<Outcome> {
    log::set_format(log_format);
    record(run, None)
}

/// Runs `turboflow bridge` to the end.
pub(crate) fn bridge(run: &RunConfig, log_format: LogFormat) -> anyhow::Result<Outcome> {
    log::set_format(log_format);
    record(run, None)
}

/// Runs a service with a configuration, which `reread` may later change.
pub(crate) fn serve(run: &RunConfig, reread: Reread) -> anyhow::Result<Outcome> {
    log::set_format(run.service.log_format);
    record(run, Some(reread))
}

/// Opens and creates everything before the first packet is metered.
fn record(run: &RunConfig, reread: Option<Reread>) -> anyhow::Result<Outcome> {
    memory::prepare();
    let run = &interfaces::with_kernel_names(run);
    let settings = Arc::new(Settings::new(run)?);
    let sizes = settings.sizes();
    memory::check_start(&settings.config, &sizes)?;
    let reread = with_engine(reread, settings.engine.reread());
    // Wrong keys and options are reported before interfaces that are missing or may not be
    // captured.
    let keys = OutputKeys::new(run, &[])?;
    outputs::check(run, &settings)?;
    identity::check_use(run)?;
    let (hangups, heard) = channel();
    let source = OpenSource::open_and_listen(run, &settings, reread.is_some().then_some(hangups))?;
    let mut outputs = match Outputs::create(run, &settings, &keys) {
        Err(error) if is_broken_pipe(&error) => return Ok(Outcome::Well),
        outputs => outputs?,
    };
    let summary = run
        .outputs
        .is_empty()
        .then(|| summarise(&settings, &mut outputs));
    let end_patience = reread.is_some().then_some(END_PATIENCE);
    let changes = match reread {
        Some(reread) => OutputChanger::new(run, &settings, keys).start(reread, heard)?,
        None => channel().1,
    };
    serve_metrics(run)?;
    probe::count(run, &settings, &SNAPSHOTS)?;
    if !run.service.quiet {
        announce(&settings, &sizes);
    }
    memory::warn_of_limits(&settings.config, &sizes);
    let mut bar = ProgressBar::new(run.service.quiet);
    let records = RunOutputs {
        first: outputs.records,
        changes,
        end_patience,
    };
    let mut report = meter(run, &settings, source, records, outputs.unparsed, &mut bar)?;
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
        print(&log::escaped_lines(&tables::render(
            &report, &summary, elapsed,
        )))?;
    } else if !run.service.quiet {
        report.say_finished(elapsed);
    }
    if let (Some(filter), false) = (&run.source.filter, run.service.quiet) {
        report.say_tagged(filter);
    }
    let engine = &settings.engine;
    report.say_losses(
        &settings.config,
        &engine.why_records_are_lost(),
        engine.why_frames_are_lost(),
    );
    for words in engine.shortcomings(&report.own_counts) {
        say!(Warning EngineShort; "{words}");
    }
    Ok(say_closing(&report, run.service.quiet))
}

/// Logs the engine's closing report. Returns the outcome of the run.
fn say_closing(report: &Report, is_quiet: bool) -> Outcome {
    let closing = &report.closing;
    if !is_quiet && !closing.summary.is_empty() {
        say!(Info Finished; "{}", closing.summary.trim_end());
    }
    for words in &closing.losses {
        say!(Error BridgeFails; "{words}");
    }
    for words in &closing.missing {
        say!(Error RecordsMissing; "{words}");
    }
    match closing.losses.is_empty() && closing.missing.is_empty() {
        true => report.outcome(),
        false => Outcome::Lossy,
    }
}

/// The complete SIGHUP handler: rereads the engine's files and the configuration.
fn with_engine(reread: Option<Reread>, engine: Option<RereadByEngine>) -> Option<Reread> {
    match (reread, engine) {
        (reread, None) => reread,
        (None, Some(mut engine)) => Some(Box::new(move |_| engine())),
        (Some(mut reread), Some(mut engine)) => Some(Box::new(move |apply| {
            engine();
            reread(apply);
        })),
    }
}

/// Meters the source to its end.
fn meter(
    run: &RunConfig,
    settings: &Settings,
    source: OpenSource,
    outputs: RunOutputs,
    unparsed: Option<UnfinishedFile>,
    bar: &mut ProgressBar,
) -> anyhow::Result<Report> {
    let unparsed = match (unparsed, settings.engine.unparsed_to()) {
        (Some(file), Some(path)) => Some(UnparsedFile::new(path.display().to_string(), file)?),
        _ => None,
    };
    let mut observer = Observer::new(bar, source.source.is_live(), unparsed);
    let controls = Controls {
        limits: limits(run),
        stop: &STOP,
        snapshots: &SNAPSHOTS,
    };
    let ran = turboflow_run::run(
        &settings.config,
        source.source,
        outputs,
        controls,
        |event| observer.observe(event),
    )?;
    let unparsed_lost = ran.unparsed_lost;
    let mut report = Report::of(ran);
    report.passed_over = source.passed_over;
    report.add_captures(&source.read);
    report.clock = ClockOf::of(run);
    report.is_probe = settings.config.probe.is_some();
    let packets_received = report.ledger.packets_received;
    report.closing = settings
        .engine
        .closing(&report.own_counts, packets_received);
    report.unparsed = observer.finish().map(|file| file.finish(unparsed_lost));
    Ok(report)
}

fn serve_metrics(run: &RunConfig) -> anyhow::Result<()> {
    if let Some(MetricsAt(Some(address))) = run.service.metrics {
        let bound = metrics::serve(address)?;
        if !run.service.quiet {
            say!(Info Serving, address = bound.to_string();
                "metrics at http://{bound}/metrics, health at http://{bound}/healthz");
        }
        if !bound.ip().is_loopback() {
            say!(Warning ServingEveryone, address = bound.to_string();
                "the metrics at {bound} are open to everyone who reaches this address; if that is \
                 not intended, use 127.0.0.1, or protect it with a firewall or proxy");
        }
    }
    Ok(())
}

/// Adds the summary for people as an output.
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
