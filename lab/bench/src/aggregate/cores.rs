// SPDX-License-Identifier: Apache-2.0
//! The aggregator on one core, two, and so on up to all cores of the machine (TurboFlow, Figure
//! 12). Every core has its own table and its own flows, as when microflow records are sharded by
//! key.

use std::sync::Barrier;
use std::thread;

use super::designs::{Design, Record, StdTable, TurboflowCache};
use super::linear::{FlatTable, IntegerTable, PaperTable};
use super::redis;
use crate::microflows::{BATCH, Microflows, every_flow};
use crate::report::{Measured, in_turn, median};
use crate::{Options, Row, Spread, Timer};

/// Batches made in advance for each core, and merged repeatedly. They take 16 MB: more than a
/// core's private caches hold, like a ring that an engine fills.
const POOL_BATCHES: usize = (1 << 18) / BATCH;
/// With more flows, the five tables would fill the memory of a small machine. `aggregate` measures
/// larger numbers.
const FLOWS_MAX: u64 = 1_000_000;

pub(crate) fn run(options: &Options, row: &mut dyn FnMut(Row)) {
    let all = thread::available_parallelism().map_or(1, usize::from);
    for &flows in options.flows.iter().filter(|flows| **flows <= FLOWS_MAX) {
        for spread in Spread::ALL {
            for cores in 1..=all {
                let designs: Vec<Box<dyn Measured>> = vec![
                    Box::new(Run::<StdTable>::new(flows, spread, cores)),
                    Box::new(Run::<FlatTable>::new(flows, spread, cores)),
                    Box::new(Run::<IntegerTable>::new(flows, spread, cores)),
                    Box::new(Run::<PaperTable>::new(flows, spread, cores)),
                    Box::new(Run::<TurboflowCache>::new(flows, spread, cores)),
                ];
                in_turn(designs, options, row);
            }
            // A Redis server uses one core, and its client another.
            if let Some(mut measured) = redis::measure(flows, spread, options) {
                measured.bench = "cores";
                measured.cores = Some(1);
                row(measured);
            }
        }
    }
}

/// One core's table, and the records that it merges.
struct Worker<D> {
    design: D,
    pool: Vec<Vec<Record>>,
    next: usize,
}

impl<D: Design> Worker<D> {
    fn new(flows: u64, spread: Spread, seed: u64) -> Self {
        let mut design = D::new(flows as usize);
        every_flow(flows, |batch| design.merge(batch));
        let mut microflows = Microflows::with_seed(flows, spread, seed);
        let pool = (0..POOL_BATCHES).map(|_| {
            let mut batch = Vec::with_capacity(BATCH);
            microflows.fill(&mut batch);
            batch
        });
        Self {
            design,
            pool: pool.collect(),
            next: 0,
        }
    }

    fn merge(&mut self, batches: u64) {
        for _ in 0..batches {
            self.design.merge(&self.pool[self.next]);
            self.next = (self.next + 1) % self.pool.len();
        }
    }
}

struct Run<D> {
    workers: Vec<Worker<D>>,
    flows: u64,
    spread: Spread,
    rounds: Vec<Row>,
}

impl<D: Design> Run<D> {
    /// Splits the flows evenly among the cores.
    fn new(flows: u64, spread: Spread, cores: usize) -> Self {
        let share = flows.div_ceil(cores as u64);
        Self {
            workers: (0..cores as u64)
                .map(|core| Worker::new(share, spread, core + 1))
                .collect(),
            flows,
            spread,
            rounds: Vec::new(),
        }
    }
}

impl<D: Design> Measured for Run<D> {
    /// Measures from a common start to the end of the slowest core.
    fn round(&mut self, items: u64) {
        let cores = self.workers.len() as u64;
        let batches = items.div_ceil(BATCH as u64 * cores);
        let start = Barrier::new(self.workers.len());
        let took = thread::scope(|scope| {
            let running: Vec<_> = self
                .workers
                .iter_mut()
                .map(|worker| {
                    let start = &start;
                    scope.spawn(move || {
                        let mut timer = Timer::default();
                        start.wait();
                        timer.time(|| worker.merge(batches));
                        timer.total()
                    })
                })
                .collect();
            running
                .into_iter()
                .map(|thread| thread.join().expect("merging does not panic"))
                .max()
        });
        let (items, traffic) = (batches * BATCH as u64 * cores, self.spread.name());
        let took = took.expect("there is at least one core");
        let mut row = Row::new("cores", D::NAME, self.flows, traffic, items, took);
        row.cores = Some(cores as u32);
        self.rounds.push(row);
    }

    fn finish(self: Box<Self>) -> Row {
        median(self.rounds)
    }
}
