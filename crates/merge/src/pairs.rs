// SPDX-License-Identifier: Apache-2.0
//! Pairs of records whose further words have not merged yet. These words are merged for many pairs
//! together, so that the plan is looked up once for all of them.

use crate::layout::pair::{PAIRS, Pair};
use crate::{MicroflowRecord, Plan, Vectors};

/// Pairs of records, with `N` further words each, that are still to be merged.
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
    /// No pairs.
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

    /// How many pairs fit. Unlimited if records have no further words.
    pub const ROOM: usize = if N == 0 { usize::MAX } else { PAIRS };

    /// Registers the state of `later` to be merged into that of `flow`, after all earlier pairs.
    ///
    /// It does not merge, even if it is full: a call to such a large function would make the
    /// compiler keep everything else in the caller's loop out of registers.
    ///
    /// # Panics
    /// If [`Self::ROOM`] pairs are pending.
    ///
    /// # Safety
    /// The caller must call [`PendingStates::merge`]. Until then both records stay in place, their
    /// states are not changed, and the flow's state is not read. `later` is not the flow of a
    /// pending pair.
    #[inline(always)]
    pub unsafe fn push<const K: usize>(
        &mut self,
        flow: *mut MicroflowRecord<K, N>,
        later: *const MicroflowRecord<K, N>,
    ) {
        if N == 0 {
            return;
        }
        // SAFETY: the caller ensures that the records are valid.
        let (flow, later) = unsafe { (&raw mut (*flow).state, &raw const (*later).state) };
        self.pairs[self.count] = Pair {
            flow: flow.cast(),
            later: later.cast(),
        };
        self.count += 1;
    }

    /// How many more pairs fit.
    #[inline(always)]
    #[must_use]
    pub const fn room(&self) -> usize {
        Self::ROOM - self.count
    }

    /// Merges all pending pairs.
    ///
    /// # Panics
    /// If the plan is for larger records.
    #[inline(always)]
    pub fn merge<V: Vectors>(&mut self, vectors: V, plan: &Plan) {
        let pairs = self.pairs.get(..self.count).unwrap_or_default();
        self.count = 0;
        if N > 0 && !pairs.is_empty() {
            assert!(plan.fits::<N>(), "the plan must fit the records");
            // SAFETY: the caller of `push` ensured valid states of `N` words each, and the plan
            // fits them.
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
    #[should_panic(expected = "the plan must fit the records")]
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
