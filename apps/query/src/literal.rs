// SPDX-License-Identifier: Apache-2.0
//! Values as people write them: `1.5k`, `5m`, `2024-03-01T12:00Z`.

use turboflow_formats::iso_time_ns;
pub use turboflow_formats::time_text;

/// Parses an integer with an optional decimal or binary prefix: `443`, `0x1f`, `1.5k`, `10M`,
/// `4Ki`.
pub(crate) fn number(text: &str) -> Option<u64> {
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16)
            .ok()
            .filter(|_| !digits.starts_with('+'));
    }
    scaled(text, &MAGNITUDES)
}

/// Parses a number with an optional fraction and prefix: `0.25`, `1.3Mi`.
pub(crate) fn real(text: &str) -> Option<f64> {
    if text.starts_with("0x") {
        return number(text).map(|number| number as f64);
    }
    let (digits, unit) = split(text, &MAGNITUDES)?;
    let is_plain = digits.starts_with(|first: char| first.is_ascii_digit());
    is_plain.then(|| Some(digits.parse::<f64>().ok()? * unit as f64))?
}

const MAGNITUDES: [(&str, u64); 10] = [
    ("", 1),
    ("k", 1_000),
    ("K", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
];

/// Parses a duration into nanoseconds: `250ms`, `1.5s`, `5m`, `2h`, `1d`, or `0`.
pub(crate) fn duration_ns(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 7] = [
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
        ("d", 86_400_000_000_000),
    ];
    if text == "0" {
        return Some(0);
    }
    scaled(text, &UNITS)
}

/// Whether the text is a number without a unit. Only `0` is a valid duration without one.
pub(crate) fn is_unitless(text: &str) -> bool {
    let unit = |c: char| c != '.' && !c.is_ascii_digit();
    text != "0" && !text.contains(unit) && real(text).is_some()
}

/// Splits a number from its unit, and returns the unit's factor.
fn split<'a>(text: &'a str, units: &[(&str, u64)]) -> Option<(&'a str, u64)> {
    let end = text
        .find(|c: char| c != '.' && !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let unit = units.iter().find(|(name, _)| *name == unit)?.1;
    Some((digits, unit))
}

/// Parses digits with an optional fraction and unit. `None` if the exact value does not fit.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (digits, unit) = split(text, units)?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() || fraction.contains('.') || fraction.len() > 18 {
        return None;
    }
    let whole = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    let parts = 10u128.pow(fraction.len() as u32);
    let fraction = fraction
        .bytes()
        .fold(0, |sum, digit| sum * 10 + u128::from(digit - b'0'));
    let fraction = fraction * u128::from(unit);
    (fraction % parts == 0).then(|| whole.checked_add((fraction / parts) as u64))?
}

/// Parses a time into nanoseconds since 1970: `2024-03-01`, `2024-03-01T12:30`, `...:15.25`, in UTC
/// or with an offset such as `+01:00`; or a plain number of nanoseconds.
#[must_use]
pub fn time_ns(text: &str) -> Option<u64> {
    if !text.contains('-') {
        return text.parse().ok();
    }
    iso_time_ns(text)
}

/// Time before now, in nanoseconds: `-1h`, `now-1h`, or `now` itself.
pub(crate) fn before_now_ns(text: &str) -> Option<u64> {
    match text.strip_prefix("now").unwrap_or(text) {
        "" => Some(0).filter(|_| !text.is_empty()),
        rest => duration_ns(rest.strip_prefix('-')?),
    }
}

/// A duration with its unit: `0`, `350 ns`, `1.25 ms`, `12.5 s`, `1:02:03`.
pub(crate) fn duration_text(duration_ns: u64) -> String {
    let (unit, name) = match duration_ns {
        0 => return "0".to_owned(),
        1..1_000 => (1, "ns"),
        1_000..1_000_000 => (1_000, "us"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        1_000_000_000..60_000_000_000 => (1_000_000_000, "s"),
        _ => {
            let second = duration_ns / 1_000_000_000;
            return format!(
                "{}:{:02}:{:02}",
                second / 3600,
                second / 60 % 60,
                second % 60
            );
        }
    };
    let hundredths = u128::from(duration_ns) * 100 / unit;
    let text = format!("{}.{:02}", hundredths / 100, hundredths % 100);
    format!(
        "{} {name}",
        text.trim_end_matches('0').trim_end_matches('.')
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_magnitudes() {
        for (text, value) in [
            ("0", 0),
            ("443", 443),
            ("1.5k", 1500),
            ("10M", 10_000_000),
            ("4Ki", 4096),
            ("0x1f", 31),
        ] {
            assert_eq!(number(text), Some(value), "{text}");
        }
        for text in [
            "",
            "k",
            "1.2.3",
            "-1",
            "1e3",
            "99999999999T",
            ".5",
            "0x",
            "1 k",
            "1.5",
            "0.3Ki",
        ] {
            assert_eq!(number(text), None, "{text}");
        }
        assert_eq!(duration_ns("1.5s"), Some(1_500_000_000));
        assert_eq!(duration_ns("5m"), Some(300_000_000_000));
        assert_eq!(duration_ns("0"), Some(0));
        for text in ["5x", "5", "1.5"] {
            assert_eq!(duration_ns(text), None, "{text}");
        }
        assert!(is_unitless("5") && is_unitless("1.5"));
        for text in ["0", "5s", "x", "", ".", "1.2.3"] {
            assert!(!is_unitless(text), "{text}");
        }
        assert_eq!(real("1.3Ki"), Some(1_331.2));
        assert_eq!(real("0x1f"), Some(31.0));
        assert_eq!((real(".5"), real("1.2.3"), real("k")), (None, None, None));
    }

    #[test]
    fn times_read_back() {
        for text in [
            "1970-01-01T00:00:00Z",
            "2024-02-29T23:59:59Z",
            "2023-11-14T22:13:20.500Z",
            "2100-03-01T00:00:00.000001Z",
            "1999-12-31T23:59:59.123456789Z",
        ] {
            assert_eq!(time_text(time_ns(text).unwrap()), text);
        }
        assert_eq!(time_ns("2023-11-14T22:13"), Some(1_699_999_980_000_000_000));
        assert_eq!(time_ns("2023-11-14"), Some(1_699_920_000_000_000_000));
        for text in ["2023-11-14T23:13+01:00", "2023-11-14T17:43:00-04:30"] {
            assert_eq!(time_ns(text), Some(1_699_999_980_000_000_000), "{text}");
        }
        assert_eq!(
            time_ns("1700000000000000000"),
            Some(1_700_000_000_000_000_000)
        );
        for text in [
            "2023-13-01",
            "2023-02-29",
            "2024-04-31",
            "2023-01-01T25:00",
            "-",
            "2023-1",
            "1-1-1",
            "2023-01-01T1:2:3x",
            "2023-11-14T23:13+1:00",
            "2023-11-14T23:13+15:00",
            "2023-11-14T23:13+01:00Z",
            "2023-11-14T23:13Z+01:00",
            "2023-11-14+01:00",
            "1970-01-01T00:00+01:00",
        ] {
            assert_eq!(time_ns(text), None, "{text}");
        }
        assert!(time_text(u64::MAX).starts_with("2554-07-21T"));
    }

    #[test]
    fn durations_have_units() {
        for (ns, text) in [
            (0, "0"),
            (350, "350 ns"),
            (1_250_000, "1.25 ms"),
            (12_500_000_000, "12.5 s"),
            (3_723_000_000_000, "1:02:03"),
        ] {
            assert_eq!(duration_text(ns), text);
        }
    }
}
