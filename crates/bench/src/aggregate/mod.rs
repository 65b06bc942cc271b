// SPDX-License-Identifier: Apache-2.0
//! The aggregator against what else one would use: all merge the same stream of microflow records
//! of the default definition into open flows.

mod designs;
mod redis;

use crate::microflows::{BATCH, Microflows, every_flow};
use crate::report::median;
use crate::{Options, Row, Spread, Timer};
use designs::{Design, HashbrownTable, PaperTable, StdTable, TurboflowCache};

pub(crate) fn run(options: &Options, row: &mut dyn FnMut(Row)) {
    for &flows in &options.flows {
        for spread in Spread::ALL {
            row(measure::<TurboflowCache>(flows, spread, options));
            row(measure::<PaperTable>(flows, spread, options));
            row(measure::<HashbrownTable>(flows, spread, options));
            row(measure::<StdTable>(flows, spread, options));
            if let Some(measured) = redis::measure(flows, spread, options) {
                row(measured);
            }
        }
    }
}

/// One table, filled with every flow first; then as many measured runs as asked for.
fn measure<D: Design>(flows: u64, spread: Spread, options: &Options) -> Row {
    let mut design = D::new(flows as usize);
    every_flow(flows, |batch| design.merge(batch));
    let mut microflows = Microflows::new(flows, spread);
    let mut batch = Vec::with_capacity(BATCH);
    let batches = options.items.div_ceil(BATCH as u64);
    let mut runs = Vec::new();
    for _ in 0..options.repetitions {
        let mut timer = Timer::default();
        for _ in 0..batches {
            microflows.fill(&mut batch);
            timer.time(|| design.merge(&batch));
        }
        let items = batches * BATCH as u64;
        runs.push(Row::new(
            "aggregate",
            D::NAME,
            flows,
            spread.name(),
            items,
            timer.total(),
        ));
    }
    let mut row = median(runs);
    row.bytes_per_flow = design.size_bytes().map(|size| size as f64 / flows as f64);
    let merged = batches * BATCH as u64 * u64::from(options.repetitions);
    assert_eq!(
        design.packets(),
        (flows + merged) * 3,
        "{} lost packets",
        D::NAME
    );
    row
}
