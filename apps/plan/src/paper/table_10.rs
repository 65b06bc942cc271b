// SPDX-License-Identifier: Apache-2.0
//! Table 10: load on the bus and on the network.

use super::{Cell, Printed, Rounding, inputs};
use crate::ShareCurve;

/// Memory as printed, in KB, and the resulting slots: powers of two, of 24 bytes each.
const SIZES: [(f64, u64); 5] = [
    (49.0, 2_048),
    (98.0, 4_096),
    (196.0, 8_192),
    (786.0, 32_768),
    (1_572.0, 65_536),
];
/// Mb/s on the bus: Internet link, ToR switch, aggregation switch.
const BUS_MBITS: [[f64; 5]; 3] = [
    [22.57, 19.01, 15.39, 9.27, 7.05],
    [242.93, 173.06, 129.52, 100.04, 94.65],
    [856.99, 563.17, 397.63, 286.92, 267.52],
];
/// Mb/s to the collector.
const NETWORK_MBITS: [f64; 3] = [1.75, 89.71, 247.92];
const COLUMNS: [&str; 3] = ["Internet Link", "ToR Switch", "Aggregation Switch"];
const RECORD_BITS: f64 = inputs::RECORD_BYTES * 8.0;

/// Packets per second, half a unit of their last digit, and the packets per microflow record at 98
/// KB if section 6.3 states them ("a factor of 45 ... and 135", at 100 KB).
const PACKETS: [(f64, f64, Option<f64>); 3] = [
    (inputs::INTERNET_PACKETS_PER_SECOND, 0.5e3, None),
    (inputs::TOR.packets_per_second, 0.05e6, Some(135.0)),
    (inputs::AGGREGATION.packets_per_second, 0.05e6, Some(45.0)),
];
/// Flows per second, and half a unit of their last digit.
const FLOWS: [(f64, f64); 3] = [
    (inputs::INTERNET_FLOWS_PER_SECOND, 0.05e3),
    (inputs::TOR.flows_per_second, 0.5e3),
    (inputs::AGGREGATION.flows_per_second, 0.5e3),
];

const fn mbits(value: f64) -> Printed {
    Printed {
        value,
        step: 0.01,
        rounding: Rounding::Nearest,
    }
}

/// The table.
///
/// Sizes follow from slots, and the last row follows from flow rates. Two of the loads on the bus
/// follow from ratios that section 6.3 states. The others were computed from Figure 11, which is a
/// plot, so they are inputs here: [`internet_curve`] and [`switch_curve`] turn them into ratios.
#[must_use]
pub fn table_10() -> Vec<Cell> {
    let mut cells = Vec::new();
    for (kilobytes, slots) in SIZES {
        let printed = Printed {
            value: kilobytes,
            step: 1.0,
            rounding: Rounding::Down,
        };
        let size = slots as f64 * inputs::RECORD_BYTES / 1e3;
        let row = format!("{kilobytes} KB");
        cells.push(Cell::new(10, row, "PFE Memory", "KB", printed, size));
    }
    for ((column, printed), packets) in COLUMNS.into_iter().zip(BUS_MBITS).zip(PACKETS) {
        for ((kilobytes, slots), printed) in SIZES.into_iter().zip(printed) {
            cells.push(bus(column, kilobytes, slots, printed, packets));
        }
    }
    for ((column, printed), (flows, half)) in COLUMNS.into_iter().zip(NETWORK_MBITS).zip(FLOWS) {
        let load = |flows: f64| flows * RECORD_BITS / 1e6;
        let cell = Cell::new(
            10,
            "Network load",
            column,
            "Mb/s",
            mbits(printed),
            load(flows),
        );
        cells.push(cell.between(load(flows - half), load(flows + half)));
    }
    cells
}

fn bus(
    column: &str,
    kilobytes: f64,
    slots: u64,
    printed: f64,
    (packets, half, stated): (f64, f64, Option<f64>),
) -> Cell {
    let row = format!("{kilobytes} KB");
    let load = |packets: f64, ratio: f64| packets / ratio * RECORD_BITS / 1e6;
    let ratio = stated.filter(|_| slots == 4_096);
    let computed = load(packets, ratio.unwrap_or(1.0));
    let cell = Cell::new(10, row, column, "Mb/s", mbits(printed), computed);
    match ratio {
        // The text does not show whether its factor is rounded or truncated.
        Some(ratio) => cell.between(
            load(packets - half, ratio + 1.0),
            load(packets + half, ratio - 0.5),
        ),
        None => cell.taken(),
    }
}

/// Packets per microflow record by slots, as implied by the loads of one column.
fn curve(column: usize) -> ShareCurve {
    let (packets, ..) = PACKETS[column];
    let sizes = SIZES.into_iter().zip(BUS_MBITS[column]);
    ShareCurve::new(sizes.map(|((_, slots), mbits)| (slots, mbits * 1e6 / RECORD_BITS / packets)))
}

/// Figure 11 for the Internet link, as implied by Table 10's loads at 328 K packets a second.
#[must_use]
pub fn internet_curve() -> ShareCurve {
    curve(0)
}

/// Figure 11 for the top-of-rack or the aggregation switch, as implied by Table 10's loads.
#[must_use]
pub fn switch_curve(switch: &inputs::Switch) -> ShareCurve {
    curve(if switch.name == inputs::TOR.name {
        1
    } else {
        2
    })
}
