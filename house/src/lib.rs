// SPDX-License-Identifier: Apache-2.0
//! Reads the project's tree for the tests in this crate, which check the house rules of
//! `docs/architecture.md` and `CONTRIBUTING.md`. The product does not depend on this crate.

mod modules;

use std::fs;
use std::path::{Path, PathBuf};

pub use modules::cycles;

/// Folders of generated files.
const NOT_WRITTEN: [&str; 6] = [
    "artifacts",
    "corpus",
    "node_modules",
    "runs",
    "target",
    "__pycache__",
];

/// A file of the project.
#[derive(Debug)]
pub struct Source {
    /// Path from the root, with `/`.
    pub path: String,
    /// Content of the file.
    pub text: String,
}

/// The root of the checkout.
#[must_use]
pub fn root() -> PathBuf {
    // Read at run time, because checkouts may share a target folder.
    let own = std::env::var_os("CARGO_MANIFEST_DIR");
    let own = own.map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    own.join("..")
}

/// All files whose path ends in one of `endings`, sorted by path.
///
/// # Panics
/// When the tree cannot be read.
#[must_use]
pub fn sources(endings: &[&str]) -> Vec<Source> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("folders of the project are readable") {
            let path = entry.expect("folders of the project are readable").path();
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            if path.is_dir() {
                let hidden = name.starts_with('.') && name != ".ci";
                let built = NOT_WRITTEN.contains(&name) || path.join("CACHEDIR.TAG").exists();
                if !hidden && !built {
                    folders.push(path);
                }
            } else {
                let relative = relative(&root, &path);
                if endings.iter().any(|ending| relative.ends_with(ending)) {
                    found.push(Source::read(relative, &path));
                }
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn relative(root: &Path, path: &Path) -> String {
    let relative = path
        .strip_prefix(root)
        .expect("it was found below the root");
    let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

impl Source {
    fn read(relative: String, path: &Path) -> Self {
        let text =
            fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self {
            path: relative,
            text,
        }
    }

    /// Whether the whole file is a test or serves tests only.
    #[must_use]
    pub fn is_test(&self) -> bool {
        let stem = self
            .path
            .rsplit('/')
            .next()
            .and_then(|name| name.strip_suffix(".rs"));
        self.path
            .split('/')
            .any(|part| matches!(part, "tests" | "fuzz_targets"))
            || stem.is_some_and(|stem| stem == "tests" || stem.ends_with("_tests"))
    }

    /// The file's room: the folder of its crate below `apps`, `crates`, `engines` or `lab`, or else
    /// its first folder; `root` for files at the root.
    #[must_use]
    pub fn room(&self) -> &str {
        let mut folders = self.path.split('/');
        match (folders.next(), folders.next(), folders.next()) {
            (Some("apps" | "crates" | "engines" | "lab"), Some(room), Some(_)) => room,
            (Some(room), Some(_), _) => room,
            _ => "root",
        }
    }

    /// The numbered lines before the test module at the bottom.
    pub fn product_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines: Vec<&str> = self.text.lines().collect();
        let end = lines
            .windows(2)
            .position(|pair| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod tests {"))
            .unwrap_or(lines.len());
        lines
            .into_iter()
            .take(end)
            .enumerate()
            .map(|(index, line)| (index + 1, line))
    }

    /// [`Source::product_lines`] without comment lines.
    pub fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.product_lines()
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
    }
}
