// SPDX-License-Identifier: Apache-2.0
//! Starts the pipeline, and sends it the packets.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use turboflow_engine_p4::{P4Record, PROGRAMS, Replay, ReplayConfig, SwxPort};
use turboflow_merge::Layout;
use turboflow_run::{PipelineConfig, RunConfig};

use super::files::Captures;
use super::{OpenEngines, P4Options, PROGRAM};
use crate::keys::Key;
use crate::record::open_captures;

/// The program that runs DPDK's pipeline.
const RUNNER: &str = "turboflow-swx";
/// Slots of each of both tables, unless others are asked for.
const SLOTS: u64 = 16_384;

/// What runs.
pub(super) struct Plan {
    record: P4Record,
    config: ReplayConfig,
    spec: Cow<'static, str>,
}

/// Checks everything that can be checked before anything is opened.
pub(super) fn plan(
    options: &P4Options,
    run: &RunConfig,
    config: &PipelineConfig,
    layout: &Layout,
) -> anyhow::Result<Plan> {
    let record = P4Record::new(&config.definition, layout)
        .map_err(|lacking| anyhow!("engine `p4` does not support {lacking}"))?;
    let slots = run.engine.microflow_slots.map_or(SLOTS, |slots| slots.0);
    let slots = u32::try_from(slots)
        .ok()
        .filter(|slots| slots.is_power_of_two());
    let Some(slots) = slots else {
        bail!(
            "{}: the table of engine `p4` has a power of two of slots, 16384 for example",
            Key::MicroflowSlots
        );
    };
    let spec = match &options.program {
        Some(path) => std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the program {}", path.display()))?
            .into(),
        None => compiled(&record)?.into(),
    };
    Ok(Plan {
        record,
        spec,
        config: ReplayConfig {
            slots,
            cell_ns: config.timeouts.cell_ns(config.max_age_ns),
            tolerance_ns: config.timeouts.idle_ns.unwrap_or(u64::MAX),
            cuts_at_ends: config.timeouts.linger_ns == Some(0),
            // Any two numbers that a sender of packets does not know.
            seeds: [
                config.seed,
                config.seed.rotate_left(32) ^ 0x9e37_79b9_7f4a_7c15,
            ],
            window: None,
        },
    })
}

/// The compiled program that comes with the engine.
fn compiled(record: &P4Record) -> anyhow::Result<&'static str> {
    let mut programs = PROGRAMS.iter();
    let program = programs.find(|program| program.is_for(record));
    let Some(program) = program else {
        bail!(
            "no compiled program for this record definition comes with turboflow: write its sources \
             with `turboflow p4 generate`, compile them, and add {}",
            Key::Of(PROGRAM).with("FILE")
        );
    };
    Ok(program.spec)
}

/// Starts the pipeline.
pub(super) fn open(
    options: &P4Options,
    run: &RunConfig,
    config: &PipelineConfig,
    layout: &Layout,
) -> anyhow::Result<OpenEngines> {
    let Plan {
        record,
        config: replay_config,
        spec,
    } = plan(options, run, config, layout)?;
    let (files, name) = open_captures(&run.source.files)?;
    let runner = runner()?;
    let port = SwxPort::start(&runner, &spec)
        .with_context(|| format!("cannot start {}", runner.display()))?;
    let input = Captures::new(files, run.source.packets.map(|packets| packets.0));
    let replay = Replay::open(
        Box::new(port),
        Box::new(input),
        record,
        layout,
        &replay_config,
    )?;
    Ok(OpenEngines {
        name,
        engines: vec![Box::new(replay)],
        held: Vec::new(),
    })
}

/// Where the program that runs the pipeline is: beside this one, or in `PATH`.
fn runner() -> anyhow::Result<PathBuf> {
    let beside = std::env::current_exe().ok();
    let beside = beside.as_deref().and_then(Path::parent).map(Path::to_owned);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = beside.into_iter().chain(std::env::split_paths(&path));
    let mut runners = folders.map(|folder| folder.join(RUNNER));
    runners.find(|runner| runner.is_file()).with_context(|| {
        format!(
            "{RUNNER}, which runs the pipeline, is neither beside turboflow nor in PATH (cargo build \
             --release --package {RUNNER} --features dpdk, with libdpdk-dev)"
        )
    })
}
