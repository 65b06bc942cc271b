// SPDX-License-Identifier: Apache-2.0
//! Durations, counts and sizes as people write them: `30s`, `1.5M`, `64MiB`.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use turboflow_record::TimeUnit;
pub use turboflow_record::quantity::{count, size_bytes, size_text};

/// Nanoseconds of each unit. A name precedes every other name that it ends with.
const UNITS_NS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];
/// The forms of a time that cannot be disabled.
const FORMS: &str = "write a number and a unit (ns, us, ms, s, m, h, d) such as 30s";
/// About 292 years, the range of the clock.
const LONGEST_NS: u64 = i64::MAX as u64;

/// Parses a timeout above 0. A timeout of 0 would end a flow before it began.
///
/// # Errors
/// What to write instead.
pub fn timeout(text: &str) -> Result<Option<u64>, String> {
    match timeout_or_zero(text)? {
        Some(0) => Err(
            "a timeout of 0 ends every flow before it begins; write `none` to \
             switch it off"
                .to_owned(),
        ),
        timeout => Ok(timeout),
    }
}

/// Parses a timeout that may be 0.
///
/// # Errors
/// What to write instead.
pub fn timeout_or_zero(text: &str) -> Result<Option<u64>, String> {
    if text == "none" {
        return Ok(None);
    }
    let ns = duration_ns(text).map_err(|mend| format!("{mend}, or `none` to switch it off"))?;
    Ok(Some(ns))
}

/// Parses a finite time above 0.
///
/// # Errors
/// What to write instead.
pub fn duration(text: &str) -> Result<Duration, String> {
    match duration_ns(text)? {
        0 => Err("no time at all; write for example 10s".to_owned()),
        ns => Ok(Duration::from_nanos(ns)),
    }
}

/// Parses how long a file is written to. It is at least a second, the resolution of file names.
///
/// # Errors
/// What to write instead.
pub fn rotation(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        time if time < Duration::from_secs(1) => Err("at least 1s: names have seconds".to_owned()),
        time => Ok(time),
    }
}

/// Parses the length of windows.
///
/// # Errors
/// What to write instead.
pub fn window(text: &str) -> Result<Duration, String> {
    const DAY: Duration = Duration::from_secs(86_400);
    match duration(text)? {
        time if time.subsec_nanos() == 0 && time <= DAY => Ok(time),
        _ => Err("write whole seconds, from 1s to 1d, such as 1m".to_owned()),
    }
}

/// Parses the interval at which templates are repeated.
///
/// # Errors
/// What to write instead.
pub fn template_interval(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        time if time < Duration::from_secs(1) => {
            Err("at least 1s: collectors need no more".to_owned())
        }
        time => Ok(time),
    }
}

fn duration_ns(text: &str) -> Result<u64, String> {
    let start = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(start);
    if unit.is_empty() && number.parse::<u64>() == Ok(0) {
        return Ok(0);
    }
    let (_, unit_ns) = UNITS_NS
        .into_iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(|| {
            if unit.is_empty() {
                format!("the unit is missing; {FORMS}")
            } else {
                FORMS.to_owned()
            }
        })?;
    let too_long = || "longer than 292 years: write a shorter time".to_owned();
    // Whole numbers are exact; a fraction may round to the next nanosecond.
    let ns = match number.parse::<u64>() {
        Ok(whole) => whole.checked_mul(unit_ns).ok_or_else(too_long)?,
        Err(_) => {
            let number: f64 = number.parse().map_err(|_| FORMS.to_owned())?;
            (number * unit_ns as f64).round() as u64
        }
    };
    if ns > LONGEST_NS {
        Err(too_long())
    } else {
        Ok(ns)
    }
}

/// Parses a [`count`] of at least 1.
///
/// # Errors
/// What to write instead.
pub fn count_above_zero(text: &str) -> Result<u64, String> {
    match count(text)? {
        0 => Err("write 1 or more, or leave it out".to_owned()),
        count => Ok(count),
    }
}

/// Parses a seed: any 64-bit number.
///
/// # Errors
/// What to write instead.
pub fn seed(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("write a whole number from 0 to {}", u64::MAX))
}

/// Parses a unit of time in IPFIX.
///
/// # Errors
/// What to write instead.
pub fn time_unit(text: &str) -> Result<TimeUnit, String> {
    match text {
        "ms" => Ok(TimeUnit::Milliseconds),
        "us" => Ok(TimeUnit::Microseconds),
        "ns" => Ok(TimeUnit::Nanoseconds),
        _ => Err("write ms, us or ns".to_owned()),
    }
}

/// The name of a unit of time in IPFIX.
#[must_use]
pub const fn time_unit_text(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Milliseconds => "ms",
        TimeUnit::Microseconds => "us",
        TimeUnit::Nanoseconds => "ns",
    }
}

/// Parses the maximum size of a message over UDP, in bytes.
///
/// # Errors
/// What to write instead.
pub fn mtu(text: &str) -> Result<u16, String> {
    within(text, 512..=65_507)
}

/// Parses the number of bytes kept of a packet.
///
/// # Errors
/// What to write instead.
pub fn snap_length(text: &str) -> Result<u32, String> {
    within(text, 14..=u32::MAX)
}

fn within<T>(text: &str, range: RangeInclusive<T>) -> Result<T, String>
where
    T: Copy + fmt::Display + PartialOrd + TryFrom<u64>,
{
    let number = count(text)?;
    let fits = T::try_from(number).ok().filter(|fits| range.contains(fits));
    fits.ok_or_else(|| format!("write a number from {} to {}", range.start(), range.end()))
}

/// Formats a time in the largest unit that gives a whole number: `30s`, `1500ms`.
#[must_use]
pub fn time_text(ns: u64) -> String {
    let units = UNITS_NS.iter().rev().filter(|(name, _)| name.is_ascii());
    let mut fitting = units.filter(|(_, unit)| ns > 0 && ns.is_multiple_of(*unit));
    let (name, unit) = fitting.next().copied().unwrap_or(("s", 1));
    format!("{}{name}", ns / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_durations() {
        for (text, ns) in [
            ("30s", 30_000_000_000),
            ("500ms", 500_000_000),
            ("5m", 300_000_000_000),
            ("1h", 3_600_000_000_000),
            ("7ns", 7),
            ("7us", 7_000),
            ("1.5s", 1_500_000_000),
        ] {
            assert_eq!(timeout(text), Ok(Some(ns)), "{text}");
        }
        assert_eq!(timeout("none"), Ok(None));
        assert_eq!(timeout_or_zero("0"), Ok(Some(0)));
        assert_eq!(timeout_or_zero("0s"), Ok(Some(0)));
    }

    #[test]
    fn refuses_invalid_durations() {
        for text in [
            "", "s", "30", "-1s", "1x", "1 s", "1.2.3s", "inf", "NaN", "300y", "300000d", ".",
        ] {
            assert!(timeout(text).is_err(), "{text}");
        }
        assert!(timeout("0").unwrap_err().contains("none"));
        assert!(timeout("300000d").unwrap_err().contains("`none`"));
        // Errors of times that cannot be disabled do not suggest `none`.
        for text in ["none", "30", "1x", "1.2.3s", "300000d", "-5s"] {
            let mend = duration(text).unwrap_err();
            assert!(!mend.contains("none"), "{text}: {mend}");
        }
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1_500)));
        assert!(duration("0s").is_err() && duration("none").is_err());
        assert!(timeout("0.0000000001ns").is_err());
        assert!(timeout("30").unwrap_err().contains("unit"));
    }

    #[test]
    fn writes_times_as_they_are_read() {
        for (text, ns) in [("0s", 0), ("30s", 30_000_000_000), ("2m", 120_000_000_000)] {
            assert_eq!(
                (time_text(ns).as_str(), timeout_or_zero(text)),
                (text, Ok(Some(ns)))
            );
        }
        assert_eq!(time_text(1_500_000_000), "1500ms");
        assert_eq!(time_text(7_000), "7us");
    }

    #[test]
    fn a_seed_has_64_bits() {
        assert_eq!(seed("18446744073709551615"), Ok(u64::MAX));
        for text in ["", "-1", "18446744073709551616", "1.5", "x"] {
            let mend = seed(text).unwrap_err();
            assert!(mend.contains("0 to 18446744073709551615"), "{mend}");
        }
    }
}
