// SPDX-License-Identifier: Apache-2.0
//! The rules of `CONTRIBUTING.md` for sources that no lint checks.

use turboflow_house::{Source, sources};

const LICENCE: &str = "SPDX-License-Identifier: Apache-2.0";

/// Maximum lines of a file, not counting the test module at the bottom of a product file.
const MAX_LINES: usize = 600;

/// Names that say nothing on their own.
const EMPTY_NAMES: [&str; 13] = [
    "common", "data", "do", "handle", "helper", "helpers", "info", "item", "manage", "process",
    "stuff", "util", "utils",
];

/// Keywords before a name that is visible elsewhere.
const INTRODUCTIONS: [&str; 9] = [
    "const ",
    "enum ",
    "fn ",
    "macro_rules! ",
    "mod ",
    "static ",
    "struct ",
    "trait ",
    "type ",
];

/// Rooms that may read a clock.
const CLOCK_ROOMS: [&str; 8] = [
    "crates/capture/",
    "crates/run/",
    "apps/sql/src/dashboard.rs",
    "apps/turboflow/",
    "bench/parquet/",
    "lab/bench/",
    "lab/evaluation/",
    "lab/testing/",
];

/// Rooms without input and output: packets, records and rules are plain values there.
const INNER_ROOMS: [&str; 7] = [
    "crates/record/",
    "crates/merge/",
    "crates/packet/",
    "apps/plan/",
    "apps/bridge/src/rules/",
    "crates/aggregate/",
    "engines/software/",
];

/// Interfaces to the outside that inner rooms must not use.
const OUTER_THINGS: [&str; 12] = [
    "std::fs",
    "std::io",
    "std::process",
    "std::thread",
    "std::env",
    "TcpStream",
    "UdpSocket",
    "print!",
    "println!",
    "eprintln!",
    "log::",
    "tracing::",
];

fn rust() -> Vec<Source> {
    let sources = sources(&[".rs"]);
    assert!(sources.len() > 100, "the tree is complete");
    sources
}

/// Rust that is part of the product.
fn product() -> impl Iterator<Item = Source> {
    rust()
        .into_iter()
        .filter(|source| !source.is_test() && source.path.contains("/src/"))
}

fn none(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn every_source_names_its_licence_first() {
    let all = sources(&[".rs", ".py", ".sh", "Makefile", ".ci/run"]);
    let unnamed = all.iter().filter(|source| {
        let mut lines = source
            .text
            .lines()
            .skip_while(|line| line.starts_with("#!/"));
        !lines.next().is_some_and(|line| line.ends_with(LICENCE))
    });
    none(
        unnamed
            .map(|source| format!("{}: begins without `{LICENCE}`", source.path))
            .collect(),
    );
}

#[test]
fn no_file_outgrows_its_subject() {
    let mut complaints = Vec::new();
    for source in sources(&[".rs", ".py", ".sh"]) {
        // In a file of tests, all lines count.
        let lines = match source.is_test() {
            true => source.text.lines().count(),
            false => source.product_lines().count(),
        };
        if lines > MAX_LINES {
            complaints.push(format!(
                "{}: {lines} lines, at most {MAX_LINES}",
                source.path
            ));
        }
    }
    none(complaints);
}

#[test]
fn no_name_is_meaningless() {
    let mut complaints = Vec::new();
    for source in rust() {
        let stem = source
            .path
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .trim_end_matches(".rs");
        if EMPTY_NAMES.contains(&stem) {
            complaints.push(format!("{}: the file's name says nothing", source.path));
        }
        for (number, line) in source.text.lines().enumerate() {
            for name in introduced(line) {
                // Iterators must define `Item`.
                let empty = EMPTY_NAMES.contains(&name.to_lowercase().as_str());
                if empty && name != "Item" {
                    let at = number + 1;
                    complaints.push(format!("{}:{at}: `{name}` says nothing", source.path));
                }
            }
        }
    }
    none(complaints);
}

/// The names that a line introduces.
fn introduced(line: &str) -> impl Iterator<Item = &str> {
    INTRODUCTIONS.into_iter().filter_map(move |introduction| {
        let (before, behind) = line.split_once(introduction)?;
        let own_word = before
            .chars()
            .next_back()
            .is_none_or(|c| !c.is_alphanumeric());
        let end = behind
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(behind.len());
        (own_word && !before.contains("//")).then_some(&behind[..end])
    })
}

#[test]
fn only_the_rim_reads_a_clock() {
    let mut complaints = Vec::new();
    for source in
        product().filter(|source| !CLOCK_ROOMS.iter().any(|room| source.path.starts_with(room)))
    {
        for (number, line) in source.code_lines() {
            if line.contains("Instant::now") || line.contains("SystemTime::now") {
                complaints.push(format!(
                    "{}:{number}: time is an argument here",
                    source.path
                ));
            }
        }
    }
    none(complaints);
}

#[test]
fn inner_rooms_touch_nothing_outside() {
    let mut complaints = Vec::new();
    for source in
        product().filter(|source| INNER_ROOMS.iter().any(|room| source.path.starts_with(room)))
    {
        for (number, line) in source.code_lines() {
            for thing in OUTER_THINGS {
                if line.contains(thing) {
                    complaints.push(format!(
                        "{}:{number}: `{thing}` in an inner room",
                        source.path
                    ));
                }
            }
        }
    }
    none(complaints);
}

#[test]
fn no_work_is_left_in_comments() {
    let mut complaints = Vec::new();
    for source in sources(&[".rs", ".py", ".sh"]) {
        // This file has to name the markers.
        if source.path == "house/tests/sources.rs" {
            continue;
        }
        for (number, line) in source.text.lines().enumerate() {
            let words = line.split(|c: char| !c.is_alphanumeric());
            if words
                .into_iter()
                .any(|word| matches!(word, "TODO" | "FIXME" | "XXX"))
            {
                complaints.push(format!(
                    "{}:{}: do it, or write it in docs/",
                    source.path,
                    number + 1
                ));
            }
        }
    }
    none(complaints);
}

#[test]
fn deviations_from_the_papers_are_in_the_paper_map() {
    let map = std::fs::read_to_string(turboflow_house::root().join("docs/paper-map.md"))
        .expect("docs/paper-map.md is there");
    let unlisted = product().filter(|source| {
        source.text.contains("Deviation:") && !map.contains(&format!("`{}`", source.path))
    });
    none(
        unlisted
            .map(|source| format!("{}: its `Deviation:` is not listed", source.path))
            .collect(),
    );
}
