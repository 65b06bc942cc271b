// SPDX-License-Identifier: Apache-2.0
//! Starts the pipeline and sends packets to it.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use turboflow_engine::RemoteEngine;
use turboflow_engine_p4::{
    Live, LiveConfig, P4Error, P4Record, PROGRAMS, Port, Replay, ReplayConfig, SwxPort, Unsupported,
};
use turboflow_merge::Layout;
use turboflow_record::Definition;
use turboflow_run::{PipelineConfig, RunConfig, wall_ns};

use super::files::Captures;
use super::{OpenEngines, P4Options, PIPELINE, PROGRAM, Pipeline};
use crate::interfaces;
use crate::keys::Key;
use crate::log::say;
use crate::record::open_captures;
use crate::units::grouped;

/// The program that runs the software pipeline of DPDK.
const RUNNER: &str = "turboflow-swx";
/// Default slots of each of the two tables.
const SLOTS: u64 = 16_384;
/// Maximum frames in flight to a pipeline outside this machine, which may drop the excess: the
/// buffers of bmv2's ports hold about 32.
const WINDOW: usize = 24;

/// A checked configuration of the pipeline.
pub(super) struct Plan {
    record: P4Record,
    slots: u32,
    seeds: [u64; 2],
    /// The program of a pipeline on this machine; `None` for a switch.
    spec: Option<Cow<'static, str>>,
}

/// Checks that there is a pipeline for the packets to be metered, and only one for captures.
fn check_source(options: &P4Options, run: &RunConfig) -> anyhow::Result<()> {
    let here = Key::Of(PIPELINE).with("swx");
    let elsewhere = Key::CpuPorts.with("IFACE");
    match (options.pipeline, &run.source.cpu_ports[..]) {
        (None, []) => bail!("engine `p4` needs a pipeline: add {here}, or {elsewhere}"),
        (Some(_), [_, ..]) => bail!("{here} and {} exclude each other", Key::CpuPorts),
        (Some(_), []) if run.source.files.is_empty() => {
            bail!("{here} meters captures: add {}", Key::Files.with("FILE"))
        }
        (None, [_, _, ..]) if !run.source.files.is_empty() => {
            bail!(
                "captures are sent to one pipeline: name one {}",
                Key::CpuPorts
            )
        }
        _ => {}
    }
    if options.program.is_some() && options.pipeline.is_none() {
        bail!(
            "{} is for {here}: a switch is loaded with its own tools",
            Key::Of(PROGRAM)
        );
    }
    Ok(())
}

/// The words of a record in the pipeline.
pub(super) fn record(
    options: &P4Options,
    definition: &Definition,
    layout: &Layout,
) -> Result<P4Record, Unsupported> {
    match options.pipeline {
        // A pipeline on this machine has no queue, hence no queue features.
        Some(_) => P4Record::new(definition, layout),
        None => P4Record::behind_queue(definition, layout),
    }
}

/// The error about a part of the definition.
pub(super) fn refused(options: &P4Options, part: &Unsupported) -> anyhow::Error {
    match options.pipeline {
        Some(Pipeline::Swx) => anyhow!("the pipeline `swx` does not support {part}"),
        None => anyhow!("engine `p4` does not support {part}"),
    }
}

/// Checks everything that can be checked without opening anything.
pub(super) fn plan(
    options: &P4Options,
    run: &RunConfig,
    config: &PipelineConfig,
    layout: &Layout,
) -> anyhow::Result<Plan> {
    check_source(options, run)?;
    if !run.source.cpu_ports.is_empty() {
        interfaces::check_rings(run)?;
    }
    let record = record(options, &config.definition, layout);
    let record = record.map_err(|lacking| refused(options, &lacking))?;
    let wanted = run.engine.microflow_slots.map_or(SLOTS, |slots| slots.0);
    let slots = u32::try_from(wanted).ok();
    let Some(slots) = slots.filter(|slots| slots.is_power_of_two()) else {
        let most = 1 << 31;
        bail!(
            "{}: the number of slots of engine `p4` is a power of two up to {most}: {} for example",
            Key::MicroflowSlots.with(&wanted.to_string()),
            wanted
                .min(most)
                .checked_ilog2()
                .map_or(SLOTS, |bits| 1 << bits)
        );
    };
    let spec = match (options.pipeline, &options.program) {
        (None, _) => None,
        (Some(_), None) => Some(compiled(&record)?.into()),
        (Some(_), Some(path)) => {
            let text = std::fs::read_to_string(path);
            let text =
                text.with_context(|| format!("cannot read the program {}", path.display()))?;
            Some(text.into())
        }
    };
    Ok(Plan {
        record,
        slots,
        // Unpredictable to those who send packets.
        seeds: [
            config.seed,
            config.seed.rotate_left(32) ^ 0x9e37_79b9_7f4a_7c15,
        ],
        spec,
    })
}

/// The compiled program that ships with the engine.
fn compiled(record: &P4Record) -> anyhow::Result<&'static str> {
    let mut programs = PROGRAMS.iter();
    let program = programs.find(|program| program.is_for(record));
    let Some(program) = program else {
        bail!(
            "no compiled program for this record definition comes with turboflow: write its sources \
             with `turboflow p4 generate --target pna`, compile them, and add {}",
            Key::Of(PROGRAM).with("FILE")
        );
    };
    Ok(program.spec)
}

/// Starts the pipeline of this machine, or opens the CPU ports of running switches.
pub(super) fn open(
    options: &P4Options,
    run: &RunConfig,
    config: &PipelineConfig,
    layout: &Layout,
) -> anyhow::Result<OpenEngines> {
    let plan = plan(options, run, config, layout)?;
    if run.is_live() {
        return live(run, plan, config, layout);
    }
    let (files, name, captures) = open_captures(&run.source.files)?;
    let (port, window): (Box<dyn Port>, _) = match &plan.spec {
        Some(spec) => {
            let runner = runner()?;
            let port = SwxPort::start(&runner, spec)
                .with_context(|| format!("cannot start {}", runner.display()))?;
            (Box::new(port), None)
        }
        None => (cpu_port(&run.source.cpu_ports[0], run)?, Some(WINDOW)),
    };
    let replay_config = ReplayConfig {
        slots: plan.slots,
        cell_ns: config.timeouts.cell_ns(config.max_age_ns),
        tolerance_ns: config.timeouts.idle_ns.unwrap_or(u64::MAX),
        cuts_at_ends: config.timeouts.linger_ns == Some(0),
        seeds: plan.seeds,
        window,
    };
    let packets = run.source.packets.map(|packets| packets.0);
    let input = Box::new(Captures::new(files, packets, captures.read.clone()));
    let replay = Replay::open(port, input, plan.record, layout, &replay_config);
    let replay = replay.map_err(|error| match (&error, &options.program) {
        (P4Error::Ended { .. }, Some(program)) => {
            let program = program.display();
            anyhow::Error::new(error).context(format!("{RUNNER} does not run {program}"))
        }
        _ => error.into(),
    })?;
    Ok(OpenEngines {
        name,
        engines: vec![Box::new(replay)],
        held: Vec::new(),
        captures,
    })
}

/// Opens the CPU ports.
fn live(
    run: &RunConfig,
    plan: Plan,
    config: &PipelineConfig,
    layout: &Layout,
) -> anyhow::Result<OpenEngines> {
    // All ports before the first one waits for an answer.
    let ports = run.source.cpu_ports.iter();
    let ports = ports.map(|name| Ok((name, cpu_port(name, run)?)));
    let ports: Vec<_> = ports.collect::<anyhow::Result<_>>()?;
    let mut engines: Vec<Box<dyn RemoteEngine>> = Vec::new();
    for (name, port) in ports {
        let live_config = LiveConfig {
            slots: plan.slots,
            cell_ns: config.timeouts.cell_ns(config.max_age_ns),
            seeds: plan.seeds,
            window: WINDOW,
            wall_ns,
            interface_index: interfaces::index(name),
        };
        let engine = Live::open(port, plan.record.clone(), layout, &live_config)?;
        engines.push(Box::new(engine));
        if !run.service.quiet {
            say!(Info Listening, interface = name.as_str();
                "listening on {name}: reports of a P4 program with {} slots a table; Ctrl-C ends",
                grouped(plan.slots.into()));
        }
    }
    Ok(OpenEngines {
        name: run.source.cpu_ports.join(" "),
        engines,
        held: Vec::new(),
        captures: Default::default(),
    })
}

#[cfg(target_os = "linux")]
fn cpu_port(name: &str, run: &RunConfig) -> anyhow::Result<Box<dyn Port>> {
    let port = super::port::PacketPort::open(name, run.source.ring_size.0)?;
    Ok(Box::new(port))
}

#[cfg(not(target_os = "linux"))]
fn cpu_port(name: &str, _: &RunConfig) -> anyhow::Result<Box<dyn Port>> {
    bail!("{name}: CPU ports are supported on Linux only")
}

/// The program that runs the pipeline: beside this one, or in `PATH`.
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
