// SPDX-License-Identifier: Apache-2.0
//! `turboflow record` as meant: a configuration that compiles.

use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::thread;

use anyhow::{Context, anyhow, bail};
use turboflow_aggregate::Timeouts;
use turboflow_engine_software::Sizing;
use turboflow_merge::Layout;
use turboflow_packet::{PARSED_INPUTS, ReassemblyConfig};
use turboflow_record::{Definition, InputSet};
use turboflow_run::PipelineConfig;

use super::args::{Clock, Engine, Mode, Table};
use super::{RecordArgs, kernel};

/// A configuration and the layout of its records.
pub(super) struct Settings {
    pub(super) config: PipelineConfig,
    pub(super) layout: Layout,
}

impl Settings {
    pub(super) fn new(args: &RecordArgs) -> anyhow::Result<Self> {
        Self::with(args, definition(args)?)
    }

    /// The same with a definition that was read before.
    pub(super) fn with(args: &RecordArgs, definition: Definition) -> anyhow::Result<Self> {
        if args.engine == Engine::Software {
            refuse_options_of_xdp(args)?;
        }
        let too_large = |option: &str| anyhow!("{option} is too large a number");
        let sizing = match args.microflow_slots {
            // Its table is the kernel's.
            _ if args.engine == Engine::Xdp => Sizing::Off,
            None => Sizing::Adaptive,
            Some(slots) => {
                Sizing::Fixed(u32::try_from(slots).map_err(|_| too_large("--microflow-slots"))?)
            }
        };
        let config = PipelineConfig {
            definition,
            biflow: args.biflow,
            timeouts: Timeouts {
                idle_ns: args.idle_timeout.0,
                active_ns: args.active_timeout.0,
                linger_ns: args.linger.0,
            },
            sizing,
            max_flows: usize::try_from(args.max_flows).map_err(|_| too_large("--max-flows"))?,
            threads: usize::try_from(args.threads.unwrap_or(1))
                .map_err(|_| too_large("--threads"))?,
            meters_apart: args.threads.is_none()
                && args.interface.is_empty()
                && thread::available_parallelism().is_ok_and(|count| count.get() > 1),
            readers: usize::try_from(args.readers).map_err(|_| too_large("--readers"))?,
            seed: args.seed.unwrap_or_else(random_seed),
            decapsulate: args.decapsulate.unwrap_or_default(),
            icmp_ports: args.icmp_ports,
            reassemble_flows: args.reassemble_flows.then(ReassemblyConfig::default),
            ..PipelineConfig::default()
        };
        let config = if args.interface.is_empty() {
            config
        } else {
            config.live()
        };
        let layout = config.compile()?;
        Ok(Self { config, layout })
    }
}

/// Options that the software engine would pass over in silence.
fn refuse_options_of_xdp(args: &RecordArgs) -> anyhow::Result<()> {
    if args.unparsed_to.is_some() {
        bail!(
            "--unparsed-to is for the engine in the kernel (--engine xdp): of files and with the software engine, \
             `tcpdump` has the frames, and the ledger says by reason how many are no packet"
        );
    }
    let given = [
        (args.xdp_mode != Mode::Auto, "--xdp-mode"),
        (args.table != Table::PerCpu, "--table"),
        (args.xdp_clock != Clock::Precise, "--xdp-clock"),
        (args.xdp_drop, "--xdp-drop"),
        (args.replace, "--replace"),
    ];
    match given.into_iter().find(|(is_given, _)| *is_given) {
        Some((_, option)) => {
            bail!("{option} is for the engine in the kernel: add --engine xdp, or leave it out")
        }
        None => Ok(()),
    }
}

/// What an engine sees of packets, and how errors call it.
fn seen_by(engine: Engine) -> (InputSet, &'static str) {
    match engine {
        Engine::Software => (PARSED_INPUTS, "engine `software`"),
        Engine::Xdp => (turboflow_engine_xdp::INPUTS, "engine `xdp`"),
    }
}

/// The definition that the options name.
pub(super) fn definition(args: &RecordArgs) -> anyhow::Result<Definition> {
    let Some(path) = &args.definition else {
        return Ok(Definition::default());
    };
    let (seen, by) = seen_by(args.engine);
    let has_room = match args.engine {
        Engine::Software => |_: &Layout| Ok(()),
        Engine::Xdp => kernel::has_room,
    };
    read_definition(path, args.biflow, seen, by, has_room)
}

/// Reads a definition and checks that it can be laid out, its directions joined if `biflow`, and
/// that whoever sees `seen` has what it asks for, and room for it. What is wrong is said with its line.
pub(crate) fn read_definition(
    path: &Path,
    biflow: bool,
    seen: InputSet,
    by: &str,
    has_room: impl Fn(&Layout) -> anyhow::Result<()>,
) -> anyhow::Result<Definition> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the definition {name}"))?;
    let placed = |error| anyhow!("{name}, {error}");
    let (definition, places) = Definition::parse_with_places(&text).map_err(placed)?;
    let layout = definition
        .check_inputs(seen, by)
        .and_then(|()| Layout::compile(&definition, biflow))
        .map_err(|invalid| placed(places.locate(invalid)))?;
    if let Err(reason) = has_room(&layout) {
        // At the first feature for which there is none.
        let is_over = |index: &usize| {
            let mut first = definition.clone();
            first.features.truncate(index + 1);
            Layout::compile(&first, biflow).is_ok_and(|layout| has_room(&layout).is_err())
        };
        let index = (0..definition.features.len())
            .find(is_over)
            .unwrap_or_default();
        let line = places.line_of_feature(index);
        let feature = definition.features.get(index);
        let feature = feature.map_or("", |feature| &feature.name);
        bail!("{name}, line {line}: feature `{feature}`: {reason}");
    }
    Ok(definition)
}

/// A seed that nobody knows before: std's hasher is keyed by the operating system.
fn random_seed() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
