// SPDX-License-Identifier: Apache-2.0
//! Pairs of records whose further words have not merged yet. These words are merged for many pairs
//! together, so that the plan is looked up once for all of them.

use crate::layout::pair::{PAIRS, Pair};
use crate::layout::two_way;
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

    /// Merges `later` into a flow, if the keys are equal and the gate passes it. Returns whether it
    /// merged the record. In the two-way form, further words are merged as well. Otherwise they are
    /// merged later, together with those of all other pairs.
    ///
    /// `flow` and its further words, `state`, may be stored apart.
    ///
    /// # Panics
    /// If [`Self::ROOM`] pairs are pending.
    ///
    /// # Safety
    /// As for [`PendingStates::push`]. Flow and state are valid, and no other reference to them
    /// lives during the call.
    #[inline(always)]
    pub unsafe fn merge_if_passes<V: Vectors, const K: usize, const M: usize>(
        &mut self,
        vectors: V,
        plan: &Plan,
        gate: &V::Gate,
        flow: *mut MicroflowRecord<K, M>,
        state: *mut [u64; N],
        later: &MicroflowRecord<K, N>,
    ) -> bool {
        // SAFETY: the caller ensures that flow and state are valid, and not referred to elsewhere.
        // The state may be part of the flow: each reference is to one of its fields, or is the only
        // one to the whole flow.
        let passes = unsafe {
            let base = &raw mut (*flow).base;
            if plan.is_two_way::<N>() && !(*base).is_of_one_direction_with(&later.base) {
                let passes = vectors.same_key(&(*flow).key, &later.key)
                    && gate.as_ref().passes(&*base, &later.base);
                if passes {
                    two_way::merge(&mut *base, &mut *state, later);
                }
                return passes;
            }
            vectors.merge_if_passes(gate, &mut *flow, later)
        };
        if passes && !plan.is_two_way::<N>() {
            // SAFETY: as required of the caller.
            unsafe { self.push(state, &raw const later.state) };
        }
        passes
    }

    /// Merges `later`, which did not begin earlier, into a record of the same flow. Further words
    /// are merged later, unless records have the two-way form.
    ///
    /// # Panics
    /// If [`Self::ROOM`] pairs are pending.
    ///
    /// # Safety
    /// As for [`PendingStates::push`]. The flow is valid, and no other reference to it lives during
    /// the call.
    #[inline(always)]
    pub unsafe fn merge_in_order<V: Vectors, const K: usize>(
        &mut self,
        vectors: V,
        plan: &Plan,
        flow: *mut MicroflowRecord<K, N>,
        later: &MicroflowRecord<K, N>,
    ) {
        // SAFETY: as required of the caller.
        unsafe {
            if plan.is_two_way::<N>() {
                return (*flow).merge(later, plan);
            }
            vectors.merge_in_order(&mut (*flow).base, &later.base);
            self.push(&raw mut (*flow).state, &raw const later.state);
        }
    }

    /// Registers the state of a later record to be merged into that of a flow, after all earlier
    /// pairs.
    ///
    /// This never merges, even if no room is left: a call to such a large function would make the
    /// compiler keep everything else in the caller's loop out of registers.
    ///
    /// # Panics
    /// If [`Self::ROOM`] pairs are pending.
    ///
    /// # Safety
    /// The caller must call [`PendingStates::merge`]. Until then both states stay in place, they
    /// are not changed, and the flow's is not read. `later` is not the state of a pending pair's
    /// flow.
    #[inline(always)]
    pub unsafe fn push(&mut self, flow: *mut [u64; N], later: *const [u64; N]) {
        if N == 0 {
            return;
        }
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
        unsafe { pending.push(&raw mut flow.state, &raw const later.state) };
        pending.merge(Plain, layout.plan());
    }
}
