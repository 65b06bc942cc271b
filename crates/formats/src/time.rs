// SPDX-License-Identifier: Apache-2.0
//! Times as text: ISO 8601 in UTC, and seconds since 1970.

const NS_PER_SECOND: u64 = 1_000_000_000;

/// Parses a time into nanoseconds since 1970: `2024-03-01`, `2024-03-01T12:30`, `...:15.25`, with
/// or without `Z` (always UTC). `None` also where digits below the nanosecond would be lost.
#[must_use]
pub fn iso_time_ns(text: &str) -> Option<u64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, clock) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let mut date = date.splitn(3, '-').map(fixed);
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut clock = clock.splitn(3, ':');
    let (hour, minute) = (fixed(clock.next()?)?, fixed(clock.next()?)?);
    let second_ns = seconds_ns(clock.next().unwrap_or("0"))?;
    let sane = (1970..=2600).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second_ns < 61 * NS_PER_SECOND;
    let date = (year as i64, month as i64, day as i64);
    let days = sane.then(|| days_from_civil(date.0, date.1, date.2))?;
    // Rejects days that the month does not have.
    if civil_from_days(days) != date {
        return None;
    }
    let minutes = (u64::try_from(days).ok()? * 24 + hour) * 60 + minute;
    minutes
        .checked_mul(60 * NS_PER_SECOND)?
        .checked_add(second_ns)
}

/// Parses seconds with an optional fraction into nanoseconds: `1700000020.25`. `None` also where
/// digits below the nanosecond would be lost.
pub(crate) fn seconds_ns(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = fraction.trim_end_matches('0');
    if whole.is_empty() || digits.len() > 9 {
        return None;
    }
    fixed_digits(fraction)?;
    let ns = fixed(&format!("{digits:0<9}"))?;
    fixed(whole)?.checked_mul(NS_PER_SECOND)?.checked_add(ns)
}

fn fixed_digits(text: &str) -> Option<()> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then_some(())
}

/// Parses digits only.
fn fixed(text: &str) -> Option<u64> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())?
}

/// Days since 1970 of a date of the Gregorian calendar (Howard Hinnant, "chrono-compatible
/// low-level date algorithms").
const fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day of a number of days since 1970; the inverse of [`days_from_civil`].
const fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    (year_of_era + era * 400 + (month <= 2) as i64, month, day)
}

/// ISO 8601 in UTC, with milli-, micro- or nanoseconds as far as they are not zero.
#[must_use]
pub fn time_text(time_ns: u64) -> String {
    let (second, fraction) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
    let (year, month, day) = civil_from_days((second / 86_400) as i64);
    let (hour, minute) = (second / 3600 % 24, second / 60 % 60);
    let fraction = match fraction {
        0 => String::new(),
        ms if ms % 1_000_000 == 0 => format!(".{:03}", ms / 1_000_000),
        us if us % 1_000 == 0 => format!(".{:06}", us / 1_000),
        ns => format!(".{ns:09}"),
    };
    let second = second % 60;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}
