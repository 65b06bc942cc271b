// SPDX-License-Identifier: Apache-2.0
//! A compiled definition: where each feature is stored, how packets become records, how records
//! merge, and how records become columns.
//!
//! State words that merge in the same way are adjacent, so that no code looks at features while
//! packets are processed ([`Plan`]). A feature that equals a field of [`Base`] takes no word.

mod annotation;
#[cfg(target_arch = "x86_64")]
mod blocks;
mod export;
mod form;
mod gap;
mod key;
mod limits;
mod moments;
pub(crate) mod pair;
mod plan;
mod program;
mod rows;
mod steps;
#[cfg(test)]
mod tests;
mod texts;
pub(crate) mod two_way;
mod words;
#[cfg(target_arch = "x86_64")]
mod write_block;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::{Base, Machine, Marks, MicroflowRecord, Vectors, WithVectors};
pub use annotation::{Annotation, InspectedValues};
use export::{Buffers, FeatureColumn, KeyColumn};
use form::{BaseField, Form, FormMaker, Number, column_kind, is_nullable};
pub use key::KeySlot;
use key::{FAMILY_SHIFT, KeyPlan, OUTER_FAMILY_SHIFT, counterpart, number_slot};
pub use plan::Plan;
use program::{Program, needs_input};
use rows::{RecordRows, RowBuffers, Sides};
pub use steps::{KeySteps, StateStep, Steps};
use texts::{TextSource, tuple_places};
use turboflow_record::{
    Column, ColumnKind, Definition, Feature, FiveTuple, FlowBatch, Input, InputSet, InputValues,
    InspectedTexts, InvalidDefinition, KeyField, Packet, Schema, WORDS_V4, WORDS_V6,
};
use turboflow_record::{END_REASON, REVERSE};
pub use two_way::TWO_WAY_WORDS;
use two_way::{SideWord, words_of_sides};
pub use words::StateContent;
use words::{Side, Words};

/// Words of a wide key, which is any key other than the plain 5-tuple.
pub const WORDS_WIDE: usize = 16;

/// The possible numbers of words for further features in a record. Together with key and [`Base`],
/// records of IPv4 5-tuples fill 1, 2, 4, 8, 16 and 64 cache lines. Biflows of the default
/// definition need 24 words, or 8 in the two-way form.
pub const STATE_WORDS: [usize; 6] = [0, 8, 24, 56, 120, 504];

/// The largest of [`STATE_WORDS`].
pub const MOST_STATE_WORDS: usize = STATE_WORDS[STATE_WORDS.len() - 1];

/// Records are exported in runs of this many records, whose buffers fit into the L1 cache.
const ROWS_AT_ONCE: usize = 256;

/// The key widths of a layout's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyWidths {
    /// The plain 5-tuple: IPv4 records have [`WORDS_V4`](turboflow_record::WORDS_V4) words of key,
    /// IPv6 records have [`WORDS_V6`].
    ByFamily,
    /// Any other key: records of both families have [`WORDS_WIDE`] words of key.
    Wide,
}

/// A compiled definition.
///
/// Cloning is cheap. All threads of a run share it.
#[derive(Clone, Debug)]
pub struct Layout {
    compiled: Arc<Compiled>,
    plan: Plan,
    initiator: Initiator,
    /// The texts for the values of inspected inputs.
    texts: Option<Arc<InspectedTexts>>,
}

/// The rule for the initiator of a biflow. If exactly one side sent a SYN without ACK, that side is
/// the initiator under every rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Initiator {
    /// The sender of the first packet. If that packet is an answer ([`Packet::is_answer`]), its
    /// receiver, provided that the receiver has sent packets too.
    #[default]
    Auto,
    /// The sender of the first packet.
    FirstSender,
}

impl Initiator {
    /// Every rule with its name.
    pub const NAMES: [(&str, Self); 2] = [("auto", Self::Auto), ("first", Self::FirstSender)];
}

impl FromStr for Initiator {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(name, _)| *name == text);
        let found = found.map(|(_, initiator)| *initiator);
        found.ok_or_else(|| "write auto or first".to_owned())
    }
}

impl fmt::Display for Initiator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Self::NAMES.iter().find(|(_, initiator)| initiator == self);
        f.write_str(found.map_or("", |(name, _)| name))
    }
}

#[derive(Debug)]
struct Compiled {
    schema: Schema,
    needs: InputSet,
    biflow: bool,
    key: KeyPlan,
    /// Key columns of IPv4 records and of IPv6 records. Both are equal for wide records.
    key_columns: [Vec<KeyColumn>; 2],
    feature_columns: Vec<FeatureColumn>,
    words: Words,
    annotation: Annotation,
    /// The places of the 5-tuple among the columns, if a feature is computed from it.
    tuple: Option<[usize; 5]>,
    /// What the state words of the plain form hold, if records can have the two-way form.
    side_words: Option<Vec<SideWord>>,
    /// In biflows: the words that count the packets in the direction of the key, and against it.
    sent: Option<[u16; 2]>,
    state_words: usize,
    /// The programs for packets in the direction of the key, and against it.
    programs: [Program; 2],
    machine: Machine,
}

impl Layout {
    /// Compiles `definition`. `biflow` tells whether the two directions of a flow are joined.
    ///
    /// # Errors
    /// If the definition makes no sense, or needs more state than a record has room for.
    pub fn compile(definition: &Definition, biflow: bool) -> Result<Self, InvalidDefinition> {
        definition.check()?;
        limits::check_directions(definition, biflow)?;
        let mut words = Words::default();
        feature_columns(definition, biflow, &mut words);
        sent(biflow, &mut words);
        let needed = words.count();
        let state_words = limits::check_size(definition, biflow, needed)?;
        words.place();
        let feature_columns = feature_columns(definition, biflow, &mut words);
        let key = limits::check_key(definition)?;
        let plan = Plan::new(&words);
        let compiled = Compiled {
            schema: schema(definition, biflow),
            needs: needs(definition, &words),
            biflow,
            key_columns: key_columns(&definition.key, &key),
            key,
            feature_columns,
            sent: sent(biflow, &mut words),
            state_words,
            programs: [false, true].map(|reversed| Program::new(&words, state_words, reversed)),
            machine: Machine::detect(),
            side_words: biflow.then(|| words_of_sides(&words)).flatten(),
            annotation: Annotation::new(&words),
            tuple: tuple_places(definition),
            words,
        };
        Ok(Self {
            compiled: Arc::new(compiled),
            plan,
            initiator: Initiator::default(),
            texts: None,
        })
    }

    /// This layout with its records in the two-way form, if that is possible: in biflows all of
    /// whose features are fields of [`Base`], in each direction. The columns stay the same.
    ///
    /// The base of such a record holds packets, bytes, times and marks of both directions, and the
    /// other fields of the direction of its first packet. Its state of [`TWO_WAY_WORDS`] words
    /// holds the rest. It is not used before both directions have been seen.
    #[must_use]
    pub fn in_two_way_form(self) -> Self {
        if self.compiled.side_words.is_none() {
            return self;
        }
        Self {
            plan: Plan::of_two_way(),
            ..self
        }
    }

    /// Whether its records have the two-way form ([`Layout::in_two_way_form`]).
    #[must_use]
    pub const fn is_two_way(&self) -> bool {
        self.plan.is_two_way::<TWO_WAY_WORDS>()
    }

    /// This layout with another rule on the initiators of biflows.
    #[must_use]
    pub fn with_initiator(self, initiator: Initiator) -> Self {
        Self { initiator, ..self }
    }

    /// This layout with the texts that its columns of inspected inputs show. Without texts, these
    /// columns are absent in every record.
    #[must_use]
    pub fn with_texts(self, texts: Arc<InspectedTexts>) -> Self {
        Self {
            texts: Some(texts),
            ..self
        }
    }

    /// The 5-tuple of a record's flow. The key may have other fields as well. `None` if the key
    /// lacks a part of the 5-tuple.
    #[must_use]
    pub fn five_tuple<const K: usize>(&self, key: &[u64; K]) -> Option<FiveTuple> {
        self.compiled.key.five_tuple(key)
    }

    /// Whether flows in different VLANs are different flows.
    #[must_use]
    pub fn has_vlan_key(&self) -> bool {
        self.compiled.key.has_beside(KeyField::Input(Input::Vlan))
    }

    /// Like [`five_tuple`](Self::five_tuple), together with the VLAN of the key.
    #[must_use]
    pub fn five_tuple_in_vlan<const K: usize>(&self, key: &[u64; K]) -> Option<FiveTuple> {
        let tuple = self.five_tuple(key)?;
        Some(tuple.in_vlan(self.compiled.key.vlan(key)))
    }

    /// Where its records hold results of inspection.
    #[must_use]
    pub fn annotation(&self) -> &Annotation {
        &self.compiled.annotation
    }

    /// The columns: key, features, end reason.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.compiled.schema
    }

    /// The inputs that a parser must extract beyond [`Packet`]. None for the default definition.
    #[must_use]
    pub fn needs(&self) -> InputSet {
        self.compiled.needs
    }

    /// The key widths of its records.
    #[must_use]
    pub fn key_widths(&self) -> KeyWidths {
        match self.compiled.key {
            KeyPlan::FiveTuple => KeyWidths::ByFamily,
            KeyPlan::Wide(_) => KeyWidths::Wide,
        }
    }

    /// The number of words for further features, one of [`STATE_WORDS`].
    #[must_use]
    pub fn state_words(&self) -> usize {
        if self.is_two_way() {
            TWO_WAY_WORDS
        } else {
            self.compiled.state_words
        }
    }

    /// Whether the two directions of a flow are joined.
    #[must_use]
    pub fn is_biflow(&self) -> bool {
        self.compiled.biflow
    }

    /// The FIN marks that must all be set to end a flow.
    #[must_use]
    pub fn ending_fins(&self) -> u8 {
        if self.compiled.biflow {
            Marks::FIN | Marks::REVERSE_FIN
        } else {
            Marks::FIN
        }
    }

    /// How records merge.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How a packet becomes a record, for engines that implement this themselves. The steps are for
    /// one direction only, because biflows are joined where both directions are seen. They create
    /// records with state words, even if this layout has its records in the two-way form.
    #[must_use]
    pub fn steps(&self) -> Steps {
        Steps::new(&self.compiled.words, &self.compiled.key)
    }

    /// The key of a packet, and whether the packet runs against the key's direction (in biflows
    /// only).
    ///
    /// `K` must be the width given by [`Layout::key_widths`]. Otherwise the result is not a key.
    #[inline]
    #[must_use]
    pub fn key<const K: usize>(&self, packet: &Packet, inputs: &InputValues) -> ([u64; K], bool) {
        self.compiled.key.key(packet, inputs, self.compiled.biflow)
    }

    /// The fields of every record, for a single packet.
    #[inline(always)]
    #[must_use]
    pub fn base(&self, packet: &Packet, reversed: bool) -> Base {
        let mut base = Base::of_packet(packet, reversed);
        if self.compiled.biflow && self.initiator == Initiator::Auto && packet.is_answer() {
            base.marks.0 |= Marks::STARTS_WITH_ANSWER;
        }
        base
    }

    /// The microflow record of a single packet.
    ///
    /// `K` and `N` must be those of [`Layout::key_widths`] and [`Layout::state_words`]. Otherwise
    /// the result is not a record of this layout.
    #[inline(always)]
    #[must_use]
    pub fn open<const K: usize, const N: usize>(
        &self,
        packet: &Packet,
        inputs: &InputValues,
    ) -> MicroflowRecord<K, N> {
        let (key, reversed) = self.key(packet, inputs);
        let mut record = MicroflowRecord {
            key,
            base: self.base(packet, reversed),
            state: [0; N],
        };
        if N > 0 && !self.is_two_way() {
            self.compiled.machine.run(OpenState {
                program: &self.compiled.programs[usize::from(reversed)],
                state: &mut record.state,
                packet,
                inputs,
                reversed,
            });
        }
        record
    }

    /// [`Layout::open`] for an IPv4 packet in the two-way form, where keys are 5-tuples and the
    /// record of one packet needs no state.
    #[inline(always)]
    #[must_use]
    pub fn open_plain_v4<const N: usize>(&self, packet: &Packet) -> MicroflowRecord<WORDS_V4, N> {
        debug_assert!(self.is_two_way() && self.key_widths() == KeyWidths::ByFamily);
        let (key, reversed) = key::five_tuple(&packet.tuple, true);
        MicroflowRecord {
            key,
            base: self.base(packet, reversed),
            state: [0; N],
        }
    }

    /// Overwrites `state` with that of a single packet, which is the last step of [`Layout::open`].
    /// It is for loops that are compiled for vectors, and for callers whose record is already in
    /// its final place. Copying the record right after so many small stores would have to wait for
    /// them.
    #[inline(always)]
    pub fn open_state<V: Vectors, const N: usize>(
        &self,
        vectors: V,
        state: &mut [u64; N],
        packet: &Packet,
        inputs: &InputValues,
        reversed: bool,
    ) {
        if N > 0 && !self.is_two_way() {
            vectors.run(OpenState {
                program: &self.compiled.programs[usize::from(reversed)],
                state,
                packet,
                inputs,
                reversed,
            });
        }
    }

    /// Appends flow records to `batch`, column by column.
    ///
    /// # Panics
    /// If `K` and `N` are not those of the layout, or `batch` has another schema.
    pub fn append<const K: usize, const N: usize>(
        &self,
        records: &[MicroflowRecord<K, N>],
        batch: &mut FlowBatch,
    ) {
        let compiled = &*self.compiled;
        assert_eq!(N, self.state_words(), "records must have this layout");
        let keys = &compiled.key_columns[usize::from(K == WORDS_V6)];
        let sides = match &compiled.side_words {
            Some(words) if self.is_two_way() => Sides::TwoWay(words),
            _ => Sides::Words(compiled.sent),
        };
        let (mut buffers, mut row_buffers) = (Buffers::default(), RowBuffers::default());
        for run in records.chunks(ROWS_AT_ONCE) {
            let rows = RecordRows::new(run, &mut row_buffers, sides);
            batch.extend(run.len(), |filled, values| match keys.get(filled.len()) {
                Some(key) => key.fill(&rows, values, &mut buffers),
                None => {
                    let column = &compiled.feature_columns[filled.len() - keys.len()];
                    let texts = TextSource {
                        inspected: self.texts.as_deref(),
                        filled,
                        tuple: compiled.tuple,
                    };
                    column.fill(&rows, values, &mut buffers, &texts);
                }
            });
        }
    }
}

/// Writes the state of one packet with the machine's vectors.
struct OpenState<'a, const N: usize> {
    program: &'a Program,
    state: &'a mut [u64; N],
    packet: &'a Packet,
    inputs: &'a InputValues,
    reversed: bool,
}

impl<const N: usize> WithVectors for OpenState<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vectors>(self, vectors: V) {
        let (packet, inputs, reversed) = (self.packet, self.inputs, self.reversed);
        #[cfg(target_arch = "x86_64")]
        if let Some(proof) = vectors.avx512() {
            let program = self.program;
            return program.open_avx512(proof, self.state, packet, inputs, reversed);
        }
        let _ = vectors;
        self.program.open(self.state, packet, inputs, reversed);
    }
}

/// Whether a feature has a single column even in biflows.
fn is_joined(feature: &Feature, biflow: bool) -> bool {
    !biflow || feature.is_joined()
}

/// The words that count the packets of each direction. They tell whether the side to which the
/// first packet is an answer has sent any packets.
fn sent(biflow: bool, words: &mut Words) -> Option<[u16; 2]> {
    let sides = [Side::Forward, Side::Reverse];
    match biflow.then(|| FormMaker { words, sides }.count(None))? {
        Number::Word(pair) => Some(pair),
        Number::Base(_) => None,
    }
}

/// The feature columns: those of the initiator, those of the responder, the end reason.
fn feature_columns(definition: &Definition, biflow: bool, words: &mut Words) -> Vec<FeatureColumn> {
    let mut columns = Vec::new();
    let mut add = |feature: &Feature, sides| {
        let form = FormMaker { words, sides }.form(feature);
        columns.push(FeatureColumn {
            form,
            is_direction: feature.of == Some(Input::Direction),
        });
    };
    for feature in &definition.features {
        let joined = is_joined(feature, biflow);
        add(
            feature,
            if joined {
                [Side::Both; 2]
            } else {
                [Side::Forward, Side::Reverse]
            },
        );
    }
    for feature in definition
        .features
        .iter()
        .filter(|feature| !is_joined(feature, biflow))
    {
        add(feature, [Side::Reverse, Side::Forward]);
    }
    let form = Form::Number(Number::Base(BaseField::EndReason));
    columns.push(FeatureColumn {
        form,
        is_direction: false,
    });
    columns
}

fn schema(definition: &Definition, biflow: bool) -> Schema {
    let keys = definition.key.iter().map(|field| {
        let (kind, nullable) = match *field {
            KeyField::Protocol => (ColumnKind::Unsigned { bits: 8 }, false),
            KeyField::SourcePort | KeyField::DestinationPort => {
                (ColumnKind::Unsigned { bits: 16 }, false)
            }
            KeyField::SourceAddress | KeyField::DestinationAddress => (ColumnKind::Address, false),
            KeyField::OuterSourceAddress | KeyField::OuterDestinationAddress => {
                (ColumnKind::Address, true)
            }
            KeyField::Input(input) => (input.column_kind(), !input.is_always_present()),
        };
        Column {
            name: field.column_name().to_owned(),
            kind,
            nullable,
        }
    });
    let features = definition.features.iter().map(|feature| Column {
        name: feature.name.clone(),
        kind: column_kind(feature),
        nullable: is_nullable(feature, false),
    });
    let split = definition
        .features
        .iter()
        .filter(|feature| !is_joined(feature, biflow));
    let reverse = split.map(|feature| Column {
        name: format!("{REVERSE}{}", feature.name),
        kind: column_kind(feature),
        nullable: is_nullable(feature, true),
    });
    let end_reason = Column {
        name: END_REASON.to_owned(),
        kind: ColumnKind::Unsigned { bits: 8 },
        nullable: false,
    };
    keys.chain(features)
        .chain(reverse)
        .chain([end_reason])
        .collect()
}

fn key_columns(fields: &[KeyField], key: &KeyPlan) -> [Vec<KeyColumn>; 2] {
    let columns = |column: &dyn Fn(KeyField) -> KeyColumn| {
        fields
            .iter()
            .map(|field| column(*field))
            .collect::<Vec<_>>()
    };
    match key {
        KeyPlan::FiveTuple => [columns(&KeyColumn::in_v4), columns(&KeyColumn::in_v6)],
        KeyPlan::Wide(wide) => {
            let wide = columns(&|field| {
                KeyColumn::in_wide(field, &wide.key_slots, FAMILY_SHIFT, OUTER_FAMILY_SHIFT)
            });
            [wide.clone(), wide]
        }
    }
}

/// The inputs of key and state that packets may lack.
fn needs(definition: &Definition, words: &Words) -> InputSet {
    let of_key = definition.key.iter();
    let of_key = of_key.filter(|field| number_slot(**field).is_none());
    let of_key = of_key.filter_map(|field| field.input());
    let contents = words.contents().iter();
    of_key
        .chain(contents.filter_map(|content| needs_input(content.of, &content.what)))
        .filter(|input| !input.is_inspected())
        .collect()
}
