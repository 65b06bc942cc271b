// SPDX-License-Identifier: Apache-2.0
//! Counters of telemetry that was read, and of telemetry that could not be read.

/// Why telemetry was not read. The packet itself is still counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TelemetryFault {
    /// The mark is there, but what follows is not telemetry, or is of a type that hops do not write
    /// to.
    NotTelemetry,
    /// A version of INT or of reports other than 2.
    OtherVersion,
    /// Lengths contradict each other.
    BadLength,
    /// The telemetry ends after the captured bytes or after the packet.
    Cut,
    /// The packet inside a report cannot be read.
    NoInnerPacket,
}

impl TelemetryFault {
    /// The number of reasons.
    pub const COUNT: usize = Self::ALL.len();

    /// Every reason, in the order of their counters.
    pub const ALL: [Self; 5] = [
        Self::NotTelemetry,
        Self::OtherVersion,
        Self::BadLength,
        Self::Cut,
        Self::NoInnerPacket,
    ];

    /// The name in counters, `snake_case`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotTelemetry => "not_telemetry",
            Self::OtherVersion => "other_version",
            Self::BadLength => "bad_length",
            Self::Cut => "cut",
            Self::NoInnerPacket => "no_inner_packet",
        }
    }
}

/// Counters of telemetry, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TelemetryCounters {
    /// Packets whose telemetry was read.
    pub read: u64,
    /// Packets among these whose telemetry says that hops are missing.
    pub incomplete: u64,
    /// Frames with further reports after the first one. Those are not read.
    pub reports_skipped: u64,
    /// Packets whose telemetry was not read, by [`TelemetryFault`].
    pub unread: [u64; TelemetryFault::COUNT],
}

impl TelemetryCounters {
    /// Adds the counters of another parser.
    pub fn merge(&mut self, other: &Self) {
        self.read += other.read;
        self.incomplete += other.incomplete;
        self.reports_skipped += other.reports_skipped;
        for (sum, more) in self.unread.iter_mut().zip(other.unread) {
            *sum += more;
        }
    }
}
