// SPDX-License-Identifier: Apache-2.0
//! `turboflow plan --paper`: the paper's tables as the model computes them.

use serde::Serialize;
use turboflow_export::table::{Align, Table};
use turboflow_plan::paper::{Cell, DEVIATIONS, Deviation, Rounding, all};

const HEAD: &str = "\
TurboFlow (EuroSys 2018), Tables 5 and 10 to 13: what is printed, and in brackets what the model gives
from the paper's inputs. `!`: they differ by more than rounding, for a reason below. `input`: the cell is
what others were computed from; its own source is a picture. docs/planning.md has inputs and reasons.
";

#[derive(Serialize)]
struct Paper {
    cells: Vec<Named>,
    deviations: &'static [Deviation],
}

#[derive(Serialize)]
struct Named {
    name: String,
    agrees: Option<bool>,
    deviation: Option<f64>,
    #[serde(flatten)]
    cell: Cell,
}

pub(super) fn render(json: bool) -> anyhow::Result<String> {
    if json {
        let cells = all().into_iter().map(|cell| Named {
            name: cell.name(),
            agrees: cell.agrees(),
            deviation: cell.deviation(),
            cell,
        });
        let paper = Paper {
            cells: cells.collect(),
            deviations: DEVIATIONS,
        };
        return Ok(serde_json::to_string_pretty(&paper)? + "\n");
    }
    let cells = all();
    let mut text = HEAD.to_owned();
    let mut left = &cells[..];
    while let Some(first) = left.first() {
        let count = left.iter().take_while(|cell| cell.table == first.table);
        let (table, others) = left.split_at(count.count());
        text += &format!("\nTable {}\n", first.table);
        text += &one(table);
        left = others;
    }
    text += "\nDeviations\n";
    for cell in cells.iter().filter(|cell| cell.agrees() == Some(false)) {
        let name = cell.name();
        let why = DEVIATIONS.iter().find(|listed| listed.cell == name);
        let why = why.map_or("not listed", |listed| listed.why);
        let percent = 100.0 * cell.deviation().unwrap_or_default();
        text += &format!("  {name}: {percent:+.1} %\n    {why}\n");
    }
    Ok(text)
}

/// Rows and columns in the order in which they first come.
fn one(cells: &[Cell]) -> String {
    let (mut rows, mut columns): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for cell in cells {
        if !rows.contains(&cell.row.as_str()) {
            rows.push(&cell.row);
        }
        if !columns.contains(&cell.column.as_str()) {
            columns.push(&cell.column);
        }
    }
    let names = columns.iter().map(|name| (*name, Align::Right));
    let mut table = Table::new([("", Align::Left)].into_iter().chain(names));
    for row in rows {
        let find = |column: &&str| {
            let found = cells
                .iter()
                .find(|cell| cell.row == row && cell.column == *column);
            found.map_or_else(String::new, shown)
        };
        let texts = columns.iter().map(find);
        table.push([row.to_owned()].into_iter().chain(texts).collect());
    }
    table.render(None)
}

fn shown(cell: &Cell) -> String {
    // One digit more than was printed.
    let digits = (-cell.printed.step.log10()).round().max(0.0) as usize;
    let more = if cell.printed.step > 1.0 {
        0
    } else {
        digits + 1
    };
    let printed = match (cell.printed.value, cell.unit) {
        (value, "") => format!("{value:.digits$}"),
        (value, "$") => format!("${value:.digits$}"),
        (value, unit) => format!("{value:.digits$} {unit}"),
    };
    let Some(mut computed) = cell.computed else {
        return format!("{printed} (input)");
    };
    if cell.printed.rounding == Rounding::Down {
        let more = 10f64.powi(more as i32);
        computed = (computed * more).floor() / more;
    }
    let mark = match cell.agrees() {
        Some(false) => "!",
        _ => "",
    };
    format!("{printed} ({computed:.more$}{mark})")
}
