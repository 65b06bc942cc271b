// SPDX-License-Identifier: Apache-2.0
//! `turboflow top`: the traffic of interfaces or captures on a screen that refreshes.

mod args;
mod batch;
mod keys;
mod terminal;
mod watch;

use std::io::IsTerminal;
use std::sync::{Arc, Mutex};

use anyhow::{Context, bail};
use turboflow_run::{Output, Snapshots};
use turboflow_top::{Screen, Traffic, TrafficWriter, View};

use crate::exit::Outcome;
use crate::record::Watched;
use crate::signals;

pub(crate) use args::TopArgs;
use watch::{Metering, Watch};

/// Requests for snapshots of the current run.
static SNAPSHOTS: Snapshots = Snapshots::new();

/// Opens and checks everything before the screen changes.
pub(crate) fn run(args: &TopArgs) -> anyhow::Result<Outcome> {
    let screen = screen(args)?;
    if args.batch.is_none() && !std::io::stdout().is_terminal() {
        bail!("standard output is not a terminal: to print one screen as text, add --batch 1");
    }
    let watched = Watched::open(&args.to_run()?)?;
    signals::listen_at_screen(terminal::restore)?;
    let traffic = Arc::new(Mutex::new(Traffic::new(watched.schema())));
    let watch = Watch::new(&watched, Arc::clone(&traffic), args.speed());
    // A capture waits until the screen has taken its records; an interface never waits.
    let writer = match watched.is_live() {
        true => TrafficWriter::prompt(traffic)
            .context("cannot start the thread that adds records up")?,
        false => TrafficWriter::patient(traffic),
    };
    let output = Output {
        name: "screen".to_owned(),
        writer: Box::new(writer),
        may_stall: false,
    };
    let metering = Metering::start(watched, output, args.speed())?;
    match args.batch {
        Some(screens) => batch::run(screens, args.rows, &screen, watch, metering),
        None => terminal::run(screen, watch, metering),
    }
}

fn screen(args: &TopArgs) -> anyhow::Result<Screen> {
    let view = View::from(args.view);
    if view == View::Applications && !args.dpi {
        bail!("the view of applications needs --dpi: add it, or choose another --view");
    }
    let mut screen = Screen {
        view,
        has_applications: args.dpi,
        sort: args.sort.into(),
        interval: args.interval,
        ..Screen::default()
    };
    if let Some(text) = &args.filter_flows
        && let Err(reason) = screen.set_filter(text)
    {
        bail!("--where {text:?}: {reason}");
    }
    Ok(screen)
}
