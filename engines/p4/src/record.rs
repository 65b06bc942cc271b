// SPDX-License-Identifier: Apache-2.0
//! The words of a record in the pipeline, as given by a record definition.

use std::fmt::Write;

use turboflow_engine::{BASE_WORDS, MicroflowBatch, RecordShape};
use turboflow_merge::{KeySteps, Layout, Marks, StateContent, fnv_1a};
use turboflow_record::{
    Definition, Family, FiveTuple, Input, InputSet, Op, TCP_FIN, TCP_RST, transport_word,
};

use crate::report::RecordSizes;

/// The bit of the word `tcp` above the flags: `STARTS_WITH_SYN` in `p4/shared/lane.p4`.
const STARTS_WITH_SYN: u64 = 0x1000;
/// Words that every record has: packets, bytes, first and last time, TCP flags.
const CORE_WORDS: usize = 5;
/// Words of a key: two addresses in two words each, and the rest.
const KEY_WORDS: usize = 5;
/// Bytes of a key in a report.
pub(crate) const KEY_BYTES: usize = 8 * KEY_WORDS;
/// The stored form of a minimum that no definition asks for: the complement of the largest number.
const NO_MINIMUM: u64 = 0;
/// The state word of a minimum or maximum without values.
const NO_EXTREME: u64 = u64::MAX;

/// How a feature folds its input, by the program's name for the fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum P4Op {
    /// OR of the values.
    BitOr,
    /// The first value.
    First,
    /// The last value.
    Last,
    /// The largest value.
    Max,
    /// The smallest value.
    Min,
    /// The sum.
    Sum,
}

impl P4Op {
    const fn name(self) -> &'static str {
        match self {
            Self::BitOr => "bit_or",
            Self::First => "first",
            Self::Last => "last",
            Self::Max => "max",
            Self::Min => "min",
            Self::Sum => "sum",
        }
    }
}

/// A word of a record in addition to those that every record has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct P4Feature {
    /// How it folds its input.
    pub op: P4Op,
    /// Its input, which every packet has.
    pub of: Input,
}

/// A part of a record definition that a pipeline does not support.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// A key other than the 5-tuple.
    #[error("a key other than the 5-tuple")]
    Key,
    /// Merging both directions.
    #[error("joining the two directions of a flow")]
    Biflow,
    /// An op that needs more than one word, or values of individual packets.
    #[error("{what} of `{}`", .of.map_or("packets", Input::name))]
    Fold {
        /// The op.
        what: &'static str,
        /// Its input.
        of: Option<Input>,
    },
    /// An input that the parser does not read.
    #[error("the input `{}`", .0.name())]
    Input(Input),
}

/// The inputs that features may fold. Every packet has them.
pub(crate) const INPUTS: InputSet = InputSet::of(&[
    Input::IpLength,
    Input::Timestamp,
    Input::Tos,
    Input::TcpFlags,
    Input::Ttl,
]);

/// The inputs that are also known if packets are metered behind a queue.
pub(crate) const QUEUE_INPUTS: InputSet =
    InputSet::of(&[Input::EgressInterface, Input::HopLatency, Input::QueueDepth]);

/// The source of a state word's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StateWord {
    from: usize,
    op: P4Op,
    /// Whether the first packet has no value.
    is_of_gaps: bool,
}

impl StateWord {
    const PACKETS: Self = Self {
        from: 0,
        op: P4Op::Sum,
        is_of_gaps: false,
    };
}

/// The words of a record.
#[derive(Clone, Debug)]
pub struct P4Record {
    features: Vec<P4Feature>,
    shape: RecordShape,
    /// The words of the base fields that not every record has.
    base: BaseWords,
    /// The source of each state word.
    state: Vec<StateWord>,
}

/// Indexes of words after the key.
#[derive(Clone, Copy, Debug, Default)]
struct BaseWords {
    min_length: Option<usize>,
    max_length: Option<usize>,
    min_ttl: Option<usize>,
    max_ttl: Option<usize>,
    tos: Option<usize>,
}

impl P4Record {
    /// The words for a definition; `layout` is the definition's layout.
    ///
    /// # Errors
    /// The first part of the definition that a pipeline does not support.
    pub fn new(definition: &Definition, layout: &Layout) -> Result<Self, Unsupported> {
        Self::with_inputs(definition, layout, INPUTS)
    }

    /// The words for packets that are metered behind a queue: `-DBEHIND_QUEUE` of `p4/v1model`. A
    /// frame that the program hands up has none of the queue's inputs.
    ///
    /// # Errors
    /// As [`P4Record::new`].
    pub fn behind_queue(definition: &Definition, layout: &Layout) -> Result<Self, Unsupported> {
        Self::with_inputs(definition, layout, INPUTS.union(QUEUE_INPUTS))
    }

    fn with_inputs(
        definition: &Definition,
        layout: &Layout,
        inputs: InputSet,
    ) -> Result<Self, Unsupported> {
        let steps = layout.steps();
        if steps.key != KeySteps::FiveTuple {
            return Err(Unsupported::Key);
        }
        if layout.is_biflow() {
            return Err(Unsupported::Biflow);
        }
        let mut record = Self {
            features: Vec::new(),
            shape: RecordShape::of(layout),
            base: BaseWords::default(),
            state: vec![StateWord::PACKETS; steps.words],
        };
        let asks_for = |op: &Op, of| {
            let mut features = definition.features.iter();
            features.any(|feature| feature.op == *op && feature.of == Some(of))
        };
        let mut base = BaseWords::default();
        for (place, op, p4_op, of) in [
            (&mut base.min_length, Op::Min, P4Op::Min, Input::IpLength),
            (&mut base.max_length, Op::Max, P4Op::Max, Input::IpLength),
            (&mut base.min_ttl, Op::Min, P4Op::Min, Input::Ttl),
            (&mut base.max_ttl, Op::Max, P4Op::Max, Input::Ttl),
            (&mut base.tos, Op::First, P4Op::First, Input::Tos),
        ] {
            if asks_for(&op, of) {
                *place = Some(record.word_of(P4Feature { op: p4_op, of }));
            }
        }
        record.base = base;
        for step in &steps.state {
            record.state[step.word] = record.state_word(&step.what, step.of, inputs)?;
        }
        Ok(record)
    }

    /// The features, in the order of their words.
    #[must_use]
    pub fn features(&self) -> &[P4Feature] {
        &self.features
    }

    /// Whether a feature folds an input that is only known behind a queue.
    #[must_use]
    pub fn needs_queue(&self) -> bool {
        let mut features = self.features.iter();
        features.any(|feature| !INPUTS.contains(feature.of))
    }

    /// The number of 64-bit words of a record, including its key.
    #[must_use]
    pub const fn words(&self) -> usize {
        KEY_WORDS + CORE_WORDS + self.features.len()
    }

    /// The sizes of a record, in bytes.
    pub(crate) const fn sizes(&self) -> RecordSizes {
        let bytes = 8 * self.words();
        RecordSizes {
            v4_bytes: bytes,
            v6_bytes: bytes,
        }
    }

    /// The sizes of a chip's record, whose words have 32 bits, in bytes: `tna/headers.p4`.
    pub(crate) const fn sizes_of_chip(&self) -> RecordSizes {
        // Ports and protocol.
        let other_words = 2 + CORE_WORDS + self.features.len();
        RecordSizes {
            v4_bytes: 4 * (2 + other_words),
            v6_bytes: 4 * (8 + other_words),
        }
    }

    /// A number for the words of a record, on which program and receiver must agree: the FNV-1a
    /// hash of [`P4Record::describe`].
    #[must_use]
    pub fn id(&self) -> u64 {
        fnv_1a(self.describe().as_bytes())
    }

    /// Describes the words, with a line for each feature.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = "turboflow p4 1\n".to_owned();
        for P4Feature { op, of } in &self.features {
            writeln!(text, "{} {}", op.name(), of.name()).expect("text takes text");
        }
        text
    }

    /// The text of `record.p4`, with which the program is compiled. `name` is the name of the
    /// definition.
    #[must_use]
    pub fn source(&self, name: &str) -> String {
        let mut text = format!(
            "// SPDX-License-Identifier: Apache-2.0\n\
             // Written by `turboflow p4 generate`: the record definition `{name}`. What it folds \
             beyond the\n\
             // packets, bytes, first and last time and TCP flags that every record has:\n\
             // FEATURE(op, name, input).\n\n\
             #define LAYOUT_ID 0x{:016x}\n\
             #define RECORD_FEATURES(FEATURE)",
            self.id()
        );
        for P4Feature { op, of } in &self.features {
            let (op, of) = (op.name(), of.name());
            write!(text, " \\\n    FEATURE({op}, {op}_{of}, {of})").expect("text takes text");
        }
        text.push('\n');
        text
    }

    /// The index of a feature's word after the key.
    fn word_of(&mut self, feature: P4Feature) -> usize {
        let known = self.features.iter().position(|known| *known == feature);
        CORE_WORDS
            + known.unwrap_or_else(|| {
                self.features.push(feature);
                self.features.len() - 1
            })
    }

    fn state_word(
        &mut self,
        what: &StateContent,
        of: Option<Input>,
        inputs: InputSet,
    ) -> Result<StateWord, Unsupported> {
        let fold = |what| Unsupported::Fold { what, of };
        let op = match what {
            // Counting an input that every packet has means counting packets.
            StateContent::Count => {
                let counts = of.is_none_or(|of| inputs.contains(of) && is_of_all(of));
                return counts
                    .then_some(StateWord::PACKETS)
                    .ok_or_else(|| fold("the number of packets"));
            }
            StateContent::BitOr => P4Op::BitOr,
            StateContent::First => P4Op::First,
            StateContent::Last => P4Op::Last,
            StateContent::Max => P4Op::Max,
            StateContent::Min => P4Op::Min,
            StateContent::Sum => P4Op::Sum,
            StateContent::Bins(_) => return Err(fold("a histogram")),
            StateContent::List(_) => return Err(fold("a list of single values")),
            StateContent::WideSquares => return Err(fold("the variance")),
            StateContent::WideSum => return Err(fold("a sum of 128 bits")),
        };
        let of = of.ok_or_else(|| fold(op.name()))?;
        if of == Input::Gap {
            return self.gaps(op, inputs).ok_or_else(|| fold(op.name()));
        }
        if !inputs.contains(of) {
            return Err(Unsupported::Input(of));
        }
        if !is_of_all(of) {
            return Err(fold(op.name()));
        }
        let from = match (op, of) {
            (P4Op::Sum, Input::IpLength) => 1,
            (P4Op::Min | P4Op::First, Input::Timestamp) => 2,
            (P4Op::Max, Input::Timestamp) => 3,
            // Only if packets are metered in time order.
            (P4Op::Last, Input::Timestamp) if is_in_order(inputs) => 3,
            (_, Input::Timestamp) => return Err(fold(op.name())),
            _ => self.word_of(P4Feature { op, of }),
        };
        Ok(StateWord {
            from,
            op,
            is_of_gaps: false,
        })
    }

    /// The word of a fold over the time between packets, if the pipeline can measure it.
    fn gaps(&mut self, op: P4Op, inputs: InputSet) -> Option<StateWord> {
        let of = Input::Gap;
        (op == P4Op::Max && is_in_order(inputs)).then(|| StateWord {
            from: self.word_of(P4Feature { op, of }),
            op,
            is_of_gaps: true,
        })
    }

    /// The packets and bytes of a record, which must have all its words.
    pub(crate) fn packets_and_bytes(words: &[u8]) -> [u64; 2] {
        [0, 1].map(|at| word_at(words, KEY_WORDS + at))
    }

    /// The time of the first packet.
    pub(crate) fn first_ns(words: &[u8]) -> u64 {
        word_at(words, KEY_WORDS + 2)
    }

    /// Appends the record with these bytes, which must be as many as [`P4Record::words`] says.
    /// Returns its packets and bytes, or `None` if its key has neither IP version.
    #[inline]
    pub(crate) fn append(&self, bytes: &[u8], batch: &mut MicroflowBatch) -> Option<(u64, u64)> {
        let wire_word = |at| wire_word(bytes, at);
        let word = |at| word_at(bytes, KEY_WORDS + at);
        let field = |at: Option<usize>, otherwise| at.map_or(otherwise, word);
        let [_, _, s0, s1, d0, d1, protocol, version] = wire_word(4);
        let family = match version {
            4 => Family::V4,
            6 => Family::V6,
            _ => return None,
        };
        let transport = transport_word([s0, s1, d0, d1], protocol, family);
        let tcp = word(4);
        let base = [
            word(0),
            word(1),
            word(2),
            word(3),
            minimum(self.base.min_length.map(word), u32::MAX.into())
                | field(self.base.max_length, 0) << 32,
            minimum(self.base.min_ttl.map(word), u8::MAX.into())
                | field(self.base.max_ttl, 0) << 8
                | (tcp & 0xfff) << 32
                | field(self.base.tos, 0) << 48
                | u64::from(marks(tcp)) << 56,
        ];
        if self.shape.is_plain() {
            match family {
                Family::V4 => {
                    let key = [addresses_v4(wire_word(1), wire_word(3)), transport];
                    batch
                        .plain_v4
                        .push(|at| *base.get(at).unwrap_or_else(|| &key[at - BASE_WORDS]));
                }
                Family::V6 => {
                    let key = [0, 1, 2, 3].map(|at| u64::from_le_bytes(wire_word(at)));
                    let [k0, k1, k2, k3] = key;
                    let key = [k0, k1, k2, k3, transport];
                    batch
                        .plain_v6
                        .push(|at| *base.get(at).unwrap_or_else(|| &key[at - BASE_WORDS]));
                }
            }
            return Some((base[0], base[1]));
        }
        let state = self
            .state
            .iter()
            .map(|step| match step.is_of_gaps && base[0] == 1 {
                true => NO_EXTREME,
                false => encoded(step.op, word(step.from)),
            });
        let mut row = Vec::with_capacity(self.shape.words_v6());
        row.extend(base);
        row.extend(state);
        match family {
            Family::V4 => row.push(addresses_v4(wire_word(1), wire_word(3))),
            Family::V6 => row.extend((0..4).map(|at| u64::from_le_bytes(wire_word(at)))),
        }
        row.push(transport);
        let is_record = batch.push_row(row.into_iter(), self.shape);
        debug_assert!(is_record, "rows have the shape of the layout");
        Some((base[0], base[1]))
    }
}

/// A word of a record as received.
fn wire_word(words: &[u8], at: usize) -> [u8; 8] {
    words.as_chunks().0[at]
}

fn word_at(words: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(wire_word(words, at))
}

/// The key of a flow in a report.
pub(crate) fn key_bytes(tuple: &FiveTuple) -> [u8; KEY_BYTES] {
    let words = tuple.raw_words().map(u64::to_le_bytes);
    let mut bytes = [0; KEY_BYTES];
    let (version, transport) = match tuple.family() {
        Family::V4 => {
            bytes[12..16].copy_from_slice(&words[0][..4]);
            bytes[28..32].copy_from_slice(&words[0][4..]);
            (4, words[1])
        }
        Family::V6 => {
            bytes[..32].copy_from_slice(words[..4].as_flattened());
            (6, words[4])
        }
    };
    bytes[34..39].copy_from_slice(&transport[..5]);
    bytes[39] = version;
    bytes
}

/// The first key word of an IPv4 flow in memory: both addresses in wire order.
const fn addresses_v4(source: [u8; 8], destination: [u8; 8]) -> u64 {
    let [_, _, _, _, a, b, c, d] = source;
    let [_, _, _, _, e, f, g, h] = destination;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// Whether packets come in time order. Packets to a queue do; those of captures may not.
const fn is_in_order(inputs: InputSet) -> bool {
    inputs.contains(Input::QueueDepth)
}

/// Whether every packet that the pipeline meters has this input.
fn is_of_all(of: Input) -> bool {
    of.is_always_present() || QUEUE_INPUTS.contains(of)
}

/// The stored form of a minimum: its complement, limited to the bits of `mask`.
fn minimum(value: Option<u64>, mask: u64) -> u64 {
    value.map_or(NO_MINIMUM, |value| !value & mask)
}

/// The events of a TCP connection. A SYN without ACK joins no record, so only the first packet of a
/// record can be one.
const fn marks(tcp: u64) -> u8 {
    let mut marks = 0;
    if tcp & STARTS_WITH_SYN != 0 {
        marks |= Marks::STARTS_WITH_SYN | Marks::SYN;
    }
    if tcp & TCP_FIN as u64 != 0 {
        marks |= Marks::FIN;
    }
    if tcp & TCP_RST as u64 != 0 {
        marks |= Marks::RST;
    }
    marks
}

/// A value as a state word: see `turboflow_engine::wire`.
const fn encoded(op: P4Op, value: u64) -> u64 {
    match op {
        P4Op::BitOr | P4Op::Min | P4Op::Sum => value,
        P4Op::First | P4Op::Last => value.wrapping_add(1),
        P4Op::Max => !value.wrapping_add(1),
    }
}
