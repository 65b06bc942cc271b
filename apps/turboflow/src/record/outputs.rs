// SPDX-License-Identifier: Apache-2.0
//! Creates all outputs, or none. A new kind of output gets a branch in
//! `OutputCreator::plain_output` and in `check_target`.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use turboflow_formats::{
    DEFINITION_KEY, FileOptions, FlowWriter, Format, TextOptions, WriteOptions, create, identify,
    left_over_of, refuse_link, to_writer,
};
use turboflow_record::{Column, Definition};
use turboflow_run::{Output, OutputConfig, RunConfig};
use turboflow_transport::{Content, Target};

use super::output_keys::OutputKeys;
use super::settings::Settings;
use super::{collectors, identity, kafka, probe, rotation, sends, shared};
use crate::anonymize;
use crate::engines::Engine;
use crate::keys::{Key, is_from_file};
use crate::unfinished_file::{
    UnfinishedFile, directory_of, file_identity, say_each_left_over, say_left_over,
};
use crate::{pipe, signals};

/// All outputs of a run.
pub(super) struct Outputs {
    pub(super) records: Vec<Output>,
    pub(super) ledger: Option<UnfinishedFile>,
    pub(super) unparsed: Option<UnfinishedFile>,
}

impl Outputs {
    /// Creates the outputs. If one fails, nothing is left behind.
    pub(super) fn create(
        run: &RunConfig,
        settings: &Settings,
        keys: &OutputKeys,
    ) -> anyhow::Result<Self> {
        let creator = OutputCreator {
            run,
            settings,
            keys,
        };
        let records = run.outputs.iter().map(|output| creator.output(output));
        let records = records.collect::<anyhow::Result<_>>()?;
        let files = file_options(run);
        let create = |path| UnfinishedFile::create(path, files, creator.pipe_patience());
        let ledger = run.service.ledger.as_deref().map(create).transpose()?;
        let unparsed = settings.engine.unparsed_to();
        let unparsed = unparsed.map(create).transpose()?;
        Ok(Self {
            records,
            ledger,
            unparsed,
        })
    }
}

/// Creates outputs one at a time.
pub(super) struct OutputCreator<'a> {
    pub(super) run: &'a RunConfig,
    pub(super) settings: &'a Settings,
    pub(super) keys: &'a OutputKeys,
}

impl OutputCreator<'_> {
    fn options(&self, output: &OutputConfig) -> WriteOptions {
        WriteOptions {
            parquet_types: output.parquet_types,
            metadata: metadata(self.settings),
            wire: collectors::wire_options(output, self.settings),
            files: file_options(self.run),
            text: TextOptions {
                time: output.text_time,
                names: output.names,
            },
            ..WriteOptions::default()
        }
    }

    pub(super) fn output(&self, output: &OutputConfig) -> anyhow::Result<Output> {
        let plain = self.plain_output(output)?;
        let schema = self.settings.layout.schema();
        Ok(match self.keys.pseudonyms_of(output) {
            None => plain,
            Some(key) => Output {
                writer: anonymize::writer(plain.writer, schema, key.clone())?,
                ..plain
            },
        })
    }

    /// The output before pseudonyms replace its addresses.
    fn plain_output(&self, output: &OutputConfig) -> anyhow::Result<Output> {
        let (run, options, path) = (self.run, &self.options(output), output.to.as_path());
        let schema = self.settings.layout.schema();
        if let Some(target) = kafka::target_of(path)? {
            let tls = self.keys.texts_of(output);
            let send = collectors::send_options(run, output);
            let of = (run, output, self.settings);
            return kafka::output(&target, of, options.metadata.clone(), send, tls);
        }
        if let Some(target) = collectors::target_of(path)? {
            let tls = self.keys.tls_of(output);
            return match target.content {
                Content::Flows(protocol) => {
                    collectors::output((&target, protocol), run, output, self.settings, tls)
                }
                Content::Microflows => probe::output(&target, run, output, self.settings, tls),
            };
        }
        if sends::is_file(path) {
            let file = UnfinishedFile::create(path, file_options(run), self.pipe_patience())?;
            return Ok(probe::file(path, file, output, self.settings));
        }
        let identity = identity::of(run, output)?;
        let schema = &identity::schema(schema, identity.as_ref())?;
        let format = format_of(&output.to, output.format)?;
        let writer = if is_stdout(path) {
            let ends_run = run.outputs.len() == 1 && run.service.ledger.is_none();
            let stdout = Box::new(stdout(format, ends_run)?);
            to_writer(stdout, &name_of(path), format, schema, options)?
        } else if let Some(pattern) = rotation::pattern_of(run, path)? {
            rotation::check_periods(run, output)?;
            say_each_left_over(&left_over_of(&pattern));
            rotation::output(run, output, pattern, format, schema, options)?
        } else {
            file(path, format, schema, options, self.pipe_patience())?
        };
        Ok(Output {
            name: name_of(path),
            writer: match identity {
                Some(identity) => identify(writer, identity),
                None => writer,
            },
            may_stall: is_stdout(path) || is_device(path),
        })
    }

    /// How long to wait for the reader of a named pipe.
    fn pipe_patience(&self) -> Option<Duration> {
        self.run.goes_on().then_some(pipe::LIVE_PATIENCE)
    }
}

/// Checks the options of all outputs without creating any, and without reading any file.
pub(super) fn check(run: &RunConfig, settings: &Settings) -> anyhow::Result<()> {
    check_names(run, settings)?;
    check_kind(run, settings)?;
    settings.engine.check_outputs(run)?;
    for output in &run.outputs {
        let checked = shared::check(output, run.goes_on())
            .and_then(|()| check_retention(output, run))
            .and_then(|()| check_target(output, run, settings));
        checked.map_err(|error| about(output, run, error))?;
    }
    Ok(())
}

/// An error about one of several outputs of a file says which. Flags are for all outputs.
pub(super) fn about(output: &OutputConfig, run: &RunConfig, error: anyhow::Error) -> anyhow::Error {
    let (name, text) = (name_of(&output.to), format!("{error:#}"));
    let is_of_name = |letter: char| letter.is_alphanumeric() || "._-/%".contains(letter);
    let is_named = text.match_indices(&name).any(|(start, _)| {
        let (before, after) = (&text[..start], &text[start + name.len()..]);
        !before.ends_with(is_of_name) && !after.starts_with(is_of_name)
    });
    match is_from_file() && run.outputs.len() > 1 && !is_named {
        true => error.context(name),
        false => error,
    }
}

/// Checks the options that depend on where an output goes.
fn check_target(output: &OutputConfig, run: &RunConfig, settings: &Settings) -> anyhow::Result<()> {
    // Outputs for microflow records need no more checks.
    if sends::is_meant(&output.to)? {
        return Ok(());
    }
    let schema = settings.layout.schema();
    if output.anonymize.is_some() {
        anonymize::check(schema)?;
    }
    if let Some(target) = kafka::target_of(&output.to)? {
        return kafka::check(&target, run, output, settings);
    }
    if let Some(target) = collectors::target_of(&output.to)? {
        let wire = collectors::wire_options(output, settings);
        return Ok(turboflow_transport::check(&target, schema, &wire)?);
    }
    format_of(&output.to, output.format)?;
    identity::schema(schema, identity::of(run, output)?.as_ref())?;
    rotation::pattern_of(run, &output.to)?;
    rotation::check_periods(run, output)
}

/// Standard output as an output of this format. `ends_run`: whether the run ends when the reader
/// closes the pipe.
pub(crate) fn stdout(format: Format, ends_run: bool) -> anyhow::Result<Stdout> {
    let stdout = io::stdout().as_fd().try_clone_to_owned();
    let file = File::from(stdout.context("cannot write standard output")?);
    if !format.is_text() && file.is_terminal() {
        bail!("{format} is not text that a terminal can show: redirect standard output to a file");
    }
    Ok(Stdout { file, ends_run })
}

/// A writer to a file, a device or a named pipe. `pipe_patience`: how long to wait for the reader
/// of a pipe.
pub(crate) fn file(
    path: &Path,
    format: Format,
    schema: &[Column],
    options: &WriteOptions,
    pipe_patience: Option<Duration>,
) -> anyhow::Result<Box<dyn FlowWriter>> {
    refuse_link(path, options.files)?;
    if pipe::is_pipe(path) {
        let pipe = pipe::open_to_write(path, pipe_patience)?;
        return Ok(to_writer(
            Box::new(pipe),
            &name_of(path),
            format,
            schema,
            options,
        )?);
    }
    let target = file_identity(path);
    if !is_device(path) {
        say_left_over(&target);
    }
    Ok(create(path, format, schema, options)?)
}

fn file_options(run: &RunConfig) -> FileOptions {
    as_files(run.service.sync.unwrap_or(false), run.service.follow_links)
}

/// How files are created. By default, root does not write through symbolic links: users who may
/// write in the folder could redirect them to any file.
pub(crate) fn as_files(sync: bool, follow_links: bool) -> FileOptions {
    FileOptions {
        sync,
        refuses_links: !follow_links && rustix::process::geteuid().is_root(),
    }
}

/// Missing folders of output files.
pub(super) fn absent_folders(run: &RunConfig) -> impl Iterator<Item = String> {
    let unparsed = Engine::of(run).ok();
    let unparsed = unparsed.and_then(|engine| engine.unparsed_to().map(Path::to_owned));
    let files = run.outputs.iter().map(|output| output.to.clone());
    let files = files.chain(run.service.ledger.clone()).chain(unparsed);
    let files =
        files.filter(|path| !is_stdout(path) && !path.to_str().is_some_and(Target::is_meant));
    let folder = |path: std::path::PathBuf| match rotation::pattern_of(run, &path) {
        Ok(Some(pattern)) => pattern.fixed_folder(),
        _ => directory_of(&path),
    };
    let folders: BTreeSet<_> = files.map(folder).collect();
    let absent = folders.into_iter().filter(|folder| !folder.is_dir());
    absent.map(|folder| format!("folder {}", folder.display()))
}

/// Refuses outputs of the other kind: a run cannot switch between microflow records and flow
/// records.
fn check_kind(run: &RunConfig, settings: &Settings) -> anyhow::Result<()> {
    let is_probe = sends::counters_of(run, &settings.layout)?.is_some();
    if is_probe != settings.config.probe.is_some() {
        bail!(
            "a run writes either microflow records or flow records until it ends: restart it to \
             switch"
        );
    }
    Ok(())
}

fn check_names(run: &RunConfig, settings: &Settings) -> anyhow::Result<()> {
    let written = run.outputs.iter().map(|output| output.to.as_path());
    let written = written.chain(run.service.ledger.as_deref());
    let written: Vec<&Path> = written.chain(settings.engine.unparsed_to()).collect();
    check_paths(&written, &run.source.files)
}

/// Refuses a file that would be written twice, or both read and written.
pub(crate) fn check_paths(written: &[&Path], read: &[PathBuf]) -> anyhow::Result<()> {
    for (index, path) in written.iter().enumerate() {
        // A collector is compared by its parsed address, because the port is optional.
        let target = collectors::target_of(path)?;
        let topic = kafka::target_of(path)?;
        let same = |other: &Path| match &target {
            _ if topic.is_some() => kafka::target_of(other).is_ok_and(|its| its == topic),
            Some(target) => collectors::target_of(other).is_ok_and(|o| o.as_ref() == Some(target)),
            None => file_identity(other) == file_identity(path) && !is_device(path),
        };
        if written[..index].iter().any(|other| same(other)) {
            bail!(
                "{} would be written twice: give every output its own name",
                name_of(path)
            );
        }
        if !is_stdout(path) && read.iter().any(|read| same(read)) {
            bail!(
                "{} would be read and written: give the output another name",
                path.display()
            );
        }
    }
    Ok(())
}

/// Refuses a retention time or size if files are never completed, or if files of another output
/// match the name pattern and would be removed.
fn check_retention(output: &OutputConfig, run: &RunConfig) -> anyhow::Result<()> {
    let (key, is_kept) = match (output.keep, output.keep_size) {
        (Some(_), _) => (Key::Keep, true),
        (None, size) => (Key::KeepSize, size.is_some()),
    };
    let Some(pattern) = rotation::pattern_of(run, &output.to)?.filter(|_| is_kept) else {
        return Ok(());
    };
    if output.rotate.is_none() && output.rotate_size.is_none() {
        bail!(
            "{key} removes files that are complete, but {} is one file until the run ends: add \
             {} or {}",
            output.to.display(),
            Key::Rotate.with("1h"),
            Key::RotateSize.with("1GB")
        );
    }
    let others = run.outputs.iter().filter(|other| other.to != output.to);
    for other in others {
        let is_taken = match rotation::pattern_of(run, &other.to)? {
            Some(other) => pattern.overlaps(&other),
            None => pattern.could_make(&other.to),
        };
        if is_taken {
            bail!(
                "{key} of {} would also remove files of {}, whose names match its pattern: give \
                 them different beginnings, or folders",
                output.to.display(),
                other.to.display()
            );
        }
    }
    Ok(())
}

pub(super) fn is_device(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// The format of the output `path`. `given`: the format that its option states.
pub(crate) fn format_of(path: &Path, given: Option<Format>) -> anyhow::Result<Format> {
    if is_stdout(path) {
        return given.with_context(|| {
            let example = Key::Format.with("csv");
            format!(
                "which format on standard output? Add {example}, jsonl, parquet, arrow or ipfix"
            )
        });
    }
    match (Format::from_path(path), given) {
        (Ok(format), _) | (Err(_), Some(format)) => Ok(format),
        (Err(error), None) => Err(error.into()),
    }
}

pub(crate) fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

pub(crate) fn name_of(path: &Path) -> String {
    if is_stdout(path) {
        "standard output".to_owned()
    } else {
        path.display().to_string()
    }
}

fn metadata(settings: &Settings) -> Vec<(String, String)> {
    origin(&settings.config.definition, settings.config.biflow)
}

/// The definition of the records, as metadata for files.
pub(crate) fn origin(definition: &Definition, is_biflow: bool) -> Vec<(String, String)> {
    [
        ("turboflow.version", env!("CARGO_PKG_VERSION").to_owned()),
        (DEFINITION_KEY, definition.to_toml()),
        ("turboflow.biflow", is_biflow.to_string()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .to_vec()
}

/// Standard output without the line buffer of `std`.
pub(crate) struct Stdout {
    file: File,
    /// Whether the run ends when the reader closes the pipe, because there is no other output.
    ends_run: bool,
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let outcome = self.file.write(bytes);
        if let Err(error) = &outcome
            && error.kind() == io::ErrorKind::BrokenPipe
            && self.ends_run
        {
            signals::STOP.ask();
        }
        outcome
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
