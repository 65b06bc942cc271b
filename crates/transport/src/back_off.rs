// SPDX-License-Identifier: Apache-2.0
//! Back-off between connection attempts: short at first, then doubled up to a maximum.

use std::time::Duration;

/// Minimum and maximum time between two attempts.
const FIRST: Duration = Duration::from_millis(250);
const LAST: Duration = Duration::from_secs(30);

/// Minimum age of a steady connection: records sent on it were probably read. If a collector
/// accepts a connection and closes it at once, whatever the socket's buffer accepted is lost.
const STEADY: Duration = Duration::from_secs(1);

/// How long to wait, according to the outcome of the last attempts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BackOff {
    /// Zero before the first failure, and again after records were sent on a steady connection.
    wait: Duration,
    failed_at: Duration,
    connected_at: Duration,
}

impl BackOff {
    pub(super) const fn connected(&mut self, now: Duration) {
        self.connected_at = now;
    }

    /// A connection could not be made, or it broke.
    pub(super) fn failed(&mut self, now: Duration) {
        self.wait = (self.wait * 2).clamp(FIRST, LAST);
        self.failed_at = now;
    }

    /// Records were sent. Returns true if that counts as progress, which a new connection alone
    /// does not.
    pub(super) fn sent(&mut self, now: Duration) -> bool {
        let is_steady = now.saturating_sub(self.connected_at) >= STEADY;
        if is_steady {
            self.wait = Duration::ZERO;
        }
        is_steady
    }

    /// Time until the next attempt; short while the writer is closing.
    pub(super) fn left(&self, now: Duration, is_ending: bool) -> Duration {
        let wait = if is_ending {
            self.wait.min(FIRST)
        } else {
            self.wait
        };
        (self.failed_at + wait).saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn connections_alone_are_no_progress() {
        let (mut back_off, mut now) = (BackOff::default(), ms(9_000));
        assert_eq!(back_off.left(now, false), Duration::ZERO);
        let mut waits = Vec::new();
        for _ in 0..9 {
            back_off.connected(now);
            // The data only went into a socket buffer.
            assert!(!back_off.sent(now + ms(1)));
            back_off.failed(now + ms(2));
            waits.push(back_off.left(now + ms(2), false).as_millis());
            assert!(back_off.left(now + ms(2), true) <= ms(250));
            now += ms(2) + back_off.left(now + ms(2), false);
        }
        assert_eq!(waits[..3], [250, 500, 1_000]);
        assert_eq!(waits[8], 30_000);
        back_off.connected(now);
        assert!(back_off.sent(now + ms(1_000)));
        back_off.failed(now + ms(1_000));
        assert_eq!(back_off.left(now + ms(1_000), false), ms(250));
        assert_eq!(back_off.left(now + ms(1_400), false), Duration::ZERO);
    }
}
