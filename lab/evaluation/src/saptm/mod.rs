// SPDX-License-Identifier: Apache-2.0
//! SAPTM (Cheng and others, 2020): the table as the paper prints it, where d-left placement and
//! victims lead, and its performance model with its equations corrected.
//!
//! Everything here is simulated key by key, and the same for a seed on every machine.

pub(crate) mod equations;
pub(crate) mod line;
pub(crate) mod placement;
pub(crate) mod printed;
pub(crate) mod victims;

use turboflow_merge::KeyHasher;
use turboflow_workload::random::Random;

/// A d-left table of two subtables, cut into stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) stages: usize,
    /// Buckets of a subtable, in all stages.
    pub(crate) buckets: usize,
    /// Slots of a bucket.
    pub(crate) slots: usize,
}

impl Shape {
    /// Section 5.1 of the paper: 65,536 slots.
    pub(crate) const fn of_paper(stages: usize) -> Self {
        Self {
            stages,
            buckets: 4_096,
            slots: 8,
        }
    }

    pub(crate) const fn all_slots(self) -> usize {
        SUBTABLES * self.buckets * self.slots
    }

    /// The buckets of a flow, each in the stage that is given.
    fn in_stages(self, hasher: &KeyHasher, flow: u64, stages: [usize; 2]) -> [usize; SUBTABLES] {
        let among = self.buckets / self.stages;
        [0, 1].map(|subtable| self.within(hasher, flow, subtable, stages[subtable] * among, among))
    }

    /// The bucket of a flow in a subtable, from the first of some on.
    fn within(
        self,
        hasher: &KeyHasher,
        flow: u64,
        subtable: usize,
        first: usize,
        among: usize,
    ) -> usize {
        subtable * self.buckets + first + draw(hasher, flow, subtable as u64, among)
    }

    /// The stage of a bucket: subtables are cut by the number of the bucket (section 3.2).
    pub(crate) const fn stage(self, bucket: usize) -> usize {
        bucket % self.buckets / (self.buckets / self.stages)
    }
}

/// Subtables, `d` in the paper.
pub(crate) const SUBTABLES: usize = 2;

/// Where the two buckets of a key may lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// Anywhere in their subtables, as in the paper.
    Anywhere,
    /// In one stage, as in `engines/rtl`.
    OneStage,
    /// In a stage and the one behind it.
    Neighbours,
}

impl Placement {
    /// The buckets of a flow, of the left subtable first. Those of the right one are counted on
    /// from the left one's.
    pub(crate) fn buckets(self, shape: Shape, hasher: &KeyHasher, flow: u64) -> [usize; SUBTABLES] {
        let stage = || draw(hasher, flow, 2, shape.stages);
        match self {
            Self::Anywhere => {
                [0, 1].map(|subtable| shape.within(hasher, flow, subtable, 0, shape.buckets))
            }
            Self::OneStage => shape.in_stages(hasher, flow, [stage(); SUBTABLES]),
            Self::Neighbours => {
                let left = stage();
                shape.in_stages(hasher, flow, [left, (left + 1) % shape.stages])
            }
        }
    }
}

/// A number below a bound, by the hash of a flow.
fn draw(hasher: &KeyHasher, flow: u64, what: u64, below: usize) -> usize {
    hasher.hash(&[flow, what]).share(below as u64) as usize
}

/// Packets of flows by Zipf's law with exponent 1.
pub(crate) fn zipf(flows: usize, packets: usize, seed: u64) -> Vec<u64> {
    let mut sums = Vec::with_capacity(flows);
    let mut sum = 0.0;
    for rank in 1..=flows {
        sum += 1.0 / rank as f64;
        sums.push(sum);
    }
    let mut random = Random::new(seed);
    let draw = |_| {
        let share = random.below(1 << 52) as f64 / (1_u64 << 52) as f64;
        sums.partition_point(|upto| *upto <= share * sum) as u64
    };
    (0..packets).map(draw).collect()
}
