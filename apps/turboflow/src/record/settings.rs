// SPDX-License-Identifier: Apache-2.0
//! The validated settings of `turboflow record`.

use std::hash::{BuildHasher, RandomState};
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use turboflow_merge::Layout;
use turboflow_record::{Definition, Feature, InputSet, Op};
use turboflow_run::{BridgeConfig, PipelineConfig, RunConfig, RunSizes};

use super::{inputs, sends};
use crate::applications;
use crate::config_error;
use crate::engines::{self, Engine, refuse_demands, refuse_source};
use crate::keys::Key;

/// A validated run: the configuration of the meter, the layout of its records, and its engine.
pub(super) struct Settings {
    pub(super) config: PipelineConfig,
    pub(super) layout: Layout,
    pub(super) engine: Engine,
}

impl Settings {
    pub(super) fn new(run: &RunConfig) -> anyhow::Result<Self> {
        Self::with(run, definition(run)?)
    }

    /// The settings of a run whose definition has already been read.
    pub(super) fn with(run: &RunConfig, definition: Definition) -> anyhow::Result<Self> {
        let engine = Engine::of(run)?;
        refuse_source(run, engines::kind_of(run)?)?;
        if !run.flow.biflow && run.flow.initiator != Default::default() {
            let (initiator, biflow) = (Key::Initiator, Key::Biflow);
            bail!("only biflows ({biflow}) have an initiator: leave {initiator} out");
        }
        let mut config = PipelineConfig::try_from(run).map_err(config_error::for_user)?;
        config.definition = definition;
        if run.source.files.iter().any(|file| inputs::is_stream(file)) {
            config = config.live();
        }
        if run.meter.seed.is_none() {
            config.seed = random_number();
        }
        let max_age_ns = engine
            .remote
            .as_ref()
            .and_then(|remote| remote.max_age_ns(run));
        config.max_age_ns = max_age_ns.unwrap_or(config.max_age_ns);
        config.inspection = applications::inspection(run, &config)?;
        if run.bridge != BridgeConfig::default() {
            config.texts = Some(applications::texts_with_rules(config.inspection.as_ref()));
        }
        let layout = config.compile().map_err(config_error::for_user)?;
        config.probe = sends::counters_of(run, &layout)?;
        refuse_demands(run, &engine, &config, &layout)?;
        let packet_engines = engine.packet.as_ref().map(|packet| packet.engines());
        config.packet_engines = packet_engines.transpose()?;
        Ok(Self {
            config,
            layout,
            engine,
        })
    }

    /// Maximum sizes of the tables, in bytes.
    pub(super) fn sizes(&self) -> RunSizes {
        let layout = self.layout.clone();
        // Meters of packets use the two-way form of the layout.
        self.config.sizes(&match self.engine.remote {
            Some(_) => layout,
            None => layout.in_two_way_form(),
        })
    }
}

/// The definition of a run.
pub(super) fn definition(run: &RunConfig) -> anyhow::Result<Definition> {
    let definition = read_or_default(run)?;
    Ok(match run.meter.dpi {
        true => applications::with_columns(definition)?,
        false => definition,
    })
}

fn read_or_default(run: &RunConfig) -> anyhow::Result<Definition> {
    let engine = Engine::of(run)?;
    let Some(path) = &run.flow.definition else {
        let default = Definition::default();
        let is_bridge = run.bridge != BridgeConfig::default();
        let sees = |input| engine.abilities.inputs.contains(input);
        return Ok(match is_bridge && InputSet::DECIDED.iter().all(sees) {
            true => default.with_verdicts(),
            false => default,
        });
    };
    let seen = AvailableInputs {
        inputs: engine.abilities.inputs,
        by: format!("engine `{}`", engine.abilities.name),
        others: engines::built_for(&run.source)
            .map(|other| other.abilities().name)
            .collect(),
    };
    read_definition(path, run.flow.biflow, &seen, |layout| {
        engine.has_room(layout)
    })
}

/// The available inputs, and what provides them.
pub(crate) struct AvailableInputs {
    pub(crate) inputs: InputSet,
    /// What provides the inputs, for error messages.
    pub(crate) by: String,
    /// Other engines that the run could use.
    pub(crate) others: Vec<&'static str>,
}

/// Reads a definition. Checks that it compiles to a layout (for biflows if `biflow`), that all its
/// inputs are available, and that the engine supports it. Errors name the line.
pub(crate) fn read_definition(
    path: &Path,
    biflow: bool,
    seen: &AvailableInputs,
    has_room: impl Fn(&Layout) -> anyhow::Result<()>,
) -> anyhow::Result<Definition> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the definition {name}"))?;
    let placed = |error| anyhow!("{name}, {error}");
    let (definition, places) = Definition::parse_with_places(&text).map_err(placed)?;
    if let Err(unseen) = definition.check_inputs(seen.inputs, &seen.by) {
        let unseen = places.locate(unseen);
        if applications::has_columns(&definition) {
            bail!("{name}, {unseen}; to find applications, add {}", Key::Dpi);
        }
        let able = engines::supporting(definition.inputs()).into_iter();
        let able: Vec<_> = able.filter(|engine| seen.others.contains(engine)).collect();
        match &able[..] {
            [] => bail!("{name}, {unseen}"),
            able => bail!(
                "{name}, {unseen}; {} supports all its inputs",
                Key::Engine.with(&engines::listed(able.iter().copied()))
            ),
        }
    }
    let placed_at = |invalid| placed(places.locate(invalid));
    let layout = Layout::compile(&definition, biflow).map_err(placed_at)?;
    let Err(reason) = has_room(&layout) else {
        return Ok(definition);
    };
    // Find what the engine does not support, for the error: the key, or the first such feature.
    let refusal = |features: &[Feature]| {
        let part = Definition {
            key: definition.key.clone(),
            features: features.to_vec(),
        };
        has_room(&Layout::compile(&part, biflow).ok()?).err()
    };
    if let Some(reason) = refusal(&[Feature::new("packets", Op::Count, None)]) {
        bail!("{name}, line {}: key: {reason}", places.line_of_key());
    }
    for (index, feature) in definition.features.iter().enumerate() {
        if let Some(reason) = refusal(&definition.features[..=index]) {
            let line = places.line_of_feature(index);
            bail!("{name}, line {line}: feature `{}`: {reason}", feature.name);
        }
    }
    bail!("{name}: {reason}");
}

/// An unpredictable number: the operating system seeds the hasher of `std`.
pub(super) fn random_number() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
