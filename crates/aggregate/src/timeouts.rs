// SPDX-License-Identifier: Apache-2.0
//! When flows end: the rules of `docs/decisions/0001-cells.md` for one flow and one record. The
//! flow cache (`cache.rs`) follows them.
//!
//! Rule 1: the clock alone ends a flow whose active timeout, idle timeout or linger has passed
//! ([`Cuts::due`]). Rule 2: a record that arrives first cuts its flow, if the two may not be in one
//! flow record ([`Cuts::cut`]).

use turboflow_merge::{Base, Marks, MergeGate};
use turboflow_record::EndReason;

/// When open flows are exported. `None` disables a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// A flow ends after this long without packets. Default 30 s.
    pub idle_ns: Option<u64>,
    /// Maximum duration of a flow record. Default 120 s.
    pub active_ns: Option<u64>,
    /// How long a flow that saw RST or FIN is kept for its last packets. Default 2 s. With `None`,
    /// FIN and RST do not end flows.
    pub linger_ns: Option<u64>,
    /// The length of windows, which are counted from 1970. No flow record has packets of two
    /// windows. Default `None`: records are not aligned.
    pub align_ns: Option<u64>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            idle_ns: Some(30_000_000_000),
            active_ns: Some(120_000_000_000),
            linger_ns: Some(2_000_000_000),
            align_ns: None,
        }
    }
}

impl Timeouts {
    /// Length of a cell in nanoseconds, never 0. It is the maximum duration of a microflow record,
    /// chosen so that no timeout and no end of a window falls inside a cell.
    #[must_use]
    pub fn cell_ns(&self, max_age_ns: u64) -> u64 {
        let timeouts = [
            self.idle_ns,
            self.active_ns,
            self.linger_ns.filter(|&ns| ns > 0),
        ];
        let longest_ns = timeouts
            .into_iter()
            .flatten()
            .fold(max_age_ns, u64::min)
            .max(1);
        match self.align_ns {
            None => longest_ns,
            Some(align_ns) => largest_divisor(align_ns, longest_ns),
        }
    }
}

/// The largest number up to `limit` that divides `number`. Both are positive.
fn largest_divisor(number: u64, limit: u64) -> u64 {
    if limit >= number {
        return number;
    }
    // Searches for the divisor or its counterpart, whichever is smaller. For a day in nanoseconds,
    // this takes at most nine million steps.
    let root = number.isqrt();
    let divides = |its: &u64| number.is_multiple_of(*its);
    let large = (number.div_ceil(limit)..=root).find(divides);
    let small = || (1..=limit.min(root)).rev().find(divides);
    large.map_or_else(|| small().unwrap_or(1), |its| number / its)
}

/// The current cell of the clock, in nanoseconds since 1970: `[watermark_ns, end_ns)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// All records before this time have reached the aggregator.
    pub watermark_ns: u64,
    /// No record that begins at or after this time has reached the aggregator.
    pub end_ns: u64,
}

/// The rules, with their constants computed for the current cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cuts {
    /// `u64::MAX` means "never".
    pub(crate) idle_ns: u64,
    active_ns: u64,
    linger_ns: u64,
    /// 0 means that there are no windows.
    align_ns: u64,
    /// Marks that must all be set to end a flow; see `Marks::ended`.
    fins: u8,
    /// Marks that may end a flow; 0 if none do.
    pub(crate) ends: u8,
    pub(crate) watermark_ns: u64,
    /// A flow that began before this time is cut when a record of this cell arrives.
    pub(crate) oldest_first_ns: u64,
    /// A flow with a packet at or after this time has not been silent for too long when a record of
    /// this cell arrives.
    oldest_last_ns: u64,
    /// Records that pass this gate need none of these rules.
    pub(crate) gate: MergeGate,
}

impl Cuts {
    pub(crate) fn new(timeouts: &Timeouts, fins: u8) -> Self {
        Self {
            idle_ns: timeouts.idle_ns.unwrap_or(u64::MAX),
            active_ns: timeouts.active_ns.unwrap_or(u64::MAX),
            // No record spans a silence longer than the idle timeout, even if its flow has ended.
            linger_ns: timeouts
                .linger_ns
                .unwrap_or(u64::MAX)
                .min(timeouts.idle_ns.unwrap_or(u64::MAX)),
            align_ns: timeouts.align_ns.unwrap_or(0),
            fins,
            ends: if timeouts.linger_ns.is_some() {
                Marks::ENDS
            } else {
                0
            },
            watermark_ns: 0,
            oldest_first_ns: 0,
            oldest_last_ns: u64::MAX,
            // Closed before the first cell, so that the rules decide about every record.
            gate: MergeGate::CLOSED,
        }
    }

    pub(crate) fn enter(&mut self, cell: Cell) {
        self.watermark_ns = cell.watermark_ns;
        let oldest_first_ns = cell.end_ns.saturating_sub(self.active_ns);
        self.oldest_first_ns = oldest_first_ns.max(self.window_ns(cell.watermark_ns));
        self.oldest_last_ns = cell.end_ns.saturating_sub(self.idle_ns);
        self.gate = self.gate_of(cell).unwrap_or(MergeGate::CLOSED);
    }

    /// The gate of a cell that starts at W, ends at E and has the length C. A record begins at `f
    /// >= W`. Every flow that passes has `first + active >= f + C >= E` and `last + idle >= f + C
    /// >= E`, so it is neither due (rule 1) nor cut (rule 2). A flow within a cell of a timeout
    /// does not pass, and [`Cuts::certainly_merges`] decides about it. If there are windows, and
    /// the current one begins at S, then `first >= f - (W - S) >= S`.
    fn gate_of(&self, cell: Cell) -> Option<MergeGate> {
        let cell_ns = cell.end_ns.checked_sub(cell.watermark_ns)?;
        let longest_ns = |timeout_ns: u64| {
            if timeout_ns > MergeGate::UNLIMITED_NS {
                return Some(MergeGate::UNLIMITED_NS);
            }
            timeout_ns.checked_sub(cell_ns)
        };
        let (active_ns, idle_ns) = (longest_ns(self.active_ns)?, longest_ns(self.idle_ns)?);
        let active_ns = match self.align_ns {
            0 => active_ns,
            _ => active_ns.min(cell.watermark_ns - self.window_ns(cell.watermark_ns)),
        };
        let gate = MergeGate::new(cell.watermark_ns, active_ns, idle_ns);
        let gate = if self.ends == 0 {
            gate
        } else {
            gate.without_ends()
        };
        (cell.end_ns <= MergeGate::UNLIMITED_NS).then_some(gate)
    }

    /// Whether rules 1 and 2 have no effect and no end is near. Unlike [`Cuts::gate`], this is
    /// exact up to the timeouts.
    #[inline(always)]
    pub(crate) fn certainly_merges(&self, flow: &Base, later: &Base) -> bool {
        later.first_ns >= self.watermark_ns.max(flow.first_ns)
            && flow.first_ns >= self.oldest_first_ns
            && flow.last_ns >= self.oldest_last_ns
            && !flow.marks.any(self.ends)
            && !later.marks.any(self.ends)
    }

    #[inline(always)]
    pub(crate) fn ended(&self, flow: &Base) -> bool {
        flow.marks.any(self.ends) && flow.marks.ended(self.fins)
    }

    /// Whether a flow that has just ended is exported at once, without the linger.
    #[inline(always)]
    pub(crate) fn leaves_at_once(&self, flow: &Base) -> bool {
        self.linger_ns == 0 && self.ended(flow)
    }

    fn limit_ns(&self, flow: &Base) -> u64 {
        if self.ended(flow) {
            self.linger_ns
        } else {
            self.idle_ns
        }
    }

    fn silence_reason(&self, flow: &Base) -> EndReason {
        if self.ended(flow) {
            EndReason::EndOfFlow
        } else {
            EndReason::IdleTimeout
        }
    }

    /// The start of the window that contains a time; 0 without windows.
    const fn window_ns(&self, time_ns: u64) -> u64 {
        match time_ns.checked_div(self.align_ns) {
            Some(windows) => windows * self.align_ns,
            None => 0,
        }
    }

    /// The latest packet time of a record that began at `first_ns`: the end of its active timeout,
    /// or of its window.
    #[inline]
    const fn active_or_window_ends_ns(&self, first_ns: u64) -> u64 {
        let active_ends_ns = first_ns.saturating_add(self.active_ns);
        if self.align_ns == 0 {
            return active_ends_ns;
        }
        let window_ends_ns = self.window_ns(first_ns).saturating_add(self.align_ns - 1);
        if window_ends_ns < active_ends_ns {
            window_ends_ns
        } else {
            active_ends_ns
        }
    }

    /// Rule 1: whether the clock alone ends the flow, and why.
    #[inline]
    pub(crate) fn due(&self, flow: &Base) -> Option<EndReason> {
        let silence_ends_ns = flow.last_ns.saturating_add(self.limit_ns(flow));
        let active_ends_ns = self.active_or_window_ends_ns(flow.first_ns);
        if silence_ends_ns.min(active_ends_ns) >= self.watermark_ns {
            None
        } else if silence_ends_ns <= active_ends_ns {
            Some(self.silence_reason(flow))
        } else {
            Some(EndReason::ActiveTimeout)
        }
    }

    /// A lower bound on the time when rule 1 ends the flow. It holds for whatever passes the gate
    /// and merges into the flow: a merge only postpones the end of the flow's silence, and a record
    /// that passes begins no earlier than the watermark. A record that does not pass computes the
    /// bound again.
    pub(crate) fn earliest_due_ns(&self, flow: &Base) -> u64 {
        let silence_ends_ns = flow.last_ns.saturating_add(self.limit_ns(flow));
        let began_ns = flow.first_ns.min(self.watermark_ns);
        silence_ends_ns.min(self.active_or_window_ends_ns(began_ns))
    }

    /// Rules 1 and 2: whether the flow ends before `later` may be merged.
    pub(crate) fn cut(&self, flow: &Base, later: &Base) -> Option<EndReason> {
        if let Some(reason) = self.due(flow) {
            return Some(reason);
        }
        // A SYN from before the flow's last packet does not open a new connection: it was captured
        // after the RST that answered it.
        let opens = later.marks.any(Marks::STARTS_WITH_SYN) && later.first_ns >= flow.last_ns;
        if self.ended(flow) && opens {
            return Some(EndReason::EndOfFlow);
        }
        if later.first_ns > flow.last_ns.saturating_add(self.limit_ns(flow)) {
            return Some(self.silence_reason(flow));
        }
        // `oldest_first_ns` is the end of the cell less the active timeout, or the start of the
        // window if that is later. A record that began earlier could outlast the active timeout
        // before the cell ends, or would span two windows.
        (flow.first_ns.min(later.first_ns) < self.oldest_first_ns)
            .then_some(EndReason::ActiveTimeout)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CELL: Cell = Cell {
        watermark_ns: 1_000,
        end_ns: 1_100,
    };

    fn timeout() -> impl Strategy<Value = Option<u64>> {
        prop_oneof![
            Just(None),
            (1u64..300).prop_map(Some),
            Just(Some(u64::MAX - 7))
        ]
    }

    /// Times around the cell, and times before it by about the length of the timeouts.
    fn record() -> impl Strategy<Value = Base> {
        let marks = prop_oneof![
            4 => Just(0),
            1 => Just(Marks::STARTS_WITH_SYN | Marks::SYN),
            1 => Just(Marks::FIN),
            1 => Just(Marks::RST),
        ];
        (700u64..1_100, 0u64..150, marks).prop_map(|(first_ns, lasts_ns, marks)| Base {
            packets: 1,
            first_ns,
            last_ns: (first_ns + lasts_ns).min(CELL.end_ns - 1),
            marks: Marks(marks),
            ..Base::default()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn records_that_pass_the_gate_are_neither_cut_nor_end_a_flow(
            timeouts in [timeout(), timeout(), timeout()],
            align_ns in prop_oneof![Just(None), (1u64..=11).prop_map(|cells| Some(100 * cells))],
            fins in prop_oneof![Just(Marks::FIN), Just(Marks::FIN | Marks::REVERSE_FIN)],
            flow in record(),
            later in record(),
        ) {
            let [idle_ns, active_ns, linger_ns] = timeouts;
            let timeouts = Timeouts { idle_ns, active_ns, linger_ns, align_ns };
            let mut cuts = Cuts::new(&timeouts, fins);
            prop_assert!(!cuts.gate.passes(&flow, &later) && !cuts.certainly_merges(&flow, &later));
            cuts.enter(CELL);
            let certain = cuts.certainly_merges(&flow, &later);
            prop_assert!(certain || !cuts.gate.passes(&flow, &later));
            if certain {
                let mut merged = flow;
                merged.merge(&later);
                prop_assert_eq!(cuts.cut(&flow, &later), None);
                prop_assert!(!cuts.leaves_at_once(&merged));
                prop_assert_eq!(merged.first_ns, flow.first_ns);
                if let Some(align_ns) = align_ns {
                    prop_assert_eq!(merged.first_ns / align_ns, merged.last_ns / align_ns);
                }
            }
        }

        #[test]
        fn cells_are_the_longest_that_divide_windows(align_ns in 1u64..5_000, limit in 1u64..6_000) {
            let naive = (1..=limit.min(align_ns)).rev().find(|cell| align_ns % cell == 0);
            prop_assert_eq!(Some(largest_divisor(align_ns, limit)), naive);
        }
    }

    #[test]
    fn cells_of_usual_windows_are_found_at_once() {
        const SECOND_NS: u64 = 1_000_000_000;
        for (align_ns, limit_ns, cell_ns) in [
            (60 * SECOND_NS, SECOND_NS, SECOND_NS),
            (60 * SECOND_NS, 700_000_000, 625_000_000),
            (86_400 * SECOND_NS, 7, 6),
            (86_399 * SECOND_NS, 9_000_017, 8_999_895),
            (SECOND_NS, 30 * SECOND_NS, SECOND_NS),
        ] {
            let timeouts = Timeouts {
                idle_ns: Some(limit_ns),
                align_ns: Some(align_ns),
                ..Timeouts::default()
            };
            let found_ns = timeouts.cell_ns(60 * SECOND_NS);
            assert!(
                found_ns <= limit_ns && align_ns % found_ns == 0,
                "{found_ns}"
            );
            assert!(found_ns >= cell_ns.min(limit_ns / 3), "{found_ns}");
        }
    }

    #[test]
    fn the_gate_is_as_wide_as_the_timeouts_less_a_cell() {
        let timeouts = Timeouts {
            idle_ns: Some(300),
            active_ns: Some(500),
            linger_ns: Some(10),
            align_ns: None,
        };
        let mut cuts = Cuts::new(&timeouts, Marks::FIN);
        cuts.enter(CELL);
        let record = |first_ns, last_ns| Base {
            packets: 1,
            first_ns,
            last_ns,
            ..Base::default()
        };
        let later = record(1_050, 1_050);
        assert!(cuts.gate.passes(&record(650, 850), &later));
        assert!(!cuts.gate.passes(&record(649, 850), &later));
        assert!(!cuts.gate.passes(&record(650, 849), &later));
        assert!(cuts.certainly_merges(&record(600, 800), &later));
        assert!(!cuts.certainly_merges(&record(599, 800), &later));
        assert!(!cuts.certainly_merges(&record(600, 799), &later));
        assert!(
            !cuts.gate.passes(&record(999, 999), &record(999, 1_050)),
            "a late record"
        );
    }
}
