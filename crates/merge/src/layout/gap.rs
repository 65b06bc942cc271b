// SPDX-License-Identifier: Apache-2.0
//! Gaps between runs of packets. A gap is known, and folded in, only when two records merge.

use super::program::Edges;
use super::words::{Content, ListWords, Side, StateContent, Words, add_wide, encode_max};
use turboflow_record::Input;

/// Marks an absent word.
pub(super) const NONE: u16 = u16::MAX;

/// The words into which gaps between packets of one side are folded. A side has at most one word of
/// each kind, because features share them.
#[derive(Clone, Debug)]
pub(super) struct GapWords {
    /// The word with the time of the packet that arrived first.
    pub(super) first_arrival: u16,
    /// The word with the time of the packet that arrived last.
    pub(super) last_arrival: u16,
    pub(super) min: u16,
    pub(super) max: u16,
    pub(super) wide_sum: u16,
    pub(super) wide_squares: u16,
    /// Whether the side covers all packets.
    #[cfg(target_arch = "x86_64")]
    of_all: bool,
    rare: Option<Box<RareGapWords>>,
}

/// Words that few definitions need.
#[derive(Clone, Debug)]
struct RareGapWords {
    sum: u16,
    or: u16,
    first: u16,
    last: u16,
    list: Option<ListWords>,
    bins: Vec<(u16, Edges)>,
}

impl GapWords {
    /// `None` if no feature uses gaps of `side`.
    pub(super) fn new(words: &Words, side: Side) -> Option<Self> {
        let of_side = |input| {
            let of = Some(input);
            words
                .contents()
                .iter()
                .filter(move |content| content.side == side && content.of == of)
        };
        let start = |content: &Content| content.start as u16;
        let word = |input, what: StateContent| {
            of_side(input)
                .find(|content| content.what == what)
                .map_or(NONE, start)
        };
        of_side(Input::Gap).next()?;
        let rare = RareGapWords {
            sum: word(Input::Gap, StateContent::Sum),
            or: word(Input::Gap, StateContent::BitOr),
            first: word(Input::Gap, StateContent::First),
            last: word(Input::Gap, StateContent::Last),
            list: of_side(Input::Gap).find_map(ListWords::new),
            bins: of_side(Input::Gap).filter_map(bins).collect(),
        };
        Some(Self {
            first_arrival: word(Input::Timestamp, StateContent::First),
            last_arrival: word(Input::Timestamp, StateContent::Last),
            min: word(Input::Gap, StateContent::Min),
            max: word(Input::Gap, StateContent::Max),
            wide_sum: word(Input::Gap, StateContent::WideSum),
            wide_squares: word(Input::Gap, StateContent::WideSquares),
            #[cfg(target_arch = "x86_64")]
            of_all: side == Side::Both,
            rare: (!rare.is_empty()).then(|| Box::new(rare)),
        })
    }

    /// The gap between the last packet of `earlier` and the first of `later`, if both exist.
    #[inline(always)]
    pub(super) fn between<const N: usize>(
        &self,
        earlier: &[u64; N],
        later: &[u64; N],
    ) -> Option<u64> {
        let after = later[self.first_arrival as usize];
        let before = earlier[self.last_arrival as usize];
        (before != 0 && after != 0).then(|| after.saturating_sub(before))
    }

    /// Returns the gap of [`GapWords::between`], and also folds it into the words of `earlier` for
    /// which order matters.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn meet<const N: usize>(
        &self,
        earlier: &mut [u64; N],
        later: &[u64; N],
    ) -> Option<u64> {
        let gap = self.between(earlier, later);
        if let (Some(_), Some(gap_ns)) = (&self.rare, gap) {
            self.fold_ordered(earlier, gap_ns);
        }
        gap
    }

    /// Whether these are the gaps between all packets, which exist in every merge.
    #[cfg(target_arch = "x86_64")]
    pub(super) const fn is_of_all(&self) -> bool {
        self.of_all
    }

    /// Whether the order of gaps matters to a feature.
    #[cfg(target_arch = "x86_64")]
    pub(super) const fn is_ordered(&self) -> bool {
        self.rare.is_some()
    }

    /// Folds in a gap, which comes after all gaps of `earlier`.
    #[inline(always)]
    pub(super) fn fold<const N: usize>(&self, earlier: &mut [u64; N], gap: u64) {
        self.fold_ordered(earlier, gap);
        self.fold_extremes_and_sums(earlier, gap);
    }

    /// Folds a gap into first, last and lists. This must happen before the gaps of the later record
    /// are merged.
    #[inline(always)]
    pub(super) fn fold_ordered<const N: usize>(&self, earlier: &mut [u64; N], gap: u64) {
        if let Some(rare) = &self.rare {
            rare.fold(earlier, gap);
        }
    }

    /// Folds a gap into the words for which order does not matter.
    #[inline(always)]
    pub(super) fn fold_extremes_and_sums<const N: usize>(&self, earlier: &mut [u64; N], gap: u64) {
        // An absent word is beyond the end of any state.
        if let Some(min) = earlier.get_mut(self.min as usize) {
            *min = gap.min(*min);
        }
        if let Some(max) = earlier.get_mut(self.max as usize) {
            *max = encode_max(gap).min(*max);
        }
        if self.wide_sum != NONE {
            add_wide(earlier, self.wide_sum as usize, u128::from(gap));
        }
        if self.wide_squares != NONE {
            add_wide(
                earlier,
                self.wide_squares as usize,
                u128::from(gap) * u128::from(gap),
            );
        }
    }
}

fn bins(content: &Content) -> Option<(u16, Edges)> {
    Some((content.start as u16, Edges::of(content)?))
}

impl RareGapWords {
    fn is_empty(&self) -> bool {
        let words = [self.sum, self.or, self.first, self.last];
        words == [NONE; 4] && self.list.is_none() && self.bins.is_empty()
    }

    fn fold(&self, words: &mut [u64], gap: u64) {
        if let Some(sum) = words.get_mut(self.sum as usize) {
            *sum = sum.wrapping_add(gap);
        }
        if let Some(or) = words.get_mut(self.or as usize) {
            *or |= gap;
        }
        if let Some(first) = words.get_mut(self.first as usize) {
            *first = if *first == 0 { gap + 1 } else { *first };
        }
        if let Some(last) = words.get_mut(self.last as usize) {
            *last = gap + 1;
        }
        if let Some(list) = self.list {
            list.push(words, gap);
        }
        for (start, edges) in &self.bins {
            words[*start as usize + edges.bin_of(gap)] += 1;
        }
    }
}
