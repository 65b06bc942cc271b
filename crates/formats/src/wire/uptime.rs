// SPDX-License-Identifier: Apache-2.0
//! NetFlow's clock: milliseconds since the exporter's start, in 32 bits.
//!
//! A message gives its export time both in seconds since 1970 and in milliseconds since the start.
//! The times of its records are milliseconds since the start, and 32 bits wrap after 49.7 days. Not
//! all readers handle wrapped times. So when a record does not fit, the start moves as if the
//! exporter had restarted, and every message is consistent in itself.

/// The start is this long before the first record, because later records may begin earlier.
const MARGIN_MS: u64 = 24 * 3_600_000;

/// How long after the times of its records a message may be exported.
pub(super) const SEND_MARGIN_MS: u64 = 24 * 3_600_000;

/// The last export time that a header holds, in seconds since 1970.
pub(super) const LAST_SECOND: u64 = u32::MAX as u64;

/// The origin of uptimes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Uptime {
    boot_ms: Option<u64>,
}

/// Whether a record's times can be expressed relative to the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// Yes, relative to the current origin.
    Same,
    /// Yes, relative to a new origin: buffered records with the old one must be emitted first.
    Moved,
    /// No: the record is too long, or ends after the last second that a header can hold, in 2106.
    Never,
}

impl Uptime {
    /// The origin, in milliseconds since 1970.
    pub(super) fn boot_ms(self) -> u64 {
        self.boot_ms.unwrap_or(0)
    }

    /// Moves the origin if the record requires it.
    pub(super) fn fit(&mut self, start_ms: u64, end_ms: u64) -> Fit {
        let reach = |boot_ms: u64| {
            end_ms + SEND_MARGIN_MS - boot_ms <= u64::from(u32::MAX)
                && end_ms / 1_000 <= LAST_SECOND
        };
        if self
            .boot_ms
            .is_some_and(|boot_ms| boot_ms <= start_ms && reach(boot_ms))
        {
            return Fit::Same;
        }
        // A whole second, which headers with whole seconds can represent exactly.
        let boot_ms = start_ms.saturating_sub(MARGIN_MS) / 1_000 * 1_000;
        if !reach(boot_ms) {
            return Fit::Never;
        }
        self.boot_ms = Some(boot_ms);
        Fit::Moved
    }
}

/// The latest time of a record with this end, in milliseconds since 1970. It is never 0, which
/// would mean that a message has no time; a record that ends in 1970's first millisecond gets 1.
pub(super) fn latest_ms(end_ms: u64) -> u64 {
    end_ms.max(1)
}

/// The export time of a message whose latest record is at `latest_ms`: normally the current time.
/// For records of another time (a replayed capture) it is the time of the latest record, because
/// the uptime must not be less than the times of the records. Messages without a time (0) get the
/// current time.
pub(super) const fn sent_ms(now_ms: u64, latest_ms: u64) -> u64 {
    let is_recent = now_ms >= latest_ms && now_ms - latest_ms < SEND_MARGIN_MS;
    if is_recent || latest_ms == 0 {
        now_ms
    } else {
        latest_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: u64 = 24 * 3_600_000;

    #[test]
    fn the_start_moves_only_when_a_record_does_not_fit() {
        let mut uptime = Uptime::default();
        let t0 = 1_700_000_000_123;
        assert_eq!(uptime.fit(t0, t0 + 5), Fit::Moved);
        let boot = uptime.boot_ms();
        assert!(boot <= t0 - DAY_MS && boot.is_multiple_of(1_000));
        assert_eq!(uptime.fit(t0 - DAY_MS, t0), Fit::Same);
        assert_eq!(uptime.fit(t0, t0 + 40 * DAY_MS), Fit::Same);
        assert_eq!(uptime.fit(t0 + 48 * DAY_MS, t0 + 49 * DAY_MS), Fit::Moved);
        assert_eq!(uptime.fit(t0, t0), Fit::Moved);
        assert_eq!(uptime.boot_ms(), boot);
        assert_eq!(uptime.fit(t0, t0 + 48 * DAY_MS), Fit::Never);
        assert_eq!(uptime.boot_ms(), boot);
    }

    #[test]
    fn times_end_in_2106() {
        let (mut uptime, last_ms) = (Uptime::default(), LAST_SECOND * 1_000 + 999);
        assert_eq!(uptime.fit(last_ms - 5, last_ms), Fit::Moved);
        assert_eq!(uptime.fit(last_ms - 5, last_ms + 1), Fit::Never);
        assert_eq!(
            uptime.fit(u64::MAX / 1_000_000, u64::MAX / 1_000_000),
            Fit::Never
        );
    }

    #[test]
    fn replayed_captures_keep_their_own_time() {
        assert_eq!(sent_ms(1_000_000, 999_000), 1_000_000);
        assert_eq!(
            sent_ms(1_700_000_000_000, 1_500_000_000_000),
            1_500_000_000_000
        );
        assert_eq!(sent_ms(5, 10), 10);
        assert_eq!(sent_ms(1_700_000_000_000, 0), 1_700_000_000_000);
    }
}
