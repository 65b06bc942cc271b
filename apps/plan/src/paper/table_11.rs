// SPDX-License-Identifier: Apache-2.0
//! Table 11: the capacity that one switch monitors, by memory and cores.

use super::{Cell, Printed, Rounding, inputs, internet_curve, switch_curve};
use crate::links_carried;

/// Memory in MB (a million bytes, as in Table 10), and Gb/s with 1 to 4 cores.
const INTERNET: [(f64, [f64; 4]); 6] = [
    (0.0, [300.0, 600.0, 900.0, 1_200.0]),
    (1.0, [600.0, 1_200.0, 1_700.0, 2_200.0]),
    (4.0, [800.0, 1_400.0, 1_900.0, 2_500.0]),
    (8.0, [900.0, 1_600.0, 2_300.0, 2_800.0]),
    (16.0, [1_100.0, 1_800.0, 2_600.0, 3_200.0]),
    (24.0, [1_200.0, 2_000.0, 2_800.0, 3_500.0]),
];
/// Tb/s with 1 MB and 1 to 4 cores.
const AGGREGATION: [f64; 4] = [6.4, 9.3, 13.6, 14.4];

/// The table. Its memory is divided evenly among as many links as the cores can serve; each link
/// has the record rate that Table 10 gives for its share.
#[must_use]
pub fn table_11() -> Vec<Cell> {
    let mut cells = Vec::new();
    let curve = internet_curve();
    for (megabytes, printed) in INTERNET {
        let rate = |slots: f64| curve.share(slots) * inputs::INTERNET_PACKETS_PER_SECOND;
        let slots = megabytes * 1e6 / inputs::RECORD_BYTES;
        for (cores, printed) in (1..).zip(printed) {
            let links = links_carried(rate, slots, merges(cores));
            let gigabits = links * inputs::INTERNET_GIGABITS_PER_SECOND;
            let row = format!("Internet Router, {megabytes} MB");
            cells.push(Cell::new(
                11,
                row,
                of(cores),
                "Gb/s",
                to(printed, 100.0),
                gigabits,
            ));
        }
    }
    let curve = switch_curve(&inputs::AGGREGATION);
    for (cores, printed) in (1..).zip(AGGREGATION) {
        let packets_per_second = inputs::AGGREGATION.packets_per_second;
        let rate = |slots: f64| curve.share(power_of_two(slots)) * packets_per_second;
        let switches = links_carried(rate, 1e6 / inputs::RECORD_BYTES, merges(cores));
        let terabits = switches * inputs::AGGREGATION.terabits_per_second;
        let row = "Aggregation Switch, 1 MB";
        cells.push(Cell::new(
            11,
            row,
            of(cores),
            "Tb/s",
            to(printed, 0.1),
            terabits,
        ));
    }
    cells
}

fn merges(cores: u32) -> f64 {
    f64::from(cores) * inputs::RECORDS_PER_SECOND_PER_CORE
}

fn of(cores: u32) -> String {
    let plural = if cores == 1 { "" } else { "s" };
    format!("{cores} core{plural}")
}

/// A printed number whose rounding is unknown: the paper does not show whether it rounds or
/// truncates.
const fn to(value: f64, step: f64) -> Printed {
    Printed {
        value,
        step,
        rounding: Rounding::Either,
    }
}

/// Rounds slots down to a power of two, which the last row implies: more than 10 switches, 14.4
/// Tb/s, leave fewer than 4,096 slots to each, and the row ends there although a fourth core is
/// added. The rows above it show no such steps.
fn power_of_two(slots: f64) -> f64 {
    if slots < 1.0 {
        slots
    } else {
        slots.log2().floor().exp2()
    }
}
