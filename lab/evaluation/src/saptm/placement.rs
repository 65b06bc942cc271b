// SPDX-License-Identifier: Apache-2.0
//! How evenly and how completely d-left placement fills a table (the paper's Figure 10).

use turboflow_merge::KeyHasher;

use super::{Placement, SUBTABLES, Shape, draw};

/// How the buckets of a flow are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) placement: Placement,
    /// Number of entries of a table in front of the line that chooses the stage instead of the
    /// hash; 0 if there is no such table.
    pub(crate) front_entries: usize,
}

impl Rule {
    pub(crate) const fn of(placement: Placement) -> Self {
        Self {
            placement,
            front_entries: 0,
        }
    }

    /// Both buckets in the stage that a table in front of the line chooses.
    pub(crate) const fn front(entries: usize) -> Self {
        Self {
            placement: Placement::OneStage,
            front_entries: entries,
        }
    }
}

/// A table in front of the line, addressed by the hash of a key; it stores no keys. The first flow
/// of an entry gets the stage with the fewest entries, and all flows of the entry follow it until
/// the cell ends. So a flow has one stage during a cell, and the stages need not be consulted.
struct Front {
    stages: Vec<Option<usize>>,
    entries_of: Vec<usize>,
}

impl Front {
    fn new(entries: usize, stages: usize) -> Self {
        Self {
            stages: vec![None; entries],
            entries_of: vec![0; stages],
        }
    }

    fn stage(&mut self, entry: usize) -> usize {
        let entries_of = &mut self.entries_of;
        *self.stages[entry].get_or_insert_with(|| {
            let stages = 0..entries_of.len();
            let fewest = stages.min_by_key(|stage| entries_of[*stage]);
            let stage = fewest.expect("a line has stages");
            entries_of[stage] += 1;
            stage
        })
    }
}

/// The loads of the buckets as distinct flows arrive.
struct Loads {
    shape: Shape,
    placement: Placement,
    hasher: KeyHasher,
    front: Option<Front>,
    loads: Vec<usize>,
}

impl Loads {
    fn new(shape: Shape, rule: Rule, seed: u64) -> Self {
        let has_front = rule.front_entries > 0;
        Self {
            shape,
            placement: rule.placement,
            hasher: KeyHasher::new(seed),
            front: has_front.then(|| Front::new(rule.front_entries, shape.stages)),
            loads: vec![0; SUBTABLES * shape.buckets],
        }
    }

    fn buckets(&mut self, flow: u64) -> [usize; SUBTABLES] {
        match &mut self.front {
            None => self.placement.buckets(self.shape, &self.hasher, flow),
            Some(front) => {
                let entry = draw(&self.hasher, flow, 4, front.stages.len());
                let stage = front.stage(entry);
                self.shape.in_stages(&self.hasher, flow, [stage; SUBTABLES])
            }
        }
    }

    /// Puts a flow into the emptier bucket, or into the left one on a tie. Returns whether there
    /// was room.
    fn put(&mut self, flow: u64) -> bool {
        let [left, right] = self.buckets(flow);
        let emptier = if self.loads[right] < self.loads[left] {
            right
        } else {
            left
        };
        let load = &mut self.loads[emptier];
        let has_room = *load < self.shape.slots;
        *load += usize::from(has_room);
        has_room
    }
}

/// The share of slots in use when a flow first finds both of its buckets full.
pub(crate) fn first_overflow(shape: Shape, rule: Rule, seed: u64) -> f64 {
    let mut loads = Loads::new(shape, rule, seed);
    let placed = (0..).take_while(|flow| loads.put(*flow)).count();
    placed as f64 / shape.all_slots() as f64
}

/// The used slots of every bucket after `flows` flows.
pub(crate) fn filled(shape: Shape, rule: Rule, flows: u64, seed: u64) -> Vec<usize> {
    let mut loads = Loads::new(shape, rule, seed);
    for flow in 0..flows {
        loads.put(flow);
    }
    loads.loads
}

/// Mean and variance of some numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) mean: f64,
    pub(crate) variance: f64,
}

impl Spread {
    pub(crate) fn of(numbers: &[f64]) -> Self {
        let count = numbers.len() as f64;
        let mean = numbers.iter().sum::<f64>() / count;
        let squares = numbers.iter().map(|number| (number - mean).powi(2));
        Self {
            mean,
            variance: squares.sum::<f64>() / count,
        }
    }

    /// Mean and variance of the used slots over stages.
    pub(crate) fn over_stages(shape: Shape, buckets: &[usize]) -> Self {
        let stages: Vec<f64> = of_stages(shape, buckets)
            .iter()
            .map(|loads| loads.iter().sum())
            .collect();
        Self::of(&stages)
    }
}

/// The loads of the buckets, by stage.
pub(crate) fn of_stages(shape: Shape, buckets: &[usize]) -> Vec<Vec<f64>> {
    let mut stages = vec![Vec::new(); shape.stages];
    for (bucket, load) in buckets.iter().enumerate() {
        stages[shape.stage(bucket)].push(*load as f64);
    }
    stages
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOWS: u64 = 10_000;

    fn mean_variance(rule: Rule, seeds: u64) -> f64 {
        let shape = Shape::of_paper(8);
        let variances = (0..seeds).map(|seed| {
            let spread = Spread::over_stages(shape, &filled(shape, rule, FLOWS, seed));
            assert_eq!(spread.mean, 1_250.0);
            spread.variance
        });
        variances.sum::<f64>() / seeds as f64
    }

    #[test]
    fn both_buckets_in_one_stage_fill_to_0_77_before_a_flow_finds_none() {
        let shape = Shape::of_paper(8);
        for placement in [Placement::Anywhere, Placement::OneStage] {
            let seeds = 10;
            let loads = (0..seeds).map(|seed| first_overflow(shape, Rule::of(placement), seed));
            let mean = loads.sum::<f64>() / seeds as f64;
            assert!((0.77..0.81).contains(&mean), "{placement:?}: {mean}");
        }
    }

    /// If a hash picks the stage, its load has the variance of the binomial distribution. D-left
    /// choice over all stages evens it out, and so does the table in front of the line.
    #[test]
    fn stages_have_equal_means_and_a_hash_spreads_flows_over_them_binomially() {
        let ours = mean_variance(Rule::of(Placement::OneStage), 20);
        let processor = mean_variance(Rule::of(Placement::Anywhere), 20);
        let binomial = 10_000.0 / 8.0 * 7.0 / 8.0;
        assert!((0.7..1.3).contains(&(ours / binomial)), "{ours}");
        assert!(processor < 0.5 * binomial, "{processor}");
    }

    /// The table has more entries than there are flows, so few flows share an entry.
    #[test]
    fn a_table_in_front_of_the_line_evens_stages_out() {
        let processor = mean_variance(Rule::of(Placement::Anywhere), 20);
        let front = mean_variance(Rule::front(16_384), 20);
        assert!(front < 2.0 * processor, "{front}");
    }

    /// The other reading of Figure 10: the loads of the buckets within a stage.
    #[test]
    fn buckets_of_a_stage_are_as_evenly_filled_as_anywhere() {
        let shape = Shape::of_paper(8);
        let within = |placement| {
            let filled = filled(shape, Rule::of(placement), FLOWS, 1);
            of_stages(shape, &filled)
                .iter()
                .map(|loads| Spread::of(loads).variance)
                .sum::<f64>()
        };
        let ratio = within(Placement::OneStage) / within(Placement::Anywhere);
        assert!((0.8..1.25).contains(&ratio), "{ratio}");
    }
}
