// SPDX-License-Identifier: Apache-2.0
//! Documents keep their promises: links resolve, named files exist, and shown commands work.

use std::collections::BTreeSet;
use std::path::Path;

use turboflow_house::{Source, root, sources};

/// Folders at the root. A path in a document that begins with one names a file of the project.
const FOLDERS: [&str; 13] = [
    ".ci/",
    "apps/",
    "bench/",
    "contrib/",
    "crates/",
    "docs/",
    "engines/",
    "fuzz/",
    "house/",
    "lab/",
    "packaging/",
    "samples/",
    "scripts/",
];

/// Paths of generated files.
const MADE: [&str; 4] = [
    "bench/runs/",
    "fuzz/artifacts",
    "fuzz/corpus",
    "fuzz/target",
];

/// Maximum number of targets that `make` lists.
const MAX_TARGETS: usize = 18;

fn documents() -> Vec<Source> {
    let documents = sources(&[".md"]);
    assert!(
        documents
            .iter()
            .any(|document| document.path == "README.md")
    );
    documents
}

fn none(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// Lines outside of code blocks, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        (!inside && !fence).then_some((index + 1, line))
    })
}

/// The targets of the links in a line.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("](")
        .filter_map(|(at, _)| line[at + 2..].split(')').next())
}

/// The texts between backticks in a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The anchor that Markdown renderers give a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter(|(_, line)| line.starts_with('#'));
    headings
        .map(|(_, line)| anchor(line.trim_start_matches('#')))
        .collect()
}

fn complaint_of_link(document: &Source, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, wanted) = link.split_once('#').unwrap_or((link, ""));
    let folder = root()
        .join(&document.path)
        .parent()
        .map(Path::to_path_buf)?;
    let target = if path.is_empty() {
        root().join(&document.path)
    } else {
        folder.join(path)
    };
    if !target.exists() {
        return Some(format!("`{link}` leads nowhere"));
    }
    let text = std::fs::read_to_string(&target).unwrap_or_default();
    let found = wanted.is_empty() || anchors(&text).contains(wanted);
    (!found).then(|| format!("`{link}`: there is no such heading"))
}

#[test]
fn links_resolve() {
    let mut complaints = Vec::new();
    for document in documents() {
        for (number, line) in prose(&document.text) {
            let broken = links(line).filter_map(|link| complaint_of_link(&document, link));
            complaints.extend(broken.map(|what| format!("{}:{number}: {what}", document.path)));
        }
    }
    none(complaints);
}

#[test]
fn files_named_in_documents_exist() {
    let mut complaints = Vec::new();
    for document in documents() {
        for (number, line) in prose(&document.text) {
            for path in quoted(line).filter(|path| FOLDERS.iter().any(|at| path.starts_with(at))) {
                let pattern = path.contains(|c: char| "*<>{}$ ".contains(c));
                let made = MADE.iter().any(|made| path.starts_with(made));
                if !pattern && !made && !root().join(path).exists() {
                    complaints.push(format!("{}:{number}: there is no `{path}`", document.path));
                }
            }
        }
    }
    none(complaints);
}

/// The Makefile's targets; with `explained`, only those that `make help` lists.
fn make_targets(explained: bool) -> BTreeSet<String> {
    let makefile = std::fs::read_to_string(root().join("Makefile")).expect("there is a Makefile");
    let rules = makefile.lines().filter(|line| {
        line.starts_with(|c: char| c.is_ascii_lowercase()) && (!explained || line.contains("## "))
    });
    rules
        .filter_map(|line| line.split_once(':'))
        .filter(|(_, rest)| !rest.starts_with('='))
        .flat_map(|(targets, _)| targets.split_whitespace())
        .map(str::to_owned)
        .collect()
}

#[test]
fn make_lists_a_few_documented_targets() {
    let targets = make_targets(true);
    assert!(targets.len() <= MAX_TARGETS, "{targets:?}");
    for wanted in ["run", "test", "bench", "bench-files", "fuzz"] {
        assert!(targets.contains(wanted), "no `make {wanted}`");
    }
}

#[test]
fn every_make_command_in_documents_works() {
    let targets = make_targets(false);
    let mut complaints = Vec::new();
    for document in documents() {
        for (number, line) in document.text.lines().enumerate() {
            let commands = quoted(line).chain([line.trim_start_matches([' ', '$'])]);
            for command in commands.filter_map(|text| text.strip_prefix("make ")) {
                let target = command.split_whitespace().next().unwrap_or_default();
                let is_word = target.chars().all(|c| c.is_ascii_lowercase() || c == '-');
                let shown = line.contains('`')
                    || line.starts_with([' ', '$'])
                    || line == format!("make {command}");
                if is_word && shown && !targets.contains(target) {
                    let at = number + 1;
                    complaints.push(format!("{}:{at}: no `make {target}`", document.path));
                }
            }
        }
    }
    none(complaints);
}

/// The programs in documents, and the folders of their command-line definitions.
const PROGRAMS: [(&str, &str); 2] = [
    ("turboflow ", "apps/turboflow/src/"),
    ("turboflow-lab ", "lab/program/src/"),
];

/// The concatenated sources of a program.
fn program(folder: &str) -> String {
    let text: String = sources(&[".rs"])
        .into_iter()
        .filter(|source| source.path.starts_with(folder))
        .map(|source| source.text)
        .collect();
    assert!(!text.is_empty(), "{folder} has no sources");
    text
}

/// Whether the program's sources declare this long option, as far as their text shows.
fn declares(program: &str, option: &str) -> bool {
    let field = option.replace('-', "_");
    program.contains(&format!("\"{option}\""))
        || program.contains(&format!(" {field}:"))
        || matches!(option, "help" | "version")
}

#[test]
fn every_option_in_documents_exists() {
    let mut complaints = Vec::new();
    for (name, folder) in PROGRAMS {
        let program = program(folder);
        for document in documents() {
            for (number, line) in document.text.lines().enumerate() {
                let Some((_, command)) = line.split_once(name) else {
                    continue;
                };
                // Other programs may follow in the pipe.
                let command = command.split(['|', '`', '#']).next().unwrap_or_default();
                for word in command
                    .split_whitespace()
                    .filter_map(|word| word.strip_prefix("--"))
                {
                    let option = word.split('=').next().unwrap_or_default();
                    let option = option.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
                    if !option.is_empty() && !declares(&program, option) {
                        let at = number + 1;
                        complaints.push(format!(
                            "{}:{at}: {name}has no option --{option}",
                            document.path
                        ));
                    }
                }
            }
        }
    }
    none(complaints);
}

/// Whether the program's command line has this command, as far as its text shows.
fn has_command(program: &str, command: &str) -> bool {
    let mut letters = command.chars();
    let variant: String = letters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .chain(letters)
        .collect();
    let declared = [format!("    {variant}("), format!("    {variant} {{")];
    command == "help" || declared.iter().any(|line| program.contains(line))
}

#[test]
fn every_command_in_documents_exists() {
    let mut complaints = Vec::new();
    for (name, folder) in PROGRAMS {
        let program = program(folder);
        let mut shown = 0;
        for document in documents() {
            for (number, line) in document.text.lines().enumerate() {
                let commands = quoted(line).chain([line.trim_start_matches([' ', '$'])]);
                for command in commands.filter_map(|text| text.strip_prefix(name)) {
                    let word = command.split_whitespace().next().unwrap_or_default();
                    let is_word = word.starts_with(|c: char| c.is_ascii_lowercase())
                        && word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
                    shown += usize::from(is_word);
                    if is_word && !has_command(&program, word) {
                        let at = number + 1;
                        complaints.push(format!("{}:{at}: no `{name}{word}`", document.path));
                    }
                }
            }
        }
        assert!(shown > 0, "no document shows a command of {name}");
    }
    none(complaints);
}

#[test]
fn every_fuzz_target_is_built() {
    let manifest = std::fs::read_to_string(root().join("fuzz/Cargo.toml")).expect("it is there");
    let targets = sources(&[".rs"]);
    let targets = targets
        .iter()
        .filter(|source| source.path.starts_with("fuzz/fuzz_targets/"));
    let unbuilt = targets.filter(|source| {
        let path = source.path.trim_start_matches("fuzz/");
        !manifest.contains(&format!("path = \"{path}\""))
    });
    none(
        unbuilt
            .map(|source| format!("{} is not in fuzz/Cargo.toml", source.path))
            .collect(),
    );
}
