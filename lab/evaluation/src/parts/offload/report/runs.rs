// SPDX-License-Identifier: Apache-2.0
//! The sheets' runs as tables.

use super::super::host::{EIGHT_CORES, FAST, FAST_NO_NDPI, LONG, ONE_CORE};
use super::super::setup_name;
use super::super::sheets::{Block, Mode, Rows, Setup, Share, Sheets};
use crate::report::Section;

/// Loss and load of every run, as in the sheets.
pub(super) fn outcomes(sheets: &Sheets, section: &mut Section) {
    section.say(
        "### The sheets\n\nEach cell: packets lost / load of each core, in percent. *a → b*: a \
         while flows are learned, b after that. Payload is random.",
    );
    let groups: [&[Setup]; 4] = [&[FAST, FAST_NO_NDPI], &[LONG], &[ONE_CORE], &[EIGHT_CORES]];
    for setups in groups {
        let flows = sheets.flows(setups[0]);
        let mut rows = vec![births(sheets, setups[0], &flows)];
        for setup in setups {
            for mode in Mode::ALL {
                let cells: Vec<String> = flows
                    .iter()
                    .map(|flows| outcome(sheets, *setup, mode, flows))
                    .collect();
                if cells.iter().any(|cell| !cell.is_empty()) {
                    let ndpi = if setup.ndpi { "nDPI" } else { "no nDPI" };
                    let mut row = vec![format!("{}, {ndpi}", mode.name())];
                    row.extend(cells);
                    rows.push(row);
                }
            }
        }
        rows.extend(texts(sheets, setups[0], &flows, &["received", "learning"]));
        section.say(origin(sheets, setups));
        let mut names = vec!["active flows"];
        names.extend(flows.iter().map(String::as_str));
        section.table(&names, &rows);
    }
}

/// Describes the offered traffic, and the columns of the sheets.
fn origin(sheets: &Sheets, setups: &[Setup]) -> String {
    let blocks: Vec<&Block> = setups
        .iter()
        .flat_map(|setup| sheets.blocks(*setup))
        .collect();
    let columns: Vec<String> = blocks
        .iter()
        .map(|block| format!("{} of {}", block.columns, block.version))
        .collect();
    let offered = blocks.first().map_or_else(String::new, |block| {
        let Block {
            cores,
            offered_mpps,
            frame_bytes,
            offered_gbps,
            flow_seconds,
            ..
        } = block;
        let plural = if *cores == 1 { "" } else { "s" };
        format!(
            "{cores} core{plural}, {offered_mpps} M packets/s of {frame_bytes} bytes \
             ({offered_gbps} Gb/s), flows of {flow_seconds} s"
        )
    });
    format!("**{offered}** (columns {}):", columns.join(", "))
}

fn births(sheets: &Sheets, setup: Setup, flows: &[String]) -> Vec<String> {
    let of = |flows: &String| {
        let mut births = sheets.blocks(setup).filter_map(|block| {
            let column = block.flows.iter().position(|known| known == flows)?;
            block.births_per_second.get(column).cloned()
        });
        births.next().unwrap_or_default()
    };
    let cells = flows.iter().map(of);
    std::iter::once("new flows/s".to_owned())
        .chain(cells)
        .collect()
}

fn outcome(sheets: &Sheets, setup: Setup, mode: Mode, flows: &str) -> String {
    let share = |row: fn(&Rows) -> &Vec<String>| {
        let text = sheets.text(setup, mode, row, flows);
        Share::parse(text).map_or_else(String::new, |share| share.shown())
    };
    let (loss, cpu) = (share(|rows| &rows.loss), share(|rows| &rows.cpu));
    match (loss.as_str(), cpu.as_str()) {
        ("", "") => String::new(),
        ("", cpu) => format!("- / {cpu}"),
        _ => format!("{loss} / {cpu}"),
    }
}

/// Rows with plain texts of a set-up's passive runs.
fn texts(sheets: &Sheets, setup: Setup, flows: &[String], which: &[&str]) -> Vec<Vec<String>> {
    type Row = fn(&Rows) -> &Vec<String>;
    let all: [(&str, Mode, Row, &str); 8] = [
        (
            "received",
            Mode::Passive,
            |rows| &rows.received,
            "passive: received",
        ),
        (
            "learning",
            Mode::Passive,
            |rows| &rows.learning,
            "passive: flows learned a second",
        ),
        (
            "learning",
            Mode::PassiveOffload,
            |rows| &rows.learning,
            "passive, offload: flows learned a second",
        ),
        ("memory", Mode::Passive, |rows| &rows.memory, "passive"),
        (
            "memory",
            Mode::PassiveOffload,
            |rows| &rows.memory,
            "passive, offload",
        ),
        (
            "memory",
            Mode::Passive,
            |rows| &rows.hash,
            "passive: slots of the hash table",
        ),
        ("memory", Mode::Passive, |rows| &rows.note, "passive: note"),
        (
            "memory",
            Mode::PassiveOffload,
            |rows| &rows.note,
            "passive, offload: note",
        ),
    ];
    let wanted = all.into_iter().filter(|(kind, ..)| which.contains(kind));
    let rows = wanted.map(|(_, mode, row, name)| {
        let cells = flows
            .iter()
            .map(|flows| sheets.text(setup, mode, row, flows).to_owned());
        std::iter::once(name.to_owned())
            .chain(cells)
            .collect::<Vec<_>>()
    });
    let says_something = |row: &Vec<String>| {
        let mut cells = row[1..].iter();
        cells.any(|text| !matches!(text.as_str(), "" | "-"))
    };
    rows.filter(says_something).collect()
}

pub(super) fn memory(sheets: &Sheets, section: &mut Section) {
    section.say(
        "Memory of the probe, virtual / resident, with nDPI. *Starved*: there was no memory for \
         more flows.",
    );
    let flows = sheets.flows(LONG);
    let mut rows = Vec::new();
    for setup in [ONE_CORE, EIGHT_CORES, LONG] {
        for mut row in texts(sheets, setup, &flows, &["memory"]) {
            row[0] = format!("{}: {}", setup_name(setup), row[0]);
            rows.push(row);
        }
    }
    let mut names = vec!["memory"];
    names.extend(flows.iter().map(String::as_str));
    section.table(&names, &rows);
}

pub(super) fn others(sheets: &Sheets, section: &mut Section) {
    section.say("Other tests of the sheet, which does not say on how many cores they ran:");
    let rows: Vec<Vec<String>> = sheets
        .other_test
        .iter()
        .map(|test| {
            vec![
                test.program.clone(),
                test.flows.clone(),
                test.frame_bytes.to_string(),
                test.result.clone(),
                format!("{} of {}", test.cell, test.version),
            ]
        })
        .collect();
    let names = ["program", "flows", "bytes a frame", "result", "cell"];
    section.table(&names, &rows);
}
