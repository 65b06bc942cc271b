// SPDX-License-Identifier: Apache-2.0
//! The configuration of an engine for a trial.

use turboflow_merge::{KeySteps, Layout, Marks, StateContent};
use turboflow_record::{Definition, Feature, Input, InputSet, Op};

use crate::{Abilities, Demands};

/// Table sizes, in slots, that every engine is tested with.
pub const TABLES: [u32; 3] = [1, 7, 1_024];

/// How many timestamps each record lists for an engine with its own clock.
pub(super) const TIMES: usize = 40;
/// The feature that holds these timestamps.
const TIMES_NAME: &str = "times_of_the_suite";

/// The configuration of an engine for a trial.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The definition of the records.
    pub definition: Definition,
    /// The compiled definition.
    pub layout: Layout,
    /// Slots per table.
    pub slots: u32,
    /// Length of a clock cell, in nanoseconds.
    pub cell_ns: u64,
    /// The idle timeout, in nanoseconds. A packet that is behind the clock by more than this sets
    /// the clock back.
    pub idle_ns: u64,
    /// Whether no packet joins a record that holds FIN or RST, as with a linger time of 0.
    pub ends_cut: bool,
    /// Seed of the hash.
    pub seed: u64,
    /// The number of frames between two calls that collect records, from 1 to the length of the
    /// sequence.
    pub look_every: usize,
}

impl Setup {
    /// A setup with this definition. `None` if the definition cannot be laid out.
    #[must_use]
    pub fn new(definition: &Definition, biflow: bool, slots: u32, cell_ns: u64) -> Option<Self> {
        Some(Self {
            layout: Layout::compile(definition, biflow).ok()?,
            definition: definition.clone(),
            slots,
            cell_ns,
            idle_ns: u64::MAX,
            ends_cut: false,
            seed: 1,
            look_every: 1,
        })
    }

    /// The marks of a record that no further packet joins.
    #[must_use]
    pub const fn evict_after(&self) -> u8 {
        if self.ends_cut { Marks::ENDS } else { 0 }
    }

    /// The start of the cell that contains a time.
    #[must_use]
    pub const fn cell_of(&self, time_ns: u64) -> u64 {
        time_ns / self.cell_ns * self.cell_ns
    }

    /// This setup with a feature that lists the times of a record's first packets. Unchanged if
    /// records have no further features or have the two-way form. `None` if there is no room for
    /// the feature.
    pub(super) fn timed(&self) -> Option<Self> {
        if self.layout.state_words() == 0 || self.layout.is_two_way() {
            return Some(self.clone());
        }
        let times = Feature::new(TIMES_NAME, Op::List { k: TIMES }, Some(Input::Timestamp));
        let mut definition = self.definition.clone();
        definition.features.push(times);
        Some(Self {
            layout: Layout::compile(&definition, self.layout.is_biflow()).ok()?,
            definition,
            ..self.clone()
        })
    }

    /// The word with the number of listed times; the times follow it.
    pub(super) fn times_at(&self) -> Option<usize> {
        let steps = self.layout.steps().state;
        let times = steps.iter().find(|step| {
            step.of == Some(Input::Timestamp)
                && matches!(step.what, StateContent::List(k) if k >= TIMES)
        });
        times.map(|step| step.word)
    }

    /// Whether an engine supports this setup.
    pub(super) fn is_within(&self, abilities: &Abilities) -> bool {
        let steps = self.layout.steps();
        let of_features = self
            .definition
            .features
            .iter()
            .filter_map(|feature| feature.of);
        let of_key = self.definition.key.iter().filter_map(|field| field.input());
        let inputs: InputSet = of_features.chain(of_key).collect();
        let demands = Demands {
            inputs,
            any_key: steps.key != KeySteps::FiveTuple,
            state_words: steps.words,
            biflow: self.layout.is_biflow(),
            instances: 1,
            ..Demands::default()
        };
        let cuts = abilities.cuts_on_gap && (abilities.evicts_on_end || !self.ends_cut);
        abilities.lacks(&demands).is_empty() && cuts
    }
}
