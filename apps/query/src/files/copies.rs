// SPDX-License-Identifier: Apache-2.0
//! Files that hold the records of one run in several formats.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use turboflow_formats::Format;

use super::Found;

/// How many groups of copies are named in messages; the rest are only counted.
const TOLD_MAX: usize = 3;

/// How the records of a file are stored.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Form {
    /// Whether the file is incomplete because its writer was stopped.
    is_part: bool,
    /// Rank of the format; lower is preferred. Parquet holds every column exactly, and the
    /// definition; CSV and JSON hold every column by its name.
    preference: usize,
    /// The extensions of its name, in lower case.
    extensions: String,
}

/// Removes files that share folder and stem with another file in another form, unless they were
/// named directly, and reports them.
pub(super) fn left_out(found: &mut Vec<Found>) -> Vec<String> {
    let mut folders: HashMap<PathBuf, PathBuf> = HashMap::new();
    let mut groups: HashMap<(PathBuf, OsString), Vec<(usize, Form)>> = HashMap::new();
    for (index, file) in found.iter().enumerate() {
        if let (Some(_), Some((stem, form))) = (file.id, parts(&file.path)) {
            let folder = file.path.parent().unwrap_or(Path::new("")).to_owned();
            let folder = folders.entry(folder).or_insert_with_key(|folder| {
                let here = folder.as_os_str().is_empty();
                let real = if here { Path::new(".") } else { folder }.canonicalize();
                real.unwrap_or_else(|_| folder.clone())
            });
            let folder = folder.clone();
            groups
                .entry((folder, stem))
                .or_default()
                .push((index, form));
        }
    }
    let mut copies: Vec<(usize, Vec<usize>)> = Vec::new();
    for mut group in groups.into_values() {
        group.sort_by_key(|(index, form)| (!found[*index].is_named, form.clone(), *index));
        let (kept, best) = group[0].clone();
        let is_copy = |(index, form): &(usize, Form)| {
            // The remains of a stopped run may belong to another run.
            let is_rest = form.is_part && form.preference == best.preference;
            !found[*index].is_named && *form != best && !is_rest
        };
        let others: Vec<usize> = group
            .iter()
            .filter(|its| is_copy(its))
            .map(|its| its.0)
            .collect();
        if !others.is_empty() {
            copies.push((kept, others));
        }
    }
    copies.sort_unstable();
    let told = told(found, &copies);
    let mut is_kept = vec![true; found.len()];
    for index in copies.iter().flat_map(|(_, others)| others) {
        is_kept[*index] = false;
    }
    let mut is_kept = is_kept.into_iter();
    found.retain(|_| is_kept.next().unwrap_or(true));
    told
}

fn told(found: &[Found], copies: &[(usize, Vec<usize>)]) -> Vec<String> {
    const MEND: &str = "to read all, name every file";
    let name = |index: usize| found[index].path.display().to_string();
    let sentence = |(kept, others): &(usize, Vec<usize>)| {
        let (kept, others) = (name(*kept), others.iter().map(|other| name(*other)));
        let others: Vec<String> = others.collect();
        match others.as_slice() {
            [other] => format!("{other} is not read: it is taken for a copy of {kept}"),
            others => {
                let others = others.join(" and ");
                format!("{others} are not read: they are taken for copies of {kept}")
            }
        }
    };
    let why = "which has the same stem in another format";
    if copies.len() <= TOLD_MAX {
        let one = |copy| format!("{}, {why}; {MEND}", sentence(copy));
        return copies.iter().map(one).collect();
    }
    let count: usize = copies.iter().map(|(_, others)| others.len()).sum();
    vec![format!(
        "{count} files are not read: they are taken for copies of files that have the same stem in \
         another format ({}, ...); {MEND}",
        sentence(&copies[0])
    )]
}

/// The stem and the form of a file of flow records.
fn parts(path: &Path) -> Option<(OsString, Form)> {
    let format = Format::from_path(path).ok()?;
    let preferred = [
        Format::Parquet,
        Format::Csv,
        Format::JsonLines,
        Format::Ipfix,
    ];
    let preference = preferred.iter().position(|its| *its == format)?;
    let mut rest = PathBuf::from(path.file_name()?);
    let mut extensions = String::new();
    let mut is_part = false;
    loop {
        let extension = rest.extension()?.to_string_lossy().to_lowercase();
        rest = PathBuf::from(rest.file_stem()?);
        if extension == "part" {
            is_part = true;
            continue;
        }
        extensions.insert_str(0, &format!(".{extension}"));
        if !matches!(extension.as_str(), "gz" | "zst") {
            break;
        }
    }
    let form = Form {
        is_part,
        preference,
        extensions,
    };
    Some((rest.into_os_string(), form))
}
