// SPDX-License-Identifier: Apache-2.0
//! Merging with the vectors that the machine has: the few operations that every packet and every
//! microflow record passes through, compiled for each vector width.
//!
//! ```text
//! Machine::detect() ──▶ run(work) ──▶ work.run(Avx512 | Avx2 | Plain)
//! ```
//!
//! The hot loops of engine and aggregator are generic over [`Vectors`]. They are entered through
//! [`Machine::run`], which compiles each of them for every width. A value of a [`Vectors`] type
//! proves that the machine has these vectors, since only [`Machine`] creates one.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod gate;
#[cfg(target_arch = "x86_64")]
mod line;
#[cfg(target_arch = "x86_64")]
mod proof;
#[cfg(test)]
mod tests;
mod words;

#[cfg(target_arch = "x86_64")]
pub use avx512::Words512;
pub use gate::MergeGate;
#[cfg(target_arch = "x86_64")]
pub use line::LineGate;
#[cfg(target_arch = "x86_64")]
pub use proof::{Avx2, Avx512};
pub use words::{LANES, PlainWords, Words};

use crate::layout::pair::Pair;
use crate::{Base, MicroflowRecord, Plan};

/// The widest vectors of this machine.
#[derive(Clone, Copy, Debug)]
pub enum Machine {
    /// 512-bit vectors and masks (AVX-512 F, BW, DQ, VL).
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    /// 256-bit vectors (AVX2).
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// Only the vectors that every machine of the target has.
    Plain(Plain),
}

/// The most further words for which loops are compiled for every vector width.
const FEW_WORDS: usize = 24;

/// Work that is compiled for every vector width.
///
/// Mark `run` `#[inline(always)]`, and everything that it calls in its loop. Functions that are not
/// inlined are compiled for plain machines.
pub trait WithVectors {
    /// The result of the work.
    type Output;

    /// Does the work with these vectors.
    fn run<V: Vectors>(self, vectors: V) -> Self::Output;
}

impl Machine {
    /// The widest vectors that this machine has.
    #[must_use]
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if let Some(avx512) = Avx512::detect() {
                return Self::Avx512(avx512);
            }
            if let Some(avx2) = Avx2::detect() {
                return Self::Avx2(avx2);
            }
        }
        Self::Plain(Plain)
    }

    /// Runs a loop over records with `N` further words. If `N` is at most `FEW_WORDS`, this equals
    /// [`Machine::run`]. With larger records, most time goes into merging their words. Their loop
    /// is compiled once, and selects the vectors at each merge of words.
    #[inline]
    pub fn run_loop<const N: usize, W: WithVectors>(self, work: W) -> W::Output {
        if const { N > FEW_WORDS } {
            work.run(self)
        } else {
            self.run(work)
        }
    }

    /// Does the work with the widest vectors.
    #[inline]
    pub fn run<W: WithVectors>(self, work: W) -> W::Output {
        match self {
            // SAFETY: the value proves that the machine has AVX-512.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(vectors) => unsafe { avx512::run(vectors, work) },
            // SAFETY: the value proves that the machine has AVX2.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(vectors) => unsafe { avx2::run(vectors, work) },
            Self::Plain(vectors) => work.run(vectors),
        }
    }
}

/// One width of vectors.
pub trait Vectors: Copy {
    /// A gate, in a form that a loop keeps in registers.
    type Gate: Copy + AsRef<MergeGate>;

    /// Eight words.
    type Words: Words;

    /// Loads eight words from memory.
    fn words(self, words: &[u64; LANES]) -> Self::Words;

    /// One word in all eight lanes.
    #[inline(always)]
    fn all(self, word: u64) -> Self::Words {
        self.words(&[word; LANES])
    }

    /// Loads eight pairs of words, as two vectors: the even pairs, then the odd ones.
    ///
    /// # Safety
    /// There are two words at every pointer.
    #[inline(always)]
    unsafe fn pairs(self, pairs: [*const u64; LANES]) -> [Self::Words; 2] {
        std::array::from_fn(|odd| {
            // SAFETY: as required of the caller.
            let word = |lane: usize| unsafe { *pairs[lane / 2 * 2 + odd].add(lane % 2) };
            self.words(&std::array::from_fn(word))
        })
    }

    /// Loads a gate into registers.
    fn gate(self, gate: &MergeGate) -> Self::Gate;

    /// The proof of AVX-512, for code that exists only for it.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn avx512(self) -> Option<Avx512> {
        None
    }

    /// Does part of the work in a loop that is compiled for these vectors.
    #[inline(always)]
    fn run<W: WithVectors>(self, work: W) -> W::Output {
        work.run(self)
    }

    /// `a == b`.
    #[inline(always)]
    fn same_key<const K: usize>(self, a: &[u64; K], b: &[u64; K]) -> bool {
        a == b
    }

    /// `flow.merge(later)`, if `later` began no earlier than `flow`.
    #[inline(always)]
    fn merge_in_order(self, flow: &mut Base, later: &Base) {
        flow.merge(later);
    }

    /// Merges all but the further words of `later` into `flow`, if the keys are equal and the gate
    /// passes it. Returns whether it merged the record.
    #[inline(always)]
    fn merge_if_passes<const K: usize, const M: usize, const N: usize>(
        self,
        gate: &Self::Gate,
        flow: &mut MicroflowRecord<K, M>,
        later: &MicroflowRecord<K, N>,
    ) -> bool {
        merge_in_steps(self, gate.as_ref(), flow, later)
    }

    /// A bit for every lane that equals a value. `value_twice` holds the value in both of its
    /// halves.
    #[inline(always)]
    fn equal_lanes(self, lanes: &[u16; 32], value_twice: u32) -> u32 {
        equal_lanes(lanes, value_twice)
    }

    /// `plan.merge(flow, later)` for every pair in turn.
    ///
    /// # Safety
    /// The plan fits `N` words, and so do the states of all pairs. The states are not accessed
    /// elsewhere during the call.
    #[inline(always)]
    unsafe fn merge_states<const N: usize>(self, plan: &Plan, pairs: &[Pair]) {
        for pair in pairs {
            // SAFETY: as required of the caller.
            let (flow, later) = unsafe { (&mut *pair.flow.cast(), &*pair.later.cast()) };
            plan.merge::<N>(flow, later);
        }
    }
}

/// [`Vectors::merge_if_passes`] for any key.
#[inline(always)]
fn merge_in_steps<V: Vectors, const K: usize, const M: usize, const N: usize>(
    vectors: V,
    gate: &MergeGate,
    flow: &mut MicroflowRecord<K, M>,
    later: &MicroflowRecord<K, N>,
) -> bool {
    let joins = vectors.same_key(&flow.key, &later.key) && gate.passes(&flow.base, &later.base);
    if joins {
        vectors.merge_in_order(&mut flow.base, &later.base);
    }
    joins
}

/// Only the vectors that the compiler chooses.
#[derive(Clone, Copy, Debug)]
pub struct Plain;

impl Vectors for Plain {
    type Gate = MergeGate;
    type Words = PlainWords;

    #[inline(always)]
    fn words(self, words: &[u64; LANES]) -> PlainWords {
        PlainWords::new(*words)
    }

    #[inline(always)]
    fn gate(self, gate: &MergeGate) -> MergeGate {
        *gate
    }
}

/// Plain code, except that the vectors are selected at each merge of further words, and for each
/// part of the work that has a loop of its own.
impl Vectors for Machine {
    type Gate = MergeGate;
    type Words = PlainWords;

    #[inline(always)]
    fn words(self, words: &[u64; LANES]) -> PlainWords {
        PlainWords::new(*words)
    }

    #[inline(always)]
    fn gate(self, gate: &MergeGate) -> MergeGate {
        *gate
    }

    #[inline(always)]
    fn run<W: WithVectors>(self, work: W) -> W::Output {
        Self::run(self, work)
    }

    #[inline(always)]
    unsafe fn merge_states<const N: usize>(self, plan: &Plan, pairs: &[Pair]) {
        Self::run(self, MergeStates::<N> { plan, pairs });
    }
}

/// [`Vectors::merge_states`].
struct MergeStates<'a, const N: usize> {
    plan: &'a Plan,
    pairs: &'a [Pair],
}

impl<const N: usize> WithVectors for MergeStates<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vectors>(self, vectors: V) {
        // SAFETY: the creator of this value ensured valid states.
        unsafe { vectors.merge_states::<N>(self.plan, self.pairs) };
    }
}

/// Uses 128-bit vectors, which every x86-64 machine has.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn equal_lanes(lanes: &[u16; 32], value_twice: u32) -> u32 {
    use std::arch::x86_64::*;
    // SAFETY: SSE2 is part of x86-64; the array has 64 bytes and the loads are unaligned.
    unsafe {
        let values = _mm_set1_epi32(value_twice.cast_signed());
        let pointer = lanes.as_ptr().cast::<__m128i>();
        let equal = |part| _mm_cmpeq_epi16(_mm_loadu_si128(pointer.add(part)), values);
        let low = _mm_movemask_epi8(_mm_packs_epi16(equal(0), equal(1)));
        let high = _mm_movemask_epi8(_mm_packs_epi16(equal(2), equal(3)));
        (low | high << 16).cast_unsigned()
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn equal_lanes(lanes: &[u16; 32], value_twice: u32) -> u32 {
    let bits = lanes.iter().enumerate();
    bits.fold(0, |mask, (lane, &each)| {
        mask | u32::from(each == value_twice as u16) << lane
    })
}
