// SPDX-License-Identifier: Apache-2.0
//! How the further features of two records merge.

use std::sync::Arc;

use super::gap::GapWords;
use super::lanes::LaneMasks;
use super::words::{Class, Content, Side, What, Words};

/// The merge program of a layout: a handful of loops over contiguous words, never a look at
/// features.
///
/// Merging is associative, and gives the state that one pass over all packets gives.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    ends: Ends,
    lists: Arc<[ListWords]>,
    gaps: Arc<[GapWords]>,
    /// Where the processor can merge 8 words at once.
    lanes: Option<Arc<[LaneMasks]>>,
}

/// Where the words of each class end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ends {
    pub(super) add: u32,
    pub(super) min: u32,
    pub(super) or: u32,
    pub(super) first: u32,
    pub(super) last: u32,
    /// Even: pairs lie in one lane.
    pub(super) wide_start: u32,
    pub(super) wide: u32,
}

/// A list: its count, and room for `k` values.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListWords {
    start: u16,
    k: u16,
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
            wide_start: words.end_of(Class::Last).next_multiple_of(2) as u32,
            wide: end_of(Class::Wide),
        };
        let lists = words.contents().iter().filter_map(ListWords::new).collect();
        let sides = [Side::Both, Side::Forward, Side::Reverse];
        let gaps = sides
            .into_iter()
            .filter_map(|side| GapWords::new(words, side))
            .collect();
        Self {
            ends,
            lists,
            gaps,
            lanes: LaneMasks::of(&ends),
        }
    }

    /// The same plan, without the instructions that only some processors have.
    #[cfg(test)]
    pub(super) fn portable(&self) -> Self {
        Self {
            lanes: None,
            ..self.clone()
        }
    }

    /// Folds the state of a record whose packets arrived later into `earlier`.
    #[inline]
    pub fn merge<const N: usize>(&self, earlier: &mut [u64; N], later: &[u64; N]) {
        match &*self.gaps {
            [] => self.merge_words(earlier, later),
            [gap] => self.merge_with_gap(gap, earlier, later),
            gaps => {
                for gap in gaps {
                    if let Some(gap_ns) = gap.where_they_meet(earlier, later) {
                        gap.fold_in_order(earlier, gap_ns);
                        gap.fold(earlier, gap_ns);
                    }
                }
                self.merge_words(earlier, later);
            }
        }
    }

    /// Writes little before [`Plan::merge_words`]: it reads 8 words at once, and must wait for any
    /// of them that was written alone just before.
    #[inline(always)]
    fn merge_with_gap<const N: usize>(
        &self,
        gap: &GapWords,
        earlier: &mut [u64; N],
        later: &[u64; N],
    ) {
        let gap_ns = gap.where_they_meet(earlier, later);
        if let Some(gap_ns) = gap_ns {
            gap.fold_in_order(earlier, gap_ns);
        }
        self.merge_words(earlier, later);
        if let Some(gap_ns) = gap_ns {
            gap.fold(earlier, gap_ns);
        }
    }

    #[inline(always)]
    fn merge_words<const N: usize>(&self, earlier: &mut [u64; N], later: &[u64; N]) {
        match &self.lanes {
            Some(lanes) => LaneMasks::merge(lanes, earlier, later),
            None => self.merge_ranges(earlier, later),
        }
        for list in self.lists.iter() {
            list.append(earlier, later);
        }
    }

    /// Merges all words but lists.
    fn merge_ranges<const N: usize>(&self, earlier: &mut [u64; N], later: &[u64; N]) {
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
    }
}

/// Folds the words from `start` to `end`.
#[inline(always)]
fn each<const N: usize>(
    earlier: &mut [u64; N],
    later: &[u64; N],
    start: u32,
    end: u32,
    fold: impl Fn(u64, u64) -> u64,
) {
    let end = (end as usize).min(N);
    for word in start as usize..end {
        earlier[word] = fold(earlier[word], later[word]);
    }
}

#[inline(always)]
pub(super) fn read_wide(words: &[u64], word: usize) -> u128 {
    u128::from(words[word]) | u128::from(words[word + 1]) << 64
}

/// Saturates, which is as associative as addition and tells a sum that left 128 bits.
#[inline(always)]
pub(super) fn add_wide(words: &mut [u64], word: usize, value: u128) {
    let sum = read_wide(words, word).saturating_add(value);
    words[word] = sum as u64;
    words[word + 1] = (sum >> 64) as u64;
}

impl ListWords {
    pub(super) fn new(content: &Content) -> Option<Self> {
        match content.what {
            What::List(k) => Some(Self {
                start: content.start as u16,
                k: k as u16,
            }),
            _ => None,
        }
    }

    #[inline(always)]
    pub(super) const fn at(start: u16, k: u16) -> Self {
        Self { start, k }
    }

    /// Appends the list of `later`, as far as there is room.
    #[inline(always)]
    fn append<const N: usize>(self, earlier: &mut [u64; N], later: &[u64; N]) {
        let (start, k) = (self.start as usize, self.k as usize);
        let kept = earlier[start] as usize;
        if kept >= k {
            return;
        }
        let taken = (later[start] as usize).min(k - kept);
        for index in 0..taken {
            earlier[start + 1 + kept + index] = later[start + 1 + index];
        }
        earlier[start] = (kept + taken) as u64;
    }

    /// Appends one value, if there is room.
    #[inline(always)]
    pub(super) fn push(self, words: &mut [u64], value: u64) {
        let start = self.start as usize;
        let kept = words[start] as usize;
        if kept < self.k as usize {
            words[start + 1 + kept] = value;
            words[start] += 1;
        }
    }
}
