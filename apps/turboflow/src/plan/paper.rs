// SPDX-License-Identifier: Apache-2.0
//! `turboflow plan --paper`: the paper's tables as the model computes them.

use serde::Serialize;
use turboflow_formats::table::{Align, Table};
use turboflow_plan::paper::{Agreement, Cell, EITHER_WAY, Rounding, WITHIN_INPUTS, all};

const HEAD: &str = "\
TurboFlow (EuroSys 2018), Tables 5 and 10 to 13: the printed values, and in brackets the values that
the model computes from the paper's inputs. `~`: they agree within rounding, but not to the last
digit; `!`: they differ by more than that. The reasons are below. `input`: other cells are computed
from this one, and its own source is a figure. docs/planning.md has the inputs.
";

#[derive(Serialize)]
struct Paper {
    cells: Vec<CellResult>,
}

#[derive(Serialize)]
struct CellResult {
    name: String,
    agreement: Option<Agreement>,
    reason: Option<&'static str>,
    deviation: Option<f64>,
    #[serde(flatten)]
    cell: Cell,
}

pub(super) fn render(json: bool) -> anyhow::Result<String> {
    if json {
        let cells = all().into_iter().map(|cell| CellResult {
            name: cell.name(),
            agreement: cell.agreement(),
            reason: cell.reason(),
            deviation: cell.deviation(),
            cell,
        });
        let paper = Paper {
            cells: cells.collect(),
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
        text += &render_table(table);
        left = others;
    }
    text += &reasons(&cells);
    Ok(text)
}

/// The number of cells per degree of agreement, and the reasons for deviations.
fn reasons(cells: &[Cell]) -> String {
    let of = |agreement: Option<Agreement>| {
        cells
            .iter()
            .filter(move |cell| cell.agreement() == agreement)
    };
    let count = |agreement| of(Some(agreement)).count();
    let mut text = format!(
        "\n{} cells: {} to the last digit, {} within rounding, {} deviate, {} are inputs\n",
        cells.len(),
        count(Agreement::ToTheDigit),
        count(Agreement::WithinRounding),
        count(Agreement::Deviates),
        of(None).count(),
    );
    text += "\nWithin rounding (~)\n";
    for why in [WITHIN_INPUTS, EITHER_WAY] {
        for cell in cells.iter().filter(|cell| cell.reason() == Some(why)) {
            text += &format!("  {}: {}\n", cell.name(), percent(cell));
        }
        text += &format!("    {why}\n");
    }
    text += "\nDeviations (!)\n";
    for cell in of(Some(Agreement::Deviates)) {
        let why = cell.reason().unwrap_or("not listed");
        text += &format!("  {}: {}\n    {why}\n", cell.name(), percent(cell));
    }
    text
}

fn percent(cell: &Cell) -> String {
    format!("{:+.1} %", 100.0 * cell.deviation().unwrap_or_default())
}

/// One table, with rows and columns in the order of their first appearance.
fn render_table(cells: &[Cell]) -> String {
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
    // One digit more than the paper prints.
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
    let mark = match cell.agreement() {
        Some(Agreement::Deviates) => "!",
        Some(Agreement::WithinRounding) => "~",
        _ => "",
    };
    format!("{printed} ({computed:.more$}{mark})")
}
