// SPDX-License-Identifier: Apache-2.0
//! Compares the aggregator with its alternatives: each merges the same stream of microflow records
//! of the default definition into open flows.

pub(crate) mod cores;
mod designs;
mod linear;
mod redis;

use crate::microflows::{BATCH, Microflows, every_flow};
use crate::report::{Measured, in_turn, median};
use crate::{Options, Row, Spread, Timer};
use designs::{Design, HashbrownTable, StdTable, TurboflowCache};
use linear::PaperTable;

pub(crate) fn run(options: &Options, row: &mut dyn FnMut(Row)) {
    for &flows in &options.flows {
        for spread in Spread::ALL {
            let designs: Vec<Box<dyn Measured>> = vec![
                Box::new(Run::<TurboflowCache>::new(flows, spread)),
                Box::new(Run::<PaperTable>::new(flows, spread)),
                Box::new(Run::<HashbrownTable>::new(flows, spread)),
                Box::new(Run::<StdTable>::new(flows, spread)),
            ];
            in_turn(designs, options, row);
            if let Some(measured) = redis::measure(flows, spread, options) {
                row(measured);
            }
        }
    }
}

struct Run<D> {
    design: D,
    microflows: Microflows,
    flows: u64,
    spread: Spread,
    merged: u64,
    rounds: Vec<Row>,
}

impl<D: Design> Run<D> {
    /// A table that already contains every flow.
    fn new(flows: u64, spread: Spread) -> Self {
        let mut design = D::new(flows as usize);
        every_flow(flows, |batch| design.merge(batch));
        Self {
            design,
            microflows: Microflows::new(flows, spread),
            flows,
            spread,
            merged: 0,
            rounds: Vec::new(),
        }
    }
}

impl<D: Design> Measured for Run<D> {
    fn round(&mut self, items: u64) {
        let mut batch = Vec::with_capacity(BATCH);
        let batches = items.div_ceil(BATCH as u64);
        let mut timer = Timer::default();
        for _ in 0..batches {
            self.microflows.fill(&mut batch);
            timer.time(|| self.design.merge(&batch));
        }
        let (items, traffic) = (batches * BATCH as u64, self.spread.name());
        let took = timer.total();
        self.merged += items;
        self.rounds.push(Row::new(
            "aggregate",
            D::NAME,
            self.flows,
            traffic,
            items,
            took,
        ));
    }

    fn finish(self: Box<Self>) -> Row {
        let mut row = median(self.rounds);
        let size_bytes = self.design.size_bytes();
        row.bytes_per_flow = size_bytes.map(|size| size as f64 / self.flows as f64);
        let expected = (self.flows + self.merged) * 3;
        assert_eq!(self.design.packets(), expected, "{} lost packets", D::NAME);
        row
    }
}
