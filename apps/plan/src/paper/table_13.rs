// SPDX-License-Identifier: Apache-2.0
//! Table 13: cost and power of TurboFlow, and of systems that assemble flow records in servers.

use super::{Cell, Printed, Rounding, inputs};
use crate::{Cost, MonitoringCost};

/// One workload: generation, analysis, total. Each has dollars and watts of TurboFlow, then of the
/// server-based system.
type Workload = [[f64; 4]; 3];

/// The part of the costs that a row shows.
type Part = fn(&MonitoringCost) -> Cost;

const PRINTED: [Workload; 3] = [
    [
        [3.0, 8.0, 268.0, 44.0],
        [39.0, 6.0, 39.0, 6.0],
        [42.0, 14.0, 308.0, 51.0],
    ],
    [
        [8.0, 9.0, 645.0, 107.0],
        [94.0, 15.0, 94.0, 15.0],
        [102.0, 24.0, 740.0, 123.0],
    ],
    [
        [36.0, 13.0, 2_880.0, 479.0],
        [423.0, 70.0, 423.0, 70.0],
        [459.0, 84.0, 3_303.0, 550.0],
    ],
];
const SAVINGS: [[f64; 2]; 3] = [[265.0, 36.0], [637.0, 98.0], [2_844.0, 466.0]];
const SYSTEMS: [&str; 2] = ["TurboFlow", "PFE Accelerated"];

/// The table. All its numbers are truncated; totals and savings were computed before that.
#[must_use]
pub fn table_13() -> Vec<Cell> {
    let assumptions = inputs::assumptions();
    let mut cells = Vec::new();
    let workloads = inputs::workloads().into_iter().zip(PRINTED).zip(SAVINGS);
    for (((workload, rate), printed), saving) in workloads {
        let ours = MonitoringCost::in_switch(rate, &assumptions);
        let theirs = MonitoringCost::in_servers(rate, &assumptions);
        let rows: [(&str, Part); 3] = [
            ("Generation", |cost| cost.generation),
            ("Analysis", |cost| cost.analysis),
            ("Total", MonitoringCost::monitoring),
        ];
        for ((row, of), printed) in rows.into_iter().zip(printed) {
            let systems = SYSTEMS.into_iter().zip([of(&ours), of(&theirs)]);
            for ((system, cost), printed) in systems.zip(printed.chunks_exact(2)) {
                push(&mut cells, workload, row, system, cost, printed);
            }
        }
        let saved = theirs.monitoring() - ours.monitoring();
        push(&mut cells, workload, "Saving", SYSTEMS[0], saved, &saving);
    }
    cells
}

fn push(
    cells: &mut Vec<Cell>,
    workload: &str,
    row: &str,
    system: &str,
    cost: Cost,
    printed: &[f64],
) {
    let computed = [
        ("Unit", "$", cost.usd_per_terabit),
        ("Power", "W", cost.watts_per_terabit),
    ];
    for ((column, unit, computed), value) in computed.into_iter().zip(printed) {
        let whole = Printed {
            value: *value,
            step: 1.0,
            rounding: Rounding::Down,
        };
        let row = format!("{workload}, {row}");
        let column = format!("{system}, {column}");
        cells.push(Cell::new(13, row, column, unit, whole, computed));
    }
}
