// SPDX-License-Identifier: Apache-2.0
//! Reads a configuration file into a [`RunConfig`]. Errors name the line and what to write instead.
//!
//! Older files without sections are accepted. Each old key is first moved into its section, and its
//! new name is reported.

mod old;
mod places;

use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use toml::de::{DeTable, DeValue, Deserializer};
use toml::{Spanned, de};
use turboflow_run::RunConfig;

use crate::engines::{self, EngineKind, EngineOption};
use crate::keys::{Key, OUTPUT, header, is_section, nearest, sections};
use places::Places;

/// Examples in the errors for a missing source or output.
const INTERFACES: &str = "interfaces = [\"eth0\"] in [source]";
const CPU_PORTS: &str = "cpu-ports = [\"veth1\"] in [source]";
const OUTPUTS: &str = "[[output]] and, below it, to = \"flows-%Y%m%dT%H%M%S.parquet\"";

/// A configuration, and notes about it.
#[derive(Debug, PartialEq)]
pub(super) struct Read {
    pub(super) run: RunConfig,
    /// Old keys: the line of each, and its new name.
    pub(super) renamed: Vec<(usize, String)>,
}

/// An error in a configuration, with its line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileError {
    /// Counted from 1. `None` if something is missing.
    line: Option<usize>,
    what: String,
}

impl FileError {
    /// The error message with the name of the file.
    pub(super) fn in_file(self, path: &Path) -> anyhow::Error {
        let (name, what) = (path.display(), self.what);
        match self.line {
            Some(line) => anyhow::anyhow!("{name}, line {line}: {what}"),
            None => anyhow::anyhow!("{name}: {what}"),
        }
    }

    const fn missing(what: String) -> Self {
        Self { line: None, what }
    }
}

/// The text of the file, for finding line numbers.
#[derive(Clone, Copy)]
struct Source<'a>(&'a str);

impl Source<'_> {
    fn line(self, span: &Range<usize>) -> usize {
        let before = &self.0.as_bytes()[..span.start.min(self.0.len())];
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }

    fn wrong(self, span: &Range<usize>, what: String) -> FileError {
        FileError {
            line: Some(self.line(span)),
            what,
        }
    }
}

/// Reads a configuration.
pub(super) fn parse(text: &str) -> Result<Read, FileError> {
    let source = Source(text);
    let mut root = DeTable::parse(text).map_err(|error| {
        let what = error.message().replace('\n', ", ");
        source.wrong(&error.span().unwrap_or_default(), what)
    })?;
    let old = old::take(source, root.get_mut())?;
    check_names(source, root.get_ref())?;
    let mut places = Places::of(root.get_ref());
    let renamed = old::put(source, old, root.get_mut(), &mut places)?;
    let run = understood(source, root, &places)?;
    if !run.goes_on() {
        return Err(without_source(source, &run, &places));
    }
    if run.outputs.is_empty() {
        let what = format!("the section [[{OUTPUT}]] is missing; write for example {OUTPUTS}");
        return Err(FileError::missing(what));
    }
    Ok(Read { run, renamed })
}

/// The error for a run without a source: no interfaces, no CPU ports, or no addresses to listen at.
fn without_source(source: Source<'_>, run: &RunConfig, places: &Places) -> FileError {
    let kind = engines::kind_of(run).ok();
    let (key, example) = match kind.and_then(|kind| kind.listen_option()) {
        Some(option) => {
            let (key, example) = (Key::Of(option), option.example);
            let example = format!("{} = [{example}] in {}", key.name(), key.header());
            (key, example)
        }
        None if kind.is_some_and(|kind| kind.has_cpu_ports() && !kind.meters_interfaces()) => {
            (Key::CpuPorts, CPU_PORTS.to_owned())
        }
        None => (Key::Interfaces, INTERFACES.to_owned()),
    };
    match places.line_of(source, key) {
        Some((line, name)) => FileError {
            line: Some(line),
            what: format!("`{name}` is empty; write for example {example}"),
        },
        None => FileError::missing(format!(
            "the key {} is missing; write for example {example}",
            key.in_file()
        )),
    }
}

/// Refuses unknown sections and keys.
fn check_names(source: Source<'_>, root: &DeTable<'_>) -> Result<(), FileError> {
    let mut sections: Vec<_> = root.iter().collect();
    sections.sort_by_key(|(name, _)| name.span().start);
    for (name, value) in sections {
        let at = |what| source.wrong(&name.span(), what);
        let name = name.get_ref().as_ref();
        match (name, value.get_ref()) {
            (OUTPUT, DeValue::Array(outputs)) => {
                for output in outputs {
                    let DeValue::Table(keys) = output.get_ref() else {
                        return Err(at(format!("`{OUTPUT}` is a section: write {OUTPUTS}")));
                    };
                    check_keys(source, OUTPUT, keys)?;
                    if !keys.contains_key(Key::To.name()) {
                        let what = format!("[[{OUTPUT}]] has no `to`; write for example {OUTPUTS}");
                        return Err(source.wrong(&output.span(), what));
                    }
                }
            }
            (OUTPUT, _) => {
                return Err(at(format!(
                    "`{OUTPUT}` is a list of sections: write {OUTPUTS}"
                )));
            }
            (section, DeValue::Table(keys)) if is_section(section) => {
                check_keys(source, section, keys)?;
            }
            (section, _) if is_section(section) => {
                return Err(at(format!("`{section}` is a section: write [{section}]")));
            }
            (name, _) => {
                return Err(at(format!(
                    "unknown key `{name}`; {}",
                    suggestion(None, name)
                )));
            }
        }
    }
    Ok(())
}

fn check_keys(source: Source<'_>, section: &str, keys: &DeTable<'_>) -> Result<(), FileError> {
    let mut entries: Vec<_> = keys.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    for (name, value) in entries {
        let span = name.span();
        let name = name.get_ref().as_ref();
        let inner = format!("{section}.{name}");
        match value.get_ref() {
            DeValue::Table(keys) if is_section(&inner) => {
                check_keys(source, &inner, keys)?;
            }
            _ if Key::of(section).any(|key| key.name() == name) => {}
            _ => {
                let what = format!(
                    "unknown key `{name}` in {}; {}",
                    header(section),
                    suggestion(Some(section), name)
                );
                return Err(source.wrong(&span, what));
            }
        }
    }
    Ok(())
}

/// A suggestion for an unknown name.
fn suggestion(section: Option<&str>, name: &str) -> String {
    let here = || Key::of(section.unwrap_or_default()).map(Key::name);
    let sections = sections().filter(|_| section.is_none());
    let elsewhere = Key::all().find(|key| key.name() == name);
    let flags = Key::all().map(Key::flag);
    if let Some(near) = nearest(name, here()) {
        return format!("did you mean `{near}`?");
    }
    if let Some(key) = elsewhere {
        return format!("did you mean {}?", key.in_file());
    }
    match nearest(name, flags.chain(sections)) {
        Some(near) => match Key::from_flag(near) {
            Some(key) => format!("did you mean {}?", key.in_file()),
            None => format!("did you mean {}?", header(near)),
        },
        None => "`turboflow run --print-config` prints all keys".to_owned(),
    }
}

/// Parses the values into their types.
fn understood(
    source: Source<'_>,
    root: Spanned<DeTable<'_>>,
    places: &Places,
) -> Result<RunConfig, FileError> {
    let wrong = |error: &de::Error| {
        let span = error.span().unwrap_or_default();
        let what = plain(error.message());
        match places.name_at(&span) {
            Some(name) => source.wrong(&span, format!("`{name}`: {what}")),
            None => source.wrong(&span, what),
        }
    };
    let engine = root.get_ref().get("engine").map(|engine| engine.get_ref());
    if let Some(DeValue::Table(section)) = engine {
        for engine in engines::all() {
            if let Some(options) = section.get(engine.abilities().name)
                && let DeValue::Table(table) = options.get_ref()
            {
                // The run keeps an engine's options as text, but line numbers are known only here.
                let table = Spanned::new(options.span(), table.clone());
                if let Some(written) = engine.written() {
                    written.check(table).map_err(|error| wrong(&error))?;
                }
            }
        }
    }
    let mut run =
        RunConfig::deserialize(Deserializer::from(root)).map_err(|error| wrong(&error))?;
    let in_words = |error: anyhow::Error| FileError {
        line: places.line_of(source, Key::Engine).map(|(line, _)| line),
        what: error.to_string(),
    };
    engines::bridge::settle(&mut run).map_err(|error| FileError::missing(error.to_string()))?;
    let kind = engines::kind_of(&run).map_err(in_words)?;
    if !kind.meters_live() {
        let name = kind.abilities().name;
        let what =
            format!("engine `{name}` is for `turboflow record`: a service meters live traffic");
        return Err(in_words(anyhow::Error::msg(what)));
    }
    refuse_options_of_captures(source, &run, kind, places)?;
    for written in engines::all().filter_map(|engine| engine.written()) {
        written.normalise(&mut run.engine).map_err(in_words)?;
    }
    Ok(run)
}

/// Refuses options with which an engine meters captures. Those that name files are refused later.
fn refuse_options_of_captures(
    source: Source<'_>,
    run: &RunConfig,
    kind: &dyn EngineKind,
    places: &Places,
) -> Result<(), FileError> {
    let mut options = kind.options().iter().copied();
    let given = run.engine.options.get(kind.abilities().name);
    let is_given = |option: &EngineOption| given.is_some_and(|its| its.contains_key(option.name));
    let is_refused = |option: &&'static EngineOption| {
        let is_elsewhere = kind.file_options().contains(option) || engines::is_of_services(option);
        is_given(option) && !is_elsewhere
    };
    let Some(option) = options.find(is_refused) else {
        return Ok(());
    };
    let key = Key::Of(option);
    Err(FileError {
        line: places.line_of(source, key).map(|(line, _)| line),
        what: format!(
            "{} is for `turboflow record`: a service meters live traffic",
            key.in_file()
        ),
    })
}

/// Rewrites messages of serde in plain words.
fn plain(message: &str) -> String {
    let first = message.lines().next().unwrap_or_default();
    first
        .replace("invalid type: ", "")
        .replace("invalid value: ", "")
        .replace("unknown variant", "there is no")
        .replace("expected a boolean", "expected true or false")
        .replace("expected u16", "write a number from 0 to 65535")
        .replace("expected u8", "write a number from 0 to 255")
}

#[cfg(test)]
mod tests;
