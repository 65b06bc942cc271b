// SPDX-License-Identifier: Apache-2.0
//! How a single packet goes into a record's state: a few steps for each class of words, and no look
//! at features. Into a neutral state, that makes the state of a record of its own.

use super::gap::GapWords;
use super::plan::{ListWords, add_wide};
use super::words::{Class, Content, Side, What, Words};
use crate::{Input, InputValues, Packet};

/// The steps of packets of one direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Program {
    gaps: Box<[GapWords]>,
    add: Steps<Store>,
    min: Steps<Store>,
    or: Steps<Store>,
    first: Steps<Store>,
    last: Steps<Store>,
    wide: Steps<Wide>,
    bins: Steps<Bins>,
    lists: Steps<ListWords>,
}

/// Steps over what every packet has, and over inputs that a packet may lack.
#[derive(Clone, Debug)]
struct Steps<S> {
    of_packet: Box<[(u8, S)]>,
    of_inputs: Box<[(u8, S)]>,
}

/// Folds `((value & and) ^ xor) + plus` into `word`, the three of them sign-extended.
#[derive(Clone, Copy, Debug)]
struct Store {
    word: u16,
    and: i8,
    xor: i8,
    plus: i8,
}

/// Adds the value, or its square, to two words.
#[derive(Clone, Copy, Debug)]
struct Wide {
    word: u16,
    is_square: bool,
}

/// Counts one more in the value's bin.
#[derive(Clone, Debug)]
struct Bins {
    word: u16,
    edges: Box<[u64]>,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// A slot of [`packet_slots`].
    Packet(u8),
    /// An input that the packet may lack.
    Input(Input),
}

/// The values that every packet has. The first is for steps that need none.
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
    fn new(of: Option<Input>, what: &What) -> Self {
        match of {
            None => Self::Packet(0),
            Some(Input::IpLength) => Self::Packet(1),
            Some(Input::FrameLength) => Self::Packet(2),
            Some(Input::Timestamp) => Self::Packet(3),
            Some(Input::Ttl) => Self::Packet(4),
            Some(Input::Tos) => Self::Packet(5),
            Some(Input::Direction) => Self::Packet(6),
            // Absent flags are 0 in a packet, which an OR does not see.
            Some(Input::TcpFlags) if *what == What::BitOr => Self::Packet(7),
            Some(input) => Self::Input(input),
        }
    }
}

/// Whether a parser must fill in the input for that content.
pub(super) fn needs_input(of: Option<Input>, what: &What) -> Option<Input> {
    match Source::new(of, what) {
        Source::Input(Input::Gap) | Source::Packet(_) => None,
        Source::Input(input) => Some(input),
    }
}

impl Program {
    /// The program of packets that run with the key, or against it.
    pub(super) fn new(words: &Words, reversed: bool) -> Self {
        let sides = [
            Side::Both,
            if reversed {
                Side::Reverse
            } else {
                Side::Forward
            },
        ];
        let mine =
            |content: &&Content| sides.contains(&content.side) && content.of != Some(Input::Gap);
        let contents: Vec<&Content> = words.contents().iter().filter(mine).collect();
        let stores = |class| Steps::new(&contents, |content| Store::new(content, class));
        Self {
            gaps: sides
                .into_iter()
                .filter_map(|side| GapWords::new(words, side))
                .collect(),
            add: stores(Class::Add),
            min: stores(Class::Min),
            or: stores(Class::Or),
            first: stores(Class::First),
            last: stores(Class::Last),
            wide: Steps::new(&contents, Wide::new),
            bins: Steps::new(&contents, Bins::new),
            lists: Steps::new(&contents, ListWords::new),
        }
    }

    /// Folds in a packet that arrived after all others.
    #[inline(always)]
    pub(super) fn absorb<const N: usize>(
        &self,
        state: &mut [u64; N],
        packet: &Packet,
        inputs: &InputValues,
        reversed: bool,
    ) {
        for gap in &self.gaps {
            gap.bridge(state, packet.timestamp_ns.wrapping_add(1));
        }
        let slots = &packet_slots(packet, reversed);
        self.add.each_word(slots, inputs, state, |a, b, present| {
            a.wrapping_add(b & present)
        });
        self.min
            .each_word(slots, inputs, state, |a, b, present| a.min(b | !present));
        self.or
            .each_word(slots, inputs, state, |a, b, present| a | b & present);
        self.first.each_word(
            slots,
            inputs,
            state,
            |a, b, present| {
                if a == 0 { b & present } else { a }
            },
        );
        self.last.each_word(slots, inputs, state, |a, b, present| {
            b & present | a & !present
        });
        self.wide.each(slots, inputs, |step, value, present| {
            let value = u128::from(value & present);
            let factor = if step.is_square { value } else { 1 };
            add_wide(state, step.word as usize, value * factor);
        });
        self.bins.each(slots, inputs, |step, value, present| {
            if let Some(bin) = state.get_mut(step.word as usize + bin_of(&step.edges, value)) {
                *bin += present & 1;
            }
        });
        self.lists.each(slots, inputs, |list, value, present| {
            if present != 0 {
                list.push(state, value);
            }
        });
    }
}

impl<S> Default for Steps<S> {
    fn default() -> Self {
        Self {
            of_packet: Box::default(),
            of_inputs: Box::default(),
        }
    }
}

impl<S> Steps<S> {
    fn new(contents: &[&Content], step: impl Fn(&Content) -> Option<S>) -> Self {
        let (mut of_packet, mut of_inputs) = (Vec::new(), Vec::new());
        for content in contents {
            let Some(step) = step(content) else { continue };
            match Source::new(content.of, &content.what) {
                Source::Packet(slot) => of_packet.push((slot, step)),
                Source::Input(input) => of_inputs.push((input as u8, step)),
            }
        }
        Self {
            of_packet: of_packet.into(),
            of_inputs: of_inputs.into(),
        }
    }

    /// Calls `fold` with each step, its value, and all ones where the packet carries it.
    #[inline(always)]
    fn each(&self, slots: &[u64; 8], inputs: &InputValues, mut fold: impl FnMut(&S, u64, u64)) {
        for (slot, step) in &self.of_packet {
            fold(step, slots[(slot & 7) as usize], u64::MAX);
        }
        for (input, step) in &self.of_inputs {
            let (value, present) = inputs.masked(*input);
            fold(step, value, present);
        }
    }
}

impl Steps<Store> {
    /// Folds each step's value into its word.
    #[inline(always)]
    fn each_word<const N: usize>(
        &self,
        slots: &[u64; 8],
        inputs: &InputValues,
        state: &mut [u64; N],
        fold: impl Fn(u64, u64, u64) -> u64,
    ) {
        self.each(slots, inputs, |store, value, present| {
            let encoded = (value & store.and as u64) ^ store.xor as u64;
            let encoded = encoded.wrapping_add(store.plus as u64);
            if let Some(word) = state.get_mut(store.word as usize) {
                *word = fold(*word, encoded, present);
            }
        });
    }
}

impl Store {
    fn new(content: &Content, class: Class) -> Option<Self> {
        let (and, xor, plus) = match &content.what {
            What::Count => (0, 0, 1),
            What::Max => (-1, -1, -1),
            What::First | What::Last => (-1, 0, 1),
            What::Sum | What::Min | What::BitOr => (-1, 0, 0),
            What::Bins(_) | What::WideSum | What::WideSquares | What::List(_) => return None,
        };
        let word = content.start as u16;
        (content.what.class() == class).then_some(Self {
            word,
            and,
            xor,
            plus,
        })
    }
}

impl Wide {
    fn new(content: &Content) -> Option<Self> {
        let is_square = content.what == What::WideSquares;
        let is_wide = is_square || content.what == What::WideSum;
        is_wide.then_some(Self {
            word: content.start as u16,
            is_square,
        })
    }
}

impl Bins {
    fn new(content: &Content) -> Option<Self> {
        match &content.what {
            What::Bins(edges) => Some(Self {
                word: content.start as u16,
                edges: edges.as_slice().into(),
            }),
            _ => None,
        }
    }
}

/// How many edges `value` has reached.
#[inline(always)]
pub(super) fn bin_of(edges: &[u64], value: u64) -> usize {
    if edges.len() <= 16 {
        return edges.iter().map(|edge| usize::from(*edge <= value)).sum();
    }
    edges.partition_point(|edge| *edge <= value)
}
