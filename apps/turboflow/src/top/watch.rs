// SPDX-License-Identifier: Apache-2.0
//! The meter, which runs on its own thread, and the data for the screen.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use turboflow_engine::{PortCounters, PortState};
use turboflow_run::{LiveSnapshot, Output};
use turboflow_top::{Health, InterfaceHealth, Moment, Picture, Screen, Source, Traffic};

use super::SNAPSHOTS;
use crate::record::{FinishedRun, Watched};
use crate::signals::STOP;

/// How long the meter may take to answer. It checks for requests many times a second, but not while
/// it waits for input. Without an answer, the screen keeps its data.
const PATIENCE: Duration = Duration::from_millis(150);

/// A run in progress.
pub(super) struct Metering(Option<JoinHandle<anyhow::Result<FinishedRun>>>);

impl Metering {
    pub(super) fn start(
        watched: Watched,
        output: Output,
        speed: Option<f64>,
    ) -> anyhow::Result<Self> {
        let meter = move || watched.meter(output, speed, &SNAPSHOTS);
        let thread = std::thread::Builder::new().name("meter".to_owned());
        let started = thread.spawn(meter);
        Ok(Self(Some(
            started.context("cannot start the thread that meters")?,
        )))
    }

    pub(super) fn is_over(&self) -> bool {
        self.0.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until the run ends.
    pub(super) fn join(&mut self) -> anyhow::Result<FinishedRun> {
        let thread = self.0.take().context("the meter has already ended")?;
        match thread.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// Asks the run to end, and waits until it has.
    pub(super) fn end(mut self) -> anyhow::Result<FinishedRun> {
        STOP.ask();
        self.join()
    }
}

/// The data for the screen.
pub(super) struct Watch {
    pub(super) source: Source,
    pub(super) health: Health,
    pub(super) picture: Picture,
    traffic: Arc<Mutex<Traffic>>,
    clock_ns: u64,
    is_over: bool,
    pub(super) is_live: bool,
}

impl Watch {
    pub(super) fn new(watched: &Watched, traffic: Arc<Mutex<Traffic>>, speed: Option<f64>) -> Self {
        let state = match speed {
            Some(times) if times != 1.0 => format!("speed {times}"),
            _ => String::new(),
        };
        let config = watched.config();
        Self {
            source: Source {
                name: watched.name(),
                state,
            },
            health: Health {
                flows_max: config.max_flows as u64,
                threads: (config.threads * config.readers) as u64,
                ..Health::default()
            },
            picture: Picture::default(),
            traffic,
            clock_ns: 0,
            is_over: false,
            is_live: watched.is_live(),
        }
    }

    /// Updates the state of the meter and the traffic.
    pub(super) fn refresh(&mut self, screen: &Screen) {
        if !self.is_over
            && let Some(snapshot) = SNAPSHOTS.ask(PATIENCE)
        {
            self.clock_ns = snapshot.clock_ns;
            let moment = Moment {
                ledger: snapshot.ledger.clone(),
                clock_ns: snapshot.clock_ns,
            };
            self.health.update(moment, interfaces(&snapshot));
        }
        self.look(screen);
    }

    /// Computes the picture again, after a refresh or for another interval.
    pub(super) fn look(&mut self, screen: &Screen) {
        let traffic = self.traffic.lock().unwrap_or_else(PoisonError::into_inner);
        let clock_ns = (!self.is_over).then_some(self.clock_ns);
        let window = traffic.window(clock_ns, screen.interval);
        self.picture = traffic.picture(window);
    }

    /// Shows the end of a run, when all data is complete.
    pub(super) fn finish(&mut self, ended: &FinishedRun, screen: &Screen) {
        self.is_over = true;
        self.source.state = "at its end".to_owned();
        let moment = Moment {
            ledger: ended.ledger().clone(),
            clock_ns: self.clock_ns,
        };
        self.health.now = moment;
        self.look(screen);
    }
}

fn interfaces(snapshot: &LiveSnapshot) -> Vec<InterfaceHealth> {
    let health = |(name, counters, state): &(String, PortCounters, PortState)| InterfaceHealth {
        name: name.clone(),
        state: match state {
            PortState::Displaced => "displaced",
            PortState::Disconnected => "disconnected",
            PortState::Silent => "silent",
            PortState::Down => "down",
            PortState::Gone => "removed",
            PortState::Up => "up",
        },
        seen: counters.seen - counters.copies,
        dropped: counters.dropped,
        merged: counters.merged,
    };
    snapshot.interfaces.iter().map(health).collect()
}
