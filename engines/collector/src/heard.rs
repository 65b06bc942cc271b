// SPDX-License-Identifier: Apache-2.0
//! Whether a probe was heard from its first record to its end, and which of its records are missing
//! in between.

use turboflow_engine::PortState;

use crate::exporter_numbers::Place;
use crate::exporters::Sender;

/// A live probe sends its counters at least once a second, also while it meters nothing. It is
/// silent after this many of such intervals.
const INTERVALS: u64 = 5;
/// A probe that paused longer before, such as one that reads a slow pipe, is silent after this many
/// of its longest pauses.
const LONGEST_PAUSES: u64 = 3;
const INTERVAL_NS: u64 = 1_000_000_000;

/// A message of a probe, and its place in the numbers of the probe's records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hearing {
    pub(crate) sender: Sender,
    /// Time of arrival, in nanoseconds since 1970; `None` for files.
    pub(crate) now_ns: Option<u64>,
    pub(crate) sequence: u32,
    /// How many records came before it, if it is the first of the probe.
    pub(crate) before: u32,
    pub(crate) place: Place,
}

/// What was heard of a probe.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Heard {
    /// The sender of its last message.
    sender: Option<Sender>,
    /// Whether the connection or file of its last message has ended.
    is_disconnected: bool,
    last_ns: Option<u64>,
    longest_pause_ns: u64,
    /// The number of its first message.
    first: u32,
    /// Missing records before its first message.
    pub(crate) before: u64,
    /// All missing records, those before its first message included.
    pub(crate) lost: u64,
    /// Records that it sent before this run listened.
    pub(crate) earlier: u64,
}

impl Heard {
    pub(crate) fn hear(&mut self, hearing: &Hearing) {
        let Hearing {
            sender,
            now_ns,
            sequence,
            before,
            place,
        } = *hearing;
        if let (Some(last_ns), Some(now_ns)) = (self.last_ns, now_ns) {
            let pause_ns = now_ns.saturating_sub(last_ns);
            self.longest_pause_ns = self.longest_pause_ns.max(pause_ns);
        }
        (self.sender, self.is_disconnected) = (Some(sender), false);
        self.last_ns = now_ns.or(self.last_ns);
        if before > 0 {
            self.first = sequence;
            self.before = u64::from(before);
            self.lost += self.before;
        }
        if let Place::Late(found) = place
            && sequence < self.first
        {
            self.before = self.before.saturating_sub(u64::from(found));
        }
        self.lost = place.adds_to(self.lost);
    }

    /// Whether records are numbered before the first message. Then this run accounts for the probe
    /// from its start on.
    pub(crate) const fn is_from_start(&self) -> bool {
        self.first > 0
    }

    /// The probe started before this run listened: what it sent before its first message is not
    /// missing here. Returns the number of these records.
    pub(crate) fn begin_elsewhere(&mut self) -> u64 {
        let before = std::mem::take(&mut self.before);
        self.lost = self.lost.saturating_sub(before);
        self.earlier += before;
        self.first = 0;
        before
    }

    /// The connection of a sender has ended.
    pub(crate) fn disconnect(&mut self, sender: Sender) {
        self.is_disconnected |= self.sender == Some(sender);
    }

    /// Its file has ended.
    pub(crate) const fn end(&mut self) {
        self.is_disconnected = true;
    }

    /// The numbers of its records begin again.
    pub(crate) fn begin_anew(&mut self) {
        (self.first, self.before, self.lost) = (0, 0, 0);
    }

    /// The state of a probe that has not reported its end. Everything that arrived before `now_ns`
    /// has been read, and the cells of the run have `cell_ns`.
    pub(crate) fn state(&self, now_ns: Option<u64>, cell_ns: u64) -> PortState {
        let patience_ns = (INTERVALS.saturating_mul(cell_ns.max(INTERVAL_NS)))
            .max(LONGEST_PAUSES.saturating_mul(self.longest_pause_ns));
        let silent_ns = match (self.last_ns, now_ns) {
            (Some(last_ns), Some(now_ns)) => now_ns.saturating_sub(last_ns),
            _ => 0,
        };
        match self.is_disconnected {
            true => PortState::Disconnected,
            false if silent_ns > patience_ns => PortState::Silent,
            false => PortState::Up,
        }
    }
}
