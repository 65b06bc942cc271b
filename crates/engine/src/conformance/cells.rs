// SPDX-License-Identifier: Apache-2.0
//! The clock of a run, cut into cells (`docs/decisions/0001-cells.md`), in the plainest code.

use super::Setup;

/// What a packet's time does to the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tick {
    /// A cell begins.
    Enters,
    /// The clock was set back, and a cell begins.
    SetBack,
    /// The cell goes on.
    Stays,
}

/// The clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cells {
    cell_ns: u64,
    idle_ns: u64,
    /// The largest time since the clock was last set back.
    now_ns: Option<u64>,
    /// How many times it was set back.
    epoch: u32,
}

/// Where the clock was when a packet arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// How many times it had been set back.
    pub(super) epoch: u32,
    /// The start of its cell: W of the decision.
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

    /// A packet arrives.
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
