// SPDX-License-Identifier: Apache-2.0
//! File names with a time: `flows-%Y%m%dT%H%M%S.parquet`, `%Y/%m/%d/flows-%H%M%S.parquet`.

use std::fmt::{self, Display, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::ExportError;
use crate::time::{civil, days};
use crate::unfinished::directory_of;

/// The conversions that may follow `%`.
const CONVERSIONS: &str = "%Y (year), %m (month), %d (day), %H, %M, %S (time, UTC), %s (seconds \
                           since 1970) and %% (a percent sign)";

/// A path that contains strftime conversions, in UTC. Its folders may contain them too, so that,
/// for example, each day has its own folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern {
    path: String,
}

impl NamePattern {
    /// Whether a path contains a conversion and is therefore a pattern.
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

    /// Whether this pattern could have made a file of that path at some time.
    #[must_use]
    pub fn could_make(&self, path: &Path) -> bool {
        path.to_str()
            .is_some_and(|path| self.stamp_of(&plain(path)).is_some())
    }

    /// Whether a path of one pattern can be mistaken for a path of the other. For example,
    /// `f-%Y%m%d.csv` reads `f-20240310-1430.csv`, a path of `f-%Y%m%d-%H%M.csv`, as its own file
    /// number 1430. Checked at a few times whose digits differ enough.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        // 1 January 1970, 2 March 2026 01:02:03, 22 November 2026 14:35:56.
        const TIMES: [u64; 3] = [0, 1_772_413_323, 1_795_358_156];
        TIMES.iter().any(|&seconds| {
            self.could_make(&other.path(seconds)) || other.could_make(&self.path(seconds))
        })
    }

    /// The folder that all paths have in common: the part before the first conversion.
    #[must_use]
    pub fn fixed_folder(&self) -> PathBuf {
        let fixed = self
            .path
            .find('%')
            .map_or(&*self.path, |at| &self.path[..at]);
        let folder = fixed.rsplit_once('/').map(|(folder, _)| folder);
        match folder {
            None => PathBuf::from("."),
            Some("") => PathBuf::from("/"),
            Some(folder) => PathBuf::from(folder),
        }
    }

    /// Whether the names of folders contain times, so that folders are created and removed over
    /// time.
    #[must_use]
    pub fn has_folders(&self) -> bool {
        let folders = self
            .path
            .rsplit_once('/')
            .map_or("", |(folders, _)| folders);
        folders.contains('%')
    }

    /// When the file of that path began, if the path matches this pattern, with or without the
    /// number that [`NamePattern::free_path`] adds.
    pub(crate) fn stamp_of(&self, path: &str) -> Option<Stamp> {
        self.read(path).or_else(|| {
            let name = self
                .path
                .rsplit_once('/')
                .map_or(&*self.path, |(_, name)| name);
            let (_, extensions) = split_extensions(name);
            let (stem, number) = path.strip_suffix(extensions)?.rsplit_once('-')?;
            // As `free_path` writes it: starting at 1, without a sign or leading zeros.
            let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
            let number = number
                .parse()
                .ok()
                .filter(|_| is_plain && !number.starts_with('0'))?;
            let stamp = self.read(&format!("{stem}{extensions}"))?;
            Some(Stamp { number, ..stamp })
        })
    }

    fn read(&self, path: &str) -> Option<Stamp> {
        let mut stamp = Stamp::default();
        let (mut letters, mut rest) = (self.path.chars(), path);
        while let Some(letter) = letters.next() {
            let conversion = match letter {
                '%' => letters.next()?,
                letter => {
                    rest = rest.strip_prefix(letter)?;
                    continue;
                }
            };
            let all_digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let digits = match conversion {
                '%' => {
                    rest = rest.strip_prefix('%')?;
                    continue;
                }
                'Y' => 4,
                's' => all_digits,
                _ => 2,
            };
            if digits == 0 || digits > all_digits {
                return None;
            }
            let (number, after) = rest.split_at(digits);
            if conversion == 's' && number.len() > 1 && number.starts_with('0') {
                return None;
            }
            stamp.set(conversion, number.parse().ok()?)?;
            rest = after;
        }
        rest.is_empty().then_some(stamp)
    }

    /// The path for a time. If a file of that name exists or is being written, a number is added
    /// before the extension.
    #[must_use]
    pub fn free_path(&self, seconds: u64) -> PathBuf {
        let path = self.path(seconds);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let (stem, extensions) = split_extensions(&name);
        let numbered =
            (1..).map(|number| path.with_file_name(format!("{stem}-{number}{extensions}")));
        let mut paths = std::iter::once(path.clone()).chain(numbered);
        paths.find(|path| !is_taken(path)).unwrap_or(path)
    }
}

/// The time in the name of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Year, month, day, hour, minute, second, as far as the name contains them.
    parts: [Option<u64>; 6],
    seconds: Option<u64>,
    /// The number that was added because the name was taken.
    number: u64,
}

impl Stamp {
    /// `None` if the number is not possible for that conversion, or contradicts an earlier one.
    fn set(&mut self, conversion: char, number: u64) -> Option<()> {
        let possible = match conversion {
            'm' => 1..=12,
            'd' => 1..=31,
            'H' => 0..=23,
            'M' | 'S' => 0..=59,
            _ => 0..=u64::MAX,
        };
        let part = match "YmdHMS".find(conversion) {
            Some(part) => &mut self.parts[part],
            None => &mut self.seconds,
        };
        let is_one = part.is_none_or(|before| before == number);
        *part = Some(number);
        (is_one && possible.contains(&number)).then_some(())
    }

    /// The first second after the period that the name denotes: a file that is named after its day
    /// may have begun at the end of that day. `None` if the name has no date.
    pub(crate) fn begun_by(&self) -> Option<u64> {
        if let Some(seconds) = self.seconds {
            return Some(seconds.saturating_add(1));
        }
        let [year, month, day, hour, minute, second] = self.parts;
        let start = |month, day| Some(days(year?, month, day) * 86_400);
        let Some(month) = month else {
            return start(12, 31).map(|start| start + 86_400);
        };
        let Some(day) = day else {
            return start(month, 31).map(|start| start + 86_400);
        };
        let begun = start(month, day)?;
        Some(match (hour, minute, second) {
            (None, ..) => begun + 86_400,
            (Some(hour), None, _) => begun + hour * 3_600 + 3_600,
            (Some(hour), Some(minute), None) => begun + hour * 3_600 + minute * 60 + 60,
            (Some(hour), Some(minute), Some(second)) => {
                begun + hour * 3_600 + minute * 60 + second + 1
            }
        })
    }

    pub(crate) const fn number(&self) -> u64 {
        self.number
    }
}

/// A file's name and its extensions: `.csv`, or `.csv.zst`.
fn split_extensions(name: &str) -> (&str, &str) {
    let packed = [".gz", ".zst"]
        .iter()
        .find_map(|end| name.strip_suffix(end));
    let end = packed.unwrap_or(name).rfind('.').filter(|&dot| dot > 0);
    name.split_at(end.unwrap_or(name.len()))
}

/// Whether a file of that name exists or is being written as `.NAME.PID-N.tmp`.
fn is_taken(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let unfinished = format!(".{name}.");
    let folder = directory_of(path);
    let is_written = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.map(|entry| entry.file_name().to_string_lossy().into_owned());
        entry.is_ok_and(|entry| entry.starts_with(&unfinished) && entry.ends_with(".tmp"))
    };
    // A dangling link also occupies the name.
    let exists = path.symlink_metadata().is_ok();
    exists || std::fs::read_dir(folder).is_ok_and(|mut entries| entries.any(is_written))
}

impl FromStr for NamePattern {
    type Err = ExportError;

    fn from_str(path: &str) -> Result<Self, ExportError> {
        let wrong = |reason: String| ExportError::Name {
            given: path.to_owned(),
            reason,
        };
        let mut letters = path.chars();
        while let Some(letter) = letters.next() {
            if letter == '%' && !letters.next().is_some_and(|next| "YmdHMSs%".contains(next)) {
                return Err(wrong(format!("behind % it knows {CONVERSIONS}")));
            }
        }
        Ok(Self { path: plain(path) })
    }
}

impl Display for NamePattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.path)
    }
}

/// A path without empty components and `.` components, which is how a directory walk reports files.
fn plain(path: &str) -> String {
    let mut plain = path.to_owned();
    for (part, less) in [("//", "/"), ("/./", "/")] {
        while plain.contains(part) {
            plain = plain.replace(part, less);
        }
    }
    plain
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
    fn knows_the_names_that_it_makes() {
        let pattern: NamePattern = "a/flows-%Y%m%dT%H%M-%s-100%%.csv".parse().unwrap();
        for name in [
            "flows-20240229T2359-7-100%.csv",
            "flows-20240229T2359-77-100%-12.csv",
        ] {
            assert!(pattern.could_make(&Path::new("a").join(name)), "{name}");
        }
        for name in [
            "flows-20240229T2359-7-100%-0.csv",
            "flows-20240229T2359-7-100%-07.csv",
            "flows-20240229T2359-7-100%-+7.csv",
            "flows-20240229T2359-07-100%.csv",
            "flows-20240229T2459-7-100%.csv",
            "flows-20241329T2359-7-100%.csv",
            "flows-2024022T2359-7-100%.csv",
            "flows-20240229T2359-7-100%.csvx",
            "flows-20240229T2359--100%.csv",
            "flows-20240229T2359-7-100%-x.csv",
            "flows-",
            "",
        ] {
            assert!(!pattern.could_make(&Path::new("a").join(name)), "{name}");
        }
    }

    #[test]
    fn patterns_that_take_files_of_each_other_overlap() {
        for (first, second, overlaps) in [
            ("f-%Y%m%d.csv", "f-%Y%m%d-%H%M.csv", true),
            ("f-%Y%m%d.csv", "f-%Y%m%d-%s.csv", true),
            ("f-%s.csv", "f-%Y.csv", true),
            ("a//f-%Y.csv", "a/./f-%Y.csv", true),
            ("f-%Y%m%d.csv", "f-%Y%m%dT%H%M.csv", false),
            ("f-%Y%m%d.csv", "g-%Y%m%d-%H%M.csv", false),
            ("f-%Y%m%d.csv", "f-%Y%m%d-%H%M.parquet", false),
            ("a/f-%Y%m%d.csv", "b/f-%Y%m%d.csv", false),
        ] {
            let of = |pattern: &str| pattern.parse::<NamePattern>().unwrap();
            assert_eq!(
                of(first).overlaps(&of(second)),
                overlaps,
                "{first} {second}"
            );
            assert_eq!(
                of(second).overlaps(&of(first)),
                overlaps,
                "{second} {first}"
            );
        }
    }

    #[test]
    fn numbers_stand_before_all_extensions() {
        for (name, split) in [
            ("a.csv", ("a", ".csv")),
            ("a.b.csv.zst", ("a.b", ".csv.zst")),
            ("a.gz", ("a.gz", "")),
            ("flows", ("flows", "")),
            (".csv", (".csv", "")),
        ] {
            assert_eq!(split_extensions(name), split, "{name}");
        }
    }

    #[test]
    fn names_are_read_back() {
        let begun_by = |pattern: &str, path: &str| {
            let stamp = pattern.parse::<NamePattern>().unwrap().stamp_of(path)?;
            Some((stamp.begun_by()?, stamp.number()))
        };
        let noon = 951_825_600; // 29 February 2000
        for (pattern, path, expected) in [
            (
                "%Y/%m/%d/f-%H%M%S.csv",
                "2000/02/29/f-120000.csv",
                Some((noon + 1, 0)),
            ),
            (
                "%Y/%m/%d/f-%H%M%S.csv",
                "2000/02/29/f-120000-2.csv",
                Some((noon + 1, 2)),
            ),
            ("f-%s.csv.zst", "f-951825600-7.csv.zst", Some((noon + 1, 7))),
            (
                "f-%s.csv",
                "f-18446744073709551615.csv",
                Some((u64::MAX, 0)),
            ),
            ("%Y/f-%Y%m%d.csv", "2001/f-20000229.csv", None),
            (
                "y=%Y/m=%m/d=%d/%H.csv",
                "y=2000/m=02/d=29/12.csv",
                Some((noon + 3_600, 0)),
            ),
            ("f-%Y%m%d.csv", "f-20000229.csv", Some((noon + 43_200, 0))),
            (
                "f-%Y%m.csv",
                "f-200002.csv",
                Some((noon + 2 * 86_400 + 43_200, 0)),
            ),
            ("f-%H%M.csv", "f-1200.csv", None),
            ("f-%Y%m%d.csv", "f-2000022.csv", None),
            ("f-%Y%m%d.csv", "f-20000229.csv.part", None),
            ("f-%Y%m%d.csv", "g-20000229.csv", None),
            ("f-%Y%m%d.csv", "f-20000229-x.csv", None),
            (
                "f%%-%Y%m%d.csv",
                "f%-20000229.csv",
                Some((noon + 43_200, 0)),
            ),
        ] {
            assert_eq!(begun_by(pattern, path), expected, "{pattern} {path}");
        }
        for day in [0, 59, 11_016, 20_000, 400_000] {
            let (year, month, of_month) = civil(day);
            assert_eq!(days(year, month, of_month), day);
        }
    }

    #[test]
    fn folders_may_have_a_time() {
        for (pattern, fixed, has_folders) in [
            ("a/b/f-%H.csv", "a/b", false),
            ("/a/%Y/f.csv", "/a", true),
            ("%Y/f.csv", ".", true),
            ("/%Y.csv", "/", false),
            ("a/day=%d/f.csv", "a", true),
        ] {
            let pattern: NamePattern = pattern.parse().unwrap();
            assert_eq!(pattern.fixed_folder(), Path::new(fixed), "{pattern}");
            assert_eq!(pattern.has_folders(), has_folders, "{pattern}");
        }
    }

    #[test]
    fn refuses_unknown_conversions() {
        for (name, words) in [("flows-%j.csv", "%Y (year)"), ("flows-%", "%Y (year)")] {
            let message = name.parse::<NamePattern>().unwrap_err().to_string();
            assert!(message.contains(words), "{message}");
        }
    }
}
