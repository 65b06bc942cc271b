// SPDX-License-Identifier: Apache-2.0
//! A way between engine and aggregator that loses, repeats or delays a record.

use turboflow_merge::Layout;

use super::{Arrival, LeftOut, Observed, Setup, Subject, Told};
use crate::{Abilities, EngineError};

/// What happens to a record on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// It comes after the next watermark.
    Delayed,
    /// It is lost, and counted.
    DroppedAndCounted,
    /// It is lost, and not counted.
    DroppedUnseen,
    /// It comes twice.
    Repeated,
}

/// A subject, and a way on which one of its records meets with this.
#[derive(Debug)]
pub struct Lossy<S> {
    /// The subject.
    pub subject: S,
    /// What happens.
    pub loss: Loss,
    /// To which record, from 0; those beyond the last one count from the first again.
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

/// The place of the first watermark after an event.
fn next_watermark(observed: &Observed, place: usize) -> Option<usize> {
    let mut watermarks = observed.watermarks().map(|(place, _)| place);
    watermarks.find(|watermark| *watermark > place)
}
