// SPDX-License-Identifier: Apache-2.0
//! Packet sampling, as in sFlow and sampled NetFlow (RFC 5475): one packet of `interval` is
//! counted, and the counts are multiplied by `interval`.

use std::collections::HashMap;

use turboflow_merge::KeyHasher;

use crate::{Answer, FlowCounter};

/// How packets are selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// Every `interval`-th packet (RFC 5475, section 5.1: systematic count-based).
    CountBased,
    /// Each packet with probability 1 / `interval` (RFC 5475, section 5.2.2.1: uniform
    /// probabilistic).
    Random,
}

/// A flow cache that receives a sample of the packets.
///
/// A flow of n packets is missed with probability (1 - 1 / interval)^n. Its estimate is the number
/// of its sampled packets times `interval`. The estimate is unbiased, with variance n (interval -
/// 1).
#[derive(Clone, Debug)]
pub struct Sampling<const K: usize> {
    pick: Pick,
    interval: u64,
    packets: u64,
    random: KeyHasher,
    sampled: HashMap<[u64; K], u64>,
}

impl<const K: usize> Sampling<K> {
    /// Samples one packet in `interval`.
    ///
    /// # Panics
    /// If `interval` is 0.
    #[must_use]
    pub fn new(pick: Pick, interval: u64, seed: u64) -> Self {
        assert!(interval > 0, "the interval is positive");
        Self {
            pick,
            interval,
            packets: 0,
            random: KeyHasher::new(seed),
            sampled: HashMap::new(),
        }
    }
}

impl<const K: usize> FlowCounter<K> for Sampling<K> {
    #[inline(always)]
    fn observe(&mut self, key: &[u64; K]) {
        self.packets += 1;
        let taken = match self.pick {
            Pick::CountBased => self.packets.is_multiple_of(self.interval),
            Pick::Random => {
                self.random
                    .hash(&[self.packets, self.interval])
                    .share(self.interval)
                    == 0
            }
        };
        if taken {
            *self.sampled.entry(*key).or_default() += 1;
        }
    }

    fn size_bytes(&self) -> usize {
        // hashbrown keeps one control byte per slot and an eighth of its slots empty.
        let slots = self.sampled.capacity() * 8 / 7;
        slots * (size_of::<([u64; K], u64)>() + 1)
    }

    fn answer(self: Box<Self>) -> Answer<K> {
        let mut listed = self.sampled;
        for packets in listed.values_mut() {
            *packets *= self.interval;
        }
        Answer {
            listed,
            others: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::key;

    /// Flows of equal length whose packets are interleaved.
    fn sampled(pick: Pick, interval: u64, flows: u64, packets_a_flow: u64) -> Answer<2> {
        let mut sampling = Box::new(Sampling::new(pick, interval, 7));
        for _ in 0..packets_a_flow {
            (0..flows).for_each(|flow| sampling.observe(&key(flow)));
        }
        sampling.answer()
    }

    #[test]
    fn random_sampling_misses_flows_as_often_as_the_formula_says() {
        for (interval, packets) in [(100, 50), (100, 1), (1_000, 400)] {
            let flows = 20_000;
            let answer = sampled(Pick::Random, interval, flows, packets);
            let missed = 1.0 - answer.listed.len() as f64 / flows as f64;
            let expected = (1.0 - 1.0 / interval as f64).powi(packets as i32);
            let deviation = (expected * (1.0 - expected) / flows as f64).sqrt();
            assert!(
                (missed - expected).abs() < 4.0 * deviation,
                "1:{interval} of {packets}: {missed} instead of {expected}"
            );
        }
    }

    #[test]
    fn the_estimate_is_unbiased_and_as_scattered_as_the_formula_says() {
        let (interval, flows, packets) = (100, 20_000, 300);
        let answer = sampled(Pick::Random, interval, flows, packets);
        let estimates: Vec<f64> = (0..flows)
            .map(|flow| answer.packets(&key(flow)) as f64)
            .collect();
        let mean = estimates.iter().sum::<f64>() / flows as f64;
        let variance = estimates
            .iter()
            .map(|estimate| (estimate - packets as f64).powi(2))
            .sum::<f64>()
            / flows as f64;
        let expected = packets as f64 * (interval as f64 - 1.0);
        assert!((mean - packets as f64).abs() < 4.0 * (expected / flows as f64).sqrt());
        assert!((variance / expected - 1.0).abs() < 0.05, "{variance}");
    }

    #[test]
    fn count_based_sampling_selects_exactly_its_share() {
        let answer = sampled(Pick::CountBased, 1_000, 7_001, 10);
        assert_eq!(answer.listed.values().sum::<u64>(), 70_000);
    }

    #[test]
    fn count_based_sampling_misses_a_flow_in_step_with_its_interval() {
        // Two flows alternate, and every other packet is sampled. This is why the standard warns of
        // periodic traffic (RFC 5475, section 5.1).
        let answer = sampled(Pick::CountBased, 2, 2, 1_000);
        assert_eq!(answer.packets(&key(0)), 0);
        assert_eq!(answer.packets(&key(1)), 2_000);
    }

    #[test]
    fn memory_is_that_of_the_flows_seen() {
        let mut sampling = Sampling::new(Pick::CountBased, 1, 1);
        assert_eq!(sampling.size_bytes(), 0);
        (0..1_000).for_each(|flow| sampling.observe(&key(flow)));
        assert!((24_000..64_000).contains(&sampling.size_bytes()));
    }
}
