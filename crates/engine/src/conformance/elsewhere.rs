// SPDX-License-Identifier: Apache-2.0
//! A remote engine as a subject, if there is a way to send it frames.

use turboflow_merge::{KeyWidths, Layout};

use super::in_process::widened;
use super::{Arrival, Event, Lane, LeftOut, Observed, Setup, Subject, Told};
use crate::{Abilities, EngineError, MicroflowBatch, RemoteEngine};

/// Opens a remote engine for a trial, and sends it frames.
pub trait OpenRemote {
    /// The engine.
    type Engine: RemoteEngine;

    /// What the engine supports as configured here.
    fn abilities(&self) -> Abilities;

    /// The aspects that are not tested.
    fn left_out(&self) -> &[LeftOut];

    /// Whether the engine supports a layout that its abilities allow.
    fn takes(&self, _layout: &Layout) -> bool {
        true
    }

    /// Opens an engine in its initial state.
    ///
    /// # Errors
    /// If the engine cannot be opened.
    fn open(&mut self, setup: &Setup) -> Result<Self::Engine, EngineError>;

    /// Sends a frame to the engine.
    ///
    /// # Errors
    /// If the frame cannot be sent.
    fn give(&mut self, engine: &mut Self::Engine, arrival: &Arrival) -> Result<(), EngineError>;
}

/// A remote engine as a subject.
#[derive(Debug)]
pub struct Elsewhere<O>(pub O);

impl<O: OpenRemote> Subject for Elsewhere<O> {
    fn abilities(&self) -> Abilities {
        self.0.abilities()
    }

    fn left_out(&self) -> &[LeftOut] {
        self.0.left_out()
    }

    fn takes(&self, layout: &Layout) -> bool {
        self.0.takes(layout)
    }

    fn observe(&mut self, setup: &Setup, arrivals: &[Arrival]) -> Result<Observed, EngineError> {
        let mut engine = self.0.open(setup)?;
        let mut observed = Observed::default();
        let mut complete_ns = 0;
        for (before, arrival) in arrivals.iter().enumerate() {
            self.0.give(&mut engine, arrival)?;
            let given = before + 1;
            if given.is_multiple_of(setup.look_every) {
                let events = &mut observed.events;
                collect(&mut engine, &setup.layout, given, events, &mut complete_ns)?;
            }
        }
        engine.finish()?;
        let given = arrivals.len();
        let events = &mut observed.events;
        collect(&mut engine, &setup.layout, given, events, &mut complete_ns)?;
        observed.counters = engine.counters()?;
        Ok(observed)
    }
}

/// Collects all records that are available now. A watermark that is earlier than the previous one
/// means that the clock went backwards.
fn collect(
    engine: &mut impl RemoteEngine,
    layout: &Layout,
    given: usize,
    events: &mut Vec<Event>,
    complete_before: &mut u64,
) -> Result<(), EngineError> {
    loop {
        let mut batch = MicroflowBatch::default();
        let collected = engine.collect(&mut batch)?;
        let records = records(&batch, layout);
        let complete = collected.complete_ns.map(|complete_ns| {
            match std::mem::replace(complete_before, complete_ns) > complete_ns {
                true => Told::StartsOver,
                false => Told::Complete(complete_ns),
            }
        });
        let told = records.into_iter().chain(complete);
        events.extend(told.map(|told| Event { given, told }));
        if !collected.has_more {
            return Ok(());
        }
    }
}

fn records(batch: &MicroflowBatch, layout: &Layout) -> Vec<Told> {
    let told = |lane, record| Told::Record(lane, Box::new(record));
    if layout.key_widths() == KeyWidths::Wide {
        return batch
            .wide()
            .map(|record| told(Lane::Wide, record))
            .collect();
    }
    let v4 = batch
        .v4()
        .map(|record| told(Lane::V4, widened::<2, 504>(&record)));
    let v6 = batch
        .v6()
        .map(|record| told(Lane::V6, widened::<5, 504>(&record)));
    v4.chain(v6).collect()
}
