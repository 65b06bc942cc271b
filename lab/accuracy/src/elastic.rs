// SPDX-License-Identifier: Apache-2.0
//! The Elastic sketch (Yang and others, SIGCOMM 2018): a heavy part, in which flows defend their
//! buckets by votes, and a light part of small counters for all other flows.

use std::collections::HashMap;

use turboflow_merge::KeyHasher;

use crate::count_min::hashers;
use crate::{Answer, FlowCounter};

/// Dimensions of an [`ElasticSketch`].
#[derive(Clone, Copy, Debug)]
pub struct ElasticConfig {
    /// Buckets of the heavy part, one flow each.
    pub buckets: usize,
    /// 8-bit counters in each row of the light part.
    pub light_width: usize,
    /// Rows of the light part. The paper uses 1.
    pub light_depth: usize,
    /// A resident flow is evicted when the votes against it reach this multiple of its own votes.
    /// The paper uses 8.
    pub lambda: u32,
}

#[derive(Clone, Copy, Debug)]
struct Bucket<const K: usize> {
    key: [u64; K],
    /// Packets of the flow since it took the bucket; 0 if the bucket is empty.
    votes: u32,
    /// Packets of other flows in that time.
    votes_against: u32,
    /// Whether the light part may hold earlier packets of the flow.
    was_light: bool,
}

/// The heavy and the light part.
///
/// A flow that has held its bucket since its first packet is counted exactly. For all other flows,
/// the light part is a Count-Min sketch. While no counter reaches 255, its estimate is never too
/// low, and too high by more than e / width of the packets in the light part with a probability of
/// at most e^-depth.
#[derive(Clone, Debug)]
pub struct ElasticSketch<const K: usize> {
    heavy: KeyHasher,
    buckets: Vec<Bucket<K>>,
    lambda: u32,
    light: LightPart<K>,
}

impl<const K: usize> ElasticSketch<K> {
    /// An empty sketch.
    ///
    /// # Panics
    /// If one of the dimensions is 0.
    #[must_use]
    pub fn new(config: ElasticConfig, seed: u64) -> Self {
        let ElasticConfig {
            buckets,
            light_width,
            light_depth,
            lambda,
        } = config;
        assert!(buckets > 0 && light_width > 0 && light_depth > 0 && lambda > 0);
        let empty = Bucket {
            key: [0; K],
            votes: 0,
            votes_against: 0,
            was_light: false,
        };
        let mut hashers = hashers(light_depth + 1, seed);
        let heavy = hashers.swap_remove(0);
        Self {
            heavy,
            buckets: vec![empty; buckets],
            lambda,
            light: LightPart {
                rows: hashers,
                width: light_width,
                counters: vec![0; light_width * light_depth],
                packets: 0,
            },
        }
    }

    /// Number of packets counted in the light part.
    #[must_use]
    pub const fn light_packets(&self) -> u64 {
        self.light.packets
    }
}

impl<const K: usize> FlowCounter<K> for ElasticSketch<K> {
    #[inline(always)]
    fn observe(&mut self, key: &[u64; K]) {
        let place = self.heavy.hash(key).share(self.buckets.len() as u64) as usize;
        let bucket = &mut self.buckets[place];
        if bucket.votes == 0 || bucket.key == *key {
            bucket.key = *key;
            bucket.votes = bucket.votes.saturating_add(1);
            return;
        }
        bucket.votes_against = bucket.votes_against.saturating_add(1);
        if bucket.votes_against < bucket.votes.saturating_mul(self.lambda) {
            self.light.add(key, 1);
            return;
        }
        let turned_out = std::mem::replace(
            bucket,
            Bucket {
                key: *key,
                votes: 1,
                votes_against: 1,
                was_light: true,
            },
        );
        self.light.add(&turned_out.key, turned_out.votes);
    }

    fn size_bytes(&self) -> usize {
        size_of_val(self.buckets.as_slice()) + self.light.counters.len()
    }

    fn answer(self: Box<Self>) -> Answer<K> {
        let mut listed = HashMap::new();
        for bucket in self.buckets.iter().filter(|bucket| bucket.votes > 0) {
            let earlier = match bucket.was_light {
                true => self.light.packets_of(&bucket.key),
                false => 0,
            };
            listed.insert(bucket.key, u64::from(bucket.votes) + earlier);
        }
        Answer {
            listed,
            others: Some(Box::new(move |key| self.light.packets_of(key))),
        }
    }
}

/// Rows of counters that saturate at 255.
#[derive(Clone, Debug)]
struct LightPart<const K: usize> {
    rows: Vec<KeyHasher>,
    width: usize,
    counters: Vec<u8>,
    packets: u64,
}

impl<const K: usize> LightPart<K> {
    #[inline(always)]
    fn place(&self, row: usize, key: &[u64; K]) -> usize {
        row * self.width + self.rows[row].hash(key).share(self.width as u64) as usize
    }

    #[inline(always)]
    fn add(&mut self, key: &[u64; K], packets: u32) {
        self.packets += u64::from(packets);
        let more = u8::try_from(packets).unwrap_or(u8::MAX);
        for row in 0..self.rows.len() {
            let place = self.place(row, key);
            self.counters[place] = self.counters[place].saturating_add(more);
        }
    }

    fn packets_of(&self, key: &[u64; K]) -> u64 {
        let least = (0..self.rows.len())
            .map(|row| self.counters[self.place(row, key)])
            .min();
        u64::from(least.unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::E;

    use super::*;
    use crate::streams::{Stream, key};

    fn config(buckets: usize, light_width: usize, light_depth: usize) -> ElasticConfig {
        ElasticConfig {
            buckets,
            light_width,
            light_depth,
            lambda: 8,
        }
    }

    #[test]
    fn never_underestimates_and_keeps_the_light_parts_bound() {
        let (width, depth) = (20_000, 2);
        let (mut over, mut asked) = (0_u32, 0_u32);
        for seed in 0..10 {
            let stream = Stream::zipf(20_000, 100_000, seed);
            let mut sketch = Box::new(ElasticSketch::new(config(2_000, width, depth), seed));
            stream.packets.iter().for_each(|key| sketch.observe(key));
            let bound = sketch.light_packets() as f64 * E / width as f64;
            // The bound holds for counters that do not saturate.
            let counts: HashMap<_, _> = stream
                .truth
                .packets
                .iter()
                .filter(|(key, _)| sketch.light.packets_of(key) < u64::from(u8::MAX))
                .collect();
            assert!(counts.len() > stream.truth.packets.len() * 99 / 100);
            let answer = sketch.answer();
            for (key, &packets) in counts {
                let estimate = answer.packets(key);
                assert!(estimate >= packets);
                over += u32::from((estimate - packets) as f64 > bound);
                asked += 1;
            }
        }
        let share = f64::from(over) / f64::from(asked);
        assert!(share <= (-2.0_f64).exp(), "{share}");
    }

    #[test]
    fn elephants_that_hold_their_bucket_are_exact() {
        let stream = Stream::zipf(20_000, 1_000_000, 4);
        let sketch = {
            let mut sketch = Box::new(ElasticSketch::new(config(4_000, 40_000, 1), 4));
            stream.packets.iter().for_each(|key| sketch.observe(key));
            sketch
        };
        let steady: Vec<_> = sketch
            .buckets
            .iter()
            .filter(|bucket| bucket.votes > 0 && !bucket.was_light)
            .map(|bucket| bucket.key)
            .collect();
        let mut heaviest: Vec<_> = stream.truth.packets.iter().collect();
        heaviest.sort_by_key(|(key, packets)| (std::cmp::Reverse(**packets), **key));
        let answer = sketch.answer();
        for key in &steady {
            assert_eq!(answer.packets(key), stream.truth.packets[key]);
        }
        // Among 100 elephants in 4,000 buckets, one or two pairs share a bucket, and one flow of
        // each pair loses it.
        let elephants = &heaviest[..100];
        let listed = elephants
            .iter()
            .filter(|(key, _)| answer.listed.contains_key(*key));
        assert!(listed.count() >= 97);
        let exact = elephants.iter().filter(|(key, _)| steady.contains(key));
        assert!(exact.count() >= 80);
    }

    #[test]
    fn a_resident_leaves_after_lambda_votes_against_each_of_its_own() {
        let mut sketch = Box::new(ElasticSketch::<2>::new(config(1, 1_000, 1), 5));
        (0..2).for_each(|_| sketch.observe(&key(1)));
        (0..15).for_each(|_| sketch.observe(&key(2)));
        assert_eq!(sketch.buckets[0].key, key(1));
        sketch.observe(&key(2));
        assert_eq!(sketch.buckets[0].key, key(2));
        let answer = sketch.answer();
        assert_eq!(answer.packets(&key(1)), 2);
        assert_eq!(answer.packets(&key(2)), 16);
        assert!(!answer.listed.contains_key(&key(1)));
    }

    #[test]
    fn light_counters_stop_at_255() {
        let mut sketch = Box::new(ElasticSketch::<2>::new(config(1, 1_000, 1), 6));
        (0..1_000).for_each(|_| sketch.observe(&key(1)));
        (0..500).for_each(|_| sketch.observe(&key(2)));
        assert_eq!(sketch.answer().packets(&key(2)), 255);
    }
}
