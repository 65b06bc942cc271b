// SPDX-License-Identifier: Apache-2.0
//! Formats numbers, times and addresses for people.

use std::net::IpAddr;

use turboflow_formats::table;
pub(crate) use turboflow_formats::table::grouped;

use crate::bins::BINS_A_SECOND;

/// `1.2M`: like `table::count` but without the space, for narrow columns.
pub(crate) fn count(number: u64) -> String {
    table::count(number).replace(' ', "")
}

/// `1.2 Mbit`.
pub(crate) fn bits(number: u64) -> String {
    let text = table::bytes(number);
    format!("{}bit", text.trim_end_matches('B'))
}

/// The time of day, UTC.
pub(crate) fn clock(time_ns: u64) -> String {
    if time_ns == 0 {
        return "--:--:--".to_owned();
    }
    let seconds = time_ns / 1_000_000_000 % 86_400;
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02} UTC", seconds % 60)
}

/// Bins as seconds: `1s`, `1.5s`.
pub(crate) fn seconds_of(bins: u64) -> String {
    format!("{}s", bins as f64 / BINS_A_SECOND as f64)
}

/// A duration: `0.3s`, `59s`, `2m05`, `3h02`, `4d`.
pub(crate) fn duration(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    match seconds {
        0..10 => format!("{:.1}s", (ns / 100_000_000) as f64 / 10.0),
        10..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m{:02}", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h{:02}", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// An address, followed by its port if it is not 0.
pub(crate) fn end(address: IpAddr, port: u16) -> String {
    match (address, port) {
        (_, 0) => address.to_string(),
        (IpAddr::V4(_), _) => format!("{address}:{port}"),
        (IpAddr::V6(_), _) => format!("[{address}]:{port}"),
    }
}

/// `tcp`, or the number of a protocol without a usual name.
pub(crate) fn protocol(number: u8) -> String {
    let name = turboflow_query::protocol_name(number.into());
    name.map_or_else(|| number.to_string(), str::to_owned)
}

/// `part` as a percentage of `whole`.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    format!("{:.1}%", part as f64 * 100.0 / whole.max(1) as f64)
}

/// Shortens text to `width` characters by replacing its middle, so that ports stay visible.
pub(crate) fn fit(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let tail = (kept / 2).min(7);
    let head = text.chars().take(kept - tail);
    let cut = (width > 0).then_some('…');
    head.chain(cut)
        .chain(text.chars().skip(length - tail))
        .collect()
}

/// A bar of `part` out of `whole`, in `width` characters.
pub(crate) fn bar(part: u64, whole: u64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let share = (part as f64 / whole.max(1) as f64).clamp(0.0, 1.0);
    let eighths = (share * (width * 8) as f64).round() as usize;
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_numbers_and_times() {
        assert_eq!((count(999), count(12_345)), ("999".into(), "12.3k".into()));
        assert_eq!(
            (bits(12), bits(3_400_000)),
            ("12 bit".into(), "3.4 Mbit".into())
        );
        assert_eq!(clock(1_700_000_000_000_000_000), "22:13:20 UTC");
        let second = 1_000_000_000;
        let texts = [340_000_000, 59, 125, 10_920, 400_000].map(|number| match number {
            340_000_000 => duration(number),
            seconds => duration(seconds * second),
        });
        assert_eq!(texts, ["0.3s", "59s", "2m05", "3h02", "4d"]);
        assert_eq!((seconds_of(2), seconds_of(3)), ("1s".into(), "1.5s".into()));
        assert_eq!(percent(1, 3), "33.3%");
        assert_eq!(percent(0, 0), "0.0%");
    }

    #[test]
    fn a_cut_address_keeps_its_port() {
        let text = end("2001:db8:1:2:3:4:5:6".parse().unwrap(), 443);
        assert_eq!(fit(&text, 18), "[2001:db8:…:6]:443");
        for width in 0..30 {
            assert!(fit(&text, width).chars().count() <= width, "{width}");
        }
        assert_eq!(end("10.0.0.1".parse().unwrap(), 0), "10.0.0.1");
    }

    #[test]
    fn bars_have_a_resolution_of_eighths() {
        assert_eq!(bar(1, 2, 4), "██");
        assert_eq!(bar(1, 16, 4), "▎");
        assert_eq!(bar(5, 0, 3), "███");
        assert_eq!(bar(0, 9, 3), "");
    }
}
