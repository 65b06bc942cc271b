// SPDX-License-Identifier: Apache-2.0
//! Reads the paper's Table 2 and ours from the files of `lab/evaluation/saptm`.

use serde::Deserialize;

/// Content of `paper.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Paper {
    pub(super) resources: Vec<Printed>,
}

/// A row of Table 2.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Printed {
    pub(super) stages: u32,
    pub(super) bram36: u32,
    pub(super) dsp: u32,
    pub(super) lut: u32,
    pub(super) ff: u32,
    pub(super) lut_percent: f64,
    pub(super) ff_percent: f64,
}

/// Content of `ours.toml`: resources counted by syntheses.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ours {
    pub(super) resources: Vec<Counted>,
    /// Rows in ascending order of the number of stages.
    pub(super) routed: Vec<Routed>,
}

/// The clock of a line that was placed and routed for an ECP5, best of its seeds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Routed {
    pub(super) stages: u32,
    pub(super) mhz: f64,
    /// The folder of the run below `bench/runs`.
    pub(super) run: String,
}

/// Resources counted by a synthesis.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Counted {
    pub(super) stages: u32,
    pub(super) bram36: u32,
    pub(super) dsp: u32,
    pub(super) lut: u32,
    pub(super) ff: u32,
    /// The folder of the run below `bench/runs`.
    pub(super) run: String,
}

impl Paper {
    pub(super) fn in_tree() -> Self {
        let text = include_str!("../../../saptm/paper.toml");
        toml::from_str(text).expect("the file is checked by tests")
    }
}

impl Ours {
    pub(super) fn in_tree() -> Self {
        let text = include_str!("../../../saptm/ours.toml");
        toml::from_str(text).expect("the file is checked by tests")
    }
}
