// SPDX-License-Identifier: Apache-2.0
//! Ledgers beside the records: where every packet of a run went, and which files have no ledger.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use turboflow_formats::NamePattern;

use crate::files::Seen;

/// Maximum size of one ledger, and of all ledgers, in bytes.
const LEDGER_BYTES: u64 = 4 << 20;
const LEDGERS_BYTES: u64 = 16 << 20;
/// Maximum number of candidate files.
const FILES_MAX: usize = 1024;
/// Maximum number of files without a ledger that are listed.
const NAMED_MAX: usize = 20;

/// The content of the ledgers, and the candidate files at the time they were read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledgers {
    pub(crate) json: Value,
    looked_at: Vec<Seen>,
}

/// Where to look for ledgers.
#[derive(Clone, Copy)]
pub(crate) struct Places<'a> {
    pub(crate) given: &'a [PathBuf],
    pub(crate) files: &'a [Seen],
    /// Files that were named explicitly as ledgers.
    pub(crate) named: &'a [PathBuf],
}

impl Ledgers {
    /// Reads the ledgers that were named, those in the given folders, and those that list one of
    /// the files as an output, in the folders of the files.
    pub(crate) fn of(places: Places<'_>) -> Self {
        let mut found = Vec::new();
        let mut outputs = Vec::new();
        let mut bytes = 0;
        let (looked_at, problem) = candidates(places);
        for seen in &looked_at {
            let path = &seen.path;
            let is_named = places.named.contains(path);
            let ledger = match bytes + seen.bytes > LEDGERS_BYTES {
                true => Err(too_large("all ledgers", LEDGERS_BYTES)),
                false => read(path, is_named),
            };
            let ledger = match ledger {
                Ok(Some(ledger)) => ledger,
                Ok(None) => continue,
                Err(reason) => {
                    found.push(json!({ "name": path.display().to_string(), "error": reason }));
                    continue;
                }
            };
            let its = Outputs::of(&ledger, (!is_named).then(|| folder_of(path)));
            let is_of_folder = places.given.iter().any(|it| path.starts_with(it));
            let is_of_file = || places.files.iter().any(|file| its.have(&file.path));
            if is_named || is_of_folder || is_of_file() {
                bytes += seen.bytes;
                found.push(json!({ "name": path.display().to_string(), "ledger": ledger }));
                outputs.push(its);
            }
        }
        found.extend(problem);
        let has_none = |file: &&Seen| !outputs.iter().any(|its| its.have(&file.path));
        let without: Vec<&Seen> = places.files.iter().filter(has_none).collect();
        let names = without.iter().take(NAMED_MAX);
        let names = names.map(|file| file.path.display().to_string());
        Self {
            json: json!({
                "found": found,
                "without": { "files": without.len(), "names": names.collect::<Vec<_>>() },
            }),
            looked_at,
        }
    }

    /// Whether the candidate files have changed since the ledgers were read.
    pub(crate) fn are_old(&self, places: Places<'_>) -> bool {
        candidates(places).0 != self.looked_at
    }
}

/// The outputs that a ledger lists.
struct Outputs {
    /// If set, only files in this folder or below it belong to the run.
    folder: Option<PathBuf>,
    names: HashSet<String>,
    patterns: Vec<NamePattern>,
}

impl Outputs {
    fn of(ledger: &Value, folder: Option<PathBuf>) -> Self {
        let outputs = ledger["outputs"].as_array().into_iter().flatten();
        // Only file names are compared: the folders of a run may have been moved since.
        let names = outputs.filter_map(|it| Path::new(it["name"].as_str()?).file_name()?.to_str());
        let (patterns, names): (Vec<&str>, Vec<&str>) =
            names.partition(|name| NamePattern::is_meant(Path::new(name)));
        Self {
            folder,
            names: names.into_iter().map(str::to_owned).collect(),
            patterns: patterns.iter().filter_map(|it| it.parse().ok()).collect(),
        }
    }

    fn have(&self, file: &Path) -> bool {
        let name = file.file_name().unwrap_or_default();
        let is_known = name.to_str().is_some_and(|name| self.names.contains(name));
        let is_made = || {
            self.patterns
                .iter()
                .any(|it| it.could_make(Path::new(name)))
        };
        let is_below = || {
            let folder = self.folder.as_ref();
            folder.is_none_or(|folder| folder_of(file).starts_with(folder))
        };
        (is_known || is_made()) && is_below()
    }
}

/// The folder of a file; `.` for a bare file name.
fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// The files that may be ledgers, and a problem if some were left out.
fn candidates(places: Places<'_>) -> (Vec<Seen>, Option<Value>) {
    let Places {
        given,
        files,
        named,
    } = places;
    let mut folders: BTreeSet<PathBuf> = given.iter().filter(|it| it.is_dir()).cloned().collect();
    for file in files {
        let own = folder_of(&file.path);
        // Also the folders between a given folder and its files.
        let above = given.iter().find(|it| own.starts_with(it));
        let mut folder = Some(own.as_path());
        while let Some(this) = folder.filter(|this| !folders.contains(*this)) {
            folders.insert(this.to_owned());
            folder = above.and_then(|_| this.parent());
        }
    }
    let mut paths: Vec<PathBuf> = named.to_vec();
    let (mut problem, mut known) = (None, paths.iter().cloned().collect::<HashSet<_>>());
    for folder in &folders {
        for path in json_files(folder) {
            if paths.len() >= FILES_MAX {
                problem = Some(json!({
                    "name": folder.display().to_string(),
                    "error": format!("more than {FILES_MAX} .json files: the rest is not read"),
                }));
                break;
            }
            if known.insert(path.clone()) {
                paths.push(path);
            }
        }
    }
    (paths.into_iter().map(Seen::of).collect(), problem)
}

/// The `.json` files of a folder, sorted by name.
fn json_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let is_json = |path: &PathBuf| path.extension() == Some(OsStr::new("json"));
    let mut paths: Vec<PathBuf> = paths
        .filter(is_json)
        .filter(|path| path.is_file())
        .collect();
    paths.sort();
    paths
}

/// Reads a ledger. `None` if the file is not a ledger; for a file that was named, this is an error.
fn read(path: &Path, is_named: bool) -> Result<Option<Value>, String> {
    let mut text = Vec::new();
    let outcome = File::open(path).and_then(|file| {
        let is_file = file.metadata()?.is_file();
        is_file
            .then_some(file)
            .ok_or_else(|| io::Error::other("this is not a file"))
    });
    let read = outcome.and_then(|file| file.take(LEDGER_BYTES + 1).read_to_end(&mut text));
    match read {
        // It was deleted after it was found.
        Err(error) if error.kind() == ErrorKind::NotFound && !is_named => return Ok(None),
        Err(error) => return Err(format!("it cannot be read: {error}")),
        // It may hold flow records in JSON.
        Ok(_) if text.len() as u64 > LEDGER_BYTES && !is_named => return Ok(None),
        Ok(_) if text.len() as u64 > LEDGER_BYTES => {
            return Err(too_large("a ledger", LEDGER_BYTES));
        }
        Ok(_) => {}
    }
    let json: Option<Value> = serde_json::from_slice(&text).ok();
    let is_ledger =
        |json: &Value| json["balanced"].is_boolean() && json["packets_received"].is_u64();
    match json.filter(is_ledger) {
        None if is_named => Err("this is not a ledger".to_owned()),
        ledger => Ok(ledger),
    }
}

fn too_large(what: &str, most: u64) -> String {
    format!("it is not read: {what} may have {most} bytes")
}
