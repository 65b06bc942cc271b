// SPDX-License-Identifier: Apache-2.0
//! Writes the state of a single packet, one step per content and without looking at features. The
//! result equals that of merging the packet into a neutral state.

use std::hint::select_unpredictable;
use std::ops::Range;

use super::words::{Class, Content, Side, StateContent, Words, add_wide};
#[cfg(target_arch = "x86_64")]
use super::write_block::{BankStep, WriteBank};
use turboflow_record::{Input, InputValues, Packet};

/// The steps for packets of one direction.
///
/// All packets take the same kinds of steps in the same order, so that processors predict the
/// branches. No branch depends on the values of a packet.
#[derive(Clone, Debug, Default)]
pub(super) struct Program {
    /// The words of class min.
    min: Range<u16>,
    /// The steps that write a fresh state. There are three kinds of words: from values that every
    /// packet has, from inputs that a packet may lack, and words that need a [`LongStep`].
    of_packet: Box<[WriteStep]>,
    of_inputs: Box<[WriteStep]>,
    long_steps: Box<[LongStep]>,
    /// The steps for AVX-512: words that are written eight at a time, and all others.
    #[cfg(target_arch = "x86_64")]
    banks: Box<[WriteBank]>,
    #[cfg(target_arch = "x86_64")]
    unbanked: Box<[LongStep]>,
}

/// Writes one word of a fresh state: `((value & keep) ^ flip) + add`, of the value or its square.
/// If the packet lacks the value, writes `absent`. One formula for all kinds of words avoids a
/// branch per kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteStep {
    /// A slot of [`packet_slots`], or the number of an input.
    pub(super) from: u8,
    pub(super) word: u16,
    pub(super) flip: u64,
    pub(super) add: u64,
    pub(super) absent: u64,
    /// All ones, or 0 if only the presence of the value counts.
    pub(super) keep: u64,
    /// Whether the value is squared first.
    pub(super) squared: bool,
}

/// Writes what the formula cannot: the value selects the word, or the step writes two words.
#[derive(Clone, Debug)]
struct LongStep {
    source: Source,
    word: u16,
    /// The edges of a histogram. Without edges the step writes a 128-bit square.
    edges: Option<Edges>,
}

/// The source of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// A slot of [`packet_slots`].
    Packet(u8),
    /// An input that the packet may lack.
    Input(Input),
}

/// The values that every packet has. The first slot serves steps that need no value.
#[inline(always)]
fn packet_slots(packet: &Packet, reversed: bool) -> [u64; 8] {
    [
        0,
        u64::from(packet.ip_length_bytes),
        u64::from(packet.frame_length_bytes),
        packet.timestamp_ns,
        u64::from(packet.ttl),
        u64::from(packet.tos),
        u64::from(reversed),
        u64::from(packet.tcp_flags),
    ]
}

impl Source {
    fn new(of: Option<Input>, what: &StateContent) -> Self {
        match of {
            None => Self::Packet(0),
            Some(Input::IpLength) => Self::Packet(1),
            Some(Input::FrameLength) => Self::Packet(2),
            Some(Input::Timestamp) => Self::Packet(3),
            Some(Input::Ttl) => Self::Packet(4),
            Some(Input::Tos) => Self::Packet(5),
            Some(Input::Direction) => Self::Packet(6),
            // A packet without flags has 0, which does not change an OR.
            Some(Input::TcpFlags) if *what == StateContent::BitOr => Self::Packet(7),
            Some(input) => Self::Input(input),
        }
    }
}

impl Source {
    /// The slot, or the number of the input.
    const fn number(self) -> u8 {
        match self {
            Self::Packet(slot) => slot,
            Self::Input(input) => input as u8,
        }
    }

    const fn is_input(self) -> bool {
        matches!(self, Self::Input(_))
    }

    /// The value, and a mask: all ones if the packet has it, else 0.
    #[inline(always)]
    fn value(self, slots: &[u64; 8], inputs: &InputValues) -> (u64, u64) {
        match self {
            Self::Packet(slot) => (slots[(slot & 7) as usize], u64::MAX),
            Self::Input(input) => inputs.masked(input as u8),
        }
    }
}

impl WriteStep {
    /// The steps for a content's words. No steps if the content needs a [`LongStep`].
    fn of(content: &Content, source: Source) -> Vec<Self> {
        let from = source.number();
        let word = content.start as u16;
        let plain = Self {
            from,
            word,
            flip: 0,
            add: 0,
            absent: 0,
            keep: u64::MAX,
            squared: false,
        };
        let count = Self {
            add: 1,
            keep: 0,
            ..plain
        };
        match content.what {
            // The high word of a wide sum is 0.
            StateContent::Sum | StateContent::BitOr | StateContent::WideSum => vec![plain],
            StateContent::Count => vec![count],
            StateContent::First | StateContent::Last => vec![Self { add: 1, ..plain }],
            StateContent::Min => vec![Self {
                absent: u64::MAX,
                ..plain
            }],
            // `encode_max`: the complement minus 1.
            StateContent::Max => vec![Self {
                flip: u64::MAX,
                add: u64::MAX,
                absent: u64::MAX,
                ..plain
            }],
            StateContent::List(_) => {
                let value = Self {
                    word: word + 1,
                    ..plain
                };
                vec![count, value]
            }
            // The square of such a value fits 64 bits.
            StateContent::WideSquares if content.of.is_some_and(|of| of.bits() <= 32) => {
                vec![Self {
                    squared: true,
                    ..plain
                }]
            }
            StateContent::Bins(_) | StateContent::WideSquares => Vec::new(),
        }
    }

    #[inline(always)]
    fn apply<const N: usize>(&self, state: &mut [u64; N], value: u64, present: u64) {
        if let Some(word) = state.get_mut(self.word as usize) {
            let value = value.wrapping_mul(if self.squared { value } else { 1 });
            let written = ((value & self.keep) ^ self.flip).wrapping_add(self.add);
            *word = written & present | self.absent & !present;
        }
    }
}

/// The input that a parser must extract for this content, if any.
pub(super) fn needs_input(of: Option<Input>, what: &StateContent) -> Option<Input> {
    match Source::new(of, what) {
        Source::Input(Input::Gap) | Source::Packet(_) => None,
        Source::Input(input) => Some(input),
    }
}

impl Program {
    /// The program for packets in the direction of the key, or against it.
    pub(super) fn new(words: &Words, state_words: usize, reversed: bool) -> Self {
        let sides = [
            Side::Both,
            if reversed {
                Side::Reverse
            } else {
                Side::Forward
            },
        ];
        let (mut of_packet, mut of_inputs, mut long_steps) = (Vec::new(), Vec::new(), Vec::new());
        #[cfg(target_arch = "x86_64")]
        let (mut of_banks, mut unbanked) = (Vec::new(), Vec::new());
        for content in words.contents() {
            if !sides.contains(&content.side) || content.of == Some(Input::Gap) {
                continue;
            }
            let source = Source::new(content.of, &content.what);
            let writes = WriteStep::of(content, source);
            let long = LongStep {
                source,
                word: content.start as u16,
                edges: Edges::of(content),
            };
            #[cfg(target_arch = "x86_64")]
            match BankStep::of(content, source.number(), source.is_input(), &writes) {
                Some(steps) => of_banks.extend(steps),
                None => unbanked.push(long.clone()),
            }
            if writes.is_empty() {
                long_steps.push(long);
            }
            match source {
                Source::Packet(_) => of_packet.extend(writes),
                Source::Input(_) => of_inputs.extend(writes),
            }
        }
        let min = words.end_of(Class::Add) as u16..words.end_of(Class::Min) as u16;
        Self {
            #[cfg(target_arch = "x86_64")]
            banks: WriteBank::of(state_words, &min, &of_banks),
            #[cfg(target_arch = "x86_64")]
            unbanked: unbanked.into(),
            min,
            of_packet: of_packet.into(),
            of_inputs: of_inputs.into(),
            long_steps: long_steps.into(),
        }
    }

    /// [`Program::open`], compiled for AVX-512.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn open_avx512<const N: usize>(
        &self,
        proof: crate::Avx512,
        state: &mut [u64; N],
        packet: &Packet,
        inputs: &InputValues,
        reversed: bool,
    ) {
        let lanes = super::write_block::lanes_of(proof, &packet_slots(packet, reversed));
        WriteBank::write_all(proof, &self.banks, state.as_chunks_mut().0, lanes, inputs);
        if !self.unbanked.is_empty() {
            self.open_unbanked(state, packet, inputs, reversed);
        }
    }

    /// The steps that few definitions have. They are in a function of their own, because they would
    /// force the slots of every packet into memory.
    #[cfg(target_arch = "x86_64")]
    #[inline(never)]
    fn open_unbanked<const N: usize>(
        &self,
        state: &mut [u64; N],
        packet: &Packet,
        inputs: &InputValues,
        reversed: bool,
    ) {
        let slots = packet_slots(packet, reversed);
        Self::open_long_steps(&self.unbanked, state, &slots, inputs);
    }

    /// Overwrites `state` with that of one packet.
    #[inline(always)]
    pub(super) fn open<const N: usize>(
        &self,
        state: &mut [u64; N],
        packet: &Packet,
        inputs: &InputValues,
        reversed: bool,
    ) {
        // Zero is neutral in every class except min.
        *state = [0; N];
        for word in self.min.clone() {
            if let Some(word) = state.get_mut(usize::from(word)) {
                *word = u64::MAX;
            }
        }
        let slots = packet_slots(packet, reversed);
        for write in &self.of_packet {
            write.apply(state, slots[(write.from & 7) as usize], u64::MAX);
        }
        for write in &self.of_inputs {
            let (value, present) = inputs.masked(write.from);
            write.apply(state, value, present);
        }
        Self::open_long_steps(&self.long_steps, state, &slots, inputs);
    }

    /// Writes bins, whose word depends on the value, and 128-bit squares.
    #[inline(always)]
    fn open_long_steps<const N: usize>(
        steps: &[LongStep],
        state: &mut [u64; N],
        slots: &[u64; 8],
        inputs: &InputValues,
    ) {
        for step in steps {
            let (value, present) = step.source.value(slots, inputs);
            let at = step.word as usize;
            if let Some(edges) = &step.edges {
                let bin = at + edges.bin_of(value);
                if let Some(bin) = state.get_mut(bin) {
                    *bin = present & 1;
                }
            } else {
                let value = u128::from(value & present);
                add_wide(state, at, value * value);
            }
        }
    }
}

/// The edges of a histogram, padded with the largest number to one less than a power of two.
#[derive(Clone, Debug)]
pub(super) struct Edges {
    padded: Box<[u64]>,
    count: usize,
}

impl Edges {
    /// The edges of a content, if it is a histogram.
    pub(super) fn of(content: &Content) -> Option<Self> {
        let StateContent::Bins(edges) = &content.what else {
            return None;
        };
        let mut padded = edges.clone();
        padded.resize((edges.len() + 1).next_power_of_two() - 1, u64::MAX);
        Some(Self {
            padded: padded.into(),
            count: edges.len(),
        })
    }

    /// How many edges are at or below `value`, by a binary search without branches.
    #[inline(always)]
    pub(super) fn bin_of(&self, value: u64) -> usize {
        let (mut reached, mut step) = (0, self.padded.len().div_ceil(2));
        while step > 0 {
            let edge = self
                .padded
                .get(reached + step - 1)
                .copied()
                .unwrap_or(u64::MAX);
            reached += select_unpredictable(edge <= value, step, 0);
            step /= 2;
        }
        reached.min(self.count)
    }
}
