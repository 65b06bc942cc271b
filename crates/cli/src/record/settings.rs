// SPDX-License-Identifier: Apache-2.0
//! `turboflow record` as meant: a configuration that compiles.

use std::hash::{BuildHasher, RandomState};
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use turboflow_aggregate::Timeouts;
use turboflow_engine_software::Sizing;
use turboflow_packet::ReassemblyConfig;
use turboflow_pipeline::PipelineConfig;
use turboflow_record::{Definition, InputSet, Layout};

use super::RecordArgs;
use super::args::Engine;

/// A configuration and the layout of its records.
pub(super) struct Settings {
    pub(super) config: PipelineConfig,
    pub(super) layout: Layout,
}

impl Settings {
    pub(super) fn new(args: &RecordArgs) -> anyhow::Result<Self> {
        let definition = match &args.definition {
            Some(path) => {
                let (seen, by) = seen_by(args.engine);
                read_definition(path, seen, by)?
            }
            None => Definition::default(),
        };
        if args.unparsed_to.is_some() && args.engine != Engine::Xdp {
            bail!(
                "--unparsed-to is for the engine in the kernel (--engine xdp): of files and with the software engine, \
                 `tcpdump` has the frames, and the ledger says by reason how many are no packet"
            );
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
            threads: usize::try_from(args.threads).map_err(|_| too_large("--threads"))?,
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
        let in_definition = || match &args.definition {
            Some(path) => path.display().to_string(),
            None => "options".to_owned(),
        };
        let layout = config.compile().map_err(|error| match error {
            turboflow_pipeline::ConfigError::Definition(what) => {
                anyhow!("{}: {what}", in_definition())
            }
            error => anyhow!(error),
        })?;
        Ok(Self { config, layout })
    }
}

/// What an engine sees of packets, and how errors call it.
fn seen_by(engine: Engine) -> (InputSet, &'static str) {
    match engine {
        Engine::Software => (InputSet::of_capture_files(), "capture files"),
        Engine::Xdp => (InputSet::of_kernel_engine(), "xdp"),
    }
}

/// Reads a definition and checks that whoever sees `seen` has what it asks for.
pub(crate) fn read_definition(path: &Path, seen: InputSet, by: &str) -> anyhow::Result<Definition> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the definition {name}"))?;
    let definition = Definition::parse(&text).map_err(|error| anyhow!("{name}, {error}"))?;
    definition
        .check_inputs(seen, by)
        .map_err(|error| anyhow!("{name}: {error}"))?;
    Ok(definition)
}

/// A seed that nobody knows before: std's hasher is keyed by the operating system.
fn random_seed() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
