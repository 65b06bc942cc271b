// SPDX-License-Identifier: Apache-2.0
//! Refuses sources and features that the engine of a run does not support. The errors name the
//! options to change, and engines that do support them.

use std::path::Path;

use anyhow::bail;
use turboflow_engine::{Abilities, Demands, Lacking};
use turboflow_merge::{KeyWidths, Layout};
use turboflow_packet::{TELEMETRY_INPUTS, TelemetryConfig};
use turboflow_run::{EngineConfig, PipelineConfig, RunConfig};

use super::{Engine, EngineKind, all, built_for, is_of_services, listed};
use crate::keys::{Key, is_from_file};

/// Refuses a run without a source, or whose source its engine does not meter.
pub(crate) fn refuse_source(run: &RunConfig, kind: &dyn EngineKind) -> anyhow::Result<()> {
    let name = kind.abilities().name;
    let is_default = name == EngineConfig::SOFTWARE;
    let has_files = !run.source.files.is_empty();
    let has_interfaces = !run.source.interfaces.is_empty();
    let interface = Key::Interfaces.with("IFACE");
    if !run.source.cpu_ports.is_empty() && !kind.has_cpu_ports() {
        let able = all().filter(|other| other.has_cpu_ports());
        let able: Vec<_> = able
            .map(|other| Key::Engine.with(other.abilities().name))
            .collect();
        bail!(
            "engine `{name}` has no CPU port: leave out {}, or use {}",
            Key::CpuPorts,
            listed(able.iter().map(String::as_str))
        );
    }
    let reads_files_alone =
        kind.reads_files() && !kind.meters_interfaces() && !kind.has_cpu_ports();
    if reads_files_alone && (has_interfaces || !has_files) {
        bail!(
            "engine `{name}` meters captures: add {}{}",
            Key::Files.with("FILE"),
            match has_interfaces {
                true => format!(" and leave out {}", Key::Interfaces),
                false => String::new(),
            }
        );
    }
    if kind.has_cpu_ports() && has_interfaces {
        bail!(
            "engine `{name}` meters at CPU ports: add {} instead of {}",
            Key::CpuPorts.with("IFACE"),
            Key::Interfaces
        );
    }
    match (is_default, kind.meters_interfaces()) {
        (true, _) if !has_files && !run.is_live() => bail!(
            "there is nothing to meter: add {} or {interface}; {} is standard input{}",
            Key::Files.with("FILE"),
            Key::Files.with("-"),
            meant_file(run)
        ),
        (false, true) if has_files => bail!(
            "engine `{name}` meters interfaces ({interface}); for captures leave {} out",
            Key::Engine.with(name)
        ),
        (false, true) if !run.is_live() => {
            bail!("engine `{name}` meters interfaces: add {interface}")
        }
        (false, false) if has_files && !kind.reads_files() || has_interfaces => bail!(
            "engine `{name}` has a source of its own{}: leave out {}, or {}",
            own_source(kind),
            if has_files {
                Key::Files
            } else {
                Key::Interfaces
            },
            Key::Engine.with(name)
        ),
        _ => Ok(()),
    }
}

/// The options for the source of an engine that has its own, in parentheses.
fn own_source(kind: &dyn EngineKind) -> String {
    let files = kind.file_options().iter().copied();
    let options = kind.listen_option().into_iter().chain(files);
    let options = options.filter(|option| !is_from_file() || is_of_services(option));
    let names: Vec<String> = options.map(|option| Key::Of(option).to_string()).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(" ({})", names.join(", ")),
    }
}

/// The suggestion to use `-r`, if the filter is the name of a file.
pub(crate) fn meant_file(run: &RunConfig) -> String {
    match &run.source.filter {
        Some(words) if Path::new(words).is_file() => {
            format!(". Did you mean {}?", Key::Files.with(words))
        }
        _ => String::new(),
    }
}

/// Refuses a run that needs abilities that its engine lacks.
pub(crate) fn refuse_demands(
    run: &RunConfig,
    engine: &Engine,
    config: &PipelineConfig,
    layout: &Layout,
) -> anyhow::Result<()> {
    let demands = demands(run, config, layout);
    refuse_marks(run, engine, &demands)?;
    let mut lacking = engine.abilities.lacks(&demands);
    if lacking.contains(&Lacking::Biflow) {
        // A biflow has the state of two directions: without it, there may be room.
        lacking.retain(|what| !matches!(what, Lacking::StateWords { .. }));
    }
    let mut words: Vec<String> = lacking.iter().map(words_for).collect();
    words.extend(engine.unknown_options(run));
    if words.is_empty() {
        return Ok(());
    }
    let able = built_for(&run.source).map(EngineKind::abilities);
    let able = able.filter(|other| can(other, &engine.abilities, &demands));
    let able: Vec<String> = able.map(|other| Key::Engine.with(other.name)).collect();
    let other = match able.is_empty() {
        true => String::new(),
        false => format!(", or use {}", listed(able.iter().map(String::as_str))),
    };
    let them = if words.len() == 1 { "it" } else { "them" };
    bail!(
        "engine `{}` does not support {}; leave {them} out{other}",
        engine.abilities.name,
        words.join(", ")
    );
}

/// Refuses options that identify in-band telemetry if nothing reads it.
fn refuse_marks(run: &RunConfig, engine: &Engine, demands: &Demands) -> anyhow::Result<()> {
    let (given, usual) = (run.flow.telemetry(), TelemetryConfig::default());
    let marks = [
        (Key::IntDscp, given.int_dscp != usual.int_dscp),
        (Key::IntPort, given.int_port.is_some()),
        (Key::IntReportPort, given.int_report_port.is_some()),
    ];
    let Some((key, _)) = marks.into_iter().find(|(_, is_given)| *is_given) else {
        return Ok(());
    };
    if engine.abilities.name != EngineConfig::SOFTWARE {
        bail!(
            "engine `{}` does not read in-band telemetry: leave out {key}",
            engine.abilities.name
        );
    }
    if !demands.inputs.intersects(TELEMETRY_INPUTS) {
        bail!(
            "{key} is of no use: the definition has no input of in-band telemetry ({}); leave it out",
            TELEMETRY_INPUTS.names()
        );
    }
    Ok(())
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
