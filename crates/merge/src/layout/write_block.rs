// SPDX-License-Identifier: Apache-2.0
//! Writes a fresh state with AVX-512, eight words at a time.

use std::arch::x86_64::*;
use std::ops::Range;

use super::program::WriteStep;
use super::words::{BLOCK, Content, StateContent};
use crate::Avx512;
use turboflow_record::{INPUT_WORDS, Input, InputSet, InputValues};

/// The steps for a run of words that use at most eight inputs.
///
/// Each lane of one vector holds an input, or its replacement if the packet lacks the input. One
/// formula then gives every word: `(value ^ flip) + add`.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct WriteBank {
    /// For each lane, the bit of its input in a set of inputs, for each word of the set.
    bits: [[u64; BLOCK]; INPUT_WORDS],
    /// The value of each lane if the packet lacks the input.
    absent: [u64; BLOCK],
    /// The inputs whose value is used, and the lanes that use it. All other lanes are 1 if their
    /// input is present.
    inputs: [(__mmask8, u8); BLOCK],
    input_count: u8,
    lane_count: u8,
    blocks: Vec<WriteBlock>,
}

/// The steps for eight words.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
struct WriteBlock {
    /// A slot of the packet, or [`BLOCK`] plus a lane of the bank.
    from: [u64; BLOCK],
    flip: [u64; BLOCK],
    add: [u64; BLOCK],
    /// Lanes whose value is squared.
    squared: __mmask8,
    /// Lanes of bins, which count values within the bounds below.
    bins: __mmask8,
    smallest: [u64; BLOCK],
    span: [u64; BLOCK],
}

/// Writes one word of a fresh state. This is `(value ^ flip) + add`, of the value or its square, or
/// it is whether the value is in a bin.
#[derive(Clone, Debug)]
pub(super) struct BankStep {
    /// A slot of the packet, or the number of an input that it may lack.
    from: u8,
    of_input: bool,
    word: u16,
    flip: u64,
    add: u64,
    /// The value if the packet lacks the input.
    absent: u64,
    /// Whether the value is 1 for any present input.
    counts: bool,
    squared: bool,
    bin: Option<Bin>,
}

/// The bin of values from `smallest` to below `smallest + span`.
#[derive(Clone, Copy, Debug)]
struct Bin {
    smallest: u64,
    span: u64,
}

impl WriteBank {
    const EMPTY: Self = Self {
        bits: [[0; BLOCK]; INPUT_WORDS],
        absent: [0; BLOCK],
        inputs: [(0, 0); BLOCK],
        input_count: 0,
        lane_count: 0,
        blocks: Vec::new(),
    };

    /// The banks for all words of a state.
    pub(super) fn of(words: usize, min: &Range<u16>, steps: &[BankStep]) -> Box<[Self]> {
        let (mut banks, mut bank) = (Vec::new(), Self::EMPTY);
        for block in 0..words / BLOCK {
            let inside = |step: &&BankStep| usize::from(step.word) / BLOCK == block;
            let of_input = || steps.iter().filter(inside).filter(|step| step.of_input);
            let new = of_input().filter(|step| bank.lane_of(step).is_none());
            if usize::from(bank.lane_count) + new.count() > BLOCK {
                banks.push(std::mem::replace(&mut bank, Self::EMPTY));
            }
            let mut written = WriteBlock::untouched(block, min);
            for step in steps.iter().filter(inside) {
                let from = match step.of_input {
                    true => BLOCK + bank.place(step),
                    false => usize::from(step.from),
                };
                written.take(step, from);
            }
            bank.blocks.push(written);
        }
        banks.push(bank);
        banks.into()
    }

    /// The lane that already holds the input of `step` in the required form.
    fn lane_of(&self, step: &BankStep) -> Option<usize> {
        (0..usize::from(self.lane_count)).find(|&lane| {
            let taken = self.inputs.iter().any(|(lanes, _)| lanes >> lane & 1 == 1);
            self.bits.map(|bits| bits[lane]) == step.input_bits()
                && self.absent[lane] == step.absent
                && taken != step.counts
        })
    }

    /// Like [`Self::lane_of`], but assigns a new lane if there is none.
    fn place(&mut self, step: &BankStep) -> usize {
        if let Some(lane) = self.lane_of(step) {
            return lane;
        }
        let lane = usize::from(self.lane_count);
        self.lane_count += 1;
        for (bits, of_input) in self.bits.iter_mut().zip(step.input_bits()) {
            bits[lane] = of_input;
        }
        self.absent[lane] = step.absent;
        if !step.counts {
            let taken = &mut self.inputs[..usize::from(self.input_count)];
            let known = taken.iter().position(|(_, input)| *input == step.from);
            let index = known.unwrap_or(taken.len());
            self.input_count = self.input_count.max(index as u8 + 1);
            self.inputs[index].0 |= 1 << lane;
            self.inputs[index].1 = step.from;
        }
        lane
    }

    /// Overwrites the words of all banks.
    #[inline(always)]
    pub(super) fn write_all(
        proof: Avx512,
        banks: &[Self],
        mut words: &mut [[u64; BLOCK]],
        slots: __m512i,
        inputs: &InputValues,
    ) {
        for bank in banks {
            let lanes = bank.lanes(proof, inputs);
            let count = bank.blocks.len().min(words.len());
            let (now, later) = words.split_at_mut(count);
            for (words, block) in now.iter_mut().zip(&bank.blocks) {
                block.write(proof, words, slots, lanes);
            }
            words = later;
        }
    }

    /// The lanes of a packet's inputs.
    #[inline(always)]
    fn lanes(&self, _proof: Avx512, inputs: &InputValues) -> __m512i {
        // SAFETY: both arrays have 64 bytes; the proof ensures the vectors.
        unsafe {
            let ones = _mm512_set1_epi64(1);
            if self.lane_count == 0 {
                return ones;
            }
            let mut values = ones;
            // One by one: a gather is several times slower on some processors (docs/evaluation.md),
            // and with microcode that mitigates leaks of gathered data (CVE-2022-40982).
            for &(lanes, input) in self.inputs.iter().take(usize::from(self.input_count)) {
                let value = inputs.value(input);
                values = _mm512_mask_set1_epi64(values, lanes, value.cast_signed());
            }
            let mut there = 0;
            for (present, bits) in inputs.present().words().iter().zip(&self.bits) {
                let bits = _mm512_loadu_si512(bits.as_ptr().cast());
                there |= _mm512_test_epi64_mask(_mm512_set1_epi64(present.cast_signed()), bits);
            }
            let absent = _mm512_loadu_si512(self.absent.as_ptr().cast());
            _mm512_mask_mov_epi64(absent, there, values)
        }
    }
}

impl BankStep {
    /// The set that contains only this input.
    fn input_bits(&self) -> [u64; INPUT_WORDS] {
        InputSet::of(&[Input::ALL[usize::from(self.from)]]).words()
    }

    /// The steps of a content; `None` if banks cannot write it.
    pub(super) fn of(
        content: &Content,
        from: u8,
        of_input: bool,
        writes: &[WriteStep],
    ) -> Option<Vec<Self>> {
        if !writes.is_empty() {
            return Some(
                writes
                    .iter()
                    .map(|step| Self::new(step, of_input))
                    .collect(),
            );
        }
        let StateContent::Bins(edges) = &content.what else {
            return None;
        };
        // The largest number means absent, so it would be ambiguous for 64-bit values.
        if content.of.is_none_or(|of| of.bits() == 64) {
            return None;
        }
        let edge = |index: usize| edges.get(index).copied();
        let bin = |index: usize| {
            let smallest = index.checked_sub(1).and_then(edge).unwrap_or(0);
            let end = edge(index).unwrap_or(u64::MAX);
            Self {
                from,
                of_input,
                word: (content.start + index) as u16,
                flip: 0,
                add: 0,
                absent: u64::MAX,
                counts: false,
                squared: false,
                bin: Some(Bin {
                    smallest,
                    span: end - smallest,
                }),
            }
        };
        Some((0..=edges.len()).map(bin).collect())
    }

    fn new(step: &WriteStep, of_input: bool) -> Self {
        // A count only needs the presence of the value: 1 in the lane of an input, and always 1 for
        // a value that every packet has.
        let is_count = step.keep == 0;
        let counts = of_input && is_count;
        let add = if counts { 0 } else { step.add };
        debug_assert!(!step.squared || step.absent == 0);
        Self {
            from: if is_count && !of_input { 0 } else { step.from },
            of_input,
            word: step.word,
            flip: step.flip,
            add,
            absent: step.absent.wrapping_sub(add) ^ step.flip,
            counts,
            squared: step.squared,
            bin: None,
        }
    }
}

impl WriteBlock {
    /// A block without steps. Zero is neutral in every class except min, whose words are in `min`.
    fn untouched(block: usize, min: &Range<u16>) -> Self {
        let flip = |lane| match min.contains(&((block * BLOCK + lane) as u16)) {
            true => u64::MAX,
            false => 0,
        };
        Self {
            from: [0; BLOCK],
            flip: std::array::from_fn(flip),
            add: [0; BLOCK],
            squared: 0,
            bins: 0,
            smallest: [0; BLOCK],
            span: [0; BLOCK],
        }
    }

    fn take(&mut self, step: &BankStep, from: usize) {
        let lane = usize::from(step.word) % BLOCK;
        self.from[lane] = from as u64;
        self.flip[lane] = step.flip;
        self.add[lane] = step.add;
        self.squared |= u8::from(step.squared) << lane;
        if let Some(bin) = step.bin {
            self.bins |= 1 << lane;
            self.smallest[lane] = bin.smallest;
            self.span[lane] = bin.span;
        }
    }

    /// Writes all eight words.
    #[inline(always)]
    fn write(&self, _proof: Avx512, words: &mut [u64; BLOCK], slots: __m512i, lanes: __m512i) {
        // SAFETY: every array that is read or written has 64 bytes; the proof ensures the vectors.
        unsafe {
            let load = |words: &[u64; BLOCK]| _mm512_loadu_si512(words.as_ptr().cast());
            let mut values = _mm512_permutex2var_epi64(slots, load(&self.from), lanes);
            if self.squared != 0 {
                values = _mm512_mask_mullo_epi64(values, self.squared, values, values);
            }
            let flipped = _mm512_xor_si512(values, load(&self.flip));
            let mut written = _mm512_add_epi64(flipped, load(&self.add));
            if self.bins != 0 {
                let above = _mm512_sub_epi64(values, load(&self.smallest));
                let inside = _mm512_cmplt_epu64_mask(above, load(&self.span));
                let counted = _mm512_maskz_set1_epi64(inside, 1);
                written = _mm512_mask_mov_epi64(written, self.bins, counted);
            }
            _mm512_storeu_si512(words.as_mut_ptr().cast(), written);
        }
    }
}

/// Eight words as a vector, assembled in registers: loading the array would have to wait for the
/// stores that have just filled it.
#[inline(always)]
pub(super) fn lanes_of(_proof: Avx512, words: &[u64; BLOCK]) -> __m512i {
    let [a, b, c, d, e, f, g, h] = words.map(u64::cast_signed);
    // SAFETY: the proof ensures the vectors.
    unsafe { _mm512_set_epi64(h, g, f, e, d, c, b, a) }
}
