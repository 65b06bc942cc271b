// SPDX-License-Identifier: Apache-2.0
//! The files that folders and patterns stand for.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use turboflow_formats::Format;

use crate::QueryError;

/// How deep folders are read: date folders have three or four levels.
const DEPTH_MAX: usize = 16;

/// The files that a command line stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundFiles {
    /// A file that folders and patterns find several times is here once.
    pub files: Vec<PathBuf>,
    /// What was met and not read, each with its reason.
    pub passed_over: Vec<String>,
}

/// Which of the files in folders are read.
pub type IsMeant = fn(&Path) -> bool;

/// Replaces folders by the files of flow records within them, and patterns (`*`, `?`, `[...]`,
/// `**` for any folders) by the files that match, both in the order of their names. Everything else
/// stays as it is, and so does a file that has the name of a pattern. A file that is found several
/// times is there once; one that is named several times itself is there as often.
///
/// # Errors
/// [`QueryError::NoFiles`] where there is none, [`QueryError::Folder`] where a folder cannot be
/// read.
pub fn flow_files(given: &[PathBuf]) -> Result<FoundFiles, QueryError> {
    files_of(given, is_of_flows).map_err(|error| match error {
        QueryError::Empty { place } => QueryError::NoFiles { place },
        other => other,
    })
}

/// As [`flow_files`], for files of another kind.
///
/// # Errors
/// [`QueryError::Empty`] where there is none, [`QueryError::Folder`] where a folder cannot be read.
pub fn files_of(given: &[PathBuf], is_meant: IsMeant) -> Result<FoundFiles, QueryError> {
    let mut search = Search {
        is_meant,
        found: FoundFiles::default(),
        named: HashSet::new(),
        seen: HashSet::new(),
        matches: 0,
    };
    for path in given {
        search.matches = 0;
        if path.is_dir() {
            search.within(path, DEPTH_MAX)?;
        } else if is_pattern(path) {
            search.matching(path)?;
        } else {
            search.take(path.clone(), true);
        }
        if search.matches == 0 {
            return Err(QueryError::Empty {
                place: path.display().to_string(),
            });
        }
    }
    Ok(search.found)
}

/// Whether a file in a folder holds flow records, by its name. `.json` is no such name there:
/// ledgers have it, which are written beside the records.
fn is_of_flows(path: &Path) -> bool {
    let name = path.to_string_lossy().to_lowercase();
    let packed = [".part", ".gz", ".zst"];
    let plain = packed
        .iter()
        .fold(&*name, |name, end| name.strip_suffix(end).unwrap_or(name));
    Format::from_path(path).is_ok() && !plain.ends_with(".json")
}

fn is_pattern(path: &Path) -> bool {
    let has_wildcard = |text: &str| text.contains(['*', '?', '[']);
    path.to_str().is_some_and(has_wildcard) && !path.exists()
}

struct Search {
    is_meant: IsMeant,
    found: FoundFiles,
    /// Device and inode of the files that were named themselves.
    named: HashSet<(u64, u64)>,
    /// Those of the files in folders and of patterns.
    seen: HashSet<(u64, u64)>,
    /// Files that the present argument stands for, found before or not.
    matches: usize,
}

impl Search {
    /// Takes a file, unless it was found before. One that is named twice is meant twice.
    fn take(&mut self, path: PathBuf, is_named: bool) {
        self.matches += 1;
        // Pipes and devices are read as often as they are named.
        let file = fs::metadata(&path).ok().filter(fs::Metadata::is_file);
        let is_new = file.is_none_or(|file| {
            let id = (file.dev(), file.ino());
            match is_named {
                true => {
                    self.named.insert(id);
                    !self.seen.contains(&id)
                }
                false => self.seen.insert(id) && !self.named.contains(&id),
            }
        });
        if is_new {
            self.found.files.push(path);
        }
    }

    fn matching(&mut self, pattern: &Path) -> Result<(), QueryError> {
        let mut place = pattern.display().to_string();
        // By itself it would match folders alone, and not the first one.
        if place.ends_with("**") {
            place += "/*";
        }
        let found = glob::glob(&place).map_err(|error| QueryError::Pattern {
            place: place.clone(),
            reason: error.to_string(),
        })?;
        // A pattern without any part of a name means what the folder means.
        let is_of_all = place.ends_with("/*") || place == "*";
        for path in found {
            let path = path.map_err(|error| unreadable(error.path(), error.error()))?;
            if path.is_dir() {
                self.within(&path, DEPTH_MAX)?;
            } else if !is_hidden(&path) && (!is_of_all || (self.is_meant)(&path)) {
                self.take(path, false);
            }
        }
        Ok(())
    }

    /// Adds the files that are meant in a folder and its folders.
    fn within(&mut self, folder: &Path, depth: usize) -> Result<(), QueryError> {
        let refused = |error: io::Error| unreadable(folder, &error);
        let entries = fs::read_dir(folder).map_err(refused)?;
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        let mut paths: Vec<PathBuf> = paths.collect::<io::Result<_>>().map_err(refused)?;
        paths.sort();
        for path in paths.into_iter().filter(|path| !is_hidden(path)) {
            if !path.is_dir() {
                if (self.is_meant)(&path) {
                    self.take(path, false);
                }
            } else if path.is_symlink() {
                // A linked folder may contain itself.
                self.pass_over(&path, "is a link to a folder");
            } else if depth == 0 {
                self.pass_over(&path, "is too deep a folder");
            } else {
                self.within(&path, depth - 1)?;
            }
        }
        Ok(())
    }

    fn pass_over(&mut self, path: &Path, why: &str) {
        let told = format!("{} {why}", path.display());
        if !self.found.passed_over.contains(&told) {
            self.found.passed_over.push(told);
        }
    }
}

/// Whether it is a file that is still being written, or another that is not to be seen.
fn is_hidden(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().starts_with('.')
}

#[cold]
fn unreadable(folder: &Path, error: &io::Error) -> QueryError {
    QueryError::Folder {
        place: folder.display().to_string(),
        reason: error.to_string(),
    }
}
