// SPDX-License-Identifier: Apache-2.0
//! Table 12: the cost and power that monitoring adds to switches.

use super::{Cell, Printed, Rounding, inputs};
use crate::{Cost, MonitoringCost};

/// One row: the value after generation and after analysis, and the increase in percent.
type Row = [(f64, f64); 2];

const EQUIPMENT: [Row; 3] = [
    [(3_603.0, 0.1), (3_642.0, 1.2)],
    [(3_608.0, 0.2), (3_702.0, 2.9)],
    [(3_636.0, 1.0), (4_059.0, 12.8)],
];
const POWER: [Row; 3] = [
    [(158.0, 5.6), (164.0, 10.0)],
    [(159.0, 6.1), (174.0, 16.7)],
    [(163.0, 9.2), (234.0, 56.3)],
];
const COLUMNS: [&str; 2] = ["+ Generation", "+ Analysis"];

/// The table. Dollars and watts are truncated, percentages rounded.
#[must_use]
pub fn table_12() -> Vec<Cell> {
    let usd = |cost: Cost| cost.usd_per_terabit;
    let watts = |cost: Cost| cost.watts_per_terabit;
    let mut cells = half("Equipment Cost", "$", EQUIPMENT, usd);
    cells.extend(half("Power Cost", "W", POWER, watts));
    cells
}

fn half(name: &str, unit: &'static str, printed: [Row; 3], of: fn(Cost) -> f64) -> Vec<Cell> {
    let assumptions = inputs::assumptions();
    let mut cells = Vec::new();
    for ((workload, rate), printed) in inputs::workloads().into_iter().zip(printed) {
        let cost = MonitoringCost::in_switch(rate, &assumptions);
        let bare = of(cost.switches);
        let added = [of(cost.generation), of(cost.monitoring())];
        let row = format!("{name}, {workload}");
        for ((column, (total, percent)), added) in COLUMNS.into_iter().zip(printed).zip(added) {
            let whole = Printed {
                value: total,
                step: 1.0,
                rounding: Rounding::Down,
            };
            cells.push(Cell::new(
                12,
                row.clone(),
                column,
                unit,
                whole,
                bare + added,
            ));
            let tenth = Printed {
                value: percent,
                step: 0.1,
                rounding: Rounding::Nearest,
            };
            let more = format!("{column} (%)");
            cells.push(Cell::new(
                12,
                row.clone(),
                more,
                "%",
                tenth,
                100.0 * added / bare,
            ));
        }
    }
    cells
}
