// SPDX-License-Identifier: Apache-2.0
//! Finds the files that folders and patterns on the command line stand for.

mod copies;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use turboflow_formats::Format;

use crate::QueryError;

/// Maximum depth to which folders are read: date folders have three or four levels.
const DEPTH_MAX: usize = 16;

/// The files that a command line stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundFiles {
    /// The files; one that folders and patterns find several times appears once.
    pub files: Vec<PathBuf>,
    /// Entries that were found but not read, each with its reason.
    pub passed_over: Vec<String>,
    /// Notes about files that are read only once: copies of a file in other formats, and files that
    /// were named twice.
    pub read_once: Vec<String>,
    /// Folders and patterns that stand for no file.
    pub empty: Vec<PathBuf>,
}

/// Decides which of the files in folders are read.
pub type IsMeant = fn(&Path) -> bool;

/// Replaces folders by the files of flow records within them, and patterns (`*`, `?`, `[...]`, `**`
/// for any folders) by the files that match, both sorted by name. Any other path is kept, as is an
/// existing file whose name looks like a pattern. A file that is found or named several times
/// appears once.
///
/// A run with several outputs writes its records into each of them. So among files that folders and
/// patterns find with the same stem and different formats, only one is kept.
///
/// # Errors
/// [`QueryError::NoFiles`] if a folder or pattern has no file, [`QueryError::Folder`] if a
/// folder cannot be read, [`QueryError::Pattern`] if a pattern is invalid.
pub fn flow_files(given: &[PathBuf]) -> Result<FoundFiles, QueryError> {
    let found = flows(search(given, is_of_flows, Pipes::Taken)?);
    match found.empty.first() {
        Some(place) => Err(QueryError::NoFiles {
            place: place.display().to_string(),
        }),
        None => Ok(found),
    }
}

/// Like [`flow_files`], for callers that look repeatedly: folders and patterns may match no file
/// yet, and anything found that is not a regular file, such as a pipe, is skipped.
///
/// # Errors
/// [`QueryError::Folder`] if a folder cannot be read, [`QueryError::Pattern`] if a pattern is
/// invalid.
pub fn flow_files_so_far(given: &[PathBuf]) -> Result<FoundFiles, QueryError> {
    Ok(flows(search(given, is_of_flows, Pipes::PassedOver)?))
}

/// Removes duplicates and copies from the files that were found.
fn flows(search: Search) -> FoundFiles {
    let Search {
        mut found,
        passed_over,
        empty,
        ..
    } = search;
    let mut read_once = named_again(&mut found);
    read_once.extend(copies::left_out(&mut found));
    FoundFiles {
        files: found.into_iter().map(|file| file.path).collect(),
        passed_over,
        read_once,
        empty,
    }
}

/// Like [`flow_files`], for files of another kind, for which the same stem does not mean a copy. A
/// file that is named several times on the command line is kept as often.
///
/// # Errors
/// [`QueryError::Empty`] if a folder or pattern has no file, [`QueryError::Folder`] if a
/// folder cannot be read, [`QueryError::Pattern`] if a pattern is invalid.
pub fn files_of(given: &[PathBuf], is_meant: IsMeant) -> Result<FoundFiles, QueryError> {
    let search = search(given, is_meant, Pipes::Taken)?;
    if let Some(place) = search.empty.first() {
        return Err(QueryError::Empty {
            place: place.display().to_string(),
        });
    }
    Ok(FoundFiles {
        files: search.found.into_iter().map(|file| file.path).collect(),
        passed_over: search.passed_over,
        read_once: Vec::new(),
        empty: Vec::new(),
    })
}

/// Keeps the first of several entries for the same file, and reports the repetitions.
fn named_again(found: &mut Vec<Found>) -> Vec<String> {
    let mut first: HashMap<FileId, PathBuf> = HashMap::new();
    let mut told = Vec::new();
    found.retain(|file| {
        let Some(id) = file.id else {
            return true;
        };
        let Some(before) = first.get(&id) else {
            first.insert(id, file.path.clone());
            return true;
        };
        let (path, before) = (file.path.display(), before.display());
        let text = match path.to_string() == before.to_string() {
            true => format!("{path} is named several times: it is read once"),
            false => format!("{path} is the same file as {before}: it is read once"),
        };
        if !told.contains(&text) {
            told.push(text);
        }
        false
    });
    told
}

fn search(given: &[PathBuf], is_meant: IsMeant, pipes: Pipes) -> Result<Search, QueryError> {
    let mut search = Search {
        is_meant,
        pipes,
        found: Vec::new(),
        passed_over: Vec::new(),
        empty: Vec::new(),
        named: HashSet::new(),
        seen: HashMap::new(),
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
            search.empty.push(path.clone());
        }
    }
    Ok(search)
}

/// Whether the name of a file in a folder says that it holds flow records. `.json` does not: it is
/// the extension of the ledgers that are written beside the records.
fn is_of_flows(path: &Path) -> bool {
    let name = path.to_string_lossy().to_lowercase();
    let packed = [".part", ".gz", ".zst"];
    let plain = packed
        .iter()
        .fold(&*name, |name, end| name.strip_suffix(end).unwrap_or(name));
    // Arrow files are for other programs.
    let is_read = |format| format != Format::Arrow;
    Format::from_path(path).is_ok_and(is_read) && !plain.ends_with(".json")
}

fn is_pattern(path: &Path) -> bool {
    let has_wildcard = |text: &str| text.contains(['*', '?', '[']);
    path.to_str().is_some_and(has_wildcard) && !path.exists()
}

/// Device and inode.
type FileId = (u64, u64);

/// A file that arguments stand for.
struct Found {
    path: PathBuf,
    /// `None` for pipes, devices and paths that do not exist: they are read as often as they are
    /// named.
    id: Option<FileId>,
    /// Whether the argument names this file directly.
    is_named: bool,
}

/// What to do with pipes and devices that folders and patterns find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pipes {
    Taken,
    PassedOver,
}

struct Search {
    is_meant: IsMeant,
    pipes: Pipes,
    found: Vec<Found>,
    passed_over: Vec<String>,
    empty: Vec<PathBuf>,
    /// Files that arguments name directly.
    named: HashSet<FileId>,
    /// Files found in folders and by patterns, and their indexes in `found`.
    seen: HashMap<FileId, usize>,
    /// Number of files that the current argument stands for, whether or not they were found before.
    matches: usize,
}

impl Search {
    /// Adds a file unless it was found before. A file that is named twice is added twice.
    fn take(&mut self, path: PathBuf, is_named: bool) {
        let metadata = fs::metadata(&path);
        if !is_named && self.pipes == Pipes::PassedOver {
            match &metadata {
                Ok(its) if its.is_file() => {}
                Ok(_) => return self.pass_over(&path, "is a pipe or a device"),
                // It was deleted after its folder was read.
                Err(error)
                    if error.kind() == io::ErrorKind::NotFound
                        && fs::symlink_metadata(&path).is_err() =>
                {
                    return;
                }
                Err(error) => {
                    return self.pass_over(&path, &format!("cannot be reached ({error})"));
                }
            }
        }
        self.matches += 1;
        let file = metadata.ok().filter(fs::Metadata::is_file);
        let id = file.map(|file| (file.dev(), file.ino()));
        if let Some(id) = id {
            if let Some(&place) = self.seen.get(&id) {
                self.found[place].is_named |= is_named;
                return;
            }
            if is_named {
                self.named.insert(id);
            } else if self.named.contains(&id) {
                return;
            } else {
                self.seen.insert(id, self.found.len());
            }
        }
        self.found.push(Found { path, id, is_named });
    }

    fn matching(&mut self, pattern: &Path) -> Result<(), QueryError> {
        let mut place = pattern.display().to_string();
        // Alone it matches only folders below the first one, and misses that one's files.
        if place.ends_with("**") {
            place += "/*";
        }
        let found = glob::glob(&place).map_err(|error| QueryError::Pattern {
            place: place.clone(),
            reason: error.to_string(),
        })?;
        // A pattern that leaves the file name open is read like a folder.
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

    /// Adds the matching files of a folder and its subfolders.
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
                // A symbolic link to a folder may lead back to a folder above it.
                self.pass_over(&path, "is a link to a folder");
            } else if depth == 0 {
                self.pass_over(&path, "is a folder nested too deeply");
            } else {
                self.within(&path, depth - 1)?;
            }
        }
        Ok(())
    }

    fn pass_over(&mut self, path: &Path, why: &str) {
        let told = format!("{} {why}", path.display());
        if !self.passed_over.contains(&told) {
            self.passed_over.push(told);
        }
    }
}

/// Whether the file is hidden, or still being written.
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
