// SPDX-License-Identifier: Apache-2.0
//! Writing eight words of a fresh state at a time, with AVX-512.

use std::arch::x86_64::*;
use std::ops::Range;

use super::plan::BLOCK;
use super::program::WriteStep;
use crate::{Avx512, InputValues};

/// The [`WriteStep`]s of eight words, lane by lane.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct WriteBlock {
    /// A slot of the packet, or the number of an input.
    from: [u64; BLOCK],
    keep: [u64; BLOCK],
    flip: [u64; BLOCK],
    add: [u64; BLOCK],
    absent: [u64; BLOCK],
    /// Lanes whose value is an input.
    of_input: __mmask8,
    /// Each of those lanes, and the number of its input.
    inputs: [(__mmask8, u8); BLOCK],
    input_count: u8,
    /// Lanes whose value is squared.
    squared: __mmask8,
}

impl WriteBlock {
    /// The blocks up to the last word that is written.
    pub(super) fn of(
        min: &Range<u16>,
        of_packet: &[WriteStep],
        of_inputs: &[WriteStep],
    ) -> Box<[Self]> {
        let steps = || of_packet.iter().chain(of_inputs);
        let last = steps()
            .map(|step| step.word + 1)
            .max()
            .unwrap_or(0)
            .max(min.end);
        let zero = [0; BLOCK];
        let mut blocks = vec![
            Self {
                from: zero,
                keep: zero,
                flip: zero,
                add: zero,
                absent: zero,
                of_input: 0,
                inputs: [(0, 0); BLOCK],
                input_count: 0,
                squared: 0,
            };
            usize::from(last).div_ceil(BLOCK)
        ];
        let place = |word: u16| (usize::from(word) / BLOCK, usize::from(word) % BLOCK);
        // Zero changes nothing in any class but this.
        for word in min.clone() {
            let (block, lane) = place(word);
            blocks[block].flip[lane] = u64::MAX;
        }
        for (index, step) in steps().enumerate() {
            let (block, lane) = place(step.word);
            let block = &mut blocks[block];
            block.from[lane] = u64::from(step.from);
            block.keep[lane] = step.keep;
            block.flip[lane] = step.flip;
            block.add[lane] = step.add;
            block.absent[lane] = step.absent;
            block.squared |= u8::from(step.squared) << lane;
            if index >= of_packet.len() {
                block.of_input |= 1 << lane;
                block.inputs[usize::from(block.input_count)] = (1 << lane, step.from);
                block.input_count += 1;
            }
        }
        blocks.into()
    }

    /// Writes all eight words.
    #[inline(always)]
    pub(super) fn write(
        &self,
        _proof: Avx512,
        words: &mut [u64; BLOCK],
        slots: __m512i,
        inputs: &InputValues,
    ) {
        // SAFETY: every array read or written is 64 bytes; the proof vouches for the vectors.
        unsafe {
            let load = |words: &[u64; BLOCK]| _mm512_loadu_si512(words.as_ptr().cast());
            let from = load(&self.from);
            let mut values = _mm512_permutexvar_epi64(from, slots);
            let mut there = __mmask8::MAX;
            if self.of_input != 0 {
                let (all, present) = inputs.all();
                // One by one: a gather costs several times as much on some processors (docs/evaluation.md), as it does
                // with microcode against the leak of gathered data (CVE-2022-40982).
                let inputs = self.inputs.iter();
                for &(lane, input) in inputs.take(usize::from(self.input_count)) {
                    let value = all[usize::from(input & 63)];
                    values = _mm512_mask_set1_epi64(values, lane, value.cast_signed());
                }
                let present = _mm512_srlv_epi64(_mm512_set1_epi64(present.cast_signed()), from);
                there = _mm512_test_epi64_mask(present, _mm512_set1_epi64(1)) | !self.of_input;
            }
            if self.squared != 0 {
                values = _mm512_mask_mullo_epi64(values, self.squared, values, values);
            }
            let kept = _mm512_and_si512(values, load(&self.keep));
            let flipped = _mm512_xor_si512(kept, load(&self.flip));
            let absent = load(&self.absent);
            let written = _mm512_mask_add_epi64(absent, there, flipped, load(&self.add));
            _mm512_storeu_si512(words.as_mut_ptr().cast(), written);
        }
    }
}

/// Eight words as a vector, put together in registers: a load of the whole array would wait for
/// each of the stores that have just filled it.
#[inline(always)]
pub(super) fn lanes_of(_proof: Avx512, words: &[u64; BLOCK]) -> __m512i {
    let [a, b, c, d, e, f, g, h] = words.map(u64::cast_signed);
    // SAFETY: the proof vouches for the vectors.
    unsafe { _mm512_set_epi64(h, g, f, e, d, c, b, a) }
}

/// How many of eight edges `value` has reached.
#[inline(always)]
pub(super) fn reached(_proof: Avx512, edges: &[u64; BLOCK], value: u64) -> usize {
    // SAFETY: the array is 64 bytes; the proof vouches for the vectors.
    let reached = unsafe {
        let edges = _mm512_loadu_si512(edges.as_ptr().cast());
        _mm512_cmple_epu64_mask(edges, _mm512_set1_epi64(value.cast_signed()))
    };
    reached.count_ones() as usize
}
