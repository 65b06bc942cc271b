// SPDX-License-Identifier: Apache-2.0
//! The Count-Min sketch (Cormode and Muthukrishnan, 2005): rows of counters, each with its own hash
//! function. The estimate for a flow is the minimum of its counters.

use std::collections::HashMap;
use std::f64::consts::E;

use turboflow_merge::KeyHasher;

use crate::{Answer, FlowCounter};

/// Rows of counters.
///
/// With N packets in total, an estimate is never too low, and exceeds the true count by more than N
/// e / width with a probability of at most e^-depth. The sketch cannot list the flows that it
/// counted.
#[derive(Clone, Debug)]
pub struct CountMin<const K: usize> {
    rows: Vec<KeyHasher>,
    width: usize,
    counters: Vec<u32>,
}

impl<const K: usize> CountMin<K> {
    /// A sketch with `depth` rows of `width` counters.
    ///
    /// # Panics
    /// If one of them is 0.
    #[must_use]
    pub fn new(width: usize, depth: usize, seed: u64) -> Self {
        assert!(width > 0 && depth > 0, "width and depth are positive");
        Self {
            rows: hashers(depth, seed),
            width,
            counters: vec![0; width * depth],
        }
    }

    /// A sketch whose estimates exceed the true count by more than `error` of all packets with a
    /// probability of at most `failure`: width e / error, depth ln(1 / failure).
    ///
    /// # Panics
    /// If one of them is not between 0 and 1.
    #[must_use]
    pub fn with_error(error: f64, failure: f64, seed: u64) -> Self {
        let sane = |value: f64| value > 0.0 && value < 1.0;
        assert!(
            sane(error) && sane(failure),
            "error and failure lie between 0 and 1"
        );
        let width = (E / error).ceil() as usize;
        let depth = (1.0 / failure).ln().ceil() as usize;
        Self::new(width, depth, seed)
    }

    /// The minimum of the flow's counters.
    #[must_use]
    pub fn packets(&self, key: &[u64; K]) -> u64 {
        let least = (0..self.rows.len())
            .map(|row| self.counters[self.place(row, key)])
            .min();
        u64::from(least.unwrap_or(0))
    }

    #[inline(always)]
    fn place(&self, row: usize, key: &[u64; K]) -> usize {
        let column = self.rows[row].hash(key).share(self.width as u64) as usize;
        row * self.width + column
    }
}

impl<const K: usize> FlowCounter<K> for CountMin<K> {
    #[inline(always)]
    fn observe(&mut self, key: &[u64; K]) {
        for row in 0..self.rows.len() {
            let place = self.place(row, key);
            self.counters[place] = self.counters[place].saturating_add(1);
        }
    }

    fn size_bytes(&self) -> usize {
        size_of_val(self.counters.as_slice())
    }

    fn answer(self: Box<Self>) -> Answer<K> {
        Answer {
            listed: HashMap::new(),
            others: Some(Box::new(move |key| self.packets(key))),
        }
    }
}

/// Independent hash functions.
pub(crate) fn hashers(count: usize, seed: u64) -> Vec<KeyHasher> {
    let spread = KeyHasher::new(seed);
    (0..count as u64)
        .map(|index| KeyHasher::new(spread.hash(&[index]).0))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::{Stream, key};

    /// The share of flows whose error exceeds N e / width, over several seeds. Asserts that no
    /// estimate is below the true count.
    fn share_over_the_bound(width: usize, depth: usize) -> f64 {
        let (mut over, mut asked) = (0_u32, 0_u32);
        for seed in 0..20 {
            let stream = Stream::zipf(5_000, 50_000, seed);
            let mut sketch = CountMin::new(width, depth, seed);
            stream.packets.iter().for_each(|key| sketch.observe(key));
            let bound = stream.packets.len() as f64 * E / width as f64;
            for (key, &packets) in &stream.truth.packets {
                let estimate = sketch.packets(key);
                assert!(estimate >= packets);
                over += u32::from((estimate - packets) as f64 > bound);
                asked += 1;
            }
        }
        f64::from(over) / f64::from(asked)
    }

    #[test]
    fn never_underestimates_and_keeps_the_error_bound() {
        for depth in [1, 2, 4] {
            let share = share_over_the_bound(200, depth);
            assert!(share <= (-(depth as f64)).exp(), "depth {depth}: {share}");
        }
        // A single row exceeds the bound for some flows, so the test can fail.
        assert!(share_over_the_bound(200, 1) > 0.01);
    }

    #[test]
    fn is_exact_where_nothing_collides() {
        let mut sketch = CountMin::with_error(1e-5, 0.01, 1);
        for flow in 0..20_u64 {
            (0..=flow).for_each(|_| sketch.observe(&key(flow)));
        }
        (0..20).for_each(|flow| assert_eq!(sketch.packets(&key(flow)), flow + 1));
    }

    #[test]
    fn dimensions_follow_from_the_error_asked_for() {
        let sketch = CountMin::<2>::with_error(0.01, 0.01, 1);
        assert_eq!((sketch.width, sketch.rows.len()), (272, 5));
        assert_eq!(sketch.size_bytes(), 272 * 5 * 4);
    }
}
