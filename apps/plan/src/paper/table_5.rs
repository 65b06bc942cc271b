// SPDX-License-Identifier: Apache-2.0
//! Table 5: eviction probability with `a` active flows, by size of the table.

use super::{Cell, Printed, Rounding};
use crate::eviction_probability;

/// Not printed. The first cell, .65, implies that they were few: with many it is 1 - 1/e = .63.
/// Only 8, 9 and 10 give all five cells.
const ACTIVE_FLOWS: u64 = 10;

const PROBABILITIES: [f64; 5] = [0.65, 0.40, 0.28, 0.22, 0.18];
const PACKETS_PER_MICROFLOW: [f64; 5] = [1.53, 2.5, 3.57, 4.54, 5.55];

const fn cut(value: f64) -> Printed {
    Printed {
        value,
        step: 0.01,
        rounding: Rounding::Down,
    }
}

/// The table: Equation 1, and packets per microflow record, which the paper computed from the
/// rounded probabilities.
#[must_use]
pub fn table_5() -> Vec<Cell> {
    let mut cells = Vec::new();
    for (times, printed) in (1..).zip(PROBABILITIES) {
        let probability = eviction_probability(times * ACTIVE_FLOWS, ACTIVE_FLOWS as f64);
        let column = format!("{times} x a");
        cells.push(Cell::new(
            5,
            "P[eviction]",
            column,
            "",
            cut(printed),
            probability,
        ));
    }
    for ((times, probability), printed) in (1..).zip(PROBABILITIES).zip(PACKETS_PER_MICROFLOW) {
        let column = format!("{times} x a");
        let ratio = 1.0 / probability;
        cells.push(Cell::new(
            5,
            "Packets : mFR",
            column,
            "",
            cut(printed),
            ratio,
        ));
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::super::Agreement;
    use super::*;

    #[test]
    fn eight_to_ten_active_flows_give_the_first_row_and_no_other_number_does() {
        let gives_it = |flows: &u64| {
            (1..).zip(PROBABILITIES).all(|(times, printed)| {
                let probability = eviction_probability(times * flows, *flows as f64);
                Cell::new(5, "", "", "", cut(printed), probability).agreement()
                    == Some(Agreement::ToTheDigit)
            })
        };
        let numbers: Vec<u64> = (1..10_000).filter(gives_it).collect();
        assert_eq!(numbers, [8, 9, 10]);
    }
}
