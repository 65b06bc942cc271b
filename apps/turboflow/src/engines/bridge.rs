// SPDX-License-Identifier: Apache-2.0
//! The engine of `turboflow bridge`: flow offload between two ports. It has the options of the
//! engines that it builds on; its own are in the section `[bridge]`.

#[cfg(all(target_os = "linux", feature = "kernel"))]
mod closing;
#[cfg(all(target_os = "linux", feature = "kernel"))]
mod control;
#[cfg(all(target_os = "linux", feature = "kernel"))]
mod decider;
#[cfg(all(target_os = "linux", feature = "kernel"))]
mod open;
#[cfg(all(target_os = "linux", feature = "kernel"))]
mod reload;
#[cfg(all(target_os = "linux", feature = "kernel"))]
mod watch;

use std::path::Path;
#[cfg(all(target_os = "linux", feature = "kernel"))]
use std::sync::Arc;

use anyhow::{anyhow, bail};
use turboflow_engine::{Abilities, OwnCount};
#[cfg(all(target_os = "linux", feature = "kernel"))]
use turboflow_engine_xdp::{KernelError, check_bridge_layout};
use turboflow_merge::Layout;
use turboflow_run::{BridgeConfig, PipelineConfig, RunConfig};

use super::offload::{OffloadOptions, OffloadSetup};
use super::options::Options;
use super::xdp::XdpOptions;
#[cfg(all(target_os = "linux", feature = "kernel"))]
use super::{Closing, RereadByEngine};
use super::{EngineKind, OpenEngines, RemoteSetup};
use crate::keys::Key;
#[cfg(all(target_os = "linux", feature = "kernel"))]
use control::Control;

/// The engine's name in messages.
pub(crate) const NAME: &str = "bridge";

/// The engine of `turboflow bridge`.
pub(super) struct Bridge;

/// Flags of the engines below that a bridge refuses.
pub(crate) const UNUSED: [&str; 2] = ["xdp-mode", "xdp-drop"];

/// The engines that it builds on, whose options it has.
pub(crate) const fn below() -> &'static [&'static str] {
    &[OffloadOptions::ENGINE, XdpOptions::ENGINE]
}

impl EngineKind for Bridge {
    fn abilities(&self) -> Abilities {
        Abilities {
            name: NAME,
            ..turboflow_engine_offload::BRIDGE_ABILITIES
        }
    }

    fn is_built(&self) -> bool {
        cfg!(all(target_os = "linux", feature = "kernel"))
    }

    fn about(&self) -> &'static str {
        "two ports, and rules that decide which packets pass between them"
    }

    fn stands_on(&self) -> &'static [&'static str] {
        below()
    }

    fn sees_payload(&self) -> bool {
        true
    }

    fn remote_engine(&self, run: &RunConfig) -> anyhow::Result<Option<Box<dyn RemoteSetup>>> {
        check_config(&run.bridge)?;
        Ok(Some(Box::new(BridgeSetup {
            below: OffloadSetup::of(run)?,
            #[cfg(all(target_os = "linux", feature = "kernel"))]
            bridge: run.bridge.clone(),
            #[cfg(all(target_os = "linux", feature = "kernel"))]
            control: Arc::default(),
            #[cfg(all(target_os = "linux", feature = "kernel"))]
            reload: Arc::default(),
        })))
    }
}

/// Completes the settings of a run with a bridge: its ports become the interfaces, and payload is
/// inspected if the program was built with inspection. Leaves other runs as they are.
///
/// # Errors
/// The settings contradict the bridge.
pub(crate) fn settle(run: &mut RunConfig) -> anyhow::Result<()> {
    if run.bridge == BridgeConfig::default() {
        return Ok(());
    }
    check_config(&run.bridge)?;
    let ports: Vec<String> = [&run.bridge.first, &run.bridge.second]
        .into_iter()
        .flatten()
        .cloned()
        .collect();
    let source = &mut run.source;
    let others = [
        (!source.files.is_empty(), Key::Files),
        (!source.cpu_ports.is_empty(), Key::CpuPorts),
    ];
    if let Some((_, key)) = others.into_iter().find(|(is_given, _)| *is_given) {
        bail!("a bridge meters its two ports: leave out {key}");
    }
    if !source.interfaces.is_empty() && source.interfaces != ports {
        return Err(other_interfaces());
    }
    source.interfaces = ports;
    let is_other =
        ![NAME, RunConfig::default().engine.name.as_str()].contains(&run.engine.name.as_str());
    if is_other {
        bail!(
            "a bridge has an engine of its own: leave out {}",
            Key::Engine.with(&run.engine.name)
        );
    }
    run.engine.name = NAME.to_owned();
    run.meter.dpi = cfg!(feature = "dpi");
    Ok(())
}

/// The error for interfaces other than the ports.
pub(crate) fn other_interfaces() -> anyhow::Error {
    anyhow!(
        "a bridge has its ports in {} and {}: leave out {}",
        Key::BridgeIn,
        Key::BridgeOut,
        Key::Interfaces
    )
}

fn check_config(bridge: &BridgeConfig) -> anyhow::Result<()> {
    let given = [
        (bridge.first.is_some(), Key::BridgeIn, "eth0"),
        (bridge.second.is_some(), Key::BridgeOut, "eth1"),
        (
            bridge.rules.is_some(),
            Key::Rules,
            "/etc/turboflow/rules.toml",
        ),
    ];
    match given.into_iter().find(|(is_given, ..)| !is_given) {
        Some((_, key, example)) => {
            bail!(
                "a bridge has two ports and rules: add {}",
                key.with(example)
            )
        }
        None => Ok(()),
    }
}

/// The parsed options of a run with a bridge.
struct BridgeSetup {
    below: OffloadSetup,
    #[cfg(all(target_os = "linux", feature = "kernel"))]
    bridge: BridgeConfig,
    #[cfg(all(target_os = "linux", feature = "kernel"))]
    control: Arc<Control>,
    #[cfg(all(target_os = "linux", feature = "kernel"))]
    reload: Arc<reload::Reload>,
}

impl RemoteSetup for BridgeSetup {
    fn unparsed_to(&self) -> Option<&Path> {
        self.below.unparsed_to()
    }

    fn unknown_options(&self, run: &RunConfig) -> Vec<String> {
        let mut unknown = self.below.unknown_options(run);
        unknown.extend(self.below.xdp.drops().map(|key| key.to_string()));
        unknown.extend(self.below.xdp.chooses_mode().map(|key| key.to_string()));
        unknown
    }

    #[cfg(all(target_os = "linux", feature = "kernel"))]
    fn has_room(&self, layout: &Layout) -> anyhow::Result<()> {
        match check_bridge_layout(layout) {
            Err(error @ KernelError::TooLarge { .. }) => Err(error.into()),
            // Other reasons are reported in terms of the options.
            _ => Ok(()),
        }
    }

    fn check(
        &self,
        run: &RunConfig,
        config: &PipelineConfig,
        layout: &Layout,
    ) -> anyhow::Result<()> {
        self.below.check(run, config, layout)?;
        #[cfg(all(target_os = "linux", feature = "kernel"))]
        self.rules_file(config).read(None).map(drop)?;
        Ok(())
    }

    fn open(
        &self,
        run: &RunConfig,
        config: &PipelineConfig,
        layout: &Layout,
    ) -> anyhow::Result<OpenEngines> {
        #[cfg(all(target_os = "linux", feature = "kernel"))]
        return open::open(self, run, config, layout);
        #[cfg(not(all(target_os = "linux", feature = "kernel")))]
        {
            let _ = (run, config, layout);
            bail!("{}", super::xdp::without_it(NAME))
        }
    }

    fn why_records_are_lost(&self) -> String {
        self.below.why_records_are_lost()
    }

    fn shortcomings(&self, counts: &[OwnCount]) -> Vec<String> {
        self.below.shortcomings(counts)
    }

    #[cfg(all(target_os = "linux", feature = "kernel"))]
    fn closing(&self, counts: &[OwnCount], received: u64) -> Closing {
        closing::closing(&self.control, counts, received)
    }

    #[cfg(all(target_os = "linux", feature = "kernel"))]
    fn reread(&self) -> Option<RereadByEngine> {
        reload::reread(self)
    }
}
