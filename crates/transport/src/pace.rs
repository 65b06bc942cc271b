// SPDX-License-Identifier: Apache-2.0
//! Pacing: limits the flow records per second, so that a collector's socket buffer does not
//! overflow.

use std::time::Duration;

/// By how much sending may catch up after a pause: a burst of this duration fits in socket buffers.
const BURST: Duration = Duration::from_millis(5);
const NS_PER_S: u128 = 1_000_000_000;

/// Upper bound on the flow records in a message, from which the longest wait follows.
const MESSAGE_RECORDS: u64 = 1_000;

/// Upper bound on the time that a message waits until it may be sent.
pub(super) fn longest_wait(rate: Option<u64>) -> Duration {
    let rate = rate.filter(|rate| *rate > 0);
    rate.map_or(Duration::ZERO, |rate| {
        Duration::from_secs(1 + MESSAGE_RECORDS / rate)
    })
}

/// When the next message may be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    rate: Option<u64>,
    next: Duration,
}

impl Pace {
    pub(super) fn new(rate: Option<u64>) -> Self {
        Self {
            rate: rate.filter(|rate| *rate > 0),
            next: Duration::ZERO,
        }
    }

    /// How long to wait from `now` on before a message of `records` flow records may be sent.
    pub(super) fn wait(&mut self, records: u32, now: Duration) -> Duration {
        let Some(rate) = self.rate else {
            return Duration::ZERO;
        };
        let start = self.next.max(now.saturating_sub(BURST));
        let cost_ns = u128::from(records) * NS_PER_S / u128::from(rate);
        self.next = start + Duration::from_nanos(u64::try_from(cost_ns).unwrap_or(u64::MAX));
        start.saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_to_the_rate_over_time() {
        let mut pace = Pace::new(Some(1_000));
        let (mut now, mut records) = (Duration::from_secs(7), 0);
        while now < Duration::from_secs(17) {
            now += pace.wait(30, now);
            records += 30;
        }
        assert!((9_900..=10_100).contains(&records), "{records}");
        assert_eq!(Pace::new(None).wait(1_000_000, now), Duration::ZERO);
    }
}
