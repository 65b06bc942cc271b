// SPDX-License-Identifier: Apache-2.0
//! The clock of a replay, cut into cells (`docs/decisions/0001-cells.md`). The packets drive it.

/// The effect of a packet's time on the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tick {
    /// The packet is in the current cell.
    Stays,
    /// The packet is older than the current cell.
    IsLate,
    /// The packet begins a cell: the first one, or a later one.
    Enters,
    /// The clock is set back, and the packet begins a cell.
    SetsBack,
}

/// The clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplayClock {
    cell_ns: u64,
    /// A packet that is further behind than this sets the clock back.
    tolerance_ns: u64,
    /// The largest time since the clock was set back; none before the first packet.
    now_ns: Option<u64>,
    cell_start_ns: u64,
}

impl ReplayClock {
    pub(crate) const fn new(cell_ns: u64, tolerance_ns: u64) -> Self {
        Self {
            cell_ns,
            tolerance_ns,
            now_ns: None,
            cell_start_ns: 0,
        }
    }

    /// Moves the clock to the time of a packet.
    pub(crate) fn tick(&mut self, time_ns: u64) -> Tick {
        let start_ns = time_ns / self.cell_ns * self.cell_ns;
        let Some(now_ns) = self.now_ns else {
            return self.enter(time_ns, start_ns);
        };
        if now_ns.saturating_sub(time_ns) > self.tolerance_ns {
            self.enter(time_ns, start_ns);
            return Tick::SetsBack;
        }
        if start_ns > self.cell_start_ns {
            return self.enter(time_ns, start_ns);
        }
        self.now_ns = Some(now_ns.max(time_ns));
        match start_ns == self.cell_start_ns {
            true => Tick::Stays,
            false => Tick::IsLate,
        }
    }

    const fn enter(&mut self, time_ns: u64, start_ns: u64) -> Tick {
        self.now_ns = Some(time_ns);
        self.cell_start_ns = start_ns;
        Tick::Enters
    }

    /// The start of the current cell.
    pub(crate) const fn cell_start_ns(&self) -> u64 {
        self.cell_start_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enters_cells_and_knows_late_packets() {
        let mut clock = ReplayClock::new(10, 30);
        let ticks = [5, 9, 3, 20, 19, 25, 49, 19, 18, 12].map(|time_ns| clock.tick(time_ns));
        use Tick::{Enters, IsLate, SetsBack, Stays};
        let expected = [
            Enters, Stays, Stays, Enters, IsLate, Stays, Enters, IsLate, SetsBack, Stays,
        ];
        assert_eq!(ticks, expected);
        assert_eq!(clock.cell_start_ns(), 10);
    }
}
