// SPDX-License-Identifier: Apache-2.0
//! Folding the states of many pairs of records, eight words of any class at a time, with AVX-512: a mask says which lanes of a
//! cache line belong to which class.
//!
//! Every block of words is folded for all pairs before the next one, by a loop that was compiled for just the classes it has
//! ([`Kind`]): its masks stay in registers, and nothing is decided while it runs.

use std::arch::x86_64::*;

use super::gap::{GapWords, NONE};
use super::plan::{BLOCK, Ends, MAX_GAPS};
use super::words::encode_max;
use crate::Avx512;
use crate::pairs::Pair;

/// Which lanes of eight words belong to which class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lanes {
    add: __mmask8,
    min: __mmask8,
    or: __mmask8,
    first: __mmask8,
    last: __mmask8,
    /// Low words of sums of 128 bits; their high words are the lanes above.
    wide: __mmask8,
    gaps: [GapLanes; MAX_GAPS],
    /// Which eight words they are.
    block: u16,
    /// In the block that gaps are measured with: the words between whose times each of them lies, that of the later record
    /// first.
    arrivals: [[u16; 2]; MAX_GAPS],
    /// The loop that folds them.
    fold: FoldPairs,
}

/// Which lanes a gap goes into.
#[derive(Clone, Copy, Debug, Default)]
struct GapLanes {
    min: __mmask8,
    max: __mmask8,
    /// Low words.
    sum: __mmask8,
    /// Low words.
    squares: __mmask8,
}

/// The lanes of a block with times of the first and of the last of all packets, which every record has. None where gaps are measured
/// otherwise than [`Measuring::Simply`]: [`FOLDS`] has loops that rely on it for one gap a pair only.
fn times_of_all(measuring: Measuring, gaps: &[GapWords], block: usize) -> __mmask8 {
    let word = |word: u16| lanes(block, u32::from(word), u32::from(word) + 1);
    match (measuring, gaps) {
        (Measuring::Simply, [gap]) => word(gap.first_arrival) | word(gap.last_arrival),
        _ => 0,
    }
}

/// A loop over pairs, and the gaps where each of them meets.
type FoldPairs = unsafe fn(&Lanes, &[Pair], *mut MetGap);

/// A bit for each word from `start` to `end` that lies in block number `block`.
fn lanes(block: usize, start: u32, end: u32) -> __mmask8 {
    let inside = |lane: &usize| (start as usize..end as usize).contains(&(block * BLOCK + lane));
    (0..BLOCK)
        .filter(inside)
        .fold(0, |mask, lane| mask | 1 << lane)
}

/// How the gaps where pairs meet get measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Measuring {
    /// There are none, or those between all packets, of which every record has one: on the way, with the block that has the
    /// words they are measured from.
    #[default]
    Simply,
    /// Those of two or three sides, of which a record may have no packet: likewise, and slower.
    WithCare,
    /// Ahead, pair by pair: a feature minds which gap comes first, or the words lie in two blocks.
    Ahead,
}

impl Measuring {
    pub(super) fn of(gaps: &[GapWords]) -> Self {
        let blocks = gaps.iter().map(|gap| usize::from(gap.last_arrival) / BLOCK);
        let in_one_block = blocks.clone().min() == blocks.max();
        let is_ordered = gaps.iter().any(GapWords::is_ordered);
        match gaps {
            _ if is_ordered || !in_one_block => Self::Ahead,
            [] => Self::Simply,
            [gap] if gap.is_of_all() => Self::Simply,
            _ => Self::WithCare,
        }
    }
}

impl Lanes {
    /// The lanes of all blocks whose words merge one by one or in pairs; first the one that gaps are measured with.
    pub(super) fn of(ends: &Ends, gaps: &[GapWords]) -> Box<[Self]> {
        let blocks = (ends.wide as usize).div_ceil(BLOCK);
        let mut all: Vec<Self> = (0..blocks)
            .map(|block| Self::of_block(block, ends, gaps))
            .collect();
        all.sort_by_key(|lanes| !lanes.measures());
        all.into()
    }

    fn of_block(block: usize, ends: &Ends, gaps: &[GapWords]) -> Self {
        const LOW_WORDS: __mmask8 = 0b0101_0101;
        let measuring = Measuring::of(gaps);
        let lanes_of = |gap| GapLanes::of(gap, block);
        let arrivals_of = |gap: &GapWords| match usize::from(gap.last_arrival) / BLOCK == block {
            true if measuring != Measuring::Ahead => [gap.first_arrival, gap.last_arrival],
            _ => [NONE; 2],
        };
        let of_block = Self {
            add: lanes(block, 0, ends.add),
            min: lanes(block, ends.add, ends.min),
            or: lanes(block, ends.min, ends.or),
            first: lanes(block, ends.or, ends.first),
            last: lanes(block, ends.first, ends.last),
            wide: lanes(block, ends.wide_start, ends.wide) & LOW_WORDS,
            gaps: std::array::from_fn(|side| gaps.get(side).map(lanes_of).unwrap_or_default()),
            block: block as u16,
            arrivals: std::array::from_fn(|side| gaps.get(side).map_or([NONE; 2], arrivals_of)),
            fold: FOLDS[0][0],
        };
        let sides = match measuring {
            Measuring::Simply => 1,
            _ => gaps.len().max(2),
        };
        let kind = of_block.kind(times_of_all(measuring, gaps, block));
        let fold = FOLDS[sides - 1][usize::from(kind)];
        Self { fold, ..of_block }
    }

    fn measures(&self) -> bool {
        self.arrivals != [[NONE; 2]; MAX_GAPS]
    }

    /// With the lanes of times that every record has.
    fn kind(&self, times: __mmask8) -> u8 {
        let ends = self.or | self.first | self.last;
        let any_gap =
            |lanes: fn(&GapLanes) -> __mmask8| self.gaps.iter().any(|gap| lanes(gap) != 0);
        let has = |any: bool, kind| if any { kind } else { 0 };
        has(self.min != 0, Kind::MIN)
            | has(ends & !times != 0, Kind::ENDS)
            | has(ends != 0 && ends & !times == 0, Kind::TIMES)
            | has(self.wide != 0, Kind::WIDE)
            | has(any_gap(|gap| gap.min | gap.max), Kind::GAP_EXTREMES)
            | has(any_gap(|gap| gap.sum | gap.squares), Kind::GAP_SUMS)
            | has(self.measures(), Kind::MEASURES)
    }

    /// Folds the block of every pair. Gaps are listed pair by pair: one where they are measured [`Measuring::Simply`], else
    /// two, or [`MAX_GAPS`] where there are as many sides. The first of all blocks writes them, unless they are measured
    /// [`Measuring::Ahead`].
    ///
    /// # Safety
    /// Both states of every pair are there, and nobody else uses them meanwhile; there is room for the gaps.
    #[inline(always)]
    pub(super) unsafe fn fold(&self, _proof: Avx512, pairs: &[Pair], gaps: *mut MetGap) {
        // SAFETY: the caller's; the proof vouches for the vectors.
        unsafe { (self.fold)(self, pairs, gaps) }
    }
}

/// Which classes a block has, besides sums, which any may have.
struct Kind;

impl Kind {
    const MIN: u8 = 1;
    /// OR, first and last.
    const ENDS: u8 = 2;
    const WIDE: u8 = 4;
    const GAP_EXTREMES: u8 = 8;
    const GAP_SUMS: u8 = 16;
    /// Has the time from where gaps are measured. Only as that is folded can it be told: the flow of a later pair may be
    /// that of an earlier one.
    const MEASURES: u8 = 32;
    /// First and last as well, but only times that every record has: there is nothing to look at. Of one gap a pair only.
    const TIMES: u8 = 64;
}

macro_rules! folds {
    ($gaps:literal + $more:expr; $($kind:literal)*) => { [$(fold_pairs::<{ ($kind + $more) as u8 }, $gaps> as FoldPairs),*] };
    ($gaps:literal + $more:expr) => { folds!($gaps + $more;
        0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
        32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63
    ) };
}

/// The loop of every kind, by the number of gaps that a pair has: one where they are measured [`Measuring::Simply`].
static FOLDS: [&[FoldPairs]; MAX_GAPS] = [
    [folds!(1 + 0), folds!(1 + 64)].as_flattened(),
    &folds!(2 + 0),
    &folds!(3 + 0),
];

/// See [`Lanes::fold`].
///
/// # Safety
/// As there; and the machine has AVX-512.
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn fold_pairs<const KIND: u8, const GAPS: usize>(
    lanes: &Lanes,
    pairs: &[Pair],
    gaps: *mut MetGap,
) {
    // Copied, for the stores below might be to anywhere.
    let lanes = *lanes;
    let at = usize::from(lanes.block) * BLOCK;
    for (index, pair) in pairs.iter().enumerate() {
        // SAFETY: the caller vouches for states and gaps, and words lie within states; whole lines are read and written.
        unsafe {
            if KIND & Kind::MEASURES != 0 {
                for (side, [first, last]) in lanes.arrivals.into_iter().take(GAPS).enumerate() {
                    *gaps.add(index * GAPS + side) = if GAPS > 1 && last == NONE {
                        MetGap::NONE
                    } else {
                        let before = *pair.flow.add(usize::from(last));
                        let after = *pair.later.add(usize::from(first));
                        if GAPS == 1 || before != 0 && after != 0 {
                            MetGap::new(after.saturating_sub(before))
                        } else {
                            MetGap::NONE
                        }
                    };
                }
            }
            let earlier = pair.flow.add(at).cast::<__m512i>();
            let later = pair.later.add(at).cast::<__m512i>();
            let (a, mut b) = (_mm512_loadu_si512(earlier), _mm512_loadu_si512(later));
            if KIND & (Kind::GAP_EXTREMES | Kind::GAP_SUMS) != 0 {
                for side in 0..GAPS {
                    b = lanes.gaps[side].fold::<KIND, GAPS>(b, *gaps.add(index * GAPS + side));
                }
            }
            let mut words = _mm512_mask_add_epi64(a, lanes.add, a, b);
            if KIND & Kind::MIN != 0 {
                words = _mm512_mask_min_epu64(words, lanes.min, a, b);
            }
            if KIND & Kind::ENDS != 0 {
                words = _mm512_mask_or_epi64(words, lanes.or, a, b);
                let no_first = _mm512_mask_testn_epi64_mask(lanes.first, a, a);
                let a_last = _mm512_mask_test_epi64_mask(lanes.last, b, b);
                words = _mm512_mask_mov_epi64(words, no_first | a_last, b);
            }
            if KIND & Kind::TIMES != 0 {
                words = _mm512_mask_mov_epi64(words, lanes.last, b);
            }
            if KIND & Kind::WIDE != 0 {
                words = add_wide(words, b, lanes.wide);
            }
            _mm512_storeu_si512(earlier, words);
        }
    }
}

impl GapLanes {
    fn of(gap: &GapWords, block: usize) -> Self {
        let lane = |word: u16| match word {
            NONE => 0,
            word => lanes(block, u32::from(word), u32::from(word) + 1),
        };
        Self {
            min: lane(gap.min),
            max: lane(gap.max),
            sum: lane(gap.wide_sum),
            squares: lane(gap.wide_squares),
        }
    }

    /// # Safety
    /// The machine has AVX-512.
    #[inline(always)]
    unsafe fn fold<const KIND: u8, const GAPS: usize>(
        &self,
        words: __m512i,
        gap: MetGap,
    ) -> __m512i {
        // SAFETY: the caller vouches for the vectors.
        unsafe {
            let all = |word: u64| _mm512_set1_epi64(word.cast_signed());
            let mut words = words;
            if KIND & Kind::GAP_EXTREMES != 0 {
                let gap_ns = all(gap.0);
                // `encode_max` of it.
                let max = _mm512_sub_epi64(all(u64::MAX - 1), gap_ns);
                words = _mm512_mask_min_epu64(words, self.min, words, gap_ns);
                words = _mm512_mask_min_epu64(words, self.max, words, max);
            }
            if KIND & Kind::GAP_SUMS != 0 {
                let sum = _mm512_maskz_mov_epi64(self.sum, all(gap.sum::<GAPS>()));
                words = add_wide(words, sum, self.sum);
            }
            if KIND & Kind::GAP_SUMS != 0 && self.squares != 0 {
                let square = u128::from(gap.sum::<GAPS>()) * u128::from(gap.sum::<GAPS>());
                let low = _mm512_maskz_mov_epi64(self.squares, all(square as u64));
                let high = all((square >> 64) as u64);
                let square = _mm512_mask_mov_epi64(low, self.squares << 1, high);
                words = add_wide(words, square, self.squares);
            }
            words
        }
    }
}

/// The gap where two records meet, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct MetGap(u64);

impl MetGap {
    /// Where one of the two has no packet of that side: longer than any, as the smallest gap and, encoded, as the largest, so that it
    /// changes neither.
    pub(super) const NONE: Self = Self(u64::MAX);

    #[inline(always)]
    pub(super) const fn new(gap_ns: u64) -> Self {
        debug_assert!(gap_ns != Self::NONE.0);
        Self(gap_ns)
    }

    /// Of one gap a pair, there always is one.
    #[inline(always)]
    const fn sum<const GAPS: usize>(self) -> u64 {
        if GAPS > 1 && self.0 == Self::NONE.0 {
            0
        } else {
            self.0
        }
    }
}

const _: () = assert!(encode_max(0) == u64::MAX - 1 && encode_max(MetGap::NONE.0) == u64::MAX);

/// a + b in the pairs of lanes whose low words `low` names; saturates, as [`super::plan::add_wide`].
///
/// # Safety
/// The machine has AVX-512.
#[inline(always)]
unsafe fn add_wide(a: __m512i, b: __m512i, low: __mmask8) -> __m512i {
    // SAFETY: the caller vouches for the vectors.
    unsafe {
        let high = low << 1;
        let sum = _mm512_mask_add_epi64(a, low | high, a, b);
        let carries = _mm512_mask_cmplt_epu64_mask(low | high, sum, b);
        // Sums that leave 64 bits are rare.
        if carries == 0 {
            return sum;
        }
        // Through memory only here: vectors are passed so, and would be stored at every sum.
        let mut words = [0_u64; BLOCK];
        _mm512_storeu_si512(words.as_mut_ptr().cast(), sum);
        carry(&mut words, carries, low);
        _mm512_loadu_si512(words.as_ptr().cast())
    }
}

/// The second half of [`add_wide`], where a lane in `carries` has overflowed.
#[cold]
#[inline(never)]
fn carry(sums: &mut [u64; BLOCK], carries: __mmask8, low: __mmask8) {
    for lane in (0..BLOCK).step_by(2).filter(|lane| low >> lane & 1 == 1) {
        let carried = |lane: usize| carries >> lane & 1 == 1;
        let (high, full) = sums[lane + 1].overflowing_add(u64::from(carried(lane)));
        sums[lane + 1] = high;
        if full || carried(lane + 1) {
            sums[lane..lane + 2].fill(u64::MAX);
        }
    }
}
