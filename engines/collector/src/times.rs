// SPDX-License-Identifier: Apache-2.0
//! Times of flow records, in nanoseconds since 1970.
//!
//! NetFlow gives them in milliseconds since the exporter's start (sysUptime), in 32 bits, which
//! wrap after 49.7 days. The header has the uptime and the time of day of one moment, so each time
//! follows from its distance to that uptime. NetFlow v9 has the time of day in whole seconds only.
//! Each header then only bounds the exporter's start, but many headers together give it to the
//! millisecond.

const NS_PER_MS: u64 = 1_000_000;
const NS_PER_S: u64 = 1_000_000_000;
/// An uptime is ahead of the header's if the difference is at most this; otherwise it is up to 49
/// days older. An exporter reads its clock before it fills the message, so times may be a little
/// ahead.
const AHEAD_MS: u32 = 3_600_000;
const NTP_EPOCH_S: u64 = 2_208_988_800;
const NTP_ERA_S: u64 = 1 << 32;

/// A time as given in a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stamp {
    #[default]
    None,
    /// Nanoseconds since 1970.
    Absolute(u64),
    /// Milliseconds since the exporter's start, modulo 2^32.
    Uptime(u32),
    /// Microseconds before the export time (RFC 5102, section 5.9.8).
    BeforeExport(u32),
}

/// The clock of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MessageClock {
    /// The export time of the message, in nanoseconds since 1970.
    pub(crate) export_ns: u64,
    /// The time of day and the uptime of one moment; `None` in IPFIX, unless the exporter told when
    /// it started.
    pub(crate) uptime: Option<(u64, u32)>,
    /// Added to all times, for exporters whose clock is ahead.
    pub(crate) shift_ns: u64,
    /// No record ends later: it ended before it was exported and received.
    pub(crate) latest_ns: u64,
}

impl MessageClock {
    /// The time of a stamp; `None` if it has none, or cannot be resolved.
    #[inline(always)]
    pub(crate) fn resolve(&self, stamp: Stamp) -> Option<u64> {
        let time_ns = match stamp {
            Stamp::None => return None,
            Stamp::Absolute(time_ns) => time_ns,
            Stamp::Uptime(time_ms) => {
                let (moment_ns, uptime_ms) = self.uptime?;
                let back_ms = uptime_ms.wrapping_sub(time_ms);
                match time_ms.wrapping_sub(uptime_ms) {
                    ahead_ms if ahead_ms <= AHEAD_MS => {
                        moment_ns.saturating_add(u64::from(ahead_ms) * NS_PER_MS)
                    }
                    _ => moment_ns.checked_sub(u64::from(back_ms) * NS_PER_MS)?,
                }
            }
            Stamp::BeforeExport(before_us) => {
                self.export_ns.checked_sub(u64::from(before_us) * 1_000)?
            }
        };
        Some(time_ns.saturating_sub(self.shift_ns))
    }
}

/// The start of an exporter of NetFlow v9, as far as its headers tell.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Boot {
    /// The latest start computed from a header: the true one is less than a second later.
    latest_ms: Option<i64>,
}

impl Boot {
    /// The time of day at which the uptime of a header was read, in nanoseconds since 1970.
    ///
    /// The whole second in a header is up to a second before the moment of its uptime, so the start
    /// computed from it is too early by up to a second. The latest of these starts is the nearest.
    /// If a header differs by a second or more, the exporter restarted, its clock was set, or its
    /// uptime wrapped; then this header is used.
    pub(crate) fn moment_ns(&mut self, export_ns: u64, uptime_ms: u32) -> u64 {
        let given_ms = (export_ns / NS_PER_MS) as i64 - i64::from(uptime_ms);
        let boot_ms = match self.latest_ms {
            Some(latest_ms) if (latest_ms - 999..=latest_ms).contains(&given_ms) => latest_ms,
            _ => given_ms,
        };
        self.latest_ms = Some(boot_ms);
        let moment_ms = boot_ms + i64::from(uptime_ms);
        (moment_ms.max(0) as u64).saturating_mul(NS_PER_MS)
    }
}

/// Nanoseconds since 1970 of whole seconds.
pub(crate) const fn of_seconds(seconds: u64) -> Stamp {
    Stamp::Absolute(seconds.saturating_mul(NS_PER_S))
}

/// Nanoseconds since 1970 of milliseconds.
pub(crate) const fn of_milliseconds(ms: u64) -> Stamp {
    Stamp::Absolute(ms.saturating_mul(NS_PER_MS))
}

/// Nanoseconds since 1970 of an NTP time, rounded to the unit in which its element counts. An era
/// ends in 2036.
pub(crate) const fn of_ntp(time: u64, unit_ns: u64) -> Stamp {
    let (second, fraction) = (time >> 32, time & 0xffff_ffff);
    let second = match second.checked_sub(NTP_EPOCH_S) {
        Some(second) => second,
        None => second + NTP_ERA_S - NTP_EPOCH_S,
    };
    let units = (fraction * (NS_PER_S / unit_ns)) >> 32;
    Stamp::Absolute(second * NS_PER_S + units * unit_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(moment_ms: u64, uptime_ms: u32) -> MessageClock {
        MessageClock {
            export_ns: moment_ms * NS_PER_MS,
            uptime: Some((moment_ms * NS_PER_MS, uptime_ms)),
            shift_ns: 0,
            latest_ns: u64::MAX,
        }
    }

    #[test]
    fn uptimes_are_resolved_across_their_wrap() {
        let moment_ms = 1_700_000_000_123;
        // The uptime wrapped 100 ms ago; the flow began 4 s before that.
        let found = clock(moment_ms, 100).resolve(Stamp::Uptime(u32::MAX - 3_999));
        assert_eq!(found, Some((moment_ms - 4_100) * NS_PER_MS));
        // It ended 20 ms after the header was made.
        let found = clock(moment_ms, u32::MAX).resolve(Stamp::Uptime(19));
        assert_eq!(found, Some((moment_ms + 20) * NS_PER_MS));
        // The longest time back.
        let found = clock(moment_ms, 0).resolve(Stamp::Uptime(AHEAD_MS + 1));
        let back_ms = u64::from(u32::MAX - AHEAD_MS);
        assert_eq!(found, Some((moment_ms - back_ms) * NS_PER_MS));
        assert_eq!(clock(5, 100).resolve(Stamp::Uptime(1)), None);
    }

    #[test]
    fn the_start_of_an_exporter_is_found_to_the_millisecond() {
        let started_ms = 1_700_000_000_777;
        let mut boot = Boot::default();
        let mut errors = Vec::new();
        // A message every 333 ms: headers have whole seconds.
        for count in 0..400 {
            let uptime_ms = 1_000_000 + count * 333;
            let now_ms = started_ms + u64::from(uptime_ms);
            let whole_ns = now_ms / 1_000 * NS_PER_S;
            let moment_ns = boot.moment_ns(whole_ns, uptime_ms);
            errors.push(now_ms - moment_ns / NS_PER_MS);
        }
        assert!(errors.is_sorted_by(|a, b| a >= b), "{errors:?}");
        assert_eq!(errors.last(), Some(&0));
        // Another start counts at once.
        let moment_ns = boot.moment_ns(1_800_000_000 * NS_PER_S, 5);
        assert_eq!(moment_ns, 1_800_000_000 * NS_PER_S);
    }

    #[test]
    fn ntp_times_come_back_as_they_were_rounded() {
        let second = 1_700_000_000 + NTP_EPOCH_S;
        for ns in [0u64, 1, 999_999_999, 123_456_789] {
            let fraction = (u128::from(ns) << 32).div_ceil(1_000_000_000) as u64;
            let found = of_ntp(second << 32 | fraction, 1);
            assert_eq!(found, Stamp::Absolute(1_700_000_000 * NS_PER_S + ns));
        }
        assert_eq!(of_ntp(0, 1), of_seconds(NTP_ERA_S - NTP_EPOCH_S));
    }
}
