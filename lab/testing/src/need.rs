// SPDX-License-Identifier: Apache-2.0
//! What a test may need, and whether the machine has it.

use std::fs;
use std::path::{Path, PathBuf};

/// Something that a machine may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Need<'a> {
    /// The real captures beside the checkout; see [`captures_folder`].
    Captures,
    /// The captures of reported bugs beside the checkout; see [`cases_folder`].
    Cases,
    /// An optional engine, and whether it was compiled in:
    /// `Need::Engine("name", cfg!(feature = "its-feature"))`.
    Engine(&'static str, bool),
    /// A library loaded at run time, and whether the test found it.
    Library(&'static str, bool),
    /// A right, and whether the process has it: `Need::Right("mount", false)`.
    Right(&'static str, bool),
    /// Root.
    Root,
    /// A program in `PATH`, or at the given path.
    Tool(&'a str),
}

impl<'a> Need<'a> {
    /// Whether the machine has it.
    #[must_use]
    pub fn is_met(&self) -> bool {
        match *self {
            Self::Captures => captures_folder().is_some(),
            Self::Cases => cases_folder().is_some(),
            Self::Engine(_, is_met) | Self::Library(_, is_met) | Self::Right(_, is_met) => is_met,
            Self::Root => is_root(),
            Self::Tool(name) => is_program(name),
        }
    }

    /// Its name in [`LEFT_OUT`](crate::LEFT_OUT).
    pub(crate) fn name(&self) -> &'a str {
        match *self {
            Self::Captures => "captures",
            Self::Cases => "cases",
            Self::Engine(name, _) | Self::Library(name, _) | Self::Right(name, _) => name,
            Self::Root => "root",
            Self::Tool(path) => path.rsplit('/').next().unwrap_or(path),
        }
    }

    /// The text after "needs" in messages.
    pub(crate) fn text(&self) -> String {
        match *self {
            Self::Captures => "real captures".to_owned(),
            Self::Cases => "captures of reported bugs".to_owned(),
            Self::Engine(name, _) => format!("the {name} engine"),
            Self::Right(name, _) => format!("the right to {name}"),
            Self::Library(..) | Self::Root | Self::Tool(_) => self.name().to_owned(),
        }
    }
}

/// The folder of real captures beside the checkout, if it exists.
#[must_use]
pub fn captures_folder() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = root.join("../shared/captures");
    folder.join("truth").is_dir().then_some(folder)
}

/// The folder of captures of reported bugs beside the checkout, if it exists.
#[must_use]
pub fn cases_folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases");
    folder.is_dir().then_some(folder)
}

/// The path of a shared library in an architecture's folder below `/usr/lib`.
#[must_use]
pub fn library(name: &str) -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?;
    let paths = folders.flatten().map(|entry| entry.path().join(name));
    paths.into_iter().find(|path| path.exists())
}

fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    // Both the real and the effective user must be root.
    line.is_some_and(|ids| ids.split_whitespace().nth(1) == Some("0"))
}

fn is_program(name: &str) -> bool {
    if name.contains('/') {
        return Path::new(name).is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_name_and_by_path() {
        assert!(Need::Tool("sh").is_met());
        assert!(Need::Tool("/bin/sh").is_met());
        assert!(!Need::Tool("no-such-program").is_met());
        assert!(!Need::Tool("/bin/no-such-program").is_met());
    }

    #[test]
    fn needs_are_named_for_people_and_for_lists() {
        let xdp = Need::Engine("xdp", false);
        assert_eq!((xdp.name(), xdp.is_met()), ("xdp", false));
        assert_eq!(Need::Tool("/opt/bin/goflow2").name(), "goflow2");
        assert_eq!(Need::Right("mount", true).text(), "the right to mount");
    }
}
