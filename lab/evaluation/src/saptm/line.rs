// SPDX-License-Identifier: Apache-2.0
//! The line of `engines/rtl` itself, in its model, whose records are those of the SystemVerilog one
//! by one: on the same packets as the studies beside it, which know neither its hash nor its tags.

use turboflow_engine_rtl::{Arrival, Build, Key, Line, LineConfig, Model, Step};
use turboflow_merge::KeyHasher;

use super::Shape;

/// The keys that flows have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// Any, as far from each other as a hash puts them.
    Random,
    /// Those of flows that count addresses and ports up: neighbours differ in few bits, and a
    /// linear hash spreads them otherwise than chance does.
    Neighbours,
}

impl Keys {
    pub(crate) const ALL: [Self; 2] = [Self::Random, Self::Neighbours];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Neighbours => "neighbours",
        }
    }

    /// The 104 bits of a flow's key.
    fn of(self, flow: u64, hasher: &KeyHasher) -> Key {
        let [addresses, transport] = match self {
            Self::Random => [5, 6].map(|what| hasher.hash(&[flow, what]).0),
            Self::Neighbours => [
                0x0a00_0001_0a00_0000 ^ flow.rotate_left(29),
                0x06_0050_0000 ^ (flow & 0xffff),
            ],
        };
        [addresses, transport & ((1 << 40) - 1), 0, 0, 0]
    }
}

/// A line of the shape.
fn config(shape: Shape, seed: u64) -> LineConfig {
    let build = Build {
        stage_bits: shape.stages.ilog2(),
        bucket_bits: (shape.buckets / shape.stages).ilog2(),
        slot_bits: shape.slots.ilog2(),
        ..Build::V4
    };
    LineConfig::new(build, build.size(), KeyHasher::new(seed))
}

/// Records that leave the line for these packets, those at the end included. Without a period of
/// activity that ends, any record makes room.
pub(crate) fn records(
    shape: Shape,
    by_activity: bool,
    keys: Keys,
    packets: &[u64],
    seed: u64,
) -> usize {
    let mut config = config(shape, seed);
    if !by_activity {
        config.age_period = 1 << 24;
    }
    let hasher = KeyHasher::new(seed);
    let mut line = Model::new(config);
    let (mut left, mut count) = (Vec::new(), 0);
    line.give(&[Step::Cell(0)], &mut left);
    for &flow in packets {
        let packet = Arrival {
            key: keys.of(flow, &hasher),
            length_bytes: 64,
            ..Arrival::default()
        };
        line.give(&[Step::Packet(packet)], &mut left);
        count += left.len();
        left.clear();
    }
    count + line.resident()
}

/// The variance over stages of the flows that the hash of the line gives each.
pub(crate) fn stage_variance(shape: Shape, keys: Keys, flows: u64, seed: u64) -> f64 {
    let (hash, hasher) = (config(shape, seed).hash(), KeyHasher::new(seed));
    let mut stages = vec![0_u64; shape.stages];
    for flow in 0..flows {
        stages[hash.place(&keys.of(flow, &hasher)).stage as usize] += 1;
    }
    let mean = flows as f64 / shape.stages as f64;
    let squares = stages.iter().map(|load| (*load as f64 - mean).powi(2));
    squares.sum::<f64>() / shape.stages as f64
}

#[cfg(test)]
mod tests {
    use super::super::victims::{self, Victim};
    use super::*;
    use crate::saptm::zipf;

    /// What the study of victims says, the line does, within its noise: 0.8 % of the records are a
    /// point of what is saved.
    #[test]
    fn the_line_evicts_what_the_study_of_victims_says() {
        let shape = victims::FOUR_THOUSAND_SLOTS;
        let packets = zipf(100_000, 300_000, 1);
        for (victim, by_activity) in [(Victim::ALL[0], false), (Victim::ALL[1], true)] {
            let studied = victims::records(shape, victim, &packets, 1) as f64;
            let ours = records(shape, by_activity, Keys::Random, &packets, 1) as f64;
            assert!((ours / studied - 1.0).abs() < 0.02, "{ours} {studied}");
        }
    }

    /// A linear hash spreads keys that count up otherwise than chance does, by its seed. Any victim
    /// notices it, a chosen one hardly does.
    #[test]
    fn keys_that_are_neighbours_cost_a_chosen_victim_nothing() {
        let shape = victims::FOUR_THOUSAND_SLOTS;
        let packets = zipf(100_000, 300_000, 1);
        let of = |keys| records(shape, true, keys, &packets, 1) as f64;
        let ratio = of(Keys::Neighbours) / of(Keys::Random);
        assert!((0.97..1.03).contains(&ratio), "{ratio}");
    }
}
