// SPDX-License-Identifier: Apache-2.0
//! Counts and sizes as people write them: `1.5M`, `1_000`, `64MiB`.

/// Parses a size such as `64MiB` or `100kB`. A number without a unit is in bytes.
///
/// # Errors
/// What to write instead.
pub fn size_bytes(text: &str) -> Result<u64, String> {
    let start = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(start);
    let factor = match unit {
        "" | "B" => 1,
        "kB" => 1_000,
        "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "MiB" => 1 << 20,
        "GB" => 1_000_000_000,
        "GiB" => 1 << 30,
        "TB" => 1_000_000_000_000,
        "TiB" => 1 << 40,
        _ => {
            return Err(
                "write a size such as 64MiB (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB)".to_owned(),
            );
        }
    };
    times(number, factor).map_err(|wrong| match wrong {
        NumberError::NoNumber => "write a number and a unit, such as 64MiB".to_owned(),
        NumberError::NotWhole => "no whole number of bytes; write for example 1536KiB".to_owned(),
        NumberError::TooLarge => "too large a size".to_owned(),
    })
}

/// Parses a count such as `1000`, `1_000_000`, `300k`, `1.5M` or `1G` (powers of ten).
///
/// # Errors
/// What to write instead.
pub fn count(text: &str) -> Result<u64, String> {
    let plain = text.replace('_', "");
    let (digits, factor) = match plain.as_bytes().last() {
        Some(b'k' | b'K') => (&plain[..plain.len() - 1], 1_000),
        Some(b'M') => (&plain[..plain.len() - 1], 1_000_000),
        Some(b'G') => (&plain[..plain.len() - 1], 1_000_000_000),
        _ => (plain.as_str(), 1),
    };
    times(digits, factor).map_err(|wrong| match wrong {
        NumberError::NoNumber | NumberError::NotWhole => {
            "write a whole number such as 1000, 300k, 1.5M or 1G".to_owned()
        }
        NumberError::TooLarge => "too large a number".to_owned(),
    })
}

/// Formats a size in the largest unit that gives a whole number: `64MiB`. If none does, in bytes:
/// `1500`.
#[must_use]
pub fn size_text(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let mut fitting = UNITS
        .iter()
        .filter(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit));
    match fitting.next() {
        Some((name, unit)) => format!("{}{name}", bytes / unit),
        None => bytes.to_string(),
    }
}

/// Why a number is invalid.
enum NumberError {
    NoNumber,
    NotWhole,
    TooLarge,
}

/// Multiplies a decimal number, which may have a fraction, by a factor, without rounding.
fn times(digits: &str, factor: u64) -> Result<u64, NumberError> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) {
        return Err(NumberError::NoNumber);
    }
    // Trailing zeros carry no information. A whole result has at most 19 digits after the point.
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 19 {
        return Err(NumberError::NotWhole);
    }
    let parts = 10u128.pow(fraction.len() as u32);
    let part = match fraction {
        "" => 0,
        digits => digits.parse().map_err(|_| NumberError::NoNumber)?,
    };
    let of_fraction = u128::from(factor) * part;
    if !of_fraction.is_multiple_of(parts) {
        return Err(NumberError::NotWhole);
    }
    let whole: u128 = whole.parse().map_err(|_| NumberError::TooLarge)?;
    let product = whole.checked_mul(u128::from(factor));
    let sum = product.and_then(|product| product.checked_add(of_fraction / parts));
    sum.and_then(|sum| u64::try_from(sum).ok())
        .ok_or(NumberError::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_sizes() {
        for (text, bytes) in [
            ("64MiB", 64 << 20),
            ("100kB", 100_000),
            ("65536", 65_536),
            ("2GiB", 2 << 30),
            ("1.5MiB", 3 << 19),
            ("40.96kB", 40_960),
            ("1TiB", 1 << 40),
            ("0.50TB", 500_000_000_000),
        ] {
            assert_eq!(size_bytes(text), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "MiB",
            "1.5",
            "1.0001kB",
            ".5MiB",
            "5.MiB",
            "1.2.3MiB",
            "64M",
            "-1KiB",
            "99999999999GiB",
        ] {
            assert!(size_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn writes_sizes_as_they_are_read() {
        for (text, bytes) in [
            ("64MiB", 64 << 20),
            ("65KiB", 65 << 10),
            ("1500", 1_500),
            ("0", 0),
        ] {
            assert_eq!(
                (size_text(bytes).as_str(), size_bytes(text)),
                (text, Ok(bytes))
            );
        }
    }

    #[test]
    fn reads_counts() {
        for (text, number) in [
            ("7", 7),
            ("1_000", 1_000),
            ("300k", 300_000),
            ("10M", 10_000_000),
            ("1.5M", 1_500_000),
            ("0.001k", 1),
        ] {
            assert_eq!(count(text), Ok(number));
        }
        for text in [
            "",
            "k",
            "1.5",
            "0.0001k",
            "1.5.0M",
            "-1",
            "99999999999999999999",
            "99999999999G",
        ] {
            assert!(count(text).is_err(), "{text}");
        }
    }
}
