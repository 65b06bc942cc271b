// SPDX-License-Identifier: Apache-2.0
//! Pairs of records that have merged but for their further words, which follow many pairs at a time: what a plan has to look up
//! is then looked up once for all of them.

use crate::{MicroflowRecord, Plan, Vectors};

/// Most pairs that wait: few enough that, in records of ordinary size, their lines stay in the first-level cache.
pub(crate) const PAIRS: usize = 32;

/// The states of a flow's record and of a later one.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    pub(crate) flow: *mut u64,
    pub(crate) later: *const u64,
}

/// Pairs of records with `N` further words each, which are yet to merge.
#[derive(Debug)]
pub struct PendingStates<const N: usize> {
    pairs: [Pair; PAIRS],
    count: usize,
}

impl<const N: usize> Default for PendingStates<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> PendingStates<N> {
    /// None.
    #[must_use]
    pub const fn new() -> Self {
        const NONE: Pair = Pair {
            flow: std::ptr::null_mut(),
            later: std::ptr::null(),
        };
        Self {
            pairs: [NONE; PAIRS],
            count: 0,
        }
    }

    /// How many pairs can wait: any number where records have no further words.
    pub const ROOM: usize = if N == 0 { usize::MAX } else { PAIRS };

    /// Takes note that the state of `later` shall go into that of `flow`, after those that were noted before.
    ///
    /// It does not merge, however many wait: with a call of that size in it, a compiler keeps nothing else of a loop in registers.
    ///
    /// # Panics
    /// Where [`Self::ROOM`] pairs wait.
    ///
    /// # Safety
    /// Until [`PendingStates::merge`], which has to come, both records stay where they are, and nobody else changes their states
    /// or reads the flow's; `later` is not the flow of any pair that waits.
    #[inline(always)]
    pub unsafe fn push<const K: usize>(
        &mut self,
        flow: *mut MicroflowRecord<K, N>,
        later: *const MicroflowRecord<K, N>,
    ) {
        if N == 0 {
            return;
        }
        // SAFETY: the caller says that the records are there.
        let (flow, later) = unsafe { (&raw mut (*flow).state, &raw const (*later).state) };
        self.pairs[self.count] = Pair {
            flow: flow.cast(),
            later: later.cast(),
        };
        self.count += 1;
    }

    /// How many more can wait.
    #[inline(always)]
    #[must_use]
    pub const fn room(&self) -> usize {
        Self::ROOM - self.count
    }

    /// Merges all that wait.
    ///
    /// # Panics
    /// When the plan is of larger records.
    #[inline(always)]
    pub fn merge<V: Vectors>(&mut self, vectors: V, plan: &Plan) {
        let pairs = self.pairs.get(..self.count).unwrap_or_default();
        self.count = 0;
        if N > 0 && !pairs.is_empty() {
            assert!(plan.fits::<N>(), "the plan is that of the records");
            // SAFETY: whoever noted them vouches for the states, which are `N` words each; the plan goes no further.
            unsafe { vectors.merge_states::<N>(plan, pairs) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, Plain};
    use turboflow_record::{Definition, Op};

    #[test]
    #[should_panic(expected = "the plan is that of the records")]
    fn a_plan_of_larger_records_is_refused() {
        let mut definition = Definition::default();
        let mut list = definition.features[0].clone();
        list.name = "lengths".to_owned();
        (list.op, list.of) = (
            Op::List { k: 20 },
            Some(turboflow_record::Input::FrameLength),
        );
        definition.features.push(list);
        let layout = Layout::compile(&definition, false).expect("a list of 20 fits");
        let mut flow = MicroflowRecord::<2, 8>::default();
        let later = flow;
        let mut pending = PendingStates::new();
        // SAFETY: both live until the merge.
        unsafe { pending.push(&raw mut flow, &raw const later) };
        pending.merge(Plain, layout.plan());
    }
}
