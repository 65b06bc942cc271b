// SPDX-License-Identifier: Apache-2.0
//! A record definition as constants of the program: `struct plan` in `bpf/plan.h`.

use turboflow_merge::{KeySteps, KeyWidths, Layout, StateContent, StateStep, Steps, WORDS_WIDE};
use turboflow_record::{Input, InputSet, KeyField};

use turboflow_engine::BASE_WORDS;

use crate::abilities::MAX_WORDS;
use crate::bridge::config::JudgedWords;
use crate::config::PAGE_BYTES;
use crate::layout::KEY_HALVES;
use crate::{INPUTS, KernelError};

/// Limit on state steps: each has its own code in the program.
const MAX_STEPS: usize = 64;
/// Fields of a key: its family, two addresses in two halves each, ports, protocol, inputs.
const MAX_KEY_STEPS: usize = 8 + KeyField::INPUTS.len();
const MAX_EDGES: usize = MAX_WORDS;
/// Words of a value set: `SET_WORDS` in `bpf/values.h`.
const SET_WORDS: usize = of_key::END.div_ceil(64).next_power_of_two();
/// Word offset of the edges in `struct plan`, and that of the steps and key fields.
const EDGES_AT: usize = SET_WORDS + KEY_HALVES + 1;
const STEPS_AT: usize = EDGES_AT + MAX_EDGES;
const KEY_STEPS_AT: usize = STEPS_AT + MAX_STEPS;
/// Size of `struct plan`.
const PLAN_BYTES: usize = 8 * (KEY_STEPS_AT + 2 * MAX_KEY_STEPS + 3);

/// The largest record, its ticket and the ring's header fit in the smallest ring.
const _: () = assert!(8 * (BASE_WORDS + MAX_WORDS + WORDS_WIDE + 2) < PAGE_BYTES as usize);

/// Numbers in `enum value` that are not inputs: they follow the inputs.
mod of_key {
    use turboflow_record::Input;

    pub(super) const SOURCE_PORT: u8 = Input::COUNT as u8;
    pub(super) const DESTINATION_PORT: u8 = SOURCE_PORT + 1;
    pub(super) const PROTOCOL: u8 = SOURCE_PORT + 2;
    pub(super) const FAMILY: u8 = SOURCE_PORT + 3;
    pub(super) const SOURCE_ADDRESS: u8 = SOURCE_PORT + 4;
    pub(super) const DESTINATION_ADDRESS: u8 = SOURCE_PORT + 6;
    pub(super) const END: usize = Input::COUNT + 8;
    const _: () = assert!(END <= 256, "the number of a value is a byte");
}

/// Markers for "none".
const NO_BIT: u8 = 255;
const NO_WORD: u32 = u32::MAX;

/// Checks whether the engine supports records of that layout.
///
/// # Errors
/// The exceeded limit ([`KernelError::TooLarge`]), or the input that is not available here.
pub fn check_layout(layout: &Layout) -> Result<(), KernelError> {
    KernelPlan::new(layout, false).map(drop)
}

/// As [`check_layout`], for a bridge, which also provides its decisions on packets as inputs.
///
/// # Errors
/// As `check_layout`.
pub fn check_bridge_layout(layout: &Layout) -> Result<(), KernelError> {
    KernelPlan::new(layout, true).map(drop)
}

/// A record definition for the program `planned`, or for the fast program of a bridge.
#[derive(Clone, Debug)]
pub(crate) struct KernelPlan {
    steps: Steps,
    is_bridge: bool,
}

impl KernelPlan {
    /// The plan of a layout; `None` for the default definition, which has a faster program.
    ///
    /// # Errors
    /// An exceeded limit, or an input that is not available here.
    pub(crate) fn new(layout: &Layout, is_bridge: bool) -> Result<Option<Self>, KernelError> {
        let mut steps = layout.steps();
        // User space writes the results of inspection into records. Their words stay reserved.
        let is_inspected = |step: &StateStep| step.of.is_some_and(Input::is_inspected);
        steps.state.retain(|step| !is_inspected(step));
        if layout.key_widths() == KeyWidths::ByFamily && steps.words == 0 {
            return Ok(None);
        }
        let plan = Self { steps, is_bridge };
        plan.check(layout)?;
        Ok(Some(plan))
    }

    fn check(&self, layout: &Layout) -> Result<(), KernelError> {
        if layout.is_biflow() {
            return Err(KernelError::Biflow);
        }
        let is_seen = |input: Input| {
            INPUTS.contains(input) || self.is_bridge && InputSet::DECIDED.contains(input)
        };
        if let Some(input) = self.inputs().find(|input| !is_seen(*input)) {
            let input = input.name();
            return Err(KernelError::Unseen { input });
        }
        let counted = [
            ("words of state", self.steps.words, MAX_WORDS),
            (
                "different values to keep",
                self.steps.state.len(),
                MAX_STEPS,
            ),
        ];
        match counted.into_iter().find(|(_, needed, room)| needed > room) {
            Some((what, needed, room)) => Err(KernelError::TooLarge { what, needed, room }),
            None => Ok(()),
        }
    }

    /// The words that the fast program of a bridge writes into records in addition to the standard
    /// features; `None` if it cannot write these records.
    pub(crate) fn judged(&self) -> Option<JudgedWords> {
        let is_five_tuple = matches!(self.steps.key, KeySteps::FiveTuple);
        let is_fast = self.is_bridge && is_five_tuple && self.steps.last_arrival.is_none();
        is_fast
            .then(|| JudgedWords::of(&self.steps.state))
            .flatten()
    }

    /// All inputs of the state and the key.
    fn inputs(&self) -> impl Iterator<Item = Input> {
        let of_state = self.steps.state.iter().filter_map(|step| step.of);
        let fields = match &self.steps.key {
            KeySteps::FiveTuple => &[][..],
            KeySteps::Wide { fields, .. } => fields.as_slice(),
        };
        let of_key = fields.iter().filter_map(|key_slot| match key_slot.field {
            KeyField::Input(input) => Some(input),
            _ => None,
        });
        of_state.chain(of_key)
    }

    /// The bytes of `struct plan` in `bpf/plan.h`.
    pub(crate) fn bytes(&self, hash_keys: &[u64; KEY_HALVES]) -> Vec<u8> {
        let mut bytes = Bytes::default();
        let mut wanted = [0; SET_WORDS];
        for input in self.inputs().map(|input| input as usize) {
            wanted[input / 64] |= 1 << (input % 64);
        }
        wanted.iter().for_each(|word| bytes.word(*word));
        hash_keys.iter().for_each(|key| bytes.word(*key));
        let (key_words, header) = match self.steps.key {
            KeySteps::FiveTuple => (0, 0),
            KeySteps::Wide { words, header, .. } => (words as u32, header),
        };
        bytes.word(header);
        self.edges().for_each(|edge| bytes.word(edge));
        bytes.fill_to(8 * STEPS_AT);
        let mut edge = 0;
        for step in &self.steps.state {
            bytes.step(step, &mut edge);
        }
        bytes.fill_to(8 * KEY_STEPS_AT);
        self.key_steps(&mut bytes);
        bytes.fill_to(PLAN_BYTES - 24);
        let ones = &self.steps.ones;
        let last_arrival = self.steps.last_arrival.map_or(NO_WORD, |word| word as u32);
        let numbers = [
            self.steps.words as u32,
            key_words,
            ones.start as u32,
            ones.end as u32,
            last_arrival,
            0,
        ];
        numbers.iter().for_each(|number| bytes.half_word(*number));
        debug_assert_eq!(bytes.0.len(), PLAN_BYTES);
        bytes.0
    }

    fn edges(&self) -> impl Iterator<Item = u64> + '_ {
        let of_step = |step: &StateStep| match &step.what {
            StateContent::Bins(edges) => edges.clone(),
            _ => Vec::new(),
        };
        self.steps.state.iter().flat_map(of_step)
    }

    fn key_steps(&self, bytes: &mut Bytes) {
        let KeySteps::Wide {
            family_shift,
            fields,
            ..
        } = &self.steps.key
        else {
            return;
        };
        let whole = |of, word, shift, presence| KeyStep {
            keep: u64::MAX,
            of,
            word,
            shift,
            presence,
        };
        if let Some(shift) = *family_shift {
            bytes.key_step(&whole(of_key::FAMILY, 0, shift, NO_BIT));
        }
        for key_slot in fields {
            let (word, shift) = (key_slot.word, key_slot.shift);
            let presence = key_slot.presence.unwrap_or(NO_BIT);
            let (first, values) = match key_slot.field {
                KeyField::SourceAddress => (of_key::SOURCE_ADDRESS, 2),
                KeyField::DestinationAddress => (of_key::DESTINATION_ADDRESS, 2),
                KeyField::SourcePort => (of_key::SOURCE_PORT, 1),
                KeyField::DestinationPort => (of_key::DESTINATION_PORT, 1),
                KeyField::Protocol => (of_key::PROTOCOL, 1),
                // Tunnels are not entered.
                KeyField::OuterSourceAddress | KeyField::OuterDestinationAddress => continue,
                KeyField::Input(input) => (input as u8, 1),
            };
            for value in 0..values {
                let step = whole(first + value, word + value, shift, presence);
                let keep = u64::MAX >> (64 - key_slot.bits.min(64));
                bytes.key_step(&KeyStep { keep, ..step });
            }
        }
    }
}

struct KeyStep {
    keep: u64,
    of: u8,
    word: u8,
    shift: u8,
    presence: u8,
}

/// A C structure being filled.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn word(&mut self, word: u64) {
        self.0.extend(word.to_ne_bytes());
    }

    fn half_word(&mut self, half_word: u32) {
        self.0.extend(half_word.to_ne_bytes());
    }

    fn quarter_word(&mut self, quarter_word: u16) {
        self.0.extend(quarter_word.to_ne_bytes());
    }

    /// Pads with zeros up to `length`.
    fn fill_to(&mut self, length: usize) {
        assert!(self.0.len() <= length, "limits were checked");
        self.0.resize(length, 0);
    }

    /// Appends `struct step`; `edge` is the index of the next histogram's first edge.
    fn step(&mut self, step: &StateStep, edge: &mut usize) {
        let (fold, count) = match &step.what {
            StateContent::Count => (1, 0),
            StateContent::Sum => (2, 0),
            StateContent::Bins(edges) => (3, edges.len()),
            StateContent::Min => (4, 0),
            StateContent::Max => (5, 0),
            StateContent::BitOr => (6, 0),
            StateContent::First => (7, 0),
            StateContent::Last => (8, 0),
            StateContent::WideSum => (9, 0),
            StateContent::WideSquares => (10, 0),
            StateContent::List(k) => (11, *k),
        };
        // Counting needs an input that every packet has.
        let of = step.of.unwrap_or(Input::IpLength) as u8;
        self.0.extend([fold, of]);
        for number in [step.word, count, *edge] {
            self.quarter_word(number as u16);
        }
        if fold == 3 {
            *edge += count;
        }
    }

    /// Appends `struct key_step`.
    fn key_step(&mut self, step: &KeyStep) {
        self.word(step.keep);
        self.0
            .extend([step.of, step.word, step.shift, step.presence, 1, 0, 0, 0]);
    }
}
