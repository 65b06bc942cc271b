// SPDX-License-Identifier: Apache-2.0
//! Measures the error of an answer.

use std::collections::HashMap;

use crate::Answer;

/// Maximum number of packets of a small flow. Scans, floods and slow attacks consist of such flows.
pub const SMALL_FLOW_PACKETS: u64 = 10;

/// Error limits of [`Score::shares_within`].
pub const ERROR_STEPS: [f64; 4] = [0.0, 0.01, 0.1, 0.5];

/// The true packet count of every flow.
#[derive(Clone, Debug)]
pub struct Truth<const K: usize> {
    /// Packets of each flow.
    pub packets: HashMap<[u64; K], u64>,
}

impl<const K: usize> Default for Truth<K> {
    fn default() -> Self {
        Self {
            packets: HashMap::new(),
        }
    }
}

impl<const K: usize> Truth<K> {
    /// Counts a packet of a flow.
    pub fn observe(&mut self, key: &[u64; K]) {
        *self.packets.entry(*key).or_default() += 1;
    }
}

/// The errors of an [`Answer`], compared with the [`Truth`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// Flows in the traffic.
    pub flows: u64,
    /// Share of the flows that the answer lists.
    pub listed_share: f64,
    /// Listed flows that are not in the traffic.
    pub invented: u64,
    /// Share of the flows whose packet count is exact.
    pub exact_share: f64,
    /// Flows of at most [`SMALL_FLOW_PACKETS`] packets.
    pub small_flows: u64,
    /// Share of the small flows that the answer does not list.
    pub small_missed_share: f64,
    /// Mean over all flows of the relative error, |estimate - true| / true.
    pub error_mean: f64,
    /// Median of the relative error.
    pub error_p50: f64,
    /// 90th percentile of the relative error.
    pub error_p90: f64,
    /// 99th percentile of the relative error.
    pub error_p99: f64,
    /// Largest relative error.
    pub error_max: f64,
    /// For each of [`ERROR_STEPS`], the share of flows whose relative error does not exceed it.
    pub shares_within: [f64; ERROR_STEPS.len()],
}

impl Score {
    /// # Panics
    /// If the traffic has no flows.
    #[must_use]
    pub fn new<const K: usize>(truth: &Truth<K>, answer: &Answer<K>) -> Self {
        let (mut listed, mut small, mut small_missed, mut exact) = (0_u64, 0_u64, 0_u64, 0_u64);
        let mut errors = Vec::with_capacity(truth.packets.len());
        for (key, &packets) in &truth.packets {
            let is_listed = answer.listed.contains_key(key);
            let is_small = packets <= SMALL_FLOW_PACKETS;
            let said = answer.packets(key);
            listed += u64::from(is_listed);
            small += u64::from(is_small);
            small_missed += u64::from(is_small && !is_listed);
            exact += u64::from(said == packets);
            errors.push(said.abs_diff(packets) as f64 / packets as f64);
        }
        errors.sort_by(f64::total_cmp);
        let flows = errors.len();
        assert!(flows > 0, "the traffic has flows");
        // The error that this share of the flows does not exceed.
        let percentile = |share: f64| errors[((share * flows as f64).ceil() as usize).max(1) - 1];
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        Self {
            flows: flows as u64,
            listed_share: share(listed, flows as u64),
            invented: answer.listed.len() as u64 - listed,
            exact_share: share(exact, flows as u64),
            small_flows: small,
            small_missed_share: share(small_missed, small),
            error_mean: errors.iter().sum::<f64>() / flows as f64,
            error_p50: percentile(0.5),
            error_p90: percentile(0.9),
            error_p99: percentile(0.99),
            error_max: percentile(1.0),
            shares_within: ERROR_STEPS.map(|step| {
                let within = errors.partition_point(|error| *error <= step);
                share(within as u64, flows as u64)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_is_named_exact_invented_and_missed() {
        let mut truth = Truth::default();
        for (flow, packets) in [(1, 100), (2, 10), (3, 4), (4, 1)] {
            truth.packets.insert([flow], packets);
        }
        let listed = HashMap::from([([1], 110), ([2], 10), ([9], 7)]);
        let others: Option<crate::Estimate<1>> = Some(Box::new(|_| 2));
        let score = Score::new(&truth, &Answer { listed, others });
        let expected = Score {
            flows: 4,
            listed_share: 0.5,
            invented: 1,
            exact_share: 0.25,
            small_flows: 3,
            small_missed_share: 2.0 / 3.0,
            error_mean: (0.1 + 0.0 + 0.5 + 1.0) / 4.0,
            error_p50: 0.1,
            error_p90: 1.0,
            error_p99: 1.0,
            error_max: 1.0,
            shares_within: [0.25, 0.25, 0.5, 0.75],
        };
        assert_eq!(score, expected);
    }

    #[test]
    fn the_truth_has_no_error() {
        let mut truth = Truth::default();
        (0..1_000_u64).for_each(|packet| truth.observe(&[packet * packet % 37, 1]));
        let listed = truth.packets.clone();
        let score = Score::new(
            &truth,
            &Answer {
                listed,
                others: None,
            },
        );
        assert_eq!((score.listed_share, score.exact_share), (1.0, 1.0));
        assert_eq!((score.error_max, score.small_missed_share), (0.0, 0.0));
    }
}
