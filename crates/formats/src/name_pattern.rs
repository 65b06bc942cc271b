// SPDX-License-Identifier: Apache-2.0
//! File names with a time: `flows-%Y%m%dT%H%M%S.parquet`.

use std::fmt::{self, Display, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::ExportError;

/// The conversions that may follow `%`.
const CONVERSIONS: &str = "%Y (year), %m (month), %d (day), %H, %M, %S (time, UTC), %s (seconds \
                           since 1970) and %% (a percent sign)";

/// A path whose file name contains strftime conversions, in UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern {
    path: String,
}

impl NamePattern {
    /// Whether a path contains a conversion.
    #[must_use]
    pub fn is_meant(path: &Path) -> bool {
        path.to_str().is_some_and(|path| path.contains('%'))
    }

    /// The path for a time, in seconds since 1970.
    #[must_use]
    pub fn path(&self, seconds: u64) -> PathBuf {
        let (year, month, day) = civil(seconds / 86_400);
        let in_day = seconds % 86_400;
        let mut name = String::new();
        let mut letters = self.path.chars();
        while let Some(letter) = letters.next() {
            if letter != '%' {
                name.push(letter);
                continue;
            }
            let written = match letters.next() {
                Some('Y') => write!(name, "{year:04}"),
                Some('m') => write!(name, "{month:02}"),
                Some('d') => write!(name, "{day:02}"),
                Some('H') => write!(name, "{:02}", in_day / 3_600),
                Some('M') => write!(name, "{:02}", in_day / 60 % 60),
                Some('S') => write!(name, "{:02}", in_day % 60),
                Some('s') => write!(name, "{seconds}"),
                _ => write!(name, "%"),
            };
            debug_assert!(written.is_ok(), "a string takes everything");
        }
        PathBuf::from(name)
    }

    /// The path for a time. If a file of that name exists or is being written, a number is added
    /// before the extension.
    #[must_use]
    pub fn free_path(&self, seconds: u64) -> PathBuf {
        let path = self.path(seconds);
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let numbered = (1..).map(|number| {
            let mut name = format!("{stem}-{number}");
            if let Some(extension) = path.extension() {
                name = format!("{name}.{}", extension.to_string_lossy());
            }
            path.with_file_name(name)
        });
        let mut paths = std::iter::once(path.clone()).chain(numbered);
        paths.find(|path| !is_taken(path)).unwrap_or(path)
    }
}

/// Whether a file has that name, or is being written under the temporary name `.NAME.PID-N.tmp`.
fn is_taken(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let unfinished = format!(".{name}.");
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let is_written = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.map(|entry| entry.file_name().to_string_lossy().into_owned());
        entry.is_ok_and(|entry| entry.starts_with(&unfinished) && entry.ends_with(".tmp"))
    };
    path.exists() || std::fs::read_dir(folder).is_ok_and(|mut entries| entries.any(is_written))
}

impl FromStr for NamePattern {
    type Err = ExportError;

    fn from_str(path: &str) -> Result<Self, ExportError> {
        let wrong = |reason: String| ExportError::Name {
            given: path.to_owned(),
            reason,
        };
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        if directory.contains('%') {
            let reason = "only the file's own name may have a time, not its directory";
            return Err(wrong(reason.to_owned()));
        }
        let mut letters = name.chars();
        while let Some(letter) = letters.next() {
            if letter == '%' && !letters.next().is_some_and(|next| "YmdHMSs%".contains(next)) {
                return Err(wrong(format!("behind % it knows {CONVERSIONS}")));
            }
        }
        Ok(Self {
            path: path.to_owned(),
        })
    }
}

impl Display for NamePattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.path)
    }
}

/// Year, month and day of a number of days since 1970, in the Gregorian calendar. Years begin in
/// March here, so that the leap day comes last and every 400 years have equal length.
const fn civil(days: u64) -> (u64, u64, u64) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_times_in_utc() {
        let pattern: NamePattern = "a/flows-%Y%m%dT%H%M%S-%s-100%%.csv".parse().unwrap();
        for (seconds, name) in [
            (0, "19700101T000000-0"),
            (951_782_399, "20000228T235959-951782399"),
            (951_782_400, "20000229T000000-951782400"),
            (1_709_251_199, "20240229T235959-1709251199"),
            (1_795_309_323, "20261122T010203-1795309323"),
            (4_107_542_400, "21000301T000000-4107542400"),
        ] {
            let wanted = format!("a/flows-{name}-100%.csv");
            assert_eq!(pattern.path(seconds), Path::new(&wanted));
        }
    }

    #[test]
    fn refuses_unknown_conversions() {
        for (name, words) in [
            ("flows-%j.csv", "%Y (year)"),
            ("flows-%", "%Y (year)"),
            ("%Y/flows.csv", "directory"),
        ] {
            let message = name.parse::<NamePattern>().unwrap_err().to_string();
            assert!(message.contains(words), "{message}");
        }
    }
}
