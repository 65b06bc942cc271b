// SPDX-License-Identifier: Apache-2.0
//! `turboflow plan --measure`: the speed of aggregation on one core of this machine.
//!
//! It equals the first row of `turboflow-lab bench aggregate`: a flow cache of the default
//! definition with open flows, and microflow records of randomly drawn flows, the worst order for
//! CPU caches.

use std::time::{Duration, Instant};

use turboflow_aggregate::{CacheConfig, Cell, FlowCache, Timeouts};
use turboflow_merge::{Complement, KeyHasher, Layout, MicroflowRecord};
use turboflow_record::{Definition, Family, WORDS_V4};
use turboflow_workload::traffic::{FlowNumbers, Skew, five_tuple, keys};

/// IPv4 record of the default definition.
type Record = MicroflowRecord<WORDS_V4, 0>;

/// Records merged at a time, as in a run with the default definition.
const BATCH: usize = 2_048;
/// Records per round.
const ROUND: u64 = 4_000_000;
/// Number of rounds; the median counts.
const ROUNDS: usize = 3;
/// A constant seed, so that runs are comparable.
const SEED: u64 = 1;

/// Microflow records per second that one core merges with `flows` open flows.
///
/// # Panics
/// When `flows` is 0 or above the generator's limit.
pub(super) fn aggregator_records_per_s(flows: u64) -> f64 {
    let mut cache = full_cache(flows);
    let mut records = RandomRecords::new(flows);
    let batches = ROUND.div_ceil(BATCH as u64);
    let mut rounds = [(); ROUNDS].map(|()| merged_in(&mut cache, &mut records, batches));
    assert_eq!(cache.len() as u64, flows, "the flow cache holds every flow");
    rounds.sort();
    (batches * BATCH as u64) as f64 / rounds[ROUNDS / 2].as_secs_f64()
}

/// A flow cache with every flow, none of which is due.
fn full_cache(flows: u64) -> FlowCache<WORDS_V4, 0> {
    let layout = Layout::compile(&Definition::default(), false).expect("the default compiles");
    let config = CacheConfig {
        timeouts: Timeouts::default(),
        max_flows: flows as usize,
        ending_fins: layout.ending_fins(),
        sweep_ns: 10_000_000_000,
    };
    let mut cache = FlowCache::new(config, layout.plan().clone(), KeyHasher::new(SEED));
    let mut exported = Vec::new();
    let cell = Cell {
        watermark_ns: 0,
        end_ns: 1_000_000_000,
    };
    cache.advance(cell, &mut exported);
    let mut batch = Vec::with_capacity(BATCH);
    for start in (0..flows).step_by(BATCH) {
        batch.clear();
        batch.extend((start..flows.min(start + BATCH as u64)).map(|flow| microflow(flow, 1)));
        cache.merge(&batch, &mut exported);
    }
    assert!(exported.is_empty(), "no flow expires early");
    cache
}

/// Microflow records of randomly drawn flows.
struct RandomRecords {
    numbers: FlowNumbers,
    at_ns: u64,
}

impl RandomRecords {
    fn new(flows: u64) -> Self {
        let numbers = keys(flows, Skew::Uniform, SEED).expect("the planner's flows are in range");
        Self { numbers, at_ns: 1 }
    }

    /// The next `BATCH` records.
    fn fill(&mut self, batch: &mut Vec<Record>) {
        self.at_ns += 1;
        batch.clear();
        batch.extend((0..BATCH).map(|_| microflow(self.numbers.next_number(), self.at_ns)));
    }
}

/// The time to merge that many batches, without the time to make them.
fn merged_in(
    cache: &mut FlowCache<WORDS_V4, 0>,
    records: &mut RandomRecords,
    batches: u64,
) -> Duration {
    let (mut batch, mut exported) = (Vec::with_capacity(BATCH), Vec::new());
    let mut took = Duration::ZERO;
    for _ in 0..batches {
        records.fill(&mut batch);
        took += timed(|| cache.merge(&batch, &mut exported));
    }
    assert!(exported.is_empty(), "no flow expires early");
    took
}

/// A microflow record of three packets.
#[inline(always)]
fn microflow(flow: u64, at_ns: u64) -> Record {
    let mut record = Record::default();
    record
        .key
        .copy_from_slice(five_tuple(flow, Family::V4, 6).words());
    record.base.packets = 3;
    record.base.bytes = 1_800;
    record.base.first_ns = at_ns;
    record.base.last_ns = at_ns + 1_000;
    record.base.min_length_bytes = Complement::of(52);
    record.base.max_length_bytes = 1_500;
    record.base.tcp_flags = 0x10;
    record.base.min_ttl = Complement::of(60);
    record.base.max_ttl = 60;
    record
}

#[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
#[inline(always)]
fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}
