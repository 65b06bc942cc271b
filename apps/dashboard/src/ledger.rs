// SPDX-License-Identifier: Apache-2.0
//! Ledgers beside the records: where every packet of a run went.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::store::Seen;

/// Most bytes of a ledger.
const LEDGER_BYTES: u64 = 4 << 20;
/// Most files that are looked at.
const FILES_MAX: usize = 256;

/// The ledgers that were named, those in the folders that were given, and those beside the files
/// that were given and name one of them as an output.
pub(crate) fn found(given: &[PathBuf], files: &[Seen], named: &[PathBuf]) -> Vec<Value> {
    let mut found = Vec::new();
    let mut known = BTreeSet::new();
    for path in named {
        known.insert(path.clone());
        match read(path) {
            Some(ledger) => found.push(of(path, ledger)),
            None => found.push(json!({
                "name": path.display().to_string(),
                "error": "this is no ledger",
            })),
        }
    }
    let names: BTreeSet<_> = files.iter().filter_map(|it| it.path.file_name()).collect();
    let folders = files.iter().filter_map(|it| it.path.parent());
    let folders: BTreeSet<&Path> = folders.chain(given.iter().map(PathBuf::as_path)).collect();
    let paths = folders
        .into_iter()
        .flat_map(|folder| json_files(folder, given));
    for path in paths.take(FILES_MAX) {
        let Some(ledger) = read(&path) else {
            continue;
        };
        let is_of_folder = given.iter().any(|it| path.starts_with(it));
        let outputs = ledger["outputs"].as_array().into_iter().flatten();
        let mut outputs = outputs.filter_map(|it| Path::new(it["name"].as_str()?).file_name());
        let is_of_file = outputs.any(|name| names.contains(name));
        if (is_of_folder || is_of_file) && known.insert(path.clone()) {
            found.push(of(&path, ledger));
        }
    }
    found
}

fn of(path: &Path, ledger: Value) -> Value {
    json!({ "name": path.display().to_string(), "ledger": ledger })
}

/// The `.json` files of a folder; of files that were given, their folder is the current one where
/// the path has none.
fn json_files(folder: &Path, given: &[PathBuf]) -> Vec<PathBuf> {
    let folder = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    if given.iter().any(|path| path == folder && !path.is_dir()) {
        return Vec::new();
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let is_json = |path: &PathBuf| path.extension().is_some_and(|it| it == "json");
    let mut paths: Vec<PathBuf> = paths
        .filter(is_json)
        .filter(|path| path.is_file())
        .collect();
    paths.sort();
    paths
}

/// A file, if it is a ledger.
fn read(path: &Path) -> Option<Value> {
    let mut text = String::new();
    let file = File::open(path).ok()?;
    file.take(LEDGER_BYTES).read_to_string(&mut text).ok()?;
    let json: Value = serde_json::from_str(&text).ok()?;
    let is_ledger = json["balanced"].is_boolean() && json["packets_received"].is_u64();
    is_ledger.then_some(json)
}
