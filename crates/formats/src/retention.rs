// SPDX-License-Identifier: Apache-2.0
//! Removes the oldest files of a pattern, by age and by total size.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::name_pattern::{NamePattern, Stamp};
use crate::unfinished::{is_abandoned, target_of};

/// How long files are kept. Without limits, they are kept for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// A file is removed when all of its records are older than this, in seconds.
    pub age_seconds: Option<u64>,
    /// The oldest files are removed until the remaining ones have at most this many bytes in total.
    /// This limit never removes the newest file.
    pub total_bytes: Option<u64>,
}

/// A file whose name matches the pattern.
struct Kept {
    path: PathBuf,
    bytes: u64,
    /// The latest time at which its last record may have been written, in seconds since 1970.
    ended_by: u64,
    number: u64,
}

impl Retention {
    /// Removes the files that are too old or exceed the total size, and calls `removed` for each
    /// with its size or the error. `period_seconds` is how long a file is written to.
    ///
    /// Only regular files whose whole path matches the pattern are touched, never links. Folders
    /// that the pattern names by time are removed with their last file.
    pub(crate) fn apply(
        self,
        pattern: &NamePattern,
        now_seconds: u64,
        period_seconds: u64,
        mut removed: impl FnMut(&Path, io::Result<u64>),
    ) {
        if self == Self::default() {
            return;
        }
        let mut files = files_of(pattern, period_seconds);
        files.sort_by(|a, b| (a.ended_by, a.number, &a.path).cmp(&(b.ended_by, b.number, &b.path)));
        let oldest = self.age_seconds.map(|age| now_seconds.saturating_sub(age));
        let mut total: u64 = files.iter().map(|file| file.bytes).sum();
        let newest = files.len().saturating_sub(1);
        for (index, file) in files.iter().enumerate() {
            let is_old = oldest.is_some_and(|oldest| file.ended_by < oldest);
            let is_much = self.total_bytes.is_some_and(|most| total > most) && index < newest;
            if !is_old && !is_much {
                continue;
            }
            let outcome = fs::remove_file(&file.path).map(|()| file.bytes);
            total -= outcome.as_ref().map_or(0, |bytes| *bytes);
            removed(&file.path, outcome);
            if pattern.has_folders() {
                remove_empty_folders(&file.path, &pattern.fixed_folder());
            }
        }
    }
}

/// Removes the folders that contain a file, up to but not including `fixed`, if they are empty.
fn remove_empty_folders(path: &Path, fixed: &Path) {
    let folders = path.ancestors().skip(1);
    for folder in folders.take_while(|folder| *folder != fixed && !folder.as_os_str().is_empty()) {
        // The system refuses to remove a folder that is not empty.
        if fs::remove_dir(folder).is_err() {
            return;
        }
    }
}

fn files_of(pattern: &NamePattern, period_seconds: u64) -> Vec<Kept> {
    let mut found = Vec::new();
    each_file(pattern, &mut |path, metadata| {
        let Some(stamp) = path.to_str().and_then(|path| pattern.stamp_of(path)) else {
            return;
        };
        found.push(Kept {
            path: path.to_owned(),
            bytes: metadata.len(),
            ended_by: ended_by(stamp, metadata, period_seconds),
            number: stamp.number(),
        });
    });
    found
}

/// Unfinished files that no process is writing any more and whose targets match the pattern, in all
/// folders of the pattern.
#[must_use]
pub fn left_over_of(pattern: &NamePattern) -> Vec<PathBuf> {
    let mut found = Vec::new();
    each_file(pattern, &mut |path, _| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let target = target_of(&name).map(|target| path.with_file_name(target));
        let is_its = |target: &Path| {
            let stamp = target.to_str().and_then(|path| pattern.stamp_of(path));
            stamp.is_some()
        };
        if target.is_some_and(|target| is_its(&target)) && is_abandoned(path) {
            found.push(path.to_owned());
        }
    });
    found.sort();
    found
}

/// Calls `take` for the files in the folders of a pattern, with their paths in the pattern's form.
fn each_file(pattern: &NamePattern, take: &mut impl FnMut(&Path, &fs::Metadata)) {
    let text = pattern.to_string();
    let fixed = pattern.fixed_folder();
    // The part of the pattern after the fixed folder determines how deep the files are.
    let start = text.find('%').and_then(|at| text[..at].rfind('/'));
    let depth = text[start.map_or(0, |slash| slash + 1)..]
        .matches('/')
        .count()
        + 1;
    // A pattern without a folder begins with the name, not with `./`.
    let is_here = fixed == Path::new(".") && !text.starts_with("./");
    walk(&fixed, depth, &mut |path, metadata| {
        let path = match is_here {
            true => path.strip_prefix("./").unwrap_or(path),
            false => path,
        };
        take(path, metadata);
    });
}

/// The latest time at which the last record of a file may have been written: by its name or by its
/// modification time, whichever is later. A file that only a size limit ends may be written to for
/// days; the modification time of a restored file may be later than its content.
fn ended_by(stamp: Stamp, metadata: &fs::Metadata, period_seconds: u64) -> u64 {
    let changed = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    let changed = changed.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let named = stamp
        .begun_by()
        .map(|seconds| seconds.saturating_add(period_seconds));
    named.unwrap_or(0).max(changed.as_secs())
}

/// Calls `take` for the files at most `depth` levels below a folder. Links are not followed.
fn walk(folder: &Path, depth: usize, take: &mut impl FnMut(&Path, &fs::Metadata)) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        match entry.metadata() {
            Ok(metadata) if metadata.is_file() => take(&path, &metadata),
            Ok(metadata) if metadata.is_dir() && depth > 1 => walk(&path, depth - 1, take),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noon of 10 March 2024.
    const NOW: u64 = 1_710_072_000;

    fn kept(folder: &Path) -> Vec<String> {
        let mut names = Vec::new();
        walk(folder, 9, &mut |path, _| {
            names.push(path.strip_prefix(folder).unwrap().display().to_string());
        });
        names.sort();
        names
    }

    fn apply(folder: &Path, pattern: &str, retention: Retention) -> Vec<String> {
        let pattern = folder.join(pattern);
        let pattern: NamePattern = pattern.to_str().unwrap().parse().unwrap();
        let mut removed = Vec::new();
        retention.apply(&pattern, NOW, 300, |path, outcome| {
            outcome.unwrap();
            removed.push(path.strip_prefix(folder).unwrap().display().to_string());
        });
        removed
    }

    fn write(folder: &Path, names: &[&str]) {
        for name in names {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, [0; 100]).unwrap();
            change(&path, 0);
        }
    }

    /// Sets the modification time of a file.
    fn change(path: &Path, seconds: u64) {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds))
            .unwrap();
    }

    #[test]
    fn the_oldest_go_by_age_and_nothing_else_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        write(
            folder.path(),
            &[
                "2024/03/01/f-120000.csv",
                "2024/03/01/f-120000-1.csv",
                "2024/03/01/notes.txt",
                "2024/02/29/f-120000.csv",
                "2024/03/08/f-115400.csv",
                "2024/03/08/f-115600.csv",
                "2024/03/10/f-115500.csv",
                "2024/03/10/.f-120000.csv.7-0.tmp",
                "f-20240101.csv",
            ],
        );
        let retention = Retention {
            age_seconds: Some(2 * 86_400),
            total_bytes: None,
        };
        let removed = apply(folder.path(), "%Y/%m/%d/f-%H%M%S.csv", retention);
        assert_eq!(
            removed,
            [
                "2024/02/29/f-120000.csv",
                "2024/03/01/f-120000.csv",
                "2024/03/01/f-120000-1.csv",
                "2024/03/08/f-115400.csv",
            ]
        );
        // The file whose last write was a minute after the limit stays.
        assert_eq!(
            kept(folder.path()),
            [
                "2024/03/01/notes.txt",
                "2024/03/08/f-115600.csv",
                "2024/03/10/.f-120000.csv.7-0.tmp",
                "2024/03/10/f-115500.csv",
                "f-20240101.csv",
            ]
        );
        assert!(
            !folder.path().join("2024/02").exists(),
            "an empty folder goes"
        );
        assert!(folder.path().join("2024/03/01").exists());
    }

    #[test]
    fn a_file_that_was_changed_lately_is_not_old() {
        let folder = tempfile::tempdir().unwrap();
        write(
            folder.path(),
            &["f-20240101.csv", "f-20240102.csv", "g-12.csv", "g-13.csv"],
        );
        for name in ["f-20240102.csv", "g-13.csv"] {
            change(&folder.path().join(name), NOW - 3_600);
        }
        let retention = Retention {
            age_seconds: Some(86_400),
            total_bytes: None,
        };
        assert_eq!(
            apply(folder.path(), "f-%Y%m%d.csv", retention),
            ["f-20240101.csv"]
        );
        assert_eq!(apply(folder.path(), "g-%H.csv", retention), ["g-12.csv"]);
    }

    #[test]
    fn the_oldest_go_by_size_and_the_newest_stays() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["f-1.csv", "f-20.csv", "f-3.csv", "f-100.csv"];
        write(folder.path(), &names);
        let limit = |bytes| Retention {
            age_seconds: None,
            total_bytes: Some(bytes),
        };
        assert!(apply(folder.path(), "f-%s.csv", limit(400)).is_empty());
        assert_eq!(apply(folder.path(), "f-%s.csv", limit(399)), ["f-1.csv"]);
        assert_eq!(
            apply(folder.path(), "f-%s.csv", limit(0)),
            ["f-3.csv", "f-20.csv"]
        );
        assert_eq!(kept(folder.path()), ["f-100.csv"]);
        assert!(apply(folder.path(), "f-%s.csv", Retention::default()).is_empty());
    }

    #[test]
    fn files_of_other_names_are_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        let others = [
            "f-20240310-007.csv",
            "f-20240310-0.csv",
            "f-20240310-+5.csv",
            "f-20240310--1.csv",
            "f-20241340.csv",
        ];
        write(folder.path(), &others);
        write(folder.path(), &["f-20240101.csv", "f-20240101-1.csv"]);
        let all = Retention {
            age_seconds: Some(0),
            total_bytes: Some(0),
        };
        // Works with any number of slashes.
        let removed = apply(folder.path(), ".//f-%Y%m%d.csv", all);
        assert_eq!(removed, ["f-20240101.csv", "f-20240101-1.csv"]);
        let mut left = others;
        left.sort();
        assert_eq!(kept(folder.path()), left);
    }

    #[test]
    fn what_cannot_be_removed_counts_as_kept() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &["1.csv", "2.csv", "3.csv", "4.csv"]);
        let pattern = folder.path().join("%s.csv");
        let pattern: NamePattern = pattern.to_str().unwrap().parse().unwrap();
        let limit = Retention {
            age_seconds: None,
            total_bytes: Some(250),
        };
        let mut outcomes = Vec::new();
        limit.apply(&pattern, NOW, 0, |_, outcome| {
            // Another process removes the second file first.
            let _ = fs::remove_file(folder.path().join("2.csv"));
            outcomes.push(outcome.is_ok());
        });
        assert_eq!(outcomes, [true, false, true]);
        assert_eq!(kept(folder.path()), ["4.csv"]);
    }

    #[test]
    fn unfinished_files_are_found_in_all_folders_of_a_pattern() {
        let folder = tempfile::tempdir().unwrap();
        write(
            folder.path(),
            &[
                "2024/03/.f-10.csv.7-0.tmp",
                "2024/02/.f-10-2.csv.7-0.tmp",
                "2024/03/.g-10.csv.7-0.tmp",
                "2024/03/f-11.csv",
            ],
        );
        let pattern = folder.path().join("%Y/%m/f-%d.csv");
        let pattern: NamePattern = pattern.to_str().unwrap().parse().unwrap();
        let found = left_over_of(&pattern);
        let wanted = ["2024/02/.f-10-2.csv.7-0.tmp", "2024/03/.f-10.csv.7-0.tmp"];
        assert_eq!(found, wanted.map(|name| folder.path().join(name)));
    }

    #[test]
    fn links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &["there/2024/f-01.csv"]);
        let here = folder.path().join("here");
        fs::create_dir(&here).unwrap();
        std::os::unix::fs::symlink(folder.path().join("there/2024"), here.join("2024")).unwrap();
        let all = Retention {
            age_seconds: Some(0),
            total_bytes: Some(0),
        };
        assert!(apply(&here, "%Y/f-%m.csv", all).is_empty());
        assert_eq!(
            apply(&folder.path().join("there"), "%Y/f-%m.csv", all).len(),
            1
        );
    }
}
