// SPDX-License-Identifier: Apache-2.0
//! The distribution of flow sizes.

use super::FLOW_PACKETS_MAX;
use crate::random::Random;

/// The exponent of the tail. By rank, sizes follow Zipf's law with exponent 1.05, as on real links.
/// So the share of flows with at least `k` packets falls as `k^(-1/1.05)`.
const TAIL: f64 = 1.0 / 1.05;

/// A discrete Pareto law with an offset: the share of flows with at least `k` packets is
/// proportional to `(k + offset)^-TAIL`, up to `largest` packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct SizeLaw {
    offset: f64,
    largest: f64,
    /// Share of the flows that would exceed `largest`.
    beyond: f64,
}

impl SizeLaw {
    /// The law with that mean. A large mean gets an offset, a small one a lower `largest`. `None`
    /// if no law of the family has it.
    pub(super) fn of_mean(mean: f64) -> Option<Self> {
        let largest = f64::from(FLOW_PACKETS_MAX);
        let bare = Self::new(0.0, largest);
        let (by_offset, high) = if mean >= bare.mean() {
            (true, largest)
        } else {
            (false, largest.ln())
        };
        let law = |parameter: f64| match by_offset {
            true => Self::new(parameter, largest),
            false => Self::new(0.0, parameter.exp()),
        };
        let (mut low, mut high) = (0.0, high);
        if !(law(low).mean()..=law(high).mean()).contains(&mean) {
            return None;
        }
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if law(middle).mean() < mean {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(law(low))
    }

    fn new(offset: f64, largest: f64) -> Self {
        let beyond = ((largest + 1.0 + offset) / (1.0 + offset)).powf(-TAIL);
        Self {
            offset,
            largest,
            beyond,
        }
    }

    /// Share of the flows with at least `packets` packets.
    pub(super) fn at_least(&self, packets: f64) -> f64 {
        if packets > self.largest {
            return 0.0;
        }
        let unbounded = ((packets + self.offset) / (1.0 + self.offset)).powf(-TAIL);
        (unbounded - self.beyond) / (1.0 - self.beyond)
    }

    /// Mean number of packets: the sum of [`SizeLaw::at_least`] over all sizes, computed in
    /// strides.
    pub(super) fn mean(&self) -> f64 {
        strides(self.largest)
            .map(|(from, to)| (to - from) * self.at_least((from + to - 1.0) / 2.0))
            .sum()
    }

    pub(super) fn draw(&self, random: &mut Random) -> u32 {
        let share = self.beyond + (1.0 - self.beyond) * random.fraction();
        let size = (1.0 + self.offset) * share.powf(-1.0 / TAIL) - self.offset;
        size.clamp(1.0, self.largest) as u32
    }

    /// Size ranges, `.0` inclusive and `.1` exclusive, each with its share of the flows.
    pub(super) fn cells(self) -> impl Iterator<Item = (f64, f64, f64)> {
        let share = move |from, to| self.at_least(from) - self.at_least(to);
        strides(self.largest).map(move |(from, to)| (from, to, share(from, to)))
    }
}

/// Ranges of sizes from 1 on: single sizes first, then strides of a thirty-second.
fn strides(largest: f64) -> impl Iterator<Item = (f64, f64)> {
    let end = largest.floor() + 1.0;
    let next = move |from: f64| (from + (from / 32.0).floor().max(1.0)).min(end);
    std::iter::successors(Some((1.0, next(1.0))), move |&(_, to)| {
        (to < end).then(|| (to, next(to)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laws_have_the_requested_mean() {
        for mean in [1.0, 1.5, 11.25, 49.0, 300.0] {
            let law = SizeLaw::of_mean(mean).unwrap();
            assert!((law.mean() / mean - 1.0).abs() < 1e-3, "{mean}");
            let exact: f64 = (1..=law.largest as u32)
                .map(|k| law.at_least(f64::from(k)))
                .sum();
            assert!((exact / mean - 1.0).abs() < 2e-3, "{mean} {exact}");
        }
        assert!(SizeLaw::of_mean(0.9).is_none());
        assert!(SizeLaw::of_mean(1e6).is_none());
    }

    #[test]
    fn sizes_are_drawn_as_the_law_says() {
        const DRAWS: u32 = 1_000_000;
        let law = SizeLaw::of_mean(49.0).unwrap();
        let mut random = Random::new(1);
        let sizes: Vec<u32> = (0..DRAWS).map(|_| law.draw(&mut random)).collect();
        for least in [1, 2, 10, 100, 1_000, 10_000] {
            let drawn = sizes.iter().filter(|&&size| size >= least).count() as f64;
            let expected = law.at_least(f64::from(least)) * f64::from(DRAWS);
            assert!(
                (drawn - expected).abs() < 5.0 * expected.sqrt() + 1.0,
                "{least}"
            );
        }
    }
}
