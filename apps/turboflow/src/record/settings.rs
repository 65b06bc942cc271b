// SPDX-License-Identifier: Apache-2.0
//! `turboflow record` as meant: a configuration that compiles.

use std::hash::{BuildHasher, RandomState};
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use turboflow_merge::Layout;
use turboflow_record::{Definition, InputSet};
use turboflow_run::{PipelineConfig, RunConfig};

use crate::engines::{self, Engine, refuse_demands};
use crate::keys::Key;
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
        let mut config = PipelineConfig::try_from(run).map_err(mend::of_config)?;
        config.definition = definition;
        if run.meter.seed.is_none() {
            config.seed = random_seed();
        }
        let layout = config.compile().map_err(mend::of_config)?;
        refuse_demands(run, &engine, &config, &layout)?;
        Ok(Self {
            config,
            layout,
            engine,
        })
    }
}

/// The definition that a run names.
pub(super) fn definition(run: &RunConfig) -> anyhow::Result<Definition> {
    let Some(path) = &run.flow.definition else {
        return Ok(Definition::default());
    };
    let engine = Engine::of(run)?;
    let seen = Seen {
        inputs: engine.abilities.inputs,
        by: format!("engine `{}`", engine.abilities.name),
    };
    let has_room = |layout: &Layout| match &engine.remote {
        Some(remote) => remote.has_room(layout),
        None => Ok(()),
    };
    read_definition(path, run.flow.biflow, &seen, has_room)
}

/// The inputs that can be seen, and what sees them.
pub(crate) struct Seen {
    pub(crate) inputs: InputSet,
    /// The words for it in errors.
    pub(crate) by: String,
}

/// Reads a definition and checks that it can be laid out (its directions joined if `biflow`), that
/// all its inputs are seen, and that there is room for it. Errors name the line.
pub(crate) fn read_definition(
    path: &Path,
    biflow: bool,
    seen: &Seen,
    has_room: impl Fn(&Layout) -> anyhow::Result<()>,
) -> anyhow::Result<Definition> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the definition {name}"))?;
    let placed = |error| anyhow!("{name}, {error}");
    let (definition, places) = Definition::parse_with_places(&text).map_err(placed)?;
    if let Err(unseen) = definition.check_inputs(seen.inputs, &seen.by) {
        let unseen = places.locate(unseen);
        match &engines::that_see(definition.inputs())[..] {
            [] => bail!("{name}, {unseen}"),
            able => bail!(
                "{name}, {unseen}; {} sees all that it asks for",
                Key::Engine.with(&engines::listed(able.iter().copied()))
            ),
        }
    }
    let layout =
        Layout::compile(&definition, biflow).map_err(|invalid| placed(places.locate(invalid)))?;
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
