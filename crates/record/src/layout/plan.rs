// SPDX-License-Identifier: Apache-2.0
//! How the further features of two records merge.

use std::sync::Arc;

use super::gap::GapWords;
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
}

/// Where the words of each class end.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    add: u32,
    min: u32,
    or: u32,
    first: u32,
    last: u32,
    wide: u32,
}

/// A list: its count, and room for `k` values.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListWords {
    pub(super) start: u16,
    pub(super) k: u16,
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
            wide: end_of(Class::Wide),
        };
        let lists = words.contents().iter().filter_map(ListWords::new).collect();
        let sides = [Side::Both, Side::Forward, Side::Reverse];
        let gaps = sides
            .into_iter()
            .filter_map(|side| GapWords::new(words, side))
            .collect();
        Self { ends, lists, gaps }
    }

    /// Folds the state of a record whose packets arrived later into `earlier`.
    #[inline]
    pub fn merge<const N: usize>(&self, earlier: &mut [u64; N], later: &[u64; N]) {
        for gap in self.gaps.iter() {
            gap.join(earlier, later);
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
        let mut word = ends.last as usize;
        while word < ends.wide as usize {
            add_wide(earlier, word, read_wide(later, word));
            word += 2;
        }
        for list in self.lists.iter() {
            list.append(earlier, later);
        }
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
    for word in start as usize..(end as usize).min(N) {
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
