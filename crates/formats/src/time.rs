// SPDX-License-Identifier: Apache-2.0
//! Times as text: ISO 8601 in UTC, and seconds since 1970.

use crate::text::{TIME_BYTES, Text};

const NS_PER_SECOND: u64 = 1_000_000_000;

/// Parses a time into nanoseconds since 1970: `2024-03-01`, `2024-03-01T12:30`, `...:15.25`. It is
/// UTC, with or without `Z`, unless it ends with an offset such as `+01:00`. `None` if the text is
/// not such a time, or has digits below the nanosecond, which would be lost.
#[must_use]
pub fn iso_time_ns(text: &str) -> Option<u64> {
    let utc = text.strip_suffix('Z');
    let text = utc.unwrap_or(text);
    let (date, clock) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    if utc.is_none()
        && let Some(at) = clock.find(['+', '-'])
    {
        let (clock, offset) = clock.split_at(at);
        let (sign, offset) = offset.split_at(1);
        let (hours, minutes) = offset.split_once(':')?;
        let (hours, minutes) = (two_digits(hours)?, two_digits(minutes)?);
        if hours > 14 || minutes > 59 || clock.ends_with('Z') {
            return None;
        }
        let offset_ns = (hours * 60 + minutes) * 60 * NS_PER_SECOND;
        let local_ns = iso_time_ns(&format!("{date}T{clock}"))?;
        return match sign {
            "+" => local_ns.checked_sub(offset_ns),
            _ => local_ns.checked_add(offset_ns),
        };
    }
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
    let days = sane.then(|| days(year, month, day))?;
    // Rejects days that the month does not have.
    if civil(days) != (year, month, day) {
        return None;
    }
    let minutes = (days * 24 + hour) * 60 + minute;
    minutes
        .checked_mul(60 * NS_PER_SECOND)?
        .checked_add(second_ns)
}

/// Parses seconds with an optional fraction into nanoseconds: `1700000020.25`. `None` if the text
/// is not such a number, or has digits below the nanosecond, which would be lost.
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

fn two_digits(text: &str) -> Option<u64> {
    fixed(text).filter(|_| text.len() == 2)
}

/// Parses a number that consists of digits only.
fn fixed(text: &str) -> Option<u64> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())?
}

/// Days from 1970 to a date of the Gregorian calendar; the inverse of [`civil`].
pub(crate) const fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 {
        year.saturating_sub(1)
    } else {
        year
    };
    let (era, year) = (year / 400, year % 400);
    let from_march = (month + 9) % 12;
    let day_of_year = (153 * from_march + 2) / 5 + day.saturating_sub(1);
    let day = year * 365 + year / 4 - year / 100 + day_of_year;
    (era * 146_097 + day).saturating_sub(719_468)
}

/// Year, month and day of a number of days since 1970, in the Gregorian calendar. Internally, years
/// begin in March, so that the leap day comes last and every period of 400 years has equal length.
pub(crate) const fn civil(days: u64) -> (u64, u64, u64) {
    const DAYS_400_YEARS: u64 = 146_097;
    // 1970 began 719,468 days after 1 March of the year 0.
    let days = days + 719_468;
    let (era, day) = (days / DAYS_400_YEARS, days % DAYS_400_YEARS);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = era * 400 + year + (month <= 2) as u64;
    (year, month, day)
}

/// ISO 8601 in UTC, with a fraction in milli-, micro- or nanoseconds only if it is not zero.
#[must_use]
pub fn time_text(time_ns: u64) -> String {
    let (second, fraction) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
    let (year, month, day) = civil(second / 86_400);
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

/// ISO 8601 in UTC, always with nine decimals, as in files, so that sorting the texts sorts the
/// times.
#[must_use]
pub fn whole_time_text(time_ns: u64) -> String {
    let mut text = Text::default();
    text.reserve(TIME_BYTES);
    text.iso(time_ns);
    text.as_bytes().iter().copied().map(char::from).collect()
}
