// SPDX-License-Identifier: Apache-2.0
//! The engine: the one in the kernel, together with a learner.

use std::time::Duration;

use turboflow_engine::{
    Abilities, Collected, EngineCounters, EngineError, EngineEvent, MicroflowBatch, OwnCount, Port,
    RemoteEngine, ShortFlow,
};
use turboflow_engine_xdp::{KernelEngine, KernelError, Offload};

use super::KernelTable;
use super::own_counts::Counted;
use super::thread::{LearnerThread, Parts};
use crate::{ABILITIES, BRIDGE_ABILITIES, Decider, LearnerConfig, LearnerCounts};

/// The engine in the kernel with a table of verdicts, and the thread that writes the table.
pub struct OffloadEngine {
    kernel: KernelEngine,
    learner: State,
}

/// The learner's thread starts with the first collection. If this process drops privileges, it has
/// done so by then; a thread that started earlier would keep them.
enum State {
    Waits(Option<Box<Parts>>),
    Runs(LearnerThread),
}

impl OffloadEngine {
    /// An engine over a loaded program whose table has `rows` rows. The program may be attached.
    ///
    /// # Errors
    /// Where the program has no such table.
    pub fn new(
        kernel: KernelEngine,
        rows: u32,
        decider: Box<dyn Decider>,
        config: LearnerConfig,
    ) -> Result<Self, KernelError> {
        let Offload { table, taps } = kernel.open_offload()?;
        let parts = Parts {
            table: KernelTable::new(table, rows),
            taps,
            decider,
            config,
        };
        Ok(Self {
            kernel,
            learner: State::Waits(Some(Box::new(parts))),
        })
    }

    /// The engine in the kernel.
    #[must_use]
    pub const fn kernel(&self) -> &KernelEngine {
        &self.kernel
    }

    /// The learner's counters so far.
    #[must_use]
    pub fn learner_counts(&self) -> LearnerCounts {
        match &self.learner {
            State::Waits(_) => LearnerCounts::default(),
            State::Runs(thread) => thread.counts(),
        }
    }

    fn start(&mut self) -> Result<(), EngineError> {
        if let State::Waits(parts) = &mut self.learner
            && let Some(parts) = parts.take()
        {
            self.learner = State::Runs(LearnerThread::start(*parts).map_err(EngineError::new)?);
        }
        Ok(())
    }
}

impl RemoteEngine for OffloadEngine {
    fn abilities(&self) -> &Abilities {
        match self.kernel.is_bridge() {
            true => &BRIDGE_ABILITIES,
            false => &ABILITIES,
        }
    }

    fn started_ns(&self) -> u64 {
        self.kernel.started_ns()
    }

    fn collect(&mut self, batch: &mut MicroflowBatch) -> Result<Collected, EngineError> {
        self.start()?;
        RemoteEngine::collect(&mut self.kernel, batch)
    }

    fn longest_pause(&self) -> Duration {
        self.kernel.longest_pause()
    }

    fn counters(&mut self) -> Result<EngineCounters, EngineError> {
        RemoteEngine::counters(&mut self.kernel)
    }

    fn own_counts(&mut self) -> Result<Vec<OwnCount>, EngineError> {
        let kernel = self.kernel.offload_counters().map_err(EngineError::new)?;
        let bridge = match self.kernel.is_bridge() {
            true => Some(self.kernel.bridge_counters().map_err(EngineError::new)?),
            false => None,
        };
        let counted = Counted {
            kernel,
            bridge,
            learner: self.learner_counts(),
            is_learner_gone: match &self.learner {
                State::Waits(_) => false,
                State::Runs(thread) => thread.has_failed(),
            },
        };
        Ok(counted.by_name())
    }

    fn ports(&mut self) -> Result<Vec<Port>, EngineError> {
        self.kernel.ports()
    }

    fn events(&mut self, tell: &mut dyn FnMut(EngineEvent<'_>)) -> Result<(), EngineError> {
        self.kernel.events(tell)
    }

    fn events_lost(&mut self) -> Result<u64, EngineError> {
        self.kernel.events_lost()
    }

    fn short_flows(&mut self) -> Result<Vec<ShortFlow>, EngineError> {
        RemoteEngine::short_flows(&mut self.kernel)
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        RemoteEngine::finish(&mut self.kernel)?;
        self.start()?;
        if let State::Runs(thread) = &mut self.learner {
            thread.stop();
        }
        Ok(())
    }
}
