// SPDX-License-Identifier: Apache-2.0
//! Converts the timestamps of a pcapng interface.

use turboflow_packet::LAST_TIME_NS;

/// Converts an interface's 64-bit ticks to nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    unit: Unit,
    /// `if_tsoffset` in nanoseconds.
    offset_ns: i128,
}

/// The length of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// Ticks are 2^-n seconds.
    BinaryFraction(u32),
    /// Ticks are shorter than a nanosecond: 10^n of them are one.
    Divide(u64),
    /// Ticks are 10^n nanoseconds.
    Multiply(u64),
    /// Ticks are so short that 2^64 of them are less than a nanosecond.
    Nothing,
}

impl Clock {
    /// The clock of an interface without `if_tsresol` and `if_tsoffset`: microseconds since 1970.
    pub(crate) const DEFAULT: Self = Self {
        unit: Unit::Multiply(1_000),
        offset_ns: 0,
    };

    /// Sets the resolution from the option's byte: 10^-n seconds or, with the top bit set, 2^-n
    /// seconds.
    pub(crate) fn set_resolution(&mut self, if_tsresol: u8) {
        let exponent = u32::from(if_tsresol & 0x7f);
        self.unit = match exponent {
            _ if if_tsresol & 0x80 != 0 => Unit::BinaryFraction(exponent),
            0..=9 => Unit::Multiply(10_u64.pow(9 - exponent)),
            10..=28 => Unit::Divide(10_u64.pow(exponent - 9)),
            _ => Unit::Nothing,
        };
    }

    /// Sets the offset from the option, in seconds.
    pub(crate) fn set_offset(&mut self, if_tsoffset_seconds: i64) {
        self.offset_ns = i128::from(if_tsoffset_seconds) * 1_000_000_000;
    }

    /// The time of a tick count. One before 1970 becomes 0, one after 2554 the last valid time;
    /// then the second value is true.
    #[inline(always)]
    pub(crate) fn nanoseconds(&self, ticks: u64) -> (u64, bool) {
        match self.unit {
            Unit::Multiply(factor) if self.offset_ns == 0 => {
                let since_1970_ns = ticks.saturating_mul(factor);
                (
                    since_1970_ns.min(LAST_TIME_NS),
                    since_1970_ns > LAST_TIME_NS,
                )
            }
            _ => self.unusual(ticks),
        }
    }

    #[inline(never)]
    fn unusual(&self, ticks: u64) -> (u64, bool) {
        // No overflow: 2^64 * 10^9 is below 2^94.
        let since_offset_ns = match self.unit {
            Unit::BinaryFraction(exponent) => (u128::from(ticks) * 1_000_000_000) >> exponent,
            Unit::Divide(divisor) => u128::from(ticks / divisor),
            Unit::Multiply(factor) => u128::from(ticks) * u128::from(factor),
            Unit::Nothing => 0,
        };
        let since_1970_ns = since_offset_ns as i128 + self.offset_ns;
        let valid_ns = since_1970_ns.clamp(0, i128::from(LAST_TIME_NS));
        (valid_ns as u64, valid_ns != since_1970_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(if_tsresol: u8, if_tsoffset_seconds: i64) -> Clock {
        let mut clock = Clock::DEFAULT;
        clock.set_resolution(if_tsresol);
        clock.set_offset(if_tsoffset_seconds);
        clock
    }

    /// The time, which the record format can hold.
    fn time_ns(clock: Clock, ticks: u64) -> u64 {
        let (time_ns, is_clamped) = clock.nanoseconds(ticks);
        assert!(!is_clamped, "{ticks}");
        time_ns
    }

    #[test]
    fn default_is_microseconds() {
        assert_eq!(time_ns(Clock::DEFAULT, 1_500_000), 1_500_000_000);
        assert_eq!(clock(6, 0), Clock::DEFAULT);
    }

    #[test]
    fn every_decimal_resolution_gives_the_same_second() {
        for exponent in 0..=19_u8 {
            let ticks = 10_u64.pow(u32::from(exponent));
            assert_eq!(
                time_ns(clock(exponent, 0), ticks),
                1_000_000_000,
                "10^-{exponent}"
            );
        }
        assert_eq!(
            time_ns(clock(19, 0), 15_000_000_000_000_000_000),
            1_500_000_000
        );
        assert_eq!(time_ns(clock(28, 0), u64::MAX), 1);
        assert_eq!(time_ns(clock(29, 0), u64::MAX), 0);
        assert_eq!(time_ns(clock(127, 0), u64::MAX), 0);
    }

    #[test]
    fn every_binary_resolution_gives_the_same_second() {
        for exponent in 0..=60_u8 {
            assert_eq!(
                time_ns(clock(0x80 | exponent, 0), 7 << exponent),
                7_000_000_000
            );
        }
        assert_eq!(
            time_ns(clock(0x8a, 0), 1),
            976_562,
            "1/1024 s is 976,562.5 ns"
        );
        assert_eq!(time_ns(clock(0xff, 0), u64::MAX), 0);
    }

    #[test]
    fn offsets_shift_both_ways() {
        assert_eq!(time_ns(clock(9, 2), 5), 2_000_000_005);
        assert_eq!(time_ns(clock(6, -1), 3_000_000), 2_000_000_000);
        assert_eq!(time_ns(clock(6, -3), 3_000_000), 0);
        assert_eq!(time_ns(clock(9, 0), LAST_TIME_NS), LAST_TIME_NS);
    }

    #[test]
    fn times_that_do_not_fit_are_clamped_and_said_to_be() {
        for (if_tsresol, offset_seconds, ticks, nearest_ns) in [
            (6, -10, 3_000_000, 0),
            (9, i64::MIN, u64::MAX, 0),
            (6, 0, 1_700_000_000_000_000_000, LAST_TIME_NS),
            (9, 0, u64::MAX, LAST_TIME_NS),
            (0, 0, u64::MAX, LAST_TIME_NS),
            (0, i64::MAX, u64::MAX, LAST_TIME_NS),
            (0, i64::MIN, u64::MAX, LAST_TIME_NS),
        ] {
            let clamped = clock(if_tsresol, offset_seconds).nanoseconds(ticks);
            assert_eq!(clamped, (nearest_ns, true), "{if_tsresol} {ticks}");
        }
    }
}
