// SPDX-License-Identifier: Apache-2.0
//! `--engine p4`: the program's side of the engine of programmable switches.

mod files;
mod open;
#[cfg(target_os = "linux")]
mod port;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use turboflow_engine::Abilities;
use turboflow_engine_p4::Unsupported;
use turboflow_merge::Layout;
use turboflow_record::Definition;
use turboflow_run::{PipelineConfig, RunConfig};

use super::options::{self, EngineOption, Options, WrittenAs, WrittenOptions};
use super::{EngineKind, OpenEngines, RemoteSetup};
use crate::keys::Key;

/// A pipeline on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Pipeline {
    /// DPDK's software pipeline, in a process of its own.
    Swx,
}

/// `[engine.p4]`.
#[derive(Clone, Debug, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[command(next_help_heading = "Engine")]
pub(super) struct P4Options {
    /// p4: run the P4 program on this machine: swx
    ///
    /// `swx` is DPDK's software pipeline. The packets of captures (-r) pass through it with their
    /// timestamps. The program `turboflow-swx` has to be beside this one, or in PATH.
    #[arg(long = "p4-pipeline", value_enum, value_name = "PIPELINE")]
    #[arg(hide_possible_values = true, hide_short_help = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pipeline: Option<Pipeline>,

    /// p4: the compiled program. Default: the one for the default definition
    ///
    /// A `.spec` file from DPDK's P4 compiler. A program is compiled for one record definition;
    /// `turboflow p4 generate` writes its sources.
    #[arg(long = "p4-program", value_name = "FILE", hide_short_help = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<PathBuf>,
}

const PIPELINE: &EngineOption =
    &EngineOption::of("engine.p4", "p4-pipeline", "pipeline", "\"swx\"");
const PROGRAM: &EngineOption =
    &EngineOption::of("engine.p4", "p4-program", "program", "\"program.spec\"");

/// The engine of the crate `turboflow-engine-p4`.
pub(super) struct P4;

impl Options for P4Options {
    const ENGINE: &'static str = "p4";
}

impl EngineKind for P4 {
    fn abilities(&self) -> Abilities {
        turboflow_engine_p4::ABILITIES
    }

    fn is_built(&self) -> bool {
        true
    }

    fn about(&self) -> &'static str {
        "a P4 program: in a switch (over its CPU port), or on a software pipeline"
    }

    fn example(&self) -> &'static str {
        "  Meter a capture with the P4 program for switches, on DPDK's software pipeline\n    \
         turboflow record --engine p4 --p4-pipeline swx -r capture.pcap -w flows.parquet\n\n  \
         Meter in a switch, whose CPU port is veth1, until Ctrl-C\n    \
         turboflow record --engine p4 --cpu-port veth1 -w flows.parquet\n"
    }

    fn options(&self) -> &'static [&'static EngineOption] {
        &[PIPELINE, PROGRAM]
    }

    fn meters_interfaces(&self) -> bool {
        false
    }

    fn reads_files(&self) -> bool {
        true
    }

    fn has_cpu_ports(&self) -> bool {
        true
    }

    fn written(&self) -> Option<&'static dyn WrittenOptions> {
        Some(&WrittenAs::<P4Options>::HERE)
    }

    fn remote_engine(&self, run: &RunConfig) -> anyhow::Result<Option<Box<dyn RemoteSetup>>> {
        options::setup::<P4Options>(run)
    }
}

impl RemoteSetup for P4Options {
    fn unknown_options(&self, run: &RunConfig) -> Vec<String> {
        options::given([
            (!run.source.promiscuous, Key::Promiscuous),
            (run.source.snap_length.is_some(), Key::SnapLength),
            (run.source.readers.0 > 1, Key::Readers),
            // A live pipeline has a clock of its own, and cannot align records to ours.
            (run.is_live() && run.timeouts.align.is_some(), Key::Align),
        ])
    }

    fn max_age_ns(&self, run: &RunConfig) -> Option<u64> {
        // A live pipeline cuts time into cells by its own clock.
        run.is_live().then_some(turboflow_engine_p4::LIVE_CELL_NS)
    }

    fn has_room(&self, layout: &Layout) -> anyhow::Result<()> {
        // What a pipeline supports depends on the layout alone.
        match open::record(self, &Definition::default(), layout) {
            // Reported in terms of the option.
            Ok(_) | Err(Unsupported::Biflow) => Ok(()),
            Err(lacking) => Err(open::refused(self, &lacking)),
        }
    }

    fn check(
        &self,
        run: &RunConfig,
        config: &PipelineConfig,
        layout: &Layout,
    ) -> anyhow::Result<()> {
        open::plan(self, run, config, layout).map(drop)
    }

    fn open(
        &self,
        run: &RunConfig,
        config: &PipelineConfig,
        layout: &Layout,
    ) -> anyhow::Result<OpenEngines> {
        open::open(self, run, config, layout)
    }

    fn why_records_are_lost(&self) -> String {
        "on the path from the pipeline, or when the pipeline ended".to_owned()
    }

    fn why_frames_are_lost(&self) -> Option<&'static str> {
        Some("were lost on their way to the pipeline or from it, or when it ended")
    }
}
