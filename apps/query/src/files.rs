// SPDX-License-Identifier: Apache-2.0
//! The files that folders and patterns stand for.

mod copies;

use std::collections::{HashMap, HashSet};
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
    /// What is there several times and read once: copies of a file in other formats, and files that
    /// were named twice.
    pub read_once: Vec<String>,
    /// Folders and patterns that stand for no file.
    pub empty: Vec<PathBuf>,
}

/// Which of the files in folders are read.
pub type IsMeant = fn(&Path) -> bool;

/// Replaces folders by the files of flow records within them, and patterns (`*`, `?`, `[...]`,
/// `**` for any folders) by the files that match, both in the order of their names. Everything else
/// stays as it is, and so does a file that has the name of a pattern. A file that is found or named
/// several times is there once. Of files that folders and patterns find with one stem and several
/// formats, one is there: a run with several outputs writes its records into each of them.
///
/// # Errors
/// [`QueryError::NoFiles`] where there is none, [`QueryError::Folder`] where a folder cannot be
/// read.
pub fn flow_files(given: &[PathBuf]) -> Result<FoundFiles, QueryError> {
    let found = flows(search(given, is_of_flows, Pipes::Taken)?);
    match found.empty.first() {
        Some(place) => Err(QueryError::NoFiles {
            place: place.display().to_string(),
        }),
        None => Ok(found),
    }
}

/// As [`flow_files`], for those who read again and again: folders and patterns may stand for no
/// file yet, and what they find and is no file, such as a pipe, is passed over.
///
/// # Errors
/// [`QueryError::Folder`] where a folder cannot be read.
pub fn flow_files_so_far(given: &[PathBuf]) -> Result<FoundFiles, QueryError> {
    Ok(flows(search(given, is_of_flows, Pipes::PassedOver)?))
}

/// One of each file that was found.
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

/// As [`flow_files`], for files of another kind, which may have the same stem. One that is named
/// several times itself is there as often.
///
/// # Errors
/// [`QueryError::Empty`] where there is none, [`QueryError::Folder`] where a folder cannot be read.
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

/// Keeps the first of the entries that are one file, and says which files are there again.
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

/// Whether a file in a folder holds flow records, by its name. `.json` is no such name there:
/// ledgers have it, which are written beside the records.
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
    /// Pipes, devices and what does not exist have none: they are read as often as they are named.
    id: Option<FileId>,
    /// Whether an argument is this file itself.
    is_named: bool,
}

/// What becomes of pipes and devices that folders and patterns find.
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
    /// The files that were named themselves.
    named: HashSet<FileId>,
    /// The files in folders and of patterns, and their places in `found`.
    seen: HashMap<FileId, usize>,
    /// Files that the present argument stands for, found before or not.
    matches: usize,
}

impl Search {
    /// Takes a file, unless it was found before. One that is named twice is there twice.
    fn take(&mut self, path: PathBuf, is_named: bool) {
        let metadata = fs::metadata(&path);
        if !is_named && self.pipes == Pipes::PassedOver {
            match &metadata {
                Ok(its) if its.is_file() => {}
                Ok(_) => return self.pass_over(&path, "is a pipe or a device"),
                // It was there when its folder was read.
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
        if !self.passed_over.contains(&told) {
            self.passed_over.push(told);
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
