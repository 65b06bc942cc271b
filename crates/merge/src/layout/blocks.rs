// SPDX-License-Identifier: Apache-2.0
//! Merges the states of many pairs of records with AVX-512, eight words at a time. Masks tell which
//! lanes of a cache line belong to which class.
//!
//! Each block of eight words is merged for all pairs before the next block. The loop is compiled
//! for exactly the classes in the block ([`LoopKind`]), so that its masks stay in registers and it
//! has no branches for other classes.

use std::arch::x86_64::*;

use super::gap::{GapWords, NONE};
use super::pair::Pair;
use super::words::{BLOCK, Ends, MAX_GAPS, encode_max};
use crate::Avx512;

/// Which lanes of a block belong to which class.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockLanes {
    add: __mmask8,
    min: __mmask8,
    or: __mmask8,
    first: __mmask8,
    last: __mmask8,
    /// Low words of 128-bit sums. The high word is the next lane.
    wide: __mmask8,
    gaps: [GapLanes; MAX_GAPS],
    /// Index of the block.
    block: u16,
    /// If this block has the times from which gaps are measured: the words of each side's first and
    /// last arrival.
    arrivals: [[u16; 2]; MAX_GAPS],
    /// The loop that merges this block.
    fold: FoldPairs,
}

/// The lanes into which a gap is folded.
#[derive(Clone, Copy, Debug, Default)]
struct GapLanes {
    min: __mmask8,
    max: __mmask8,
    /// Low words.
    sum: __mmask8,
    /// Low words.
    squares: __mmask8,
}

/// The lanes of a block with the times of the first and the last packet of the record, which are
/// always present. Empty unless gaps are measured as [`GapMeasurement::Single`], because in
/// [`FOLDS`] only the loops for one gap per pair rely on these lanes.
fn times_of_all(measurement: GapMeasurement, gaps: &[GapWords], block: usize) -> __mmask8 {
    let word = |word: u16| lanes(block, u32::from(word), u32::from(word) + 1);
    match (measurement, gaps) {
        (GapMeasurement::Single, [gap]) => word(gap.first_arrival) | word(gap.last_arrival),
        _ => 0,
    }
}

/// A loop over pairs, which also takes or writes the gap between the records of each pair.
type FoldPairs = unsafe fn(&BlockLanes, &[Pair], *mut BoundaryGap);

/// The lanes of block `block` that hold words from `start` to `end`.
fn lanes(block: usize, start: u32, end: u32) -> __mmask8 {
    let inside = |lane: &usize| (start as usize..end as usize).contains(&(block * BLOCK + lane));
    (0..BLOCK)
        .filter(inside)
        .fold(0, |mask, lane| mask | 1 << lane)
}

/// How the gaps between the records of a pair are measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum GapMeasurement {
    /// There are no gaps, or only those between all packets, which always exist. Gaps are measured
    /// while the block with their times is merged.
    #[default]
    Single,
    /// Gaps of two or three sides, each of which may have no packets. They are measured like a
    /// single gap, with more checks.
    Several,
    /// Gaps are measured before the merge, pair by pair, because their order matters to a feature
    /// or their times are in two blocks.
    Upfront,
}

impl GapMeasurement {
    pub(super) fn of(gaps: &[GapWords]) -> Self {
        let blocks = gaps.iter().map(|gap| usize::from(gap.last_arrival) / BLOCK);
        let in_one_block = blocks.clone().min() == blocks.max();
        let is_ordered = gaps.iter().any(GapWords::is_ordered);
        match gaps {
            _ if is_ordered || !in_one_block => Self::Upfront,
            [] => Self::Single,
            [gap] if gap.is_of_all() => Self::Single,
            _ => Self::Several,
        }
    }
}

impl BlockLanes {
    /// The lanes of all blocks except lists. The block with the times for gaps comes first.
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
        let measurement = GapMeasurement::of(gaps);
        let lanes_of = |gap| GapLanes::of(gap, block);
        let arrivals_of = |gap: &GapWords| match usize::from(gap.last_arrival) / BLOCK == block {
            true if measurement != GapMeasurement::Upfront => [gap.first_arrival, gap.last_arrival],
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
        let sides = match measurement {
            GapMeasurement::Single => 1,
            _ => gaps.len().max(2),
        };
        let kind = of_block.kind(times_of_all(measurement, gaps, block));
        let fold = FOLDS[sides - 1][usize::from(kind)];
        Self { fold, ..of_block }
    }

    fn measures(&self) -> bool {
        self.arrivals != [[NONE; 2]; MAX_GAPS]
    }

    /// The kind of loop that this block needs. `times` are the lanes of times that are always
    /// present.
    fn kind(&self, times: __mmask8) -> u8 {
        let ends = self.or | self.first | self.last;
        let any_gap =
            |lanes: fn(&GapLanes) -> __mmask8| self.gaps.iter().any(|gap| lanes(gap) != 0);
        let has = |any: bool, kind| if any { kind } else { 0 };
        has(self.min != 0, LoopKind::MIN)
            | has(ends & !times != 0, LoopKind::ENDS)
            | has(ends != 0 && ends & !times == 0, LoopKind::TIMES)
            | has(self.wide != 0, LoopKind::WIDE)
            | has(any_gap(|gap| gap.min | gap.max), LoopKind::GAP_EXTREMES)
            | has(any_gap(|gap| gap.sum | gap.squares), LoopKind::GAP_SUMS)
            | has(self.measures(), LoopKind::MEASURES)
    }

    /// Merges this block for every pair. `gaps` has one entry per pair if gaps are measured as
    /// [`GapMeasurement::Single`]. Otherwise it has two, or [`MAX_GAPS`] if there are that many
    /// sides. The first block writes the entries, unless gaps are measured as
    /// [`GapMeasurement::Upfront`].
    ///
    /// # Safety
    /// Both states of every pair are valid and not accessed elsewhere during the call. `gaps` has
    /// room for all entries.
    #[inline(always)]
    pub(super) unsafe fn fold(&self, _proof: Avx512, pairs: &[Pair], gaps: *mut BoundaryGap) {
        // SAFETY: as required of the caller; the proof ensures the vectors.
        unsafe { (self.fold)(self, pairs, gaps) }
    }
}

/// The classes in a block, as bits. Sums have no bit, because every loop handles them.
struct LoopKind;

impl LoopKind {
    const MIN: u8 = 1;
    /// The classes [`Or`](super::words::Class::Or), [`First`](super::words::Class::First) and
    /// [`Last`](super::words::Class::Last).
    const ENDS: u8 = 2;
    const WIDE: u8 = 4;
    const GAP_EXTREMES: u8 = 8;
    const GAP_SUMS: u8 = 16;
    /// The block contains the times from which gaps are measured. Gaps can only be measured during
    /// the merge, because a later pair may have the same flow as an earlier one.
    const MEASURES: u8 = 32;
    /// The classes `First` and `Last`, but only times that are always present and need no check.
    /// Used only with one gap per pair.
    const TIMES: u8 = 64;
}

macro_rules! folds {
    ($gaps:literal + $more:expr; $($kind:literal)*) => { [$(fold_pairs::<{ ($kind + $more) as u8 }, $gaps> as FoldPairs),*] };
    ($gaps:literal + $more:expr) => { folds!($gaps + $more;
        0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
        32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63
    ) };
}

/// The loops, by number of gaps per pair (one for [`GapMeasurement::Single`]) and by kind.
static FOLDS: [&[FoldPairs]; MAX_GAPS] = [
    [folds!(1 + 0), folds!(1 + 64)].as_flattened(),
    &folds!(2 + 0),
    &folds!(3 + 0),
];

/// See [`BlockLanes::fold`].
///
/// # Safety
/// See there. In addition, the machine must have AVX-512.
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn fold_pairs<const KIND: u8, const GAPS: usize>(
    lanes: &BlockLanes,
    pairs: &[Pair],
    gaps: *mut BoundaryGap,
) {
    // Copied, because the compiler must assume that the stores below could change the original.
    let lanes = *lanes;
    let at = usize::from(lanes.block) * BLOCK;
    for (index, pair) in pairs.iter().enumerate() {
        // SAFETY: the caller ensures valid states and gaps. Words are within states, which are
        // whole cache lines.
        unsafe {
            if KIND & LoopKind::MEASURES != 0 {
                for (side, [first, last]) in lanes.arrivals.into_iter().take(GAPS).enumerate() {
                    *gaps.add(index * GAPS + side) = if GAPS > 1 && last == NONE {
                        BoundaryGap::NONE
                    } else {
                        let before = *pair.flow.add(usize::from(last));
                        let after = *pair.later.add(usize::from(first));
                        if GAPS == 1 || before != 0 && after != 0 {
                            BoundaryGap::new(after.saturating_sub(before))
                        } else {
                            BoundaryGap::NONE
                        }
                    };
                }
            }
            let earlier = pair.flow.add(at).cast::<__m512i>();
            let later = pair.later.add(at).cast::<__m512i>();
            let (a, mut b) = (_mm512_loadu_si512(earlier), _mm512_loadu_si512(later));
            if KIND & (LoopKind::GAP_EXTREMES | LoopKind::GAP_SUMS) != 0 {
                for side in 0..GAPS {
                    b = lanes.gaps[side].fold::<KIND, GAPS>(b, *gaps.add(index * GAPS + side));
                }
            }
            let mut words = _mm512_mask_add_epi64(a, lanes.add, a, b);
            if KIND & LoopKind::MIN != 0 {
                words = _mm512_mask_min_epu64(words, lanes.min, a, b);
            }
            if KIND & LoopKind::ENDS != 0 {
                words = _mm512_mask_or_epi64(words, lanes.or, a, b);
                let no_first = _mm512_mask_testn_epi64_mask(lanes.first, a, a);
                let a_last = _mm512_mask_test_epi64_mask(lanes.last, b, b);
                words = _mm512_mask_mov_epi64(words, no_first | a_last, b);
            }
            if KIND & LoopKind::TIMES != 0 {
                words = _mm512_mask_mov_epi64(words, lanes.last, b);
            }
            if KIND & LoopKind::WIDE != 0 {
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
        gap: BoundaryGap,
    ) -> __m512i {
        // SAFETY: the caller ensures the vectors.
        unsafe {
            let all = |word: u64| _mm512_set1_epi64(word.cast_signed());
            let mut words = words;
            if KIND & LoopKind::GAP_EXTREMES != 0 {
                let gap_ns = all(gap.0);
                // `encode_max(gap_ns)`.
                let max = _mm512_sub_epi64(all(u64::MAX - 1), gap_ns);
                words = _mm512_mask_min_epu64(words, self.min, words, gap_ns);
                words = _mm512_mask_min_epu64(words, self.max, words, max);
            }
            if KIND & LoopKind::GAP_SUMS != 0 {
                let sum = _mm512_maskz_mov_epi64(self.sum, all(gap.sum::<GAPS>()));
                words = add_wide(words, sum, self.sum);
            }
            if KIND & LoopKind::GAP_SUMS != 0 && self.squares != 0 {
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

/// The gap between two records, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct BoundaryGap(u64);

impl BoundaryGap {
    /// One of the records has no packets of that side. This value does not change the smallest gap
    /// or, encoded, the largest.
    pub(super) const NONE: Self = Self(u64::MAX);

    #[inline(always)]
    pub(super) const fn new(gap_ns: u64) -> Self {
        debug_assert!(gap_ns != Self::NONE.0);
        Self(gap_ns)
    }

    /// The value to add to a sum. With one gap per pair, there always is a gap.
    #[inline(always)]
    const fn sum<const GAPS: usize>(self) -> u64 {
        if GAPS > 1 && self.0 == Self::NONE.0 {
            0
        } else {
            self.0
        }
    }
}

const _: () = assert!(encode_max(0) == u64::MAX - 1 && encode_max(BoundaryGap::NONE.0) == u64::MAX);

/// a + b in the pairs of lanes whose low words are in `low`. Saturates like
/// [`super::words::add_wide`].
///
/// # Safety
/// The machine has AVX-512.
#[inline(always)]
unsafe fn add_wide(a: __m512i, b: __m512i, low: __mmask8) -> __m512i {
    // SAFETY: the caller ensures the vectors.
    unsafe {
        let high = low << 1;
        let sum = _mm512_mask_add_epi64(a, low | high, a, b);
        let carries = _mm512_mask_cmplt_epu64_mask(low | high, sum, b);
        // A carry out of 64 bits is rare.
        if carries == 0 {
            return sum;
        }
        // Only this rare case goes through memory: a function with vectors as arguments would store
        // them each time.
        let mut words = [0_u64; BLOCK];
        _mm512_storeu_si512(words.as_mut_ptr().cast(), sum);
        carry(&mut words, carries, low);
        _mm512_loadu_si512(words.as_ptr().cast())
    }
}

/// The rare part of [`add_wide`]: the lanes in `carries` have overflowed.
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
