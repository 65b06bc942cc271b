// SPDX-License-Identifier: Apache-2.0
//! Style of code and prose: the rules of `CONTRIBUTING.md` that can be counted.
//!
//! Some rules are younger than code that breaks them. Such a rule has a list of exceptions, which
//! must only shrink: the test fails on exceptions that are no longer needed.

use std::collections::{BTreeMap, BTreeSet};

use turboflow_house::{Source, cycles, sources};

/// Maximum lines of a function.
const MAX_FUNCTION_LINES: usize = 70;

/// Maximum columns of a comment line. `cargo fmt` keeps code within the same limit.
const MAX_COLUMNS: usize = 100;

/// Maximum number of files in a dependency cycle.
const MAX_CYCLE: usize = 4;

/// Rooms with larger cycles, and their sizes. This list must only shrink.
const LARGE_CYCLES: [(&str, usize); 1] = [("workload", 8)];

/// Rooms that may name command-line options: the programs and their own libraries.
const OPTION_ROOMS: [&str; 5] = ["dashboard", "evaluation", "program", "sql", "turboflow"];

/// Words that hide the subject of a sentence.
const BANNED: [&str; 8] = [
    "nobody",
    "somebody",
    "whoever",
    "whom",
    "the same of",
    "but for",
    "so often",
    "The same ",
];

/// Endings of the files with prose.
const PROSE: [&str; 12] = [
    ".rs", ".md", ".sh", ".h", ".c", ".sv", ".svh", ".py", ".p4", ".toml", "Makefile", ".ci/run",
];

/// Test files that may read a clock, because they measure a wait of another process or of the
/// system.
const CLOCKS_IN_TESTS: [&str; 2] = ["transport.rs", "brokers.rs"];

fn none(complaints: Vec<String>) {
    let count = complaints.len();
    assert!(
        complaints.is_empty(),
        "\n{}\n{count} in all\n",
        complaints.join("\n")
    );
}

fn product() -> impl Iterator<Item = Source> {
    sources(&[".rs"])
        .into_iter()
        .filter(|source| !source.is_test())
}

/// Compares counts by room with the allowed ones.
fn hold(found: &BTreeMap<String, usize>, allowed: &[(&str, usize)], what: &str) {
    let allowed: BTreeMap<&str, usize> = allowed.iter().copied().collect();
    let rooms: BTreeSet<&str> = found.keys().map(String::as_str).collect();
    let rooms = rooms.into_iter().chain(allowed.keys().copied());
    let wrong = rooms.filter_map(|room| {
        let found = found.get(room).copied().unwrap_or(0);
        let allowed = allowed.get(room).copied().unwrap_or(0);
        match found.cmp(&allowed) {
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some(format!("{room}: {found} {what}, not {allowed}")),
            std::cmp::Ordering::Less => Some(format!(
                "{room}: {found} {what}: write that in the list, which says {allowed}"
            )),
        }
    });
    let wrong: BTreeSet<String> = wrong.collect();
    none(wrong.into_iter().collect());
}

/// The functions of a file: name, first line, number of lines.
fn functions(source: &Source) -> Vec<(String, usize, usize)> {
    let lines: Vec<(usize, &str)> = source.product_lines().collect();
    let mut found = Vec::new();
    for (index, (number, line)) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else {
            continue;
        };
        // In `cargo fmt` style, a body ends at the indentation of its function.
        let indent = line.len() - line.trim_start().len();
        let is_end = |line: &str| {
            line.strip_prefix(&" ".repeat(indent))
                .is_some_and(|rest| rest.starts_with('}') || rest == ");")
        };
        let rest = lines[index..].iter();
        let end = match line.ends_with(['}', ';']) {
            true => 0,
            false => rest
                .skip(1)
                .position(|(_, line)| is_end(line))
                .map_or(0, |skipped| skipped + 1),
        };
        found.push((name.to_owned(), *number, end + 1));
    }
    found
}

fn function_name(line: &str) -> Option<&str> {
    let (before, behind) = line.split_once("fn ")?;
    let words = ["pub", "const", "async", "unsafe", "extern"];
    let is_introduction = before.split_whitespace().all(|word| {
        words.iter().any(|known| word.starts_with(known)) || word == "\"C\"" || word.ends_with(')')
    });
    let end = behind.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    (is_introduction && end > 0).then_some(&behind[..end])
}

#[test]
fn functions_are_short() {
    let mut complaints = Vec::new();
    for source in product() {
        for (name, number, lines) in functions(&source) {
            if lines > MAX_FUNCTION_LINES {
                complaints.push(format!(
                    "{}:{number}: `{name}` has {lines} lines, at most {MAX_FUNCTION_LINES}",
                    source.path
                ));
            }
        }
    }
    none(complaints);
}

#[test]
fn functions_are_measured_from_first_to_last_line() {
    let text = "pub(crate) const fn short() -> u8 { 1 }\n\
                impl A {\n    fn a(\n        b: u8,\n    ) -> u8 {\n        if b {\n        }\n    }\n}\n\
                trait B {\n    fn c(&self);\n}\n// a fn d is none\n";
    let source = Source {
        path: "crates/x/src/lib.rs".to_owned(),
        text: text.to_owned(),
    };
    let found = functions(&source);
    let found: Vec<_> = found
        .iter()
        .map(|(name, number, lines)| (name.as_str(), *number, *lines))
        .collect();
    assert_eq!(found, [("short", 1, 1), ("a", 3, 6), ("c", 11, 1)]);
}

#[test]
fn comments_are_no_wider_than_code() {
    let mut complaints = Vec::new();
    for source in sources(&[".rs"]) {
        for (index, line) in source.text.lines().enumerate() {
            let columns = line.chars().count();
            let comment = line
                .trim_start()
                .trim_start_matches(['/', '!'])
                .trim_start();
            // Tables and drawings may be wider.
            let is_drawn =
                comment.starts_with(['|', '+']) || comment.contains("   ") || comment.contains('─');
            let is_comment = line.trim_start().starts_with("//");
            if columns > MAX_COLUMNS && is_comment && !is_drawn {
                complaints.push(format!(
                    "{}:{}: {columns} columns, at most {MAX_COLUMNS}",
                    source.path,
                    index + 1
                ));
            }
        }
    }
    none(complaints);
}

#[test]
fn dependency_cycles_of_files_are_small() {
    let mut largest = BTreeMap::new();
    for (folder, cycles) in cycles(&sources(&[".rs"])) {
        let room = folder.rsplit('/').next().unwrap_or_default().to_owned();
        for cycle in cycles.iter().filter(|cycle| cycle.len() > MAX_CYCLE) {
            eprintln!("{} files in a cycle: {}", cycle.len(), cycle.join(", "));
            let size = largest.entry(room.clone()).or_insert(0);
            *size = cycle.len().max(*size);
        }
    }
    hold(&largest, &LARGE_CYCLES, "files in a cycle");
}

/// Whether a text names an option: two hyphens before a word, but not inside one.
fn names_option(text: &str) -> bool {
    text.match_indices("--").any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let behind = text[at + 2..].chars().next();
        before.is_none_or(|c| !c.is_alphanumeric() && c != '-')
            && behind.is_some_and(|c| c.is_ascii_lowercase())
    })
}

#[test]
fn libraries_name_no_option_of_the_program() {
    let mut complaints = Vec::new();
    for source in product().filter(|source| !OPTION_ROOMS.contains(&source.room())) {
        for (number, line) in source.code_lines() {
            // Rust has no operator of two hyphens, so they can only be in strings.
            if names_option(line) {
                complaints.push(format!("{}:{number}: {}", source.path, line.trim()));
            }
        }
    }
    none(complaints);
}

/// Whether a line contains these words as whole words.
fn has_words(line: &str, words: &str) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    line.match_indices(words).any(|(at, _)| {
        let behind = line[at + words.len()..].chars().next();
        let ends_itself = words.ends_with(' ');
        !is_letter(line[..at].chars().next_back()) && (ends_itself || !is_letter(behind))
    })
}

#[test]
fn prose_is_plain() {
    let mut complaints = Vec::new();
    for source in sources(&PROSE) {
        // This file has to name the words.
        let names_them = source.path.ends_with("house/tests/style.rs");
        if names_them {
            continue;
        }
        for (index, line) in source.text.lines().enumerate() {
            for words in BANNED.iter().filter(|words| has_words(line, words)) {
                complaints.push(format!(
                    "{}:{}: `{}`: {}",
                    source.path,
                    index + 1,
                    words.trim(),
                    line.trim()
                ));
            }
        }
    }
    none(complaints);
}

#[test]
fn only_whole_words_are_found() {
    assert!(has_words("told by whom it concerns", "whom"));
    assert!(!has_words("whomever", "whom"));
    assert!(has_words("/// The same for any closure", "The same "));
    assert!(!has_words("all of the same length", "The same "));
    assert!(names_option("leave out --max-flows"));
    assert!(!names_option("a -- b, i--j"));
}

/// Tests wait for an output or a state of another process, with `turboflow-testing`, but never for
/// time to pass.
#[test]
fn tests_do_not_sleep() {
    let mut complaints = Vec::new();
    let calls = ["thread::sleep", ".elapsed()", "Instant::now"];
    for source in sources(&[".rs"]) {
        let stem = source.path.rsplit('/').next().unwrap_or_default();
        let may = source.room() == "testing" || CLOCKS_IN_TESTS.contains(&stem);
        // This file has to name the calls.
        if !source.is_test() || may || source.room() == "house" {
            continue;
        }
        for (index, line) in source.text.lines().enumerate() {
            if calls.iter().any(|call| line.contains(call)) {
                complaints.push(format!("{}:{}: {line}", source.path, index + 1));
            }
        }
    }
    none(complaints);
}
