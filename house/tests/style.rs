// SPDX-License-Identifier: Apache-2.0
//! How code and prose read: the rules of `CONTRIBUTING.md` that can be counted.
//!
//! Some rules came when rooms broke them already. Each such rule has a list of what it does not hold
//! for yet, or of the rooms that it holds for. The first kind of list must only shrink, which the
//! test sees to: what is listed and keeps the rule has to go from the list. The second kind must
//! only grow.

use std::collections::{BTreeMap, BTreeSet};

use turboflow_house::{Source, circles, sources};

/// Lines of one function.
const MAX_FUNCTION_LINES: usize = 70;

/// Functions that are longer, and how long they are. This list must only shrink.
const LONG_FUNCTIONS: [(&str, &str, usize); 5] = [
    ("capture", "walk_section", 77),
    ("merge", "fill", 72),
    ("top", "lines", 102),
    ("turboflow", "ledger", 101),
    ("xdp", "load", 75),
];

/// Columns of a line with a comment; `cargo fmt` keeps code within as many.
const MAX_COLUMNS: usize = 100;

/// Rooms whose comments are no wider. This list must only grow, until it names all.
const NARROW_ROOMS: [&str; 3] = ["records", "run", "testing"];

/// Files that may know each other in a circle.
const MAX_CIRCLE: usize = 4;

/// Rooms with larger circles, and their sizes. This list must only shrink.
const LARGE_CIRCLES: [(&str, usize); 5] = [
    ("merge", 11),
    ("record", 5),
    ("run", 7),
    ("turboflow", 11),
    ("xdp", 7),
];

/// Rooms that may name the program's options: the program, and programs with options of their own.
const OPTION_ROOMS: [&str; 3] = ["evaluation", "program", "turboflow"];

/// Rooms that name options all the same, and in how many lines. This list must only shrink.
const NAMED_OPTIONS: [(&str, usize); 4] = [("plan", 2), ("query", 8), ("record", 1), ("top", 2)];

/// Words that hide who does what: each has a plainer sentence.
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

/// Rooms without such words. This list must only grow, until it names all.
const PLAIN_ROOMS: [&str; 3] = ["records", "run", "testing"];

/// Files of tests that look at a clock: what they measure, another process or the system waits.
const CLOCKS_IN_TESTS: [&str; 1] = ["transport.rs"];

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

/// Counts by room, held against a list of what is allowed for now.
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
        // As `cargo fmt` leaves it, a body ends where its function begins.
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
fn functions_fit_on_a_screen() {
    let mut complaints = Vec::new();
    let mut listed: BTreeSet<_> = LONG_FUNCTIONS.into_iter().collect();
    for source in product() {
        for (name, number, lines) in functions(&source) {
            let allowed = listed
                .iter()
                .find(|(room, listed, count)| {
                    *room == source.room() && *listed == name && *count == lines
                })
                .copied();
            if let Some(allowed) = allowed {
                listed.remove(&allowed);
            } else if lines > MAX_FUNCTION_LINES {
                complaints.push(format!(
                    "{}:{number}: `{name}` has {lines} lines, at most {MAX_FUNCTION_LINES}",
                    source.path
                ));
            }
        }
    }
    let gone = listed.into_iter();
    complaints.extend(gone.map(|(room, name, lines)| {
        format!("{room}: no `{name}` of {lines} lines: take it from the list")
    }));
    none(complaints);
}

#[test]
fn functions_are_measured_from_their_first_line_to_their_last() {
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

/// Every room that a list names is there.
fn rooms_are_there(rooms: &[&str]) {
    let all = sources(&[".rs", ".md", ".sh", ".h", ".c"]);
    let all: BTreeSet<&str> = all.iter().map(Source::room).collect();
    let unknown: Vec<_> = rooms.iter().filter(|room| !all.contains(*room)).collect();
    assert!(unknown.is_empty(), "no such rooms: {unknown:?}");
}

#[test]
fn comments_are_no_wider_than_code() {
    rooms_are_there(&NARROW_ROOMS);
    let mut complaints = Vec::new();
    for source in sources(&[".rs"]) {
        if !NARROW_ROOMS.contains(&source.room()) {
            continue;
        }
        for (index, line) in source.text.lines().enumerate() {
            let columns = line.chars().count();
            let comment = line
                .trim_start()
                .trim_start_matches(['/', '!'])
                .trim_start();
            // Tables and drawings are as wide as what they show.
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
fn files_know_each_other_in_small_circles_at_most() {
    let mut largest = BTreeMap::new();
    for (folder, circles) in circles(&sources(&[".rs"])) {
        let room = folder.rsplit('/').next().unwrap_or_default().to_owned();
        for circle in circles.iter().filter(|circle| circle.len() > MAX_CIRCLE) {
            eprintln!("{} files in a circle: {}", circle.len(), circle.join(", "));
            let size = largest.entry(room.clone()).or_insert(0);
            *size = circle.len().max(*size);
        }
    }
    hold(&largest, &LARGE_CIRCLES, "files in a circle");
}

/// The string literals of a line, as far as quotes tell.
fn strings(line: &str) -> impl Iterator<Item = &str> {
    line.split('"').skip(1).step_by(2)
}

/// Whether a text names an option: two hyphens and a word, not in the middle of one.
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
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for source in product().filter(|source| !OPTION_ROOMS.contains(&source.room())) {
        for (number, line) in source.code_lines() {
            // A string may go on from the line before, where its quotes are counted wrongly.
            if strings(line).any(names_option) || (!line.contains('"') && names_option(line)) {
                eprintln!("{}:{number}: {}", source.path, line.trim());
                *found.entry(source.room().to_owned()).or_default() += 1;
            }
        }
    }
    hold(&found, &NAMED_OPTIONS, "lines name an option");
}

/// Whether a word or a phrase stands in a line by itself.
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
    rooms_are_there(&PLAIN_ROOMS);
    let mut complaints = Vec::new();
    for source in sources(&[".rs", ".md", ".sh", ".h", ".c"]) {
        // This file has to name them.
        let names_them = source.path.ends_with("house/tests/style.rs");
        if !PLAIN_ROOMS.contains(&source.room()) || names_them {
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
fn words_are_found_by_themselves() {
    assert!(has_words("told by whom it concerns", "whom"));
    assert!(!has_words("whomever", "whom"));
    assert!(has_words("/// The same for any closure", "The same "));
    assert!(!has_words("all of the same length", "The same "));
    assert!(names_option("leave out --max-flows"));
    assert!(!names_option("a -- b, i--j"));
}

/// Tests wait for what another process says or does, by `turboflow-testing`, and never for time to
/// pass.
#[test]
fn tests_do_not_sleep() {
    let mut complaints = Vec::new();
    let calls = ["thread::sleep", ".elapsed()", "Instant::now"];
    for source in sources(&[".rs"]) {
        let stem = source.path.rsplit('/').next().unwrap_or_default();
        let may = source.room() == "testing" || CLOCKS_IN_TESTS.contains(&stem);
        // This file has to name them.
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
