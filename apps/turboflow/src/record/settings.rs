// SPDX-License-Identifier: Apache-2.0
//! `turboflow record` as meant: a configuration that compiles.

use std::hash::{BuildHasher, RandomState};
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use turboflow_engine_software::Sizing;
use turboflow_merge::Layout;
use turboflow_packet::PARSED_INPUTS;
use turboflow_record::{Definition, InputSet};
use turboflow_run::{PipelineConfig, RunConfig};

use super::kernel;
use crate::engines::{Engine, EngineName};
use crate::mend;

/// A run that compiles: what the meter is told, the layout of its records, and its engine.
pub(super) struct Settings {
    pub(super) config: PipelineConfig,
    pub(super) layout: Layout,
    pub(super) engine: Engine,
}

impl Settings {
    pub(super) fn new(run: &RunConfig) -> anyhow::Result<Self> {
        Self::with(run, definition(run)?)
    }

    /// Settings of a run whose definition has been read already.
    pub(super) fn with(run: &RunConfig, definition: Definition) -> anyhow::Result<Self> {
        let engine = Engine::of(run)?;
        let mut meant = run.clone();
        if engine != Engine::Software {
            // The microflow table is that engine's, and so are the limits of its slots.
            meant.engine.microflow_slots = None;
        }
        let mut config = PipelineConfig::try_from(&meant).map_err(mend::of_config)?;
        config.definition = definition;
        if engine != Engine::Software {
            config.sizing = Sizing::Off;
        }
        if run.meter.seed.is_none() {
            config.seed = random_seed();
        }
        let layout = config.compile().map_err(mend::of_config)?;
        Ok(Self {
            config,
            layout,
            engine,
        })
    }
}

/// What an engine sees of packets, and how errors call it.
fn seen_by(engine: EngineName) -> (InputSet, &'static str) {
    match engine {
        EngineName::Software => (PARSED_INPUTS, "engine `software`"),
        EngineName::Xdp => (turboflow_engine_xdp::INPUTS, "engine `xdp`"),
    }
}

/// The definition that a run names.
pub(super) fn definition(run: &RunConfig) -> anyhow::Result<Definition> {
    let Some(path) = &run.flow.definition else {
        return Ok(Definition::default());
    };
    let engine = EngineName::of(run)?;
    let (seen, by) = seen_by(engine);
    let has_room = match engine {
        EngineName::Software => |_: &Layout| Ok(()),
        EngineName::Xdp => kernel::has_room,
    };
    read_definition(path, run.flow.biflow, seen, by, has_room)
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

/// An unpredictable seed: std's hasher is keyed by the operating system.
fn random_seed() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
