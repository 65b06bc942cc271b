// SPDX-License-Identifier: Apache-2.0
//! The time up to which the records of a shard, or of several shards, are complete.

use std::sync::{Mutex, PoisonError};

use turboflow_aggregate::{Cell, Timeouts};

use crate::PipelineConfig;

/// The number of sweeps after which a due flow has certainly left. One is not enough: each step of
/// a sweep is rounded down, and buckets move while the cache grows.
const SWEEPS: u64 = 2;

/// Finds the time before which no later record of a shard has a packet. The exception are packets
/// that are late by more than a sweep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watermark {
    /// How long a record may be held after its end, or a packet that waits for others, in
    /// nanoseconds.
    held_ns: u64,
    /// The active timeout. `u64::MAX` means that records may last for ever.
    active_ns: u64,
    align_ns: Option<u64>,
}

impl Watermark {
    pub(crate) fn new(config: &PipelineConfig) -> Self {
        let Timeouts {
            active_ns,
            align_ns,
            ..
        } = config.timeouts;
        let reassembly = config.reassemble_flows.as_ref();
        let fragments_ns = reassembly.map_or(0, |its| its.timeout_ns);
        if config.probe.is_some() {
            // The records of a probe leave at the end of their cell.
            return Self {
                held_ns: fragments_ns,
                active_ns: 0,
                align_ns: None,
            };
        }
        Self {
            held_ns: (config.sweep_ns.saturating_mul(SWEEPS)).saturating_add(fragments_ns),
            active_ns: active_ns.unwrap_or(u64::MAX),
            align_ns,
        }
    }

    /// The watermark after the tables have entered a cell. A flow that is still open becomes due at
    /// `swept_ns` or later. So neither its window nor its active timeout has ended before that
    /// time.
    pub(crate) fn after(&self, cell: Cell) -> u64 {
        let swept_ns = cell.watermark_ns.saturating_sub(self.held_ns);
        let by_active_ns = swept_ns.saturating_sub(self.active_ns);
        let by_window_ns = self
            .align_ns
            .map_or(0, |align_ns| swept_ns / align_ns * align_ns);
        by_active_ns.max(by_window_ns)
    }
}

/// The watermarks of all shards. The watermark of the run is the smallest.
#[derive(Debug, Default)]
pub(crate) struct Watermarks {
    of_shards: Mutex<Vec<u64>>,
}

impl Watermarks {
    /// Adds a shard, and returns its index.
    pub(crate) fn join(&self) -> usize {
        let mut of_shards = self.lock();
        of_shards.push(0);
        of_shards.len() - 1
    }

    /// The watermark of the run with a batch of `shard` that completes its records up to `own_ns`.
    /// For all other shards, only batches that are already in the queues count.
    pub(crate) fn with(&self, shard: usize, own_ns: u64) -> u64 {
        let of_shards = self.lock();
        let others = of_shards.iter().enumerate().filter(|(at, _)| *at != shard);
        others.fold(own_ns, |least, (_, &other_ns)| least.min(other_ns))
    }

    /// Notes that the batch is in the queues.
    pub(crate) fn queued(&self, shard: usize, own_ns: u64) {
        self.lock()[shard] = own_ns;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u64>> {
        self.of_shards
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn after(seconds: u64, timeouts: Timeouts) -> u64 {
        let config = PipelineConfig {
            timeouts,
            sweep_ns: SECOND_NS,
            ..PipelineConfig::default()
        };
        let watermark_ns = seconds * SECOND_NS;
        let end_ns = watermark_ns + SECOND_NS;
        Watermark::new(&config).after(Cell {
            watermark_ns,
            end_ns,
        }) / SECOND_NS
    }

    #[test]
    fn a_window_is_complete_two_sweeps_after_its_end() {
        let aligned = Timeouts {
            align_ns: Some(60 * SECOND_NS),
            ..Timeouts::default()
        };
        assert_eq!(
            [661, 662, 721, 722].map(|its| after(its, aligned)),
            [600, 660, 660, 720]
        );
        let short = Timeouts {
            active_ns: Some(10 * SECOND_NS),
            ..aligned
        };
        assert_eq!([662, 680].map(|its| after(its, short)), [660, 668]);
    }

    #[test]
    fn without_windows_the_active_timeout_bounds_what_is_open() {
        assert_eq!(after(600, Timeouts::default()), 600 - 2 - 120);
        let endless = Timeouts {
            active_ns: None,
            ..Timeouts::default()
        };
        assert_eq!(after(600, endless), 0);
    }

    #[test]
    fn a_batch_counts_for_its_own_shard_at_once_and_for_others_once_it_is_queued() {
        let run = Watermarks::default();
        let [one, other] = [run.join(), run.join()];
        assert_eq!(run.with(one, 7), 0);
        run.queued(one, 7);
        assert_eq!(run.with(other, 9), 7);
        run.queued(other, 9);
        assert_eq!((run.with(one, 8), run.with(one, 10)), (8, 9));
    }
}
