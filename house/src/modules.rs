// SPDX-License-Identifier: Apache-2.0
//! Dependencies between the files of a crate, as far as the paths in their text show them, and
//! their cycles.

use std::collections::{BTreeMap, BTreeSet};

use crate::Source;

/// A module path from the root of its crate.
type Path = Vec<String>;

/// The files of one crate, by their module paths.
struct Modules<'a> {
    files: BTreeMap<Path, &'a Source>,
    /// Names that a module imports, with their paths. A re-exported name resolves to its own file.
    imports: BTreeMap<Path, BTreeMap<String, Path>>,
}

/// The dependency cycles between files, by the folder of the crate. A file alone is not a cycle.
#[must_use]
pub fn cycles(sources: &[Source]) -> BTreeMap<String, Vec<Vec<String>>> {
    let mut crates: BTreeMap<String, BTreeMap<Path, &Source>> = BTreeMap::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        if let Some((folder, inside)) = source.path.split_once("/src/") {
            let files = crates.entry(folder.to_owned()).or_default();
            files.insert(module_of(inside), source);
        }
    }
    let found = crates.into_iter().map(|(folder, files)| {
        let modules = Modules::new(files);
        (folder, modules.cycles())
    });
    found.filter(|(_, cycles)| !cycles.is_empty()).collect()
}

/// `a/b.rs` and `a/b/mod.rs` are `a::b`; `lib.rs` and `main.rs` are the root.
fn module_of(file: &str) -> Path {
    let stem = file.trim_end_matches(".rs");
    let mut path: Path = stem.split('/').map(str::to_owned).collect();
    let is_root = path.len() == 1 && matches!(stem, "lib" | "main");
    if is_root || path.last().is_some_and(|last| last == "mod") {
        path.pop();
    }
    path
}

impl<'a> Modules<'a> {
    fn new(files: BTreeMap<Path, &'a Source>) -> Self {
        let imports = BTreeMap::new();
        let mut modules = Self { files, imports };
        let all: Vec<(Path, &Source)> = modules
            .files
            .iter()
            .map(|(path, source)| (path.clone(), *source))
            .collect();
        for (module, source) in all {
            let mut names = BTreeMap::new();
            for (path, _) in paths_in_uses(&code_of(source)) {
                if let Some(path) = modules.absolute(&module, &path)
                    && let Some(name) = path.last()
                {
                    names.insert(name.clone(), path.clone());
                }
            }
            modules.imports.insert(module, names);
        }
        modules
    }

    /// Resolves a path written in a module to one from the root of the crate; `None` if it leads
    /// out of the crate.
    fn absolute(&self, module: &[String], written: &[String]) -> Option<Path> {
        let mut path: Path = module.to_vec();
        let mut rest = written;
        match rest.first()?.as_str() {
            "crate" => {
                path.clear();
                rest = &rest[1..];
            }
            "self" => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|word| word == "super") {
                    path.pop()?;
                    rest = &rest[1..];
                }
            }
            child => {
                path.push(child.to_owned());
                // Any other path begins with the name of a crate.
                self.files.contains_key(&path).then_some(())?;
                path.pop();
            }
        }
        // `super` and `crate` alone precede a brace, whose paths are resolved separately.
        (!rest.is_empty()).then_some(())?;
        path.extend(rest.iter().cloned());
        Some(path)
    }

    /// The module whose file defines the name of a path from the root.
    fn home_of(&self, path: &[String], depth: usize) -> Option<Path> {
        let known = (0..=path.len()).rev().find(|length| {
            let module = &path[..*length];
            self.files.contains_key(module)
        })?;
        let (module, rest) = path.split_at(known);
        if let Some(name) = rest.first()
            && depth < 8
            && let Some(from) = self
                .imports
                .get(module)
                .and_then(|imports| imports.get(name))
            && from != path
        {
            return self.home_of(from, depth + 1);
        }
        Some(module.to_vec())
    }

    /// The modules that each module uses.
    fn edges(&self) -> BTreeMap<&Path, BTreeSet<Path>> {
        let known = self.files.iter().map(|(module, source)| {
            let code = code_of(source);
            // A re-export of a name is not a use of its module.
            let used = paths_in_uses(&code).into_iter();
            let used = used.filter(|(_, is_public)| !is_public);
            let written = used.map(|(path, _)| path).chain(paths_in(&code));
            let known = written.filter_map(|path| {
                let path = self.absolute(module, &path)?;
                self.home_of(&path, 0)
            });
            (module, known.filter(|known| known != module).collect())
        });
        known.collect()
    }

    fn cycles(&self) -> Vec<Vec<String>> {
        let edges = self.edges();
        // The transitive closure, iterated until it does not grow.
        let mut reached = edges.clone();
        loop {
            let before: usize = reached.values().map(BTreeSet::len).sum();
            for module in self.files.keys() {
                let further: BTreeSet<Path> = reached[module]
                    .iter()
                    .filter_map(|known| reached.get(known))
                    .flatten()
                    .cloned()
                    .collect();
                if let Some(own) = reached.get_mut(module) {
                    own.extend(further);
                }
            }
            if reached.values().map(BTreeSet::len).sum::<usize>() == before {
                break;
            }
        }
        let mut cycles = BTreeSet::new();
        for (module, from_it) in &reached {
            let back = |other: &&Path| reached.get(*other).is_some_and(|to| to.contains(*module));
            let mut cycle: Vec<String> = from_it
                .iter()
                .filter(|other| other == module || back(other))
                .map(|other| self.files[other].path.clone())
                .collect();
            cycle.sort();
            if cycle.len() > 1 {
                cycles.insert(cycle);
            }
        }
        cycles.into_iter().collect()
    }
}

/// The text of a file without comments and its test module.
fn code_of(source: &Source) -> String {
    let lines = source.code_lines().map(|(_, line)| line);
    let code = lines.map(|line| line.split(" // ").next().unwrap_or(line));
    code.collect::<Vec<_>>().join("\n")
}

/// The full paths named by `use` declarations, and whether each is re-exported.
fn paths_in_uses(code: &str) -> Vec<(Path, bool)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("use ") {
        let before = code[..at].rsplit('\n').next().unwrap_or_default().trim();
        let is_declaration = before.is_empty() || before.starts_with("pub");
        let tree = code[at + 4..].split(';').next().unwrap_or_default();
        if is_declaration {
            let mut paths = Vec::new();
            unfold(&[], tree, &mut paths);
            let is_public = !before.is_empty();
            found.extend(paths.into_iter().map(|path| (path, is_public)));
        }
    }
    found
}

/// `a::{b, c::d}` is `a::b` and `a::c::d`.
fn unfold(before: &[String], tree: &str, paths: &mut Vec<Path>) {
    let tree = tree.trim();
    if let Some((head, rest)) = tree.split_once('{') {
        let mut path = before.to_vec();
        path.extend(words_of(head));
        let inside = rest.rsplit_once('}').map_or(rest, |(inside, _)| inside);
        let (mut depth, mut begin) = (0, 0);
        for (at, letter) in inside.char_indices() {
            match letter {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    unfold(&path, &inside[begin..at], paths);
                    begin = at + 1;
                }
                _ => {}
            }
        }
        unfold(&path, &inside[begin..], paths);
    } else if !tree.is_empty() {
        let name = tree.split(" as ").next().unwrap_or(tree);
        // The last word of `a::{self, b}` is `a` itself.
        let own = words_of(name).filter(|word| word != "self" || before.is_empty());
        paths.push(before.iter().cloned().chain(own).collect());
    }
}

fn words_of(path: &str) -> impl Iterator<Item = String> {
    path.split("::")
        .map(|word| word.trim().to_owned())
        .filter(|word| !word.is_empty() && word != "*")
        .collect::<Vec<_>>()
        .into_iter()
}

/// Paths in expressions that begin with `crate`, `self` or `super`.
fn paths_in(code: &str) -> Vec<Path> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':');
    let words = code.split(|c: char| !is_part(c));
    let paths = words.filter(|word| {
        ["crate::", "self::", "super::"]
            .iter()
            .any(|start| word.starts_with(start))
    });
    paths.map(|path| words_of(path).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    fn found(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let sources: Vec<Source> = files
            .iter()
            .map(|(path, text)| source(path, text))
            .collect();
        let mut cycles = cycles(&sources);
        assert!(cycles.len() <= 1);
        cycles.remove("crates/x").unwrap_or_default()
    }

    #[test]
    fn files_that_use_each_other_are_a_cycle() {
        let files = [
            ("crates/x/src/lib.rs", "mod a;\nmod b;\nmod c;"),
            ("crates/x/src/a.rs", "use crate::b::{B, Other as O};"),
            ("crates/x/src/b.rs", "fn f() {\n    super::a::g();\n}"),
            ("crates/x/src/c.rs", "use crate::{a::A, b::B};"),
        ];
        let cycle = ["crates/x/src/a.rs", "crates/x/src/b.rs"];
        assert_eq!(found(&files), [cycle]);
    }

    #[test]
    fn a_re_exported_name_belongs_to_its_own_file() {
        let files = [
            (
                "crates/x/src/lib.rs",
                "mod a;\nmod b;\npub use a::A;\npub use b::{B};",
            ),
            ("crates/x/src/a.rs", "use crate::B;"),
            ("crates/x/src/b.rs", "use std::fmt;"),
        ];
        assert!(found(&files).is_empty());
        let mut back = files;
        back[2].1 = "use crate::A;";
        assert_eq!(found(&back).len(), 1);
    }

    #[test]
    fn comments_and_other_crates_are_no_dependencies() {
        let files = [
            ("crates/x/src/lib.rs", "mod a;\nmod b;"),
            ("crates/x/src/a.rs", "use crate::b::B;"),
            ("crates/x/src/b.rs", "// crate::a::A\nuse other::a::A;"),
        ];
        assert!(found(&files).is_empty());
    }
}
