// SPDX-License-Identifier: Apache-2.0
//! Whether a probe was heard from its first record to its end, and which of its records are missing
//! in between.

use turboflow_engine::PortState;

use crate::exporter_numbers::{LARGEST_GAP, Place};
use crate::exporters::Sender;

/// A live probe sends its counters at least once a second, also while it meters nothing. It is
/// silent after this many of such intervals.
const INTERVALS: u64 = 5;
/// A probe that paused longer before, such as one that reads a slow pipe, is silent after this many
/// of its longest pauses.
const LONGEST_PAUSES: u64 = 3;
/// A longer pause does not count: the probe was silent.
const LONGEST_PAUSE_NS: u64 = 120_000_000_000;
const INTERVAL_NS: u64 = 1_000_000_000;

/// A message of a probe, and its place in the numbers of the probe's records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hearing {
    pub(crate) sender: Sender,
    /// Time of arrival, in nanoseconds since 1970; `None` for files.
    pub(crate) now_ns: Option<u64>,
    pub(crate) sequence: u32,
    /// The number of its records.
    pub(crate) records: u32,
    /// Whether nothing of the probe has arrived before.
    pub(crate) is_first: bool,
    pub(crate) place: Place,
}

/// What became of the records before the first message that arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Before {
    /// The probe has not said yet when it started.
    #[default]
    Undecided,
    /// It started after this run listened: they are missing.
    Missing,
    /// It started before this run listened.
    Earlier,
    /// It does not say when it started.
    Unknown,
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
    /// How many records of those before its first message have not arrived.
    before: u64,
    became: Before,
    /// How many records have arrived since the first message.
    since_first: u64,
    /// All missing records, those before its first message included.
    pub(crate) lost: u64,
}

impl Heard {
    /// Whether a message is late, and before the first one that arrived.
    pub(crate) fn is_before_first(&self, sequence: u32, records: u32) -> bool {
        // Numbers wrap, and what is late is not that late.
        let is_early = self.since_first <= u64::from(LARGEST_GAP);
        let is_there = self.before >= u64::from(records) && records > 0;
        self.became != Before::Unknown && is_early && is_there && sequence < self.first
    }

    /// Notes a message. Returns how many records are not missing any more.
    pub(crate) fn hear(&mut self, hearing: &Hearing) -> u64 {
        let Hearing {
            sender,
            now_ns,
            sequence,
            records,
            is_first,
            place,
        } = *hearing;
        if let (Some(last_ns), Some(now_ns)) = (self.last_ns, now_ns) {
            let pause_ns = now_ns.saturating_sub(last_ns);
            self.longest_pause_ns = self.longest_pause_ns.max(pause_ns.min(LONGEST_PAUSE_NS));
        }
        (self.sender, self.is_disconnected) = (Some(sender), false);
        self.last_ns = now_ns.or(self.last_ns);
        if is_first {
            (self.first, self.before) = (sequence, u64::from(sequence));
        }
        let records = u64::from(records);
        // Only a message before the first one is late and fills no gap.
        if place == Place::Late(0) {
            let missing = self.missing_before();
            self.before = self.before.saturating_sub(records);
            let found = missing - self.missing_before();
            self.lost = self.lost.saturating_sub(found);
            return found;
        }
        self.since_first += records;
        self.lost = place.adds_to(self.lost);
        0
    }

    /// Decides what became of the records before its first message, once the probe has said when it
    /// started, or that it does not know. Returns how many more records are missing.
    pub(crate) fn decide(&mut self, started_ns: Option<u64>, since_ns: Option<u64>) -> u64 {
        if self.became != Before::Undecided {
            return 0;
        }
        self.became = match (started_ns, since_ns) {
            (None, _) => Before::Unknown,
            (Some(started_ns), Some(since_ns)) if started_ns < since_ns => Before::Earlier,
            (Some(_), _) => Before::Missing,
        };
        let missing = self.missing_before();
        self.lost += missing;
        missing
    }

    /// Missing records before its first message.
    pub(crate) fn missing_before(&self) -> u64 {
        if self.became == Before::Missing {
            self.before
        } else {
            0
        }
    }

    /// Records that it sent before this run listened.
    pub(crate) fn earlier(&self) -> u64 {
        if self.became == Before::Earlier {
            self.before
        } else {
            0
        }
    }

    /// Whether everything that the probe has counted is to be accounted for here.
    pub(crate) fn is_whole_ours(&self) -> bool {
        self.became == Before::Missing
    }

    /// Whether some of what it has counted may belong to the time before this run listened. A
    /// connection numbers its records from 0, whatever was sent before it.
    pub(crate) fn began_earlier(&self) -> bool {
        let is_stream = self.sender.is_some_and(|sender| sender.session != 0);
        self.became == Before::Earlier && (self.before > 0 || is_stream)
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
        (self.first, self.before, self.since_first, self.lost) = (0, 0, 0, 0);
        self.became = Before::Undecided;
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
