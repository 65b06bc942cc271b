// SPDX-License-Identifier: Apache-2.0
//! The report on the offload paper.

mod explained;
mod ours;
mod runs;

use super::PART;
use super::disagreements::DISAGREEMENTS;
use super::host::{FAST, FAST_NO_NDPI, LONG};
use super::sheets::{self, Mode, Paper, Share, Sheets};
use crate::facts::Raw;
use crate::report::axis::Spacing;
use crate::report::chart::{Plot, Series};
use crate::report::{Section, number};

pub(super) fn report(raw: &Raw, section: &mut Section) {
    let (sheets, paper, facts) = (Sheets::in_tree(), Paper::in_tree(), raw.part(PART.name));
    section.say(
        "The paper's probe, nProbe Cento, hands a flow to a table in the network card once nDPI \
         has named its application. Its authors published their results beside the paper, as a \
         [workbook](https://github.com/ntop/flow-hw-offload-paper) in several versions: the first \
         (80e482f) has one, eight and 16 cores, the last (aa62ebb) has 16 cores and 20M flows. \
         `lab/evaluation/offload/sheets.toml` has every cell of both. Nothing in this part is \
         measured here. It is the same on any machine.",
    );
    table_1(&sheets, &paper, section);
    disagreements(section);
    runs::outcomes(&sheets, section);
    runs::memory(&sheets, section);
    runs::others(&sheets, section);
    figures(&sheets, &paper, section);
    explained::model(&facts, section);
    explained::late(&facts, section);
    ours::model_card(&sheets, &facts, section);
    explained::cuckoo(&facts, section);
}

fn percent(share: f64) -> String {
    number(share * 100.0, 0)
}

fn table_1(sheets: &Sheets, paper: &Paper, section: &mut Section) {
    section.say(
        "### Table I beside the sheet\n\nEach cell: printed / in the sheet, in percent. * marks \
         cells that differ.",
    );
    let variants = [(true, false), (false, false), (true, true), (false, true)];
    let mut rows = Vec::new();
    for metric in ["CPU", "packets lost"] {
        for (ndpi, offload) in variants {
            let setup = if ndpi { FAST } else { FAST_NO_NDPI };
            let mode = if offload {
                Mode::PassiveOffload
            } else {
                Mode::Passive
            };
            let name = match (ndpi, offload) {
                (true, true) => "nDPI, offload",
                (true, false) => "nDPI",
                (false, true) => "offload",
                (false, false) => "neither",
            };
            let mut row = vec![format!("{metric}, {name}")];
            row.extend(paper.table_1.flows.iter().map(|flows| {
                let both = paper.printed(ndpi, offload, flows);
                let both = both.zip(sheets.outcome(setup, mode, flows));
                both.map_or_else(String::new, |((loss, cpu), (sheet_loss, sheet_cpu))| {
                    let (printed, sheet) = match metric {
                        "CPU" => (cpu, sheet_cpu),
                        _ => (loss, sheet_loss),
                    };
                    beside(printed, sheet)
                })
            }));
            rows.push(row);
        }
    }
    let mut names = vec!["active flows"];
    names.extend(paper.table_1.flows.iter().map(String::as_str));
    section.table(&names, &rows);
}

fn beside(printed: f64, sheet: Share) -> String {
    let mark = if printed == sheet.settled { "" } else { " *" };
    let sign = if sheet.is_bound { "<" } else { "" };
    format!(
        "{} / {sign}{}{mark}",
        percent(printed),
        percent(sheet.settled)
    )
}

fn disagreements(section: &mut Section) {
    section.say("### Where the paper disagrees with the sheets, or with itself");
    let list = DISAGREEMENTS
        .iter()
        .map(|one| format!("- {}: {}.\n", one.about, one.sentence));
    section.say(list.collect::<String>().trim_end());
}

/// The runs behind the paper's figures, which print no numbers.
fn figures(sheets: &Sheets, paper: &Paper, section: &mut Section) {
    let captions: Vec<String> = paper
        .figure
        .iter()
        .map(|figure| format!("Figure {}: \"{}\"", figure.number, figure.caption))
        .collect();
    section.say(format!(
        "### Figures 3 to 5\n\n{}. They are drawings without numbers; these are the runs that \
         their captions name. For Figure 5 the sheets have no more than the bridge's runs of \
         Figure 3, because no bridge ran without nDPI.",
        captions.join("; ")
    ));
    let plots = [
        (
            3,
            LONG,
            "load of each core, percent",
            "Figure 3: load of 16 cores at 10 M packets/s",
        ),
        (
            4,
            FAST,
            "packets lost, percent",
            "Figure 4: loss of 16 cores at 89 M packets/s",
        ),
    ];
    for (figure, setup, unit, title) in plots {
        let series = Mode::ALL.into_iter().enumerate().map(|(colour, mode)| {
            let points = sheets.flows(setup).into_iter().filter_map(|flows| {
                let (loss, cpu) = sheets.outcome(setup, mode, &flows)?;
                let share = if figure == 3 { cpu } else { loss };
                Some((sheets::count(&flows), 100.0 * share.settled))
            });
            Series::papers(mode.name(), colour, points.collect())
        });
        let plot = Plot {
            title,
            note: "Rings, dashed: the authors' sheet, with nDPI, once flows are learned.",
            x: ("active flows", Spacing::Logarithmic),
            y: (unit, Spacing::Linear),
            series: series.collect(),
        };
        section.plot(&format!("offload-figure{figure}"), title, plot.svg());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::Scale;

    fn drawn() -> String {
        let folder = tempfile::tempdir().unwrap();
        let scale = Scale {
            quick: true,
            redis: None,
            captures: folder.path().to_owned(),
        };
        let raw = Raw::open(folder.path()).unwrap();
        let mut section = Section::default();
        report(&PART.computed(&raw, &scale).unwrap(), &mut section);
        section.text().to_owned()
    }

    #[test]
    fn the_report_states_each_disagreement_in_a_sentence() {
        let text = drawn();
        for one in &DISAGREEMENTS {
            let sentence = format!("- {}: {}.\n", one.about, one.sentence);
            assert!(text.contains(&sentence), "{sentence}");
            assert!(!one.sentence.contains(". "), "{sentence}");
        }
    }

    #[test]
    fn the_report_has_the_sheets_the_model_and_the_curve() {
        let text = drawn();
        for row in [
            "| CPU, nDPI, offload | 1 / <1 | 23 / 17 * | 82 / 82 | 95 / 95 | 100 / 100 |",
            "| packets lost, offload | 0 / 0 | 0 / 0 | 0 / 0 | 11 / 11 | 37 / 37 |",
            "| passive, nDPI | 0 / 32 | 0 / 35 | 0 / 58 | 26 → 24 / 100 | 74 → 72 / 100 | 93 / 100 |",
            "| bridge, offload, nDPI | 0 / <1 | 0 / 2 | 0 / 18 | 59 / 100 | 99 / 100 |  |",
            "| cento-bridge | 10K | 64 | 11.3 Mpps 13.8 Gbps (+TX x2) | B46 of 80e482f |",
            "(60 Gb/s), flows of 10 s** (columns W:AA of 80e482f, H:M of aa62ebb, AC:AG of",
            "8 cores, 10 M packets/s, nDPI: passive | 1.4GB/340MB |",
            "52 / 100 (37 / 100)",
            "0 / 37 (0 / 17) *",
            "| 16 cores, 89 M packets/s, nDPI | 10M | 361 | 72 | 64 of 89 | 7.2 |",
            "61.2 / 100 / 54",
        ] {
            assert!(text.contains(row), "{row} is missing in {text}");
        }
        let cuckoo = text.lines().find(|line| line.starts_with("| 0.50 | "));
        assert!(cuckoo.is_some(), "{text}");
    }
}
