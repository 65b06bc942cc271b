// SPDX-License-Identifier: Apache-2.0
//! The authors' sheets and the paper's Table I: reads the files of `lab/evaluation/offload`, and
//! parses the numbers in their texts.

use serde::Deserialize;

/// `sheets.toml`, which names its source.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sheets {
    pub(super) block: Vec<Block>,
    pub(super) other_test: Vec<OtherTest>,
}

/// Neighbouring columns of a version of the sheet: runs that differ in their flows.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Block {
    pub(super) version: String,
    pub(super) columns: String,
    pub(super) cores: u32,
    pub(super) ndpi: bool,
    pub(super) offered_gbps: u32,
    pub(super) offered_mpps: u32,
    pub(super) frame_bytes: u32,
    pub(super) flow_seconds: u32,
    pub(super) flows: Vec<String>,
    pub(super) births_per_second: Vec<String>,
    passive: Option<Rows>,
    passive_offload: Option<Rows>,
    bridge: Option<Rows>,
    bridge_offload: Option<Rows>,
}

/// The rows of a mode. Each has a text for each column, or none at all.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Rows {
    pub(super) received: Vec<String>,
    pub(super) loss: Vec<String>,
    pub(super) cpu: Vec<String>,
    pub(super) learning: Vec<String>,
    pub(super) memory: Vec<String>,
    pub(super) hash: Vec<String>,
    pub(super) note: Vec<String>,
}

#[cfg(test)]
impl Rows {
    pub(super) const fn all(&self) -> [&Vec<String>; 7] {
        [
            &self.received,
            &self.loss,
            &self.cpu,
            &self.learning,
            &self.memory,
            &self.hash,
            &self.note,
        ]
    }
}

/// A test that is not a row of the sheet.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OtherTest {
    pub(super) version: String,
    pub(super) cell: String,
    pub(super) program: String,
    pub(super) flows: String,
    pub(super) frame_bytes: u32,
    pub(super) result: String,
}

/// The mode in which the probe runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Passive,
    PassiveOffload,
    Bridge,
    BridgeOffload,
}

impl Mode {
    pub(super) const ALL: [Self; 4] = [
        Self::Passive,
        Self::PassiveOffload,
        Self::Bridge,
        Self::BridgeOffload,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Passive => "passive",
            Self::PassiveOffload => "passive, offload",
            Self::Bridge => "bridge",
            Self::BridgeOffload => "bridge, offload",
        }
    }
}

impl Block {
    pub(super) const fn rows(&self, mode: Mode) -> Option<&Rows> {
        match mode {
            Mode::Passive => self.passive.as_ref(),
            Mode::PassiveOffload => self.passive_offload.as_ref(),
            Mode::Bridge => self.bridge.as_ref(),
            Mode::BridgeOffload => self.bridge_offload.as_ref(),
        }
    }
}

/// One of the sheet's set-ups, in all versions of the sheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Setup {
    pub(super) cores: u32,
    pub(super) offered_mpps: u32,
    pub(super) ndpi: bool,
}

impl Sheets {
    /// The sheets stored in the source tree.
    pub(super) fn in_tree() -> Self {
        let text = include_str!("../../../offload/sheets.toml");
        toml::from_str(text).expect("a test reads it")
    }

    pub(super) fn blocks(&self, setup: Setup) -> impl Iterator<Item = &Block> {
        self.block.iter().filter(move |block| {
            (block.cores, block.offered_mpps, block.ndpi)
                == (setup.cores, setup.offered_mpps, setup.ndpi)
        })
    }

    /// The numbers of flows of a set-up in any version, ascending.
    pub(super) fn flows(&self, setup: Setup) -> Vec<String> {
        let names = self.blocks(setup).flat_map(|block| &block.flows);
        let mut flows: Vec<String> = names.cloned().collect();
        flows.sort_by(|a, b| count(a).total_cmp(&count(b)));
        flows.dedup();
        flows
    }

    /// The text of a set-up's cell; empty if no version has it. If versions differ, the text with
    /// more information: one version describes the learning phase, too, the other only the state
    /// after it.
    pub(super) fn text(
        &self,
        setup: Setup,
        mode: Mode,
        row: fn(&Rows) -> &Vec<String>,
        flows: &str,
    ) -> &str {
        let texts = self.blocks(setup).filter_map(|block| {
            let column = block.flows.iter().position(|known| known == flows)?;
            row(block.rows(mode)?).get(column).map(String::as_str)
        });
        texts.max_by_key(|text| text.len()).unwrap_or_default()
    }

    /// Loss and load of each core of a run.
    pub(super) fn outcome(&self, setup: Setup, mode: Mode, flows: &str) -> Option<(Share, Share)> {
        let share =
            |row: fn(&Rows) -> &Vec<String>| Share::parse(self.text(setup, mode, row, flows));
        Some((share(|rows| &rows.loss)?, share(|rows| &rows.cpu)?))
    }
}

/// A share of packets or of a core's time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share {
    /// The range while flows are learned, if it differs.
    pub(super) while_learning: Option<(f64, f64)>,
    /// The share after that.
    pub(super) settled: f64,
    /// Whether the share is an upper bound.
    pub(super) is_bound: bool,
}

impl Share {
    /// Parses the text of a cell, such as `0.41`, `<1% (per core)` or `74% -> 72%`. `None` for an
    /// empty cell.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim_end_matches("(per core)").trim();
        let (before, settled) = match text.split_once("->") {
            Some((before, settled)) => (Some(before), settled.trim()),
            None => (None, text),
        };
        let while_learning = match before {
            Some(range) => {
                let (low, high) = range.split_once(" - ").unwrap_or((range, range));
                Some((fraction(low)?, fraction(high)?))
            }
            None => None,
        };
        Some(Self {
            while_learning,
            settled: fraction(settled.trim_start_matches('<'))?,
            is_bound: settled.starts_with('<'),
        })
    }

    /// The share in percent, as a cell of a table.
    pub(super) fn shown(&self) -> String {
        let percent = |share: f64| format!("{}", (share * 1e3).round() / 10.0);
        let sign = if self.is_bound { "<" } else { "" };
        let settled = format!("{sign}{}", percent(self.settled));
        match self.while_learning {
            Some((low, high)) if low == high => format!("{} → {settled}", percent(low)),
            Some((low, high)) => format!("{} to {} → {settled}", percent(low), percent(high)),
            None => settled,
        }
    }
}

/// A number with a percent sign, or a share.
fn fraction(text: &str) -> Option<f64> {
    let text = text.trim();
    match text.strip_suffix('%') {
        Some(percent) => percent
            .trim()
            .parse::<f64>()
            .ok()
            .map(|value| value / 100.0),
        None => text.parse().ok(),
    }
}

/// Parses a number of flows such as `10K`; NaN if the text is not a number.
pub(super) fn count(text: &str) -> f64 {
    let (digits, factor) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 1e3),
        Some(b'M') => (&text[..text.len() - 1], 1e6),
        _ => (text, 1.0),
    };
    digits.parse().map_or(f64::NAN, |count: f64| count * factor)
}

/// `paper.toml`: what the paper prints.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Paper {
    pub(super) table_1: Table1,
    pub(super) figure: Vec<Figure>,
}

/// Table I.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table1 {
    pub(super) flows: Vec<String>,
    row: Vec<Printed>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Printed {
    ndpi: bool,
    offload: bool,
    cpu: Vec<String>,
    loss: Vec<String>,
}

/// The caption of a figure.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Figure {
    pub(super) number: u32,
    pub(super) caption: String,
}

impl Paper {
    /// The printed numbers, as stored in the source tree.
    pub(super) fn in_tree() -> Self {
        let text = include_str!("../../../offload/paper.toml");
        toml::from_str(text).expect("a test reads it")
    }

    /// The printed loss and load of each core.
    pub(super) fn printed(&self, ndpi: bool, offload: bool, flows: &str) -> Option<(f64, f64)> {
        let table = &self.table_1;
        let mut rows = table.row.iter();
        let row = rows.find(|row| (row.ndpi, row.offload) == (ndpi, offload))?;
        let column = table.flows.iter().position(|known| known == flows)?;
        Some((fraction(&row.loss[column])?, fraction(&row.cpu[column])?))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_sheets_are_whole() {
        let sheets = Sheets::in_tree();
        // Number of texts in each version's file: all cells except those of the first column.
        for (version, expected) in [("80e482f", 339), ("aa62ebb", 179)] {
            let blocks = sheets.block.iter().filter(|block| block.version == version);
            let mut texts = 0;
            for block in blocks {
                let columns = block.flows.len();
                assert_eq!(block.births_per_second.len(), columns, "{}", block.columns);
                // Cores, Gb/s, packets/s and duration appear once per block.
                texts += 4 + 2 * columns;
                for rows in Mode::ALL.into_iter().filter_map(|mode| block.rows(mode)) {
                    for row in rows.all().into_iter().filter(|row| !row.is_empty()) {
                        assert_eq!(row.len(), columns, "{}: {row:?}", block.columns);
                        texts += row.iter().filter(|text| !text.is_empty()).count();
                    }
                }
            }
            let others = sheets.other_test.iter();
            texts += others.filter(|test| test.version == version).count();
            assert_eq!(texts, expected, "{version}");
        }
        let setups: BTreeSet<_> = sheets
            .block
            .iter()
            .map(|block| (block.cores, block.offered_mpps, block.ndpi))
            .collect();
        let setups: Vec<_> = setups.into_iter().collect();
        assert_eq!(
            setups,
            [
                (1, 10, true),
                (8, 10, true),
                (16, 10, true),
                (16, 89, false),
                (16, 89, true)
            ]
        );
    }

    #[test]
    fn every_loss_and_load_is_a_share_and_births_are_a_tenth_of_the_flows() {
        let sheets = Sheets::in_tree();
        for block in &sheets.block {
            for (flows, births) in block.flows.iter().zip(&block.births_per_second) {
                assert_eq!(count(flows), 10.0 * count(births), "{flows}");
            }
            for rows in Mode::ALL.into_iter().filter_map(|mode| block.rows(mode)) {
                let texts = rows.loss.iter().chain(&rows.cpu);
                for text in texts.filter(|text| !text.is_empty()) {
                    let share = Share::parse(text).unwrap_or_else(|| panic!("{text}"));
                    assert!((0.0..=1.0).contains(&share.settled), "{text}");
                }
            }
        }
    }

    /// Where both versions have a cell, they agree on the state after learning.
    #[test]
    fn the_versions_agree_on_what_both_have() {
        let sheets = Sheets::in_tree();
        let mut compared = 0;
        let rows: [fn(&Rows) -> &Vec<String>; 2] = [|rows| &rows.loss, |rows| &rows.cpu];
        for last in sheets
            .block
            .iter()
            .filter(|block| block.version == "aa62ebb")
        {
            let setup = Setup {
                cores: last.cores,
                offered_mpps: last.offered_mpps,
                ndpi: last.ndpi,
            };
            let mut first = sheets.blocks(setup);
            let first = first.find(|block| block.version == "80e482f").unwrap();
            for mode in Mode::ALL {
                for row in rows {
                    for flows in &first.flows {
                        let settled = |block: &Block| {
                            let column = block.flows.iter().position(|known| known == flows)?;
                            let text = row(block.rows(mode)?).get(column)?;
                            Some(Share::parse(text)?.settled)
                        };
                        if let Some(settled_last) = settled(last) {
                            assert_eq!(settled(first), Some(settled_last), "{setup:?} {flows}");
                            compared += 1;
                        }
                    }
                }
            }
        }
        assert_eq!(compared, 100);
    }

    #[test]
    fn shares_are_read_in_every_form() {
        let share = |text| Share::parse(text).map(|share| (share.while_learning, share.settled));
        assert_eq!(share("0.41"), Some((None, 0.41)));
        assert_eq!(share("74% -> 72%"), Some((Some((0.74, 0.74)), 0.72)));
        let range = Some((Some((0.39, 0.46)), 0.11));
        assert_eq!(share("39% - 46% -> 11%"), range);
        assert_eq!(share("49% -> 0"), Some((Some((0.49, 0.49)), 0.0)));
        assert_eq!((share(""), share("all")), (None, None));
        let shown = |text| Share::parse(text).unwrap().shown();
        assert_eq!(shown("<1% (per core)"), "<1");
        assert_eq!(shown("2.5% (per core)"), "2.5");
        assert_eq!(shown("39% - 46% -> 11%"), "39 to 46 → 11");
        assert_eq!(shown("75% -> 95% (per core)"), "75 → 95");
    }
}
