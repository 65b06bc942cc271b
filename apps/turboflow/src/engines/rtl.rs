// SPDX-License-Identifier: Apache-2.0
//! `--engine rtl`: the program's side of the FPGA engine, simulated.

use std::sync::Arc;

#[cfg(not(feature = "rtl"))]
use anyhow::bail;
use clap::Args;
use serde::{Deserialize, Serialize};
use turboflow_engine::{Abilities, PlainEngines};
use turboflow_engine_rtl::{Build, Size, Unsupported};
use turboflow_merge::Layout;
use turboflow_run::RunConfig;

use super::options::{self, EngineOption, Options, WrittenAs, WrittenOptions};
use super::{EngineKind, PacketSetup};
use crate::keys::Key;

/// `[engine.rtl]`.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[command(next_help_heading = "Engine")]
pub(super) struct RtlOptions {
    /// rtl: stages of the line: 1, 2 or 4
    ///
    /// A line is a pipeline of table stages; there is one for IPv4 and one for IPv6. A stage has
    /// two subtables, each with --rtl-buckets buckets of 8 slots.
    #[arg(long = "rtl-stages", value_name = "N", default_value_t = RtlOptions::default().stages)]
    #[arg(hide_short_help = true)]
    stages: u32,

    /// rtl: buckets of each subtable in a stage: a power of two up to 512
    #[arg(long = "rtl-buckets", value_name = "N", default_value_t = RtlOptions::default().buckets)]
    #[arg(hide_short_help = true)]
    buckets: u32,
}

impl Default for RtlOptions {
    /// 16,384 slots.
    fn default() -> Self {
        Self {
            stages: 4,
            buckets: 256,
        }
    }
}

const STAGES: &EngineOption = &EngineOption::of("engine.rtl", "rtl-stages", "stages", "2");
const BUCKETS: &EngineOption = &EngineOption::of("engine.rtl", "rtl-buckets", "buckets", "64");

/// The engine of the crate `turboflow-engine-rtl`.
pub(super) struct Rtl;

impl Options for RtlOptions {
    const ENGINE: &'static str = "rtl";
}

impl EngineKind for Rtl {
    fn abilities(&self) -> Abilities {
        turboflow_engine_rtl::ABILITIES
    }

    fn is_built(&self) -> bool {
        cfg!(feature = "rtl")
    }

    fn about(&self) -> &'static str {
        "the design for FPGAs, simulated clock by clock, for captures"
    }

    fn example(&self) -> &'static str {
        "  Meter a capture with the simulated design for FPGAs\n    \
         turboflow record --engine rtl -r capture.pcap -w flows.parquet\n"
    }

    fn options(&self) -> &'static [&'static EngineOption] {
        &[STAGES, BUCKETS]
    }

    fn meters_interfaces(&self) -> bool {
        false
    }

    fn reads_files(&self) -> bool {
        true
    }

    fn written(&self) -> Option<&'static dyn WrittenOptions> {
        Some(&WrittenAs::<RtlOptions>::HERE)
    }

    fn packet_engine(&self, run: &RunConfig) -> anyhow::Result<Option<Box<dyn PacketSetup>>> {
        Ok(Some(Box::new(options::read::<RtlOptions>(&run.engine)?)))
    }
}

impl RtlOptions {
    fn size(&self) -> anyhow::Result<Size> {
        let size = Size {
            stages: self.stages,
            buckets: self.buckets,
        };
        Build::V4.check(size)?;
        Ok(size)
    }
}

impl PacketSetup for RtlOptions {
    fn unknown_options(&self, run: &RunConfig) -> Vec<String> {
        let slots = run.engine.microflow_slots.is_some();
        options::given([(slots, Key::MicroflowSlots)])
    }

    fn has_room(&self, layout: &Layout) -> anyhow::Result<()> {
        match turboflow_engine_rtl::check_layout(layout) {
            // Reported in terms of the option.
            Err(Unsupported::Biflow) => Ok(()),
            checked => Ok(checked?),
        }
    }

    #[cfg(feature = "rtl")]
    fn engines(&self) -> anyhow::Result<Arc<dyn PlainEngines>> {
        let size = self.size()?;
        Ok(Arc::new(turboflow_engine_rtl::RtlEngines { size }))
    }

    #[cfg(not(feature = "rtl"))]
    fn engines(&self) -> anyhow::Result<Arc<dyn PlainEngines>> {
        self.size()?;
        bail!(
            "this turboflow was built without engine `rtl` (cargo build --features rtl, with \
             Verilator 5: apt-get install verilator); {} works",
            Key::Engine.with(turboflow_run::EngineConfig::SOFTWARE)
        )
    }
}
