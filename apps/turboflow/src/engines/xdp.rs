// SPDX-License-Identifier: Apache-2.0
//! `--engine xdp`: the program's side of the engine in the Linux kernel.

#[cfg(all(target_os = "linux", feature = "kernel"))]
pub(super) mod open;

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use turboflow_engine::Abilities;
use turboflow_merge::Layout;
use turboflow_run::{PipelineConfig, RunConfig};

use super::options::{self, EngineOption, Options, WrittenAs, WrittenOptions};
use super::{EngineKind, OpenEngines, RemoteSetup};
use crate::keys::Key;

/// Attachment mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Mode {
    /// Native if the driver supports it, otherwise generic.
    #[default]
    Auto,
    /// In the driver.
    Native,
    /// After the driver.
    Generic,
}

/// How CPUs share the microflow tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Table {
    /// One per CPU.
    #[default]
    PerCpu,
    /// One for all CPUs, with a lock per row.
    RowLock,
}

/// The clock that timestamps packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Clock {
    /// Nanosecond resolution.
    #[default]
    Precise,
    /// The kernel's tick.
    Coarse,
}

/// `[engine.xdp]`.
#[derive(Clone, Debug, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[command(next_help_heading = "Engine")]
pub(super) struct XdpOptions {
    /// xdp: attachment mode: native, generic or auto
    ///
    /// `native` runs in the driver. `generic` runs after the driver: slower, but on every
    /// interface. `auto` is native if the driver supports it.
    #[arg(long = "xdp-mode", value_enum, default_value_t = Mode::Auto, conflicts_with = "read")]
    #[arg(
        hide_possible_values = true,
        value_name = "MODE",
        hide_short_help = true
    )]
    mode: Mode,

    /// xdp: microflow tables: per-cpu or row-lock
    ///
    /// `per-cpu` has a microflow table per CPU. `row-lock` has one table for all CPUs, with a lock
    /// per row: the records of a flow then do not overlap in time, even if its packets arrive at
    /// several CPUs. Totals are equal.
    #[arg(long, value_enum, default_value_t = Table::PerCpu, conflicts_with = "read")]
    #[arg(
        hide_possible_values = true,
        value_name = "TABLE",
        hide_short_help = true
    )]
    table: Table,

    /// xdp: clock for timestamps: precise or coarse
    ///
    /// `precise` has nanosecond resolution. `coarse` is the kernel's tick: cheaper per packet, but
    /// times are up to 10 ms too early.
    #[arg(long = "xdp-clock", value_enum, default_value_t = Clock::Precise)]
    #[arg(
        conflicts_with = "read",
        hide_possible_values = true,
        value_name = "CLOCK"
    )]
    #[arg(hide_short_help = true)]
    clock: Clock,

    /// xdp: drop packets once they are metered. Default: pass them on
    ///
    /// For interfaces at a mirror port, which only receive copies. Do not use it on an interface
    /// that carries traffic for this host: the host would receive nothing from it.
    #[arg(long = "xdp-drop", conflicts_with = "read", hide_short_help = true)]
    drop: bool,

    /// xdp: replace an XDP program that is already on the interface
    ///
    /// The other program is not restored.
    #[arg(long, conflicts_with = "read", hide_short_help = true)]
    replace: bool,

    /// xdp: write frames that are not packets (not IP, or malformed) to this capture file
    ///
    /// The file has frames of all interfaces, at most 20 MiB a second; the rest are only counted.
    /// With the software engine, use tcpdump instead.
    #[arg(
        long,
        value_name = "FILE.pcap",
        conflicts_with = "read",
        hide_short_help = true
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    unparsed_to: Option<PathBuf>,
}

const MODE: &EngineOption = &EngineOption::of("engine.xdp", "xdp-mode", "mode", "\"native\"");
const TABLE: &EngineOption = &EngineOption::of("engine.xdp", "table", "table", "\"row-lock\"");
const CLOCK: &EngineOption = &EngineOption::of("engine.xdp", "xdp-clock", "clock", "\"coarse\"");
const DROP: &EngineOption = &EngineOption::of("engine.xdp", "xdp-drop", "drop", "true");
const REPLACE: &EngineOption = &EngineOption::of("engine.xdp", "replace", "replace", "true");
const UNPARSED_TO: &EngineOption = &EngineOption::of(
    "engine.xdp",
    "unparsed-to",
    "unparsed-to",
    "\"/var/lib/turboflow/unparsed.pcap\"",
);

impl XdpOptions {
    /// The option that drops what was metered, if it is given.
    pub(super) fn drops(&self) -> Option<Key> {
        self.drop.then_some(Key::Of(DROP))
    }
}

impl XdpOptions {
    /// The option that chooses a mode, if it is given.
    pub(super) fn chooses_mode(&self) -> Option<Key> {
        (self.mode != Self::default().mode).then_some(Key::Of(MODE))
    }
}

/// The engine of the crate `turboflow-engine-xdp`.
pub(super) struct Xdp;

impl Options for XdpOptions {
    const ENGINE: &'static str = "xdp";
}

impl EngineKind for Xdp {
    fn abilities(&self) -> Abilities {
        turboflow_engine_xdp::ABILITIES
    }

    fn is_built(&self) -> bool {
        cfg!(all(target_os = "linux", feature = "kernel"))
    }

    fn about(&self) -> &'static str {
        "in the Linux kernel, where packets arrive (incoming packets only); needs root"
    }

    fn example(&self) -> &'static str {
        "  Meter it in the kernel, where packets arrive, at a fraction of the work\n    \
         turboflow record -i eth0 --engine xdp -w flows.parquet\n"
    }

    fn options(&self) -> &'static [&'static EngineOption] {
        &[MODE, TABLE, CLOCK, DROP, REPLACE, UNPARSED_TO]
    }

    fn written(&self) -> Option<&'static dyn WrittenOptions> {
        Some(&WrittenAs::<XdpOptions>::HERE)
    }

    fn remote_engine(&self, run: &RunConfig) -> anyhow::Result<Option<Box<dyn RemoteSetup>>> {
        options::setup::<XdpOptions>(run)
    }
}

impl RemoteSetup for XdpOptions {
    fn unparsed_to(&self) -> Option<&Path> {
        self.unparsed_to.as_deref()
    }

    fn unknown_options(&self, run: &RunConfig) -> Vec<String> {
        let mut unknown = Vec::new();
        if run.source.snap_length.is_some() && self.unparsed_to.is_none() {
            unknown.push(format!(
                "{} (except for frames that {} writes)",
                Key::SnapLength,
                Key::Of(UNPARSED_TO)
            ));
        }
        if run.source.readers.0 > 1 {
            unknown.push(Key::Readers.to_string());
        }
        unknown
    }

    #[cfg(all(target_os = "linux", feature = "kernel"))]
    fn has_room(&self, layout: &Layout) -> anyhow::Result<()> {
        open::has_room(layout)
    }

    fn check(
        &self,
        run: &RunConfig,
        config: &PipelineConfig,
        layout: &Layout,
    ) -> anyhow::Result<()> {
        if let Some(path) = &self.unparsed_to {
            let path = path.to_string_lossy();
            if path == "-" || path.contains('%') {
                bail!(
                    "{}: the whole run writes one capture file, which cannot be standard output and does \
                     not rotate: choose a name without `%`",
                    Key::Of(UNPARSED_TO).with(&path)
                );
            }
        }
        #[cfg(all(target_os = "linux", feature = "kernel"))]
        return open::config_of(self, run, config, layout).map(drop);
        #[cfg(not(all(target_os = "linux", feature = "kernel")))]
        {
            let _ = (config, layout);
            bail!("{}", without_it(&run.engine.name))
        }
    }

    fn open(
        &self,
        run: &RunConfig,
        config: &PipelineConfig,
        layout: &Layout,
    ) -> anyhow::Result<OpenEngines> {
        self.check(run, config, layout)?;
        #[cfg(all(target_os = "linux", feature = "kernel"))]
        return open::open(self, run, config, layout);
        #[cfg(not(all(target_os = "linux", feature = "kernel")))]
        bail!("{}", without_it(&run.engine.name))
    }

    fn why_records_are_lost(&self) -> String {
        format!(
            "the engine's ring was full; raise {} to absorb bursts, {} so that fewer records are \
             evicted early, or {} to merge faster",
            Key::RingSize,
            Key::MicroflowSlots,
            Key::Threads,
        )
    }
}

/// The error of a program built without the engine `engine` (this one, or one that builds on it),
/// with the remedy.
#[cfg(not(all(target_os = "linux", feature = "kernel")))]
pub(super) fn without_it(engine: &str) -> String {
    format!(
        "this turboflow was built without engine `{engine}` (Linux; cargo build --features kernel, with clang, \
         libelf-dev and zlib1g-dev); {} works",
        Key::Engine.with(turboflow_run::EngineConfig::SOFTWARE)
    )
}
