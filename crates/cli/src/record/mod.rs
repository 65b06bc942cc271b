// SPDX-License-Identifier: Apache-2.0
//! `turboflow record`: capture files in, flow records out.

mod args;
mod collectors;
mod inputs;
mod ledger_file;
mod outputs;
mod progress;
mod report;
mod settings;
mod summary;
mod tables;

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use turboflow_export::ExportError;
use turboflow_pipeline::{Output, RunSizes, record_files};

use crate::exit::{Outcome, print, say};
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

/// Everything is opened and created before the first packet is metered.
pub(crate) fn run(args: RecordArgs) -> anyhow::Result<Outcome> {
    let settings = Settings::new(&args)?;
    signals::listen("finishing: what was read is written")?;
    let files = inputs::open_all(&args.read)?;
    let mut outputs = match Outputs::create(&args, &settings) {
        Err(error) if is_broken_pipe(&error) => return Ok(Outcome::Well),
        outputs => outputs?,
    };
    let summary = args
        .write
        .is_empty()
        .then(|| summarise(&settings, &mut outputs));
    let sizes = settings.config.sizes(&settings.layout);
    if !args.quiet {
        announce(&settings, &sizes);
    }
    let mut bar = ProgressBar::new(args.quiet);
    let ran = record_files(
        &settings.config,
        files,
        outputs.records,
        &STOP,
        |progress| {
            bar.draw(&progress);
        },
    )?;
    let elapsed = bar.finish();
    let mut report = Report::new(ran);
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
