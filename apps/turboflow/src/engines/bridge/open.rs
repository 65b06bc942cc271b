// SPDX-License-Identifier: Apache-2.0
//! Starts a bridge: rules, ports, the fallback for failures, and the kernel's program last.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use turboflow_bridge::fail::{
    BPF_FOLDER, FailError, LinuxBridge, firewalls, left_pins, pin_folder,
};
use turboflow_bridge::ports::{self, HeldPorts, Port};
use turboflow_bridge::{FailMode, Rules};
use turboflow_engine_offload::OffloadEngine;
use turboflow_engine_xdp::{BridgeConfig as KernelBridge, KernelConfig};
use turboflow_merge::Layout;
use turboflow_run::{BridgeConfig, PipelineConfig, RunConfig};

use super::control::actions_of;
use super::decider::Polices;
use super::{BridgeSetup, NAME};
use crate::bridge::{RulesFile, Told};
use crate::engines::OpenEngines;
use crate::engines::offload::open as offload;
use crate::engines::xdp::open as xdp;
use crate::log::say;
use crate::units::counted;

/// Packets are counted for rules with numbers below this. A file has at most half as many rules;
/// rereading a file gives new rules higher numbers.
const COUNTED_RULES: u32 = 8_192;
/// Flows remembered per row of the table, because undecided flows have no row.
const FLOWS_A_ROW: usize = 2;

impl BridgeSetup {
    /// The file of rules, with the names of the run's inspection.
    pub(super) fn rules_file(&self, pipeline: &PipelineConfig) -> RulesFile {
        let path = self.bridge.rules.as_deref().unwrap_or("".as_ref());
        let inspection = pipeline.inspection.as_ref();
        RulesFile::new(path, inspection.map(|its| Arc::clone(its.names.names())))
    }
}

/// Starts the bridge, or nothing at all.
pub(super) fn open(
    setup: &BridgeSetup,
    run: &RunConfig,
    pipeline: &PipelineConfig,
    layout: &Layout,
) -> anyhow::Result<OpenEngines> {
    let file = setup.rules_file(pipeline);
    let rules = Arc::new(file.read(None)?);
    let [first, second] = &run.source.interfaces[..] else {
        bail!(
            "a bridge has two ports, not {}",
            run.source.interfaces.len()
        );
    };
    let ports = ports::checked(first, second, rules.fail())?;
    xdp::check_rights_of("a bridge", "")?;
    let held = HeldPorts::hold(&ports)?;
    check_left(&ports, rules.fail())?;
    say_start(&setup.bridge, &rules, &file);
    let Some(texts) = pipeline.texts() else {
        bail!("records of a bridge need names: a bug in turboflow");
    };
    setup
        .control
        .begin(Arc::clone(&rules), texts.rules(), setup.bridge.dry_run);
    let config = config_of(setup, run, pipeline, layout, &rules)?;
    // Before the program is attached, so that packets do not wait for the inspector to start.
    let rows = setup.below.rows();
    let decider = Polices::start(
        Arc::clone(&rules),
        pipeline.inspection.as_ref(),
        Arc::clone(&setup.control),
        (rows as usize).saturating_mul(2 * FLOWS_A_ROW),
    )
    .context("cannot inspect payload")?;
    let fallback = fallback(&rules, &ports)?;
    let pins = pins(&rules, &ports)?;
    let attached = xdp::attach(&setup.below.xdp, run, config, layout, NAME, pins.as_deref());
    let attached = match (attached, &fallback) {
        (Err(error), Some(bridge)) if ports[0].link.master.is_none() => {
            // Undo: the Linux bridge is new, and a failed start must change nothing.
            bridge.take_down()?;
            return Err(error);
        }
        (attached, _) => attached?,
    };
    let Some(actions) = attached.engine.bridge_actions() else {
        bail!("the engine of a bridge connects no ports: a bug in turboflow");
    };
    setup.control.actions_are(actions);
    setup
        .control
        .count_packets_by(attached.engine.rule_counter());
    let times = offload::times_of(&setup.below, pipeline);
    let engine = OffloadEngine::new(attached.engine, rows, Box::new(decider), times)?;
    say_ports(&ports, &rules, fallback.as_ref());
    let names = ports.each_ref().map(|port| port.link.name.clone());
    let afterwards = afterwards(&rules, fallback.as_ref(), &names);
    setup.control.ports_are(names, afterwards);
    tell_state(setup, ports, &rules, fallback);
    setup.reload.begin(file, Arc::clone(texts.rules()));
    Ok(OpenEngines {
        name: format!("{first} and {second}"),
        engines: vec![Box::new(engine)],
        held: vec![attached.held, Box::new(held)],
        captures: Default::default(),
    })
}

/// The folder in which the program's links are pinned, if they are to outlive the process.
fn pins(rules: &Rules, [first, second]: &[Port; 2]) -> anyhow::Result<Option<PathBuf>> {
    Ok(match rules.fail() {
        FailMode::Frozen => {
            let folder = pin_folder(BPF_FOLDER.as_ref(), &first.link, &second.link)?;
            Some(folder)
        }
        FailMode::Open | FailMode::Closed => None,
    })
}

/// Refuses ports with the program of a frozen bridge that died: only another frozen bridge may take
/// it over.
fn check_left([first, second]: &[Port; 2], fail: FailMode) -> anyhow::Result<()> {
    let left = left_pins(BPF_FOLDER.as_ref(), &first.link, &second.link);
    match (left, fail) {
        (Some(folder), FailMode::Open | FailMode::Closed) => Err(FailError::LeftFrozen {
            first: first.link.name.clone(),
            second: second.link.name.clone(),
            folder,
        }
        .into()),
        _ => Ok(()),
    }
}

/// What forwards after the bridge has ended normally.
fn afterwards(
    rules: &Rules,
    fallback: Option<&LinuxBridge>,
    [first, second]: &[String; 2],
) -> String {
    match (rules.fail(), fallback) {
        (FailMode::Open, Some(bridge)) if bridge.is_own() => format!(
            "{} goes on forwarding between {first} and {second}, without rules: `ip link del dev \
             {}` takes it down",
            bridge.name(),
            bridge.name()
        ),
        (FailMode::Open, Some(bridge)) => {
            format!(
                "{} goes on forwarding between {first} and {second}",
                bridge.name()
            )
        }
        _ => format!("nothing forwards between {first} and {second} any more"),
    }
}

/// The configuration of the kernel engine, with both ports connected.
fn config_of(
    setup: &BridgeSetup,
    run: &RunConfig,
    pipeline: &PipelineConfig,
    layout: &Layout,
    rules: &Rules,
) -> anyhow::Result<KernelConfig> {
    let mut config = offload::config_of(&setup.below, run, pipeline, layout)?;
    let [undecided, other] = actions_of(rules);
    if let Some(offload) = &mut config.offload {
        offload.bridge = Some(KernelBridge {
            is_dry_run: setup.bridge.dry_run,
            rules: COUNTED_RULES,
            undecided,
            other,
        });
    }
    Ok(config)
}

/// Logs the warnings at the start.
fn say_start(bridge: &BridgeConfig, rules: &Rules, file: &RulesFile) {
    if bridge.dry_run {
        say!(Warning DryRun;
            "DRY RUN: every frame is forwarded, and what the rules would drop is counted");
    }
    let name = file.name();
    for warning in rules.warnings() {
        say!(Warning RulesDoubtful; "{name}, {warning}");
    }
}

/// The Linux bridge that forwards when the process is gone, if any. It exists before the program is
/// attached, and stays.
fn fallback(rules: &Rules, [first, second]: &[Port; 2]) -> anyhow::Result<Option<LinuxBridge>> {
    match rules.fail() {
        FailMode::Open => {
            let bridge = LinuxBridge::over(&first.link, &second.link)?;
            let settings: Vec<_> = firewalls()
                .into_iter()
                .map(|setting| format!("net.bridge.{setting}=0"))
                .collect();
            if !settings.is_empty() {
                say!(Warning BridgeFails;
                    "firewalls of this host may drop what {} forwards when the process is gone: \
                     `sysctl {}` prevents that",
                    bridge.name(), settings.join(" "));
            }
            Ok(Some(bridge))
        }
        FailMode::Frozen | FailMode::Closed => Ok(None),
    }
}

fn say_ports([first, second]: &[Port; 2], rules: &Rules, fallback: Option<&LinuxBridge>) {
    let veths = [first, second]
        .into_iter()
        .filter(|port| port.link.kind == "veth");
    let veths: Vec<_> = veths.map(|port| port.link.name.as_str()).collect();
    if !veths.is_empty() {
        say!(Info VethPorts;
            "{}: one end of a veth pair; the other end has to take redirected frames and to finish \
             checksums: `ethtool -K PEER gro on tx off` there",
            veths.join(", "));
    }
    let fails = match (rules.fail(), fallback) {
        (FailMode::Open, Some(bridge)) => {
            format!(
                "the Linux bridge {} forwards when the process is gone",
                bridge.name()
            )
        }
        (FailMode::Frozen, _) => {
            "decisions stay in force when the process is gone, and so do `undecided` and `other`"
                .to_owned()
        }
        _ => "nothing passes when the process is gone".to_owned(),
    };
    let (first, second) = (&first.link.name, &second.link.name);
    let count = counted(rules.rules().len() as u64, "rule");
    say!(Info Bridging, first = first.as_str(), second = second.as_str(),
        fail = rules.fail().to_string(), rules = rules.rules().len();
        "bridging {first} and {second} by {count}; fail = \"{}\": {fails}", rules.fail());
}

/// Registers the state of the bridge for the metrics and health pages.
fn tell_state(setup: &BridgeSetup, ports: [Port; 2], rules: &Rules, fallback: Option<LinuxBridge>) {
    let (control, is_dry) = (Arc::clone(&setup.control), setup.bridge.dry_run);
    let fail = rules.fail();
    crate::bridge::begin(move || {
        let mut told = Told {
            rules: control.by_rule(),
            ..Told::default()
        };
        if is_dry {
            told.notes
                .push("DRY RUN: every frame is forwarded".to_owned());
        }
        let [first, second] = &ports;
        match &fallback {
            None => told.notes.push(format!("fail = \"{fail}\"")),
            Some(bridge) => match bridge.holds([&first.link, &second.link]) {
                Ok(true) => told.notes.push(format!(
                    "fail = \"{fail}\": {} forwards when the process is gone",
                    bridge.name()
                )),
                Ok(false) | Err(_) => told.problems.push(format!(
                    "fail = \"{fail}\", but the ports are no longer in {}: nothing will forward \
                     when the process is gone",
                    bridge.name()
                )),
            },
        }
        told.problems.extend(control.troubles());
        told.problems.extend(ports::trouble(&ports));
        match control.is_inspector_gone() {
            true => told.problems.push(
                "the inspector is gone, and will be started again: flows stay undecided".to_owned(),
            ),
            false => told.notes.push("the inspector works".to_owned()),
        }
        told
    });
}
