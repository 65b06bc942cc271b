// SPDX-License-Identifier: Apache-2.0
//! NetFlow's clock: milliseconds since the exporter began, in 32 bits.
//!
//! A message says when it was sent both in seconds since 1970 and in ms since the start, and its
//! records' times are ms since the start. 32 bits last for 49.7 days. Rather than let times wrap,
//! which readers undo or not, the start moves when a record does not fit, as if the exporter had
//! been started anew: every message is right by itself.

/// How far before the first record the start is put: later records may begin earlier.
const MARGIN_MS: u64 = 24 * 3_600_000;

/// How far ahead of a message's records its own time may be.
pub(super) const SEND_MARGIN_MS: u64 = 24 * 3_600_000;

/// The start that times are told from.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Uptime {
    boot_ms: Option<u64>,
}

/// Whether a record's times can be told from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// They can.
    Same,
    /// They can from a new start: what was told from the old one has to leave first.
    Moved,
    /// Its own times are too far apart.
    Never,
}

impl Uptime {
    /// The start, in ms since 1970.
    pub(super) fn boot_ms(self) -> u64 {
        self.boot_ms.unwrap_or(0)
    }

    /// Makes room for a record.
    pub(super) fn fit(&mut self, start_ms: u64, end_ms: u64) -> Fit {
        let reach = |boot_ms: u64| end_ms + SEND_MARGIN_MS - boot_ms <= u64::from(u32::MAX);
        if self
            .boot_ms
            .is_some_and(|boot_ms| boot_ms <= start_ms && reach(boot_ms))
        {
            return Fit::Same;
        }
        // Whole seconds, so that a header in whole seconds tells it exactly.
        let boot_ms = start_ms.saturating_sub(MARGIN_MS) / 1_000 * 1_000;
        if !reach(boot_ms) {
            return Fit::Never;
        }
        self.boot_ms = Some(boot_ms);
        Fit::Moved
    }
}

/// The latest time of a record that ends then, in ms since 1970. It is never 0, which says that a message has no time: a record
/// of the first millisecond of 1970 is one of the second.
pub(super) fn latest_ms(end_ms: u64) -> u64 {
    end_ms.max(1)
}

/// When a message with records up to `latest_ms` says that it was sent. Now; or, where the records
/// are of another time (a capture played back), right after them: uptime has to reach them. Records
/// without a time (0) are of now.
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
    fn played_back_captures_keep_their_own_time() {
        assert_eq!(sent_ms(1_000_000, 999_000), 1_000_000);
        assert_eq!(
            sent_ms(1_700_000_000_000, 1_500_000_000_000),
            1_500_000_000_000
        );
        assert_eq!(sent_ms(5, 10), 10);
        assert_eq!(sent_ms(1_700_000_000_000, 0), 1_700_000_000_000);
    }
}
