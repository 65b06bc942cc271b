// SPDX-License-Identifier: Apache-2.0
//! Tells which tests were skipped and why.

use std::fs::OpenOptions;
use std::io::Write;
use std::panic::Location;
use std::thread;

use crate::Need;

/// The environment variable that is set in CI, where no test may be skipped.
pub const CI: &str = "TURBOFLOW_CI";

/// The environment variable with the names of the needs that may be missing in CI all the same,
/// separated by commas: what the environment leaves out on purpose.
pub const LEFT_OUT: &str = "TURBOFLOW_LEFT_OUT";

/// The environment variable with the path of the file to which a line for each skipped test is
/// added.
pub const REPORT: &str = "TURBOFLOW_SKIPPED";

/// Whether one of the needs of a test is missing: the test is then reported as skipped, and ends.
///
/// # Panics
/// In CI, unless the need is left out there.
#[track_caller]
#[must_use]
pub fn is_missing(needs: &[Need<'_>]) -> bool {
    report("SKIPPED", needs, Location::caller())
}

/// As [`is_missing`], for a test that checks less where a need is missing, but still something.
///
/// # Panics
/// In CI, unless the need is left out there.
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
    // Past libtest, which captures what the print macros write.
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(path) = std::env::var_os(REPORT) {
        let file = OpenOptions::new().create(true).append(true).open(&path);
        // One write to a file opened for appending: lines of several processes do not mix.
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    true
}

/// Whether a list with commas has a name.
fn is_listed(list: &str, name: &str) -> bool {
    list.split(',').any(|listed| listed.trim() == name)
}

/// The test that runs on this thread, behind the name of its crate.
fn test_name(place: &Location<'_>) -> String {
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    match thread::current().name() {
        // With one thread for all tests, and on threads that tests start, libtest names none.
        None | Some("main") => format!("{package} {}:{}", place.file(), place.line()),
        Some(name) => format!("{package} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_whole_names() {
        assert!(is_listed("captures, xdp", "xdp"));
        assert!(!is_listed("captures,xdp", "captures,xdp"));
        assert!(!is_listed("captures", "capture"));
        assert!(!is_listed("", "xdp"));
    }

    #[test]
    fn what_is_here_is_not_missing() {
        assert!(!is_missing(&[]));
        assert!(!is_missing(&[Need::Tool("sh"), Need::Engine("xdp", true)]));
    }

    #[test]
    fn a_test_is_named_behind_its_crate() {
        let name = test_name(Location::caller());
        assert!(name.starts_with("turboflow-testing "), "{name}");
    }
}
