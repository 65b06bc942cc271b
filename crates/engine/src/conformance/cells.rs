// SPDX-License-Identifier: Apache-2.0
//! The clock of a run, divided into cells (`docs/decisions/0001-cells.md`), in the simplest code.

use super::Setup;

/// The effect of a packet's timestamp on the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tick {
    /// The packet starts a new cell.
    Enters,
    /// The clock went backwards, and a new cell starts.
    SetBack,
    /// The packet is in the current cell, or it is late.
    Stays,
}

/// The clock of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cells {
    cell_ns: u64,
    idle_ns: u64,
    /// The largest timestamp since the clock last went backwards.
    now_ns: Option<u64>,
    /// How many times the clock went backwards.
    epoch: u32,
}

/// The state of the clock when a packet arrived. A later state is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    /// How many times the clock had gone backwards.
    pub(super) epoch: u32,
    /// The start of the cell: W in the decision.
    pub(super) cell_start_ns: u64,
}

impl Cells {
    pub(super) const fn new(setup: &Setup) -> Self {
        Self {
            cell_ns: setup.cell_ns,
            idle_ns: setup.idle_ns,
            now_ns: None,
            epoch: 0,
        }
    }

    /// Advances the clock to a packet's timestamp.
    pub(super) fn tick(&mut self, time_ns: u64) -> Tick {
        let Some(now_ns) = self.now_ns else {
            self.now_ns = Some(time_ns);
            return Tick::Enters;
        };
        if now_ns.saturating_sub(time_ns) > self.idle_ns {
            self.now_ns = Some(time_ns);
            self.epoch += 1;
            return Tick::SetBack;
        }
        let cell_start_ns = self.moment().cell_start_ns;
        self.now_ns = Some(now_ns.max(time_ns));
        match self.moment().cell_start_ns == cell_start_ns {
            true => Tick::Stays,
            false => Tick::Enters,
        }
    }

    pub(super) fn moment(&self) -> Moment {
        let now_ns = self.now_ns.unwrap_or(0);
        Moment {
            epoch: self.epoch,
            cell_start_ns: now_ns / self.cell_ns * self.cell_ns,
        }
    }
}
