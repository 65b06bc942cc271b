// SPDX-License-Identifier: Apache-2.0
//! Ranks by Zipf's law, for any number of ranks, in a few nanoseconds and a few tens of kilobytes.
//!
//! Each of the heaviest ranks has its own bucket. The others share buckets of ranks whose
//! probabilities differ by a few percent at most. An alias table (Walker, in Vose's form) draws a
//! bucket, and a rejection step inside it gives each rank its exact probability.

use crate::random::Random;

/// Ranks that have their own bucket.
const SINGLE_RANKS: u64 = 1_024;
/// A shared bucket that begins at rank `k` holds `k / SHARED_RATIO` ranks.
const SHARED_RATIO: u64 = 64;

/// A sampler of ranks 0 to `ranks - 1`, where rank `r` has a probability proportional to `(r +
/// 1)^-exponent`.
#[derive(Clone, Debug)]
pub(super) struct Zipf {
    /// Their number is a power of two.
    buckets: Box<[Bucket]>,
    shift: u32,
    exponent: f64,
}

/// A range of ranks, counted from 1, and the entry of the alias table at the same index.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    first: u32,
    count: u32,
    /// Draws below this 32-bit fraction select this bucket, all others the alias.
    own: u32,
    alias: u32,
    /// Probability of the last rank over that of the first, as a 32-bit fraction. Draws below it
    /// are accepted without computing a power.
    always_below: u32,
}

impl Zipf {
    pub(super) fn new(ranks: u64, exponent: f64) -> Self {
        let (mut buckets, mut weights) = (Vec::new(), Vec::new());
        let mut first = 1;
        while first <= ranks {
            let count = if first <= SINGLE_RANKS {
                1
            } else {
                first / SHARED_RATIO
            };
            let count = count.min(ranks - first + 1);
            buckets.push(Bucket::new(first, count, exponent));
            weights.push(weight(first, count, exponent));
            first += count;
        }
        let size = buckets.len().next_power_of_two().max(2);
        buckets.resize(size, Bucket::default());
        weights.resize(size, 0.0);
        fill_alias_table(&mut buckets, &weights);
        Self {
            buckets: buckets.into(),
            shift: 64 - size.trailing_zeros(),
            exponent,
        }
    }

    #[inline(always)]
    pub(super) fn draw(&self, random: &mut Random) -> u64 {
        let word = random.word();
        let entry = &self.buckets[(word >> self.shift) as usize];
        let bucket = if (word as u32) < entry.own {
            entry
        } else {
            &self.buckets[entry.alias as usize]
        };
        if bucket.count == 1 {
            return u64::from(bucket.first) - 1;
        }
        self.draw_in(bucket, random)
    }

    fn draw_in(&self, bucket: &Bucket, random: &mut Random) -> u64 {
        loop {
            let word = random.word();
            let offset = ((word >> 32) * u64::from(bucket.count)) >> 32;
            let rank = u64::from(bucket.first) + offset;
            let fraction = word as u32;
            let ratio = || (f64::from(bucket.first) / rank as f64).powf(self.exponent);
            if fraction < bucket.always_below || f64::from(fraction) < ratio() * TWO_POW_32 {
                return rank - 1;
            }
        }
    }
}

const TWO_POW_32: f64 = (1u64 << 32) as f64;

impl Bucket {
    fn new(first: u64, count: u64, exponent: f64) -> Self {
        let ratio = (first as f64 / (first + count - 1) as f64).powf(exponent);
        Self {
            first: first as u32,
            count: count as u32,
            // Float-to-integer casts saturate, so a ratio of 1 becomes the largest fraction.
            always_below: (ratio * TWO_POW_32) as u32,
            ..Self::default()
        }
    }
}

/// The sum of `k^-exponent` over `count` ranks from `first` on. Shared buckets begin at ranks so
/// high that the integral with the midpoint correction is exact to more than ten digits.
fn weight(first: u64, count: u64, exponent: f64) -> f64 {
    if count == 1 {
        return (first as f64).powf(-exponent);
    }
    let (from, to) = (first as f64 - 0.5, (first + count) as f64 - 0.5);
    let integral = if (exponent - 1.0).abs() < 1e-9 {
        (to / from).ln()
    } else {
        (to.powf(1.0 - exponent) - from.powf(1.0 - exponent)) / (1.0 - exponent)
    };
    // Euler-Maclaurin: the sum is the integral minus 1/24 of the change of the derivative.
    let derivative = |at: f64| -exponent * at.powf(-exponent - 1.0);
    integral - (derivative(to) - derivative(from)) / 24.0
}

/// Walker's alias table, built with Vose's two stacks.
fn fill_alias_table(buckets: &mut [Bucket], weights: &[f64]) {
    let mean = weights.iter().sum::<f64>() / weights.len() as f64;
    let mut share: Vec<f64> = weights.iter().map(|weight| weight / mean).collect();
    let (mut light, mut heavy): (Vec<usize>, Vec<usize>) =
        (0..share.len()).partition(|&index| share[index] < 1.0);
    while let (Some(small), Some(&large)) = (light.pop(), heavy.last()) {
        buckets[small].own = (share[small] * TWO_POW_32) as u32;
        buckets[small].alias = large as u32;
        share[large] -= 1.0 - share[small];
        if share[large] < 1.0 {
            heavy.pop();
            light.push(large);
        }
    }
    // The remaining buckets have a share of 1, up to rounding.
    for index in light.into_iter().chain(heavy) {
        buckets[index].own = u32::MAX;
        buckets[index].alias = index as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_of_shared_buckets_are_the_sum_of_their_ranks() {
        for (exponent, first, count) in [(1.05, 1_025, 16), (1.0, 5_000, 78), (0.3, 1_100, 17)] {
            let sum: f64 = (first..first + count)
                .map(|k| (k as f64).powf(-exponent))
                .sum();
            assert!(
                (weight(first, count, exponent) / sum - 1.0).abs() < 1e-10,
                "{exponent}"
            );
        }
    }

    #[test]
    fn every_rank_is_drawn_as_often_as_the_law_says() {
        const DRAWS: u64 = 4_000_000;
        for (ranks, exponent) in [
            (1, 1.0),
            (7, 0.0),
            (1_000, 1.05),
            (5_000, 1.05),
            (3_000, 2.0),
        ] {
            let zipf = Zipf::new(ranks, exponent);
            let mut random = Random::new(11);
            let mut counts = vec![0_u64; ranks as usize];
            (0..DRAWS).for_each(|_| counts[zipf.draw(&mut random) as usize] += 1);
            let total: f64 = (1..=ranks).map(|k| (k as f64).powf(-exponent)).sum();
            // Chi-square over ranks with enough expected draws. Its mean is the number of these
            // ranks.
            let (mut chi_square, mut ranks_tested) = (0.0, 0.0);
            for (index, &count) in counts.iter().enumerate() {
                let expected = (index as f64 + 1.0).powf(-exponent) / total * DRAWS as f64;
                if expected > 20.0 {
                    chi_square += (count as f64 - expected).powi(2) / expected;
                    ranks_tested += 1.0;
                }
            }
            let spread = 5.0 * f64::sqrt(2.0 * ranks_tested);
            assert!(
                (chi_square - ranks_tested).abs() < spread + 2.0,
                "{ranks} {exponent}"
            );
        }
    }

    #[test]
    fn twenty_million_ranks_follow_the_law() {
        const RANKS: u64 = 20_000_000;
        const DRAWS: u64 = 2_000_000;
        let zipf = Zipf::new(RANKS, 1.05);
        assert!(zipf.buckets.len() * size_of::<Bucket>() < 64 << 10);
        let mut random = Random::new(5);
        let (mut head, mut tail) = (0_u64, 0_u64);
        for _ in 0..DRAWS {
            let rank = zipf.draw(&mut random);
            assert!(rank < RANKS);
            head += u64::from(rank < 10);
            tail += u64::from(rank >= RANKS / 2);
        }
        let single = |ranks: u64| (1..=ranks).map(|k| (k as f64).powf(-1.05)).sum::<f64>();
        let total = weight(1_025, RANKS - 1_024, 1.05) + single(1_024);
        let head_share = single(10) / total;
        let tail_share = weight(RANKS / 2 + 1, RANKS / 2, 1.05) / total;
        assert!((head as f64 / DRAWS as f64 / head_share - 1.0).abs() < 0.01);
        assert!((tail as f64 / DRAWS as f64 / tail_share - 1.0).abs() < 0.03);
    }
}
