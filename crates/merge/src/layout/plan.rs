// SPDX-License-Identifier: Apache-2.0
//! Merges the further features of two records.

#[cfg(target_arch = "x86_64")]
use std::mem::MaybeUninit;
use std::sync::Arc;

#[cfg(target_arch = "x86_64")]
use super::blocks::{BlockLanes, BoundaryGap, GapMeasurement};
use super::gap::GapWords;
#[cfg(target_arch = "x86_64")]
use super::pair::{PAIRS, Pair};
use super::two_way::{self, TWO_WAY_WORDS};
use super::words::{BLOCK, Class, Ends, ListWords, MAX_GAPS, Side, Words, add_wide, read_wide};
use crate::{Base, MicroflowRecord};

/// The merge program of a layout: a few loops over contiguous words, which never look at features.
///
/// Merging is associative. It gives the state that results from one pass over all packets.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Size of a state in words; whole cache lines.
    state_words: usize,
    ends: Ends,
    masks: Arc<[Masks]>,
    #[cfg(target_arch = "x86_64")]
    lanes: Arc<[BlockLanes]>,
    #[cfg(target_arch = "x86_64")]
    measurement: GapMeasurement,
    lists: Arc<[ListWords]>,
    gaps: Arc<[GapWords]>,
    /// Whether records have the two-way form. Then none of the fields above apply.
    is_two_way: bool,
}

/// The words of a block that belong to each class, as masks: all ones, or 0.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
struct Masks {
    add: [u64; BLOCK],
    min: [u64; BLOCK],
    or: [u64; BLOCK],
    first: [u64; BLOCK],
    last: [u64; BLOCK],
}

impl Plan {
    pub(super) fn new(words: &Words) -> Self {
        let end_of = |class| words.end_of(class) as u32;
        let ends = Ends {
            add: end_of(Class::Add),
            min: end_of(Class::Min),
            or: end_of(Class::Or),
            first: end_of(Class::First),
            last: end_of(Class::Last),
            wide_start: words.wide_start() as u32,
            wide: end_of(Class::Wide),
        };
        let lists = words.contents().iter().filter_map(ListWords::new).collect();
        let sides = [Side::Both, Side::Forward, Side::Reverse];
        let gaps: Arc<[GapWords]> = sides
            .into_iter()
            .filter_map(|side| GapWords::new(words, side))
            .collect();
        Self {
            state_words: words.count().next_multiple_of(BLOCK),
            ends,
            masks: masks(&ends),
            #[cfg(target_arch = "x86_64")]
            lanes: BlockLanes::of(&ends, &gaps).into(),
            #[cfg(target_arch = "x86_64")]
            measurement: GapMeasurement::of(&gaps),
            lists,
            gaps,
            is_two_way: false,
        }
    }

    /// The plan of records in the two-way form.
    pub(super) fn of_two_way() -> Self {
        Self {
            state_words: TWO_WAY_WORDS,
            is_two_way: true,
            ..Self::default()
        }
    }

    /// Whether records have the two-way form.
    #[inline(always)]
    #[must_use]
    pub const fn is_two_way<const N: usize>(&self) -> bool {
        // The constant comes first, so that code for other records has no branch.
        N == TWO_WAY_WORDS && self.is_two_way
    }

    /// Whether the state of a record with this base is in use.
    #[inline(always)]
    #[must_use]
    pub const fn has_state<const N: usize>(&self, base: &Base) -> bool {
        !self.is_two_way::<N>() || base.has_other != 0
    }

    /// Merges a record whose packets arrived later into a record whose parts may be stored apart.
    #[inline(always)]
    pub fn merge_apart<const K: usize, const N: usize>(
        &self,
        base: &mut Base,
        state: &mut [u64; N],
        later: &MicroflowRecord<K, N>,
    ) {
        if self.is_two_way::<N>() {
            return two_way::merge(base, state, later);
        }
        debug_assert!(
            !self.is_two_way,
            "records of the two-way form have its size"
        );
        base.merge(&later.base);
        if N > 0 {
            self.merge(state, &later.state);
        }
    }

    /// Whether states of `N` words are large enough for this plan, which merges whole cache lines.
    #[inline(always)]
    pub(crate) const fn fits<const N: usize>(&self) -> bool {
        self.state_words <= N && (!self.is_two_way || N == TWO_WAY_WORDS)
    }

    /// [`Plan::merge`] for every pair in turn, compiled for AVX-512.
    ///
    /// # Safety
    /// The plan [`fits`](Self::fits) `N` words, and so do the states of all pairs. The states are
    /// not accessed elsewhere during the call.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) unsafe fn merge_avx512<const N: usize>(&self, proof: crate::Avx512, pairs: &[Pair]) {
        // SAFETY: as required of the caller.
        unsafe {
            assert!(pairs.len() <= PAIRS);
            match self.measurement {
                GapMeasurement::Single => {
                    let mut met = MaybeUninit::<[BoundaryGap; PAIRS]>::uninit();
                    self.fold_pairs::<N>(proof, pairs, met.as_mut_ptr().cast());
                }
                GapMeasurement::Several => {
                    let mut met = MaybeUninit::<[[BoundaryGap; MAX_GAPS]; PAIRS]>::uninit();
                    self.fold_pairs::<N>(proof, pairs, met.as_mut_ptr().cast());
                }
                // Each pair's gaps are measured before the next pair merges.
                GapMeasurement::Upfront => pairs.iter().for_each(|pair| {
                    let earlier = &mut *pair.flow.cast::<[u64; N]>();
                    let later = &*pair.later.cast::<[u64; N]>();
                    let mut met = [BoundaryGap::NONE; MAX_GAPS];
                    for (met, gap) in met.iter_mut().zip(self.gaps.iter()) {
                        if let Some(gap_ns) = gap.meet(earlier, later) {
                            *met = BoundaryGap::new(gap_ns);
                        }
                    }
                    let pair = std::slice::from_ref(pair);
                    self.fold_pairs::<N>(proof, pair, met.as_mut_ptr());
                }),
            }
        }
    }

    /// # Safety
    /// See [`Self::merge_avx512`]. In addition, there must be room for the gaps of every pair.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn fold_pairs<const N: usize>(
        &self,
        proof: crate::Avx512,
        pairs: &[Pair],
        gaps: *mut BoundaryGap,
    ) {
        // SAFETY: as required of the caller.
        unsafe {
            for lanes in self.lanes.iter() {
                lanes.fold(proof, pairs, gaps);
            }
            for list in self.lists.iter() {
                for pair in pairs {
                    // Most lists are full.
                    if *pair.flow.add(usize::from(list.start)) < u64::from(list.k) {
                        let earlier = &mut *pair.flow.cast::<[u64; N]>();
                        list.append(earlier, &*pair.later.cast::<[u64; N]>());
                    }
                }
            }
        }
    }

    /// [`Plan::merge`], eight words of any class at a time. This is faster than [`Plan::merge`] in
    /// code compiled for wide vectors, and slower otherwise.
    #[inline(always)]
    pub(crate) fn merge_in_blocks<const N: usize>(&self, earlier: &mut [u64; N], later: &[u64; N]) {
        // Gaps are measured before the times are merged. Where the order allows it, they are folded
        // in afterwards: a store to a word just before its cache line is loaded as a vector would
        // stall.
        let mut lengths_ns = [None; MAX_GAPS];
        for (length_ns, gap) in lengths_ns.iter_mut().zip(self.gaps.iter()) {
            *length_ns = gap.between(earlier, later);
            if let Some(length_ns) = *length_ns {
                gap.fold_ordered(earlier, length_ns);
            }
        }
        let blocks = earlier
            .as_chunks_mut::<BLOCK>()
            .0
            .iter_mut()
            .zip(later.as_chunks().0);
        for ((earlier, later), masks) in blocks.zip(self.masks.iter()) {
            masks.fold(earlier, later);
        }
        for (length_ns, gap) in lengths_ns.iter().zip(self.gaps.iter()) {
            if let Some(length_ns) = *length_ns {
                gap.fold_extremes_and_sums(earlier, length_ns);
            }
        }
        self.merge_wide_and_lists(earlier, later);
    }

    /// Merges the state of a record whose packets arrived later into `earlier`.
    #[inline]
    pub fn merge<const N: usize>(&self, earlier: &mut [u64; N], later: &[u64; N]) {
        for gap in self.gaps.iter() {
            if let Some(length_ns) = gap.between(earlier, later) {
                gap.fold(earlier, length_ns);
            }
        }
        let ends = self.ends;
        each(earlier, later, 0, ends.add, |a, b| a.wrapping_add(b));
        each(earlier, later, ends.add, ends.min, u64::min);
        each(earlier, later, ends.min, ends.or, |a, b| a | b);
        each(earlier, later, ends.or, ends.first, |a, b| {
            if a == 0 { b } else { a }
        });
        each(earlier, later, ends.first, ends.last, |a, b| {
            if b == 0 { a } else { b }
        });
        self.merge_wide_and_lists(earlier, later);
    }

    #[inline(always)]
    fn merge_wide_and_lists<const N: usize>(&self, earlier: &mut [u64; N], later: &[u64; N]) {
        let mut word = self.ends.wide_start as usize;
        while word < self.ends.wide as usize {
            add_wide(earlier, word, read_wide(later, word));
            word += 2;
        }
        for list in self.lists.iter() {
            list.append(earlier, later);
        }
    }
}

/// The masks of all blocks, except wide sums and lists.
fn masks(ends: &Ends) -> Arc<[Masks]> {
    let mut blocks = vec![Masks::default(); (ends.last as usize).div_ceil(BLOCK)];
    let mut start = 0;
    type LanesOf = fn(&mut Masks) -> &mut [u64; BLOCK];
    let classes: [(u32, LanesOf); 5] = [
        (ends.add, |masks| &mut masks.add),
        (ends.min, |masks| &mut masks.min),
        (ends.or, |masks| &mut masks.or),
        (ends.first, |masks| &mut masks.first),
        (ends.last, |masks| &mut masks.last),
    ];
    for (end, lanes) in classes {
        for word in start as usize..end as usize {
            lanes(&mut blocks[word / BLOCK])[word % BLOCK] = u64::MAX;
        }
        start = end;
    }
    blocks.into()
}

impl Masks {
    /// Every lane computes the result of each class and selects its own. Words without a class do
    /// not change. There is no branch, so that the compiler uses vectors.
    #[inline(always)]
    fn fold(&self, earlier: &mut [u64; BLOCK], later: &[u64; BLOCK]) {
        for lane in 0..BLOCK {
            let (a, b) = (earlier[lane], later[lane]);
            let mut word = a.wrapping_add(b & self.add[lane]);
            word ^= (word ^ a.min(b)) & self.min[lane];
            word |= b & self.or[lane];
            word |= if a == 0 { b & self.first[lane] } else { 0 };
            word ^= if b == 0 {
                0
            } else {
                (word ^ b) & self.last[lane]
            };
            earlier[lane] = word;
        }
    }
}

/// Merges the words from `start` to `end`.
#[inline(always)]
fn each<const N: usize>(
    earlier: &mut [u64; N],
    later: &[u64; N],
    start: u32,
    end: u32,
    fold: impl Fn(u64, u64) -> u64,
) {
    for word in start as usize..(end as usize).min(N) {
        earlier[word] = fold(earlier[word], later[word]);
    }
}
