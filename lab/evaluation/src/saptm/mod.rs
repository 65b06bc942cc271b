// SPDX-License-Identifier: Apache-2.0
//! SAPTM (Cheng and others, 2020): the table as printed in the paper, the effects of d-left
//! placement and of the choice of victims, and the paper's performance model with corrected
//! equations.
//!
//! Everything here is simulated key by key, with identical results for a seed on every machine.

pub(crate) mod equations;
pub(crate) mod line;
pub(crate) mod placement;
pub(crate) mod printed;
pub(crate) mod victims;

use turboflow_merge::KeyHasher;
use turboflow_workload::random::Random;

/// A d-left table of two subtables, divided into stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) stages: usize,
    /// Buckets in a subtable, over all stages.
    pub(crate) buckets: usize,
    /// Slots in a bucket.
    pub(crate) slots: usize,
}

impl Shape {
    /// The table of section 5.1 of the paper: 65,536 slots.
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

    /// The buckets of a flow, one per subtable, each in the given stage.
    fn in_stages(self, hasher: &KeyHasher, flow: u64, stages: [usize; 2]) -> [usize; SUBTABLES] {
        let among = self.buckets / self.stages;
        [0, 1].map(|subtable| self.within(hasher, flow, subtable, stages[subtable] * among, among))
    }

    /// The bucket of a flow in a subtable, among `among` buckets starting at `first`.
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

    /// The stage of a bucket: subtables are divided by bucket number (section 3.2).
    pub(crate) const fn stage(self, bucket: usize) -> usize {
        bucket % self.buckets / (self.buckets / self.stages)
    }
}

/// Number of subtables, `d` in the paper.
pub(crate) const SUBTABLES: usize = 2;

/// Where the two buckets of a key may lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// Anywhere in their subtables, as in the paper.
    Anywhere,
    /// In one stage, as in `engines/rtl`.
    OneStage,
    /// In two consecutive stages.
    Neighbours,
}

impl Placement {
    /// The buckets of a flow, the one in the left subtable first. Numbers in the right subtable
    /// follow those of the left one.
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

/// A number below a bound, derived from the hash of a flow.
fn draw(hasher: &KeyHasher, flow: u64, what: u64, below: usize) -> usize {
    hasher.hash(&[flow, what]).share(below as u64) as usize
}

/// Packets whose flows follow Zipf's law with exponent 1.
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
