// SPDX-License-Identifier: Apache-2.0
//! A transport between engine and aggregator that loses, repeats or delays a record.

use turboflow_merge::Layout;

use super::{Arrival, LeftOut, Observed, Setup, Subject, Told};
use crate::{Abilities, EngineError};

/// What the transport does to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The record is delivered after the next watermark.
    Delayed,
    /// The record is lost, and the loss is counted.
    DroppedAndCounted,
    /// The record is lost, and the loss is not counted.
    DroppedUnseen,
    /// The record is delivered twice.
    Repeated,
}

/// A subject behind a transport that loses, repeats or delays one record.
#[derive(Debug)]
pub struct Lossy<S> {
    /// The subject.
    pub subject: S,
    /// What happens to the record.
    pub loss: Loss,
    /// Index of the record, from 0, modulo the number of records.
    pub record: usize,
}

impl<S: Subject> Subject for Lossy<S> {
    fn abilities(&self) -> Abilities {
        self.subject.abilities()
    }

    fn left_out(&self) -> &[LeftOut] {
        self.subject.left_out()
    }

    fn takes(&self, layout: &Layout) -> bool {
        self.subject.takes(layout)
    }

    fn observe(&mut self, setup: &Setup, arrivals: &[Arrival]) -> Result<Observed, EngineError> {
        let mut observed = self.subject.observe(setup, arrivals)?;
        let places: Vec<usize> = observed
            .records()
            .map(|(place, _, _)| place)
            .filter(|place| {
                self.loss != Loss::Delayed || next_watermark(&observed, *place).is_some()
            })
            .collect();
        if !places.is_empty() {
            self.lose(&mut observed, places[self.record % places.len()]);
        }
        Ok(observed)
    }
}

impl<S> Lossy<S> {
    fn lose(&self, observed: &mut Observed, place: usize) {
        match self.loss {
            Loss::Delayed => {
                if let Some(watermark) = next_watermark(observed, place) {
                    observed.events[place..=watermark].rotate_left(1);
                    observed.events[watermark].given = observed.events[watermark - 1].given;
                }
            }
            Loss::DroppedUnseen => {
                observed.events.remove(place);
            }
            Loss::DroppedAndCounted => {
                if let Told::Record(_, record) = observed.events.remove(place).told {
                    observed.counters.microflows_dropped += 1;
                    observed.counters.packets_dropped += record.base.packets;
                    observed.counters.bytes_dropped += record.base.bytes;
                }
            }
            Loss::Repeated => {
                let again = observed.events[place].clone();
                observed.events.insert(place, again);
            }
        }
    }
}

/// The position of the first watermark after an event.
fn next_watermark(observed: &Observed, place: usize) -> Option<usize> {
    let mut watermarks = observed.watermarks().map(|(place, _)| place);
    watermarks.find(|watermark| *watermark > place)
}
