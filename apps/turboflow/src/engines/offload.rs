// SPDX-License-Identifier: Apache-2.0
//! `--engine offload`: the program's side of the engine that offloads flows once they are decided.
//! It builds on the engine in the Linux kernel, and has its options too.

#[cfg(all(target_os = "linux", feature = "kernel"))]
pub(super) mod inspects;
#[cfg(all(target_os = "linux", feature = "kernel"))]
pub(super) mod open;

use std::path::Path;
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use turboflow_engine::{Abilities, OwnCount};
use turboflow_merge::Layout;
use turboflow_run::{CountAboveZero, PipelineConfig, RunConfig, Size, Time};

use super::options::{self, EngineOption, Options, WrittenAs, WrittenOptions};
use super::xdp::XdpOptions;
use super::{EngineKind, OpenEngines, RemoteSetup};
use crate::keys::Key;
use crate::units::{counted, grouped};

/// `[engine.offload]`.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[command(next_help_heading = "Engine")]
pub(super) struct OffloadOptions {
    /// offload: flows with a verdict at a time, for IPv4 and for IPv6 each
    ///
    /// A row of IPv4 and one of IPv6 together take 216 bytes of the kernel's memory. Flows beyond
    /// this number have no verdict: their first packets are inspected, and all of their packets are
    /// metered.
    #[arg(
        id = "offload-rows",
        long = "offload-rows",
        value_name = "N",
        default_value = "131072"
    )]
    #[arg(conflicts_with = "read", hide_short_help = true)]
    #[arg(value_parser = str::parse::<CountAboveZero>)]
    rows: CountAboveZero,

    /// offload: maximum packets of a flow that are copied to user space
    ///
    /// For flows other than TCP, at most 24.
    #[arg(long = "tap-packets", value_name = "N", default_value = "32")]
    #[arg(conflicts_with = "read", hide_short_help = true)]
    #[arg(value_parser = str::parse::<CountAboveZero>)]
    tap_packets: CountAboveZero,

    /// offload: size of the ring for copied packets, rounded down to a power of two
    ///
    /// While the ring is full, verdicts come later; nothing else is lost.
    #[arg(long = "tap-ring", value_name = "SIZE", default_value = "4MiB")]
    #[arg(conflicts_with = "read", hide_short_help = true)]
    #[arg(value_parser = str::parse::<Size>)]
    tap_ring: Size,

    /// offload: idle time after which a flow loses its verdict
    #[arg(long = "row-idle", value_name = "TIME", default_value = "15s")]
    #[arg(conflicts_with = "read", hide_short_help = true)]
    #[arg(value_parser = str::parse::<Time>)]
    row_idle: Time,
}

impl Default for OffloadOptions {
    fn default() -> Self {
        Self {
            rows: CountAboveZero(131_072),
            tap_packets: CountAboveZero(32),
            tap_ring: Size(4 << 20),
            row_idle: Time(Duration::from_secs(15)),
        }
    }
}

const ROWS: &EngineOption = &EngineOption::of("engine.offload", "offload-rows", "rows", "1000000");
const TAP_PACKETS: &EngineOption =
    &EngineOption::of("engine.offload", "tap-packets", "tap-packets", "16");
const TAP_RING: &EngineOption =
    &EngineOption::of("engine.offload", "tap-ring", "tap-ring", "\"16MiB\"");
const ROW_IDLE: &EngineOption =
    &EngineOption::of("engine.offload", "row-idle", "row-idle", "\"60s\"");

/// The engine of the crate `turboflow-engine-offload`.
pub(super) struct Offload;

impl Options for OffloadOptions {
    const ENGINE: &'static str = "offload";
}

impl EngineKind for Offload {
    fn abilities(&self) -> Abilities {
        turboflow_engine_offload::ABILITIES
    }

    fn is_built(&self) -> bool {
        cfg!(all(target_os = "linux", feature = "kernel"))
    }

    fn about(&self) -> &'static str {
        "like xdp, but user space also sees the first packets of flows (--dpi); needs root"
    }

    fn example(&self) -> &'static str {
        "  Meter it in the kernel, and name applications by the first packets of flows\n    \
         turboflow record -i eth0 --engine offload --dpi -w flows.parquet\n"
    }

    fn options(&self) -> &'static [&'static EngineOption] {
        &[ROWS, TAP_PACKETS, TAP_RING, ROW_IDLE]
    }

    fn stands_on(&self) -> &'static [&'static str] {
        &[XdpOptions::ENGINE]
    }

    fn sees_payload(&self) -> bool {
        true
    }

    fn written(&self) -> Option<&'static dyn WrittenOptions> {
        Some(&WrittenAs::<OffloadOptions>::HERE)
    }

    fn remote_engine(&self, run: &RunConfig) -> anyhow::Result<Option<Box<dyn RemoteSetup>>> {
        Ok(Some(Box::new(OffloadSetup::of(run)?)))
    }
}

/// The options of a run: its own, and those of the engine below.
pub(super) struct OffloadSetup {
    own: OffloadOptions,
    pub(super) xdp: XdpOptions,
}

impl OffloadSetup {
    pub(super) fn of(run: &RunConfig) -> anyhow::Result<Self> {
        Ok(Self {
            own: options::read(&run.engine)?,
            xdp: options::read(&run.engine)?,
        })
    }
}

impl RemoteSetup for OffloadSetup {
    fn unparsed_to(&self) -> Option<&Path> {
        self.xdp.unparsed_to()
    }

    fn unknown_options(&self, run: &RunConfig) -> Vec<String> {
        self.xdp.unknown_options(run)
    }

    #[cfg(all(target_os = "linux", feature = "kernel"))]
    fn has_room(&self, layout: &Layout) -> anyhow::Result<()> {
        self.xdp.has_room(layout)
    }

    fn check(
        &self,
        run: &RunConfig,
        config: &PipelineConfig,
        layout: &Layout,
    ) -> anyhow::Result<()> {
        self.xdp.check(run, config, layout)?;
        #[cfg(all(target_os = "linux", feature = "kernel"))]
        open::config_of(self, run, config, layout)?.validate()?;
        Ok(())
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
        anyhow::bail!("{}", super::xdp::without_it(OffloadOptions::ENGINE))
    }

    fn why_records_are_lost(&self) -> String {
        self.xdp.why_records_are_lost()
    }

    fn shortcomings(&self, counts: &[OwnCount]) -> Vec<String> {
        let of = |name: &str| {
            let own = counts.iter().find(|own| own.name == name);
            own.map_or(0, |own| own.count)
        };
        let mut words = Vec::new();
        let refused = of("offload_refused_full");
        if refused > 0 {
            words.push(format!(
                "{} got no verdict, because all {} rows were taken: their packets were metered, \
                 and all counts are exact; raise {}, or lower {}",
                counted(refused, "flow"),
                grouped(self.own.rows.0),
                Key::Of(ROWS),
                Key::Of(ROW_IDLE),
            ));
        }
        let failed = of("offload_refused_failed") + of("offload_refused_too_fast");
        if failed > 0 {
            words.push(format!(
                "the kernel refused {} about verdicts: packets were still metered, and all counts \
                 are exact",
                counted(failed, "order"),
            ));
        }
        let (taps, ends) = (of("offload_taps_lost"), of("offload_ends_lost"));
        if taps + ends > 0 {
            words.push(format!(
                "{} and {} did not reach user space, because the ring was full: \
                 verdicts came later or not at all, and all counts are exact; raise {}",
                counted(taps, "first packet"),
                counted(ends, "connection end"),
                Key::Of(TAP_RING),
            ));
        }
        if of("offload_decider_gone") > 0 {
            words.push(
                "the decider ended during the run: later flows have no verdict, and all counts are \
                 exact"
                    .to_owned(),
            );
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(counts: &[(&'static str, u64)]) -> String {
        let counts: Vec<OwnCount> = counts
            .iter()
            .map(|&(name, count)| OwnCount {
                name,
                about: "",
                is_gauge: false,
                count,
            })
            .collect();
        let setup = OffloadSetup {
            own: OffloadOptions::default(),
            xdp: XdpOptions::default(),
        };
        setup.shortcomings(&counts).join("\n")
    }

    #[test]
    fn each_cause_is_named_with_its_remedy() {
        assert_eq!(said(&[("offload_hits", 5), ("offload_taps_lost", 0)]), "");
        let full = said(&[("offload_refused_full", 1_200)]);
        assert!(full.contains("1,200 flows got no verdict"), "{full}");
        assert!(full.contains("131,072 rows") && full.contains("--offload-rows"));
        let lost = said(&[("offload_taps_lost", 1), ("offload_ends_lost", 1)]);
        assert!(
            lost.contains("1 first packet and 1 connection end did") && lost.contains("--tap-ring")
        );
        assert!(said(&[("offload_decider_gone", 1)]).contains("have no verdict"));
        assert!(said(&[("offload_refused_failed", 1)]).contains("1 order"));
    }

    #[test]
    fn defaults_are_those_of_the_command_line() {
        #[derive(clap::Parser)]
        struct Parsed {
            #[command(flatten)]
            options: OffloadOptions,
            /// Stands for the option of captures.
            #[arg(long)]
            read: Option<String>,
        }
        let parsed = <Parsed as clap::Parser>::parse_from(["program"]);
        assert_eq!(parsed.options, OffloadOptions::default());
        assert!(parsed.read.is_none());
    }
}
