// SPDX-License-Identifier: Apache-2.0
//! Refuses demands that the engine of a run cannot meet. Names the options, and the engines that
//! can.

use anyhow::bail;
use turboflow_engine::{Abilities, Demands, Lacking};
use turboflow_merge::{KeyWidths, Layout};
use turboflow_run::{PipelineConfig, RunConfig};

use super::{Engine, EngineKind, all, listed};
use crate::keys::Key;

/// Refuses a run that needs abilities which its engine lacks.
pub(crate) fn refuse_demands(
    run: &RunConfig,
    engine: &Engine,
    config: &PipelineConfig,
    layout: &Layout,
) -> anyhow::Result<()> {
    let demands = demands(run, config, layout);
    let lacking = engine.abilities.lacks(&demands);
    let mut words: Vec<String> = lacking.iter().map(words_for).collect();
    if let Some(remote) = &engine.remote {
        words.extend(remote.unknown_options(run));
    }
    if words.is_empty() {
        return Ok(());
    }
    let able = all().filter(|other| other.meters_interfaces() || !run.is_live());
    let able = able.map(EngineKind::abilities);
    let able = able.filter(|other| can(other, &engine.abilities, &demands));
    let able: Vec<String> = able.map(|other| Key::Engine.with(other.name)).collect();
    let other = match able.is_empty() {
        true => String::new(),
        false => format!(", or use {}", listed(able.iter().map(String::as_str))),
    };
    bail!(
        "engine `{}` does not support {}; leave it out{other}",
        engine.abilities.name,
        words.join(", ")
    );
}

/// Whether another engine meets all demands.
fn can(other: &Abilities, engine: &Abilities, demands: &Demands) -> bool {
    other.name != engine.name && other.lacks(demands).is_empty()
}

/// What a run needs from its engine.
fn demands(run: &RunConfig, config: &PipelineConfig, layout: &Layout) -> Demands {
    Demands {
        inputs: config.definition.inputs(),
        any_key: layout.key_widths() == KeyWidths::Wide,
        state_words: layout.steps().words,
        biflow: config.biflow,
        decapsulates: !config.decapsulate.is_empty(),
        reassembles_flows: config.reassemble_flows.is_some(),
        icmp_ports: config.icmp_ports,
        filters: run.source.filter.is_some(),
        instances: 1,
    }
}

fn words_for(lacking: &Lacking) -> String {
    match lacking {
        Lacking::Biflow => Key::Biflow.to_string(),
        Lacking::Decapsulation => Key::Decapsulate.to_string(),
        Lacking::Reassembly => Key::Reassemble.to_string(),
        Lacking::IcmpPorts => Key::IcmpPorts.to_string(),
        Lacking::Filter => Key::Filter.to_string(),
        other => other.to_string(),
    }
}
