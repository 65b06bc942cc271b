// SPDX-License-Identifier: Apache-2.0
//! Reports which tests were skipped, and why.

use std::fs::OpenOptions;
use std::io::Write;
use std::panic::Location;
use std::thread;

use crate::Need;

/// The environment variable that marks a CI run, in which a skipped test is a failure.
pub const CI: &str = "TURBOFLOW_CI";

/// The environment variable that lists needs which CI may lack on purpose, separated by commas.
pub const LEFT_OUT: &str = "TURBOFLOW_LEFT_OUT";

/// The environment variable with the path of a file, to which each skipped test adds a line.
pub const REPORT: &str = "TURBOFLOW_SKIPPED";

/// Whether a need of the test is missing. If so, the test is reported as skipped, and must return.
///
/// # Panics
/// In CI, unless [`LEFT_OUT`] lists the need.
#[track_caller]
#[must_use]
pub fn is_missing(needs: &[Need<'_>]) -> bool {
    report("SKIPPED", needs, Location::caller())
}

/// Like [`is_missing`], for a test that still checks something without the need.
///
/// # Panics
/// In CI, unless [`LEFT_OUT`] lists the need.
#[track_caller]
#[must_use]
pub fn is_missing_in_part(needs: &[Need<'_>]) -> bool {
    report("SKIPPED IN PART", needs, Location::caller())
}

fn report(what: &str, needs: &[Need<'_>], place: &Location<'_>) -> bool {
    let Some(need) = needs.iter().find(|need| !need.is_met()) else {
        return false;
    };
    let in_ci = std::env::var_os(CI).is_some();
    let left_out = std::env::var(LEFT_OUT).unwrap_or_default();
    assert!(
        !in_ci || is_listed(&left_out, need.name()),
        "needs {}, which CI has to have",
        need.text()
    );
    let line = format!("{what}: {}: needs {}\n", test_name(place), need.text());
    // libtest captures what the print macros write, so this writes to standard error directly.
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(path) = std::env::var_os(REPORT) {
        let file = OpenOptions::new().create(true).append(true).open(&path);
        // One write to a file opened for appending, so that lines of several processes do not mix.
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    true
}

/// Whether a comma-separated list contains a name.
fn is_listed(list: &str, name: &str) -> bool {
    list.split(',').any(|listed| listed.trim() == name)
}

/// The name of the test on this thread, prefixed with its crate.
fn test_name(place: &Location<'_>) -> String {
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    match thread::current().name() {
        // libtest does not name the thread with `--test-threads 1`, nor threads that tests start.
        None | Some("main") => format!("{package} {}:{}", place.file(), place.line()),
        Some(name) => format!("{package} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_match_whole_names() {
        assert!(is_listed("captures, xdp", "xdp"));
        assert!(!is_listed("captures,xdp", "captures,xdp"));
        assert!(!is_listed("captures", "capture"));
        assert!(!is_listed("", "xdp"));
    }

    #[test]
    fn a_met_need_is_not_missing() {
        assert!(!is_missing(&[]));
        assert!(!is_missing(&[Need::Tool("sh"), Need::Engine("xdp", true)]));
    }

    #[test]
    fn a_test_name_begins_with_its_crate() {
        let name = test_name(Location::caller());
        assert!(name.starts_with("turboflow-testing "), "{name}");
    }
}
