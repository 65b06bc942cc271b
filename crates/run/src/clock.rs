// SPDX-License-Identifier: Apache-2.0
//! The clock of a run, divided into cells (`docs/decisions/0001-cells.md`). It is driven by packet
//! timestamps, and by the wall clock while a live source is silent.

use turboflow_aggregate::{Cell, Timeouts};

/// The effect of a timestamp on the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tick {
    /// The timestamp is in the current cell, or slightly late.
    Stays,
    /// The timestamp begins a new cell.
    Enters(Cell),
    /// The clock was set back: all open flows end.
    SetBack(Cell),
}

/// How far the time of a live source may be behind its packets before the clock counts as set back,
/// in nanoseconds. A shorter idle timeout does not reduce this.
const LIVE_TOLERANCE_NS: u64 = 10_000_000_000;

#[derive(Clone, Copy, Debug)]
pub(crate) struct CellClock {
    cell: Cell,
    cell_ns: u64,
    /// A packet that is behind `now_ns` by more than this sets the clock back. A packet that is
    /// behind by less is late.
    tolerance_ns: u64,
    /// The largest timestamp since the clock was last set back.
    now_ns: u64,
    started: bool,
}

impl CellClock {
    pub(crate) fn new(timeouts: &Timeouts, max_age_ns: u64) -> Self {
        Self {
            cell: Cell::default(),
            cell_ns: timeouts.cell_ns(max_age_ns),
            tolerance_ns: timeouts.idle_ns.unwrap_or(u64::MAX),
            now_ns: 0,
            started: false,
        }
    }

    #[inline(always)]
    pub(crate) const fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Start and length of the current cell, so that a loop over packets can test whether each is
    /// inside. The length is 0 before the first packet.
    #[inline(always)]
    pub(crate) const fn cell(&self) -> (u64, u64) {
        let length_ns = if self.started { self.cell_ns } else { 0 };
        (self.cell.watermark_ns, length_ns)
    }

    /// Notes the largest timestamp of such a loop.
    #[inline(always)]
    pub(crate) fn passed(&mut self, timestamp_ns: u64) {
        self.now_ns = self.now_ns.max(timestamp_ns);
    }

    #[inline(always)]
    pub(crate) fn tick(&mut self, timestamp_ns: u64) -> Tick {
        // One unsigned comparison tests both ends of the cell.
        let inside = timestamp_ns.wrapping_sub(self.cell.watermark_ns) < self.cell_ns;
        self.now_ns = self.now_ns.max(timestamp_ns);
        if inside && self.started {
            Tick::Stays
        } else {
            self.tick_outside(timestamp_ns)
        }
    }

    /// Advances the clock to a time before which a live source has delivered every packet. This
    /// time is usually behind the packet timestamps, and then nothing changes.
    pub(crate) fn advance(&mut self, delivered_ns: u64) -> Tick {
        let tolerance_ns = self.tolerance_ns.max(LIVE_TOLERANCE_NS);
        let is_late = delivered_ns <= self.now_ns;
        if self.started && is_late && delivered_ns.saturating_add(tolerance_ns) >= self.now_ns {
            return Tick::Stays;
        }
        self.tick(delivered_ns)
    }

    #[cold]
    #[inline(never)]
    fn tick_outside(&mut self, timestamp_ns: u64) -> Tick {
        let set_back = timestamp_ns.saturating_add(self.tolerance_ns) < self.now_ns;
        if self.started && !set_back && timestamp_ns < self.cell.watermark_ns {
            return Tick::Stays;
        }
        match set_back && self.started {
            true => self.set_back(timestamp_ns),
            false => Tick::Enters(self.enter(timestamp_ns)),
        }
    }

    /// Sets the clock back to a time, no matter by how much.
    pub(crate) fn set_back(&mut self, timestamp_ns: u64) -> Tick {
        self.now_ns = timestamp_ns;
        Tick::SetBack(self.enter(timestamp_ns))
    }

    fn enter(&mut self, timestamp_ns: u64) -> Cell {
        let watermark_ns = timestamp_ns / self.cell_ns * self.cell_ns;
        self.started = true;
        self.cell = Cell {
            watermark_ns,
            end_ns: watermark_ns.saturating_add(self.cell_ns),
        };
        self.cell
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn enters_cells_takes_late_packets_and_sees_the_clock_set_back() {
        let mut clock = CellClock::new(&Timeouts::default(), SECOND_NS);
        let cell = |second: u64| Cell {
            watermark_ns: second * SECOND_NS,
            end_ns: (second + 1) * SECOND_NS,
        };
        assert_eq!(clock.tick(100 * SECOND_NS + 5), Tick::Enters(cell(100)));
        assert_eq!(clock.tick(100 * SECOND_NS + 4), Tick::Stays);
        assert_eq!(clock.tick(103 * SECOND_NS), Tick::Enters(cell(103)));
        assert_eq!(clock.tick(73 * SECOND_NS), Tick::Stays);
        assert_eq!(clock.now_ns(), 103 * SECOND_NS);
        assert_eq!(clock.tick(73 * SECOND_NS - 1), Tick::SetBack(cell(72)));
        assert_eq!(clock.tick(72 * SECOND_NS), Tick::Stays);
    }

    #[test]
    fn the_wall_clock_moves_it_forward_and_back() {
        let timeouts = Timeouts {
            idle_ns: Some(SECOND_NS / 20),
            ..Timeouts::default()
        };
        let mut clock = CellClock::new(&timeouts, SECOND_NS);
        assert!(matches!(clock.advance(100 * SECOND_NS), Tick::Enters(_)));
        assert!(matches!(clock.tick(101 * SECOND_NS), Tick::Enters(_)));
        // Behind the packets, even by more than the idle timeout, this changes nothing.
        assert_eq!(clock.advance(100 * SECOND_NS), Tick::Stays);
        assert!(matches!(clock.advance(102 * SECOND_NS), Tick::Enters(_)));
        assert!(matches!(clock.advance(91 * SECOND_NS), Tick::SetBack(_)));
        assert_eq!(clock.now_ns(), 91 * SECOND_NS);
    }

    #[test]
    fn is_never_set_back_without_an_idle_timeout() {
        let timeouts = Timeouts {
            idle_ns: None,
            ..Timeouts::default()
        };
        let mut clock = CellClock::new(&timeouts, SECOND_NS);
        assert!(matches!(clock.tick(u64::MAX), Tick::Enters(_)));
        assert_eq!(clock.tick(0), Tick::Stays);
    }

    #[test]
    fn starts_in_the_first_cell_of_time() {
        let mut clock = CellClock::new(&Timeouts::default(), SECOND_NS);
        assert!(matches!(clock.tick(0), Tick::Enters(_)));
    }
}
