// SPDX-License-Identifier: Apache-2.0
//! Creating outputs: all of them, or none.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use turboflow_formats::{DEFINITION_KEY, Format, WriteOptions, create, to_writer};
use turboflow_run::Output;
use turboflow_transport::{Target, Tls};

use super::settings::Settings;
use super::{RecordArgs, collectors, rotation};
use crate::beside::{Beside, directory_of, identity};
use crate::{pipe, signals};

/// Where everything goes.
pub(super) struct Outputs {
    pub(super) records: Vec<Output>,
    pub(super) ledger: Option<Beside>,
    pub(super) unparsed: Option<Beside>,
}

impl Outputs {
    /// Creates the outputs that were asked for; a failure leaves nothing behind.
    pub(super) fn create(
        args: &RecordArgs,
        settings: &Settings,
        tls: Option<&Tls>,
    ) -> anyhow::Result<Self> {
        let maker = Maker::new(args, settings, tls)?;
        let records = args.write.iter().map(|path| maker.output(path));
        let records = records.collect::<anyhow::Result<_>>()?;
        let create = |path| Beside::create(path, maker.pipe_patience());
        let ledger = args.ledger.as_deref().map(create).transpose()?;
        let unparsed = args.unparsed_to.as_deref().map(create).transpose()?;
        Ok(Self {
            records,
            ledger,
            unparsed,
        })
    }
}

/// Creates one output after the other.
pub(super) struct Maker<'a> {
    args: &'a RecordArgs,
    settings: &'a Settings,
    tls: Option<&'a Tls>,
    options: WriteOptions,
}

impl<'a> Maker<'a> {
    pub(super) fn new(
        args: &'a RecordArgs,
        settings: &'a Settings,
        tls: Option<&'a Tls>,
    ) -> anyhow::Result<Self> {
        check_names(args)?;
        check_format(args)?;
        rotation::check(args)?;
        let options = WriteOptions {
            metadata: metadata(settings),
            wire: collectors::wire_options(args, settings),
            ..WriteOptions::default()
        };
        Ok(Self {
            args,
            settings,
            tls,
            options,
        })
    }

    /// Says what is wrong with any output, without creating it.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let (args, schema) = (self.args, self.settings.layout.schema());
        for path in &args.write {
            match collectors::target_of(path)? {
                Some(target) => turboflow_transport::check(&target, schema, &self.options.wire)?,
                None => {
                    format_of(path, args.format)?;
                    rotation::pattern_of(args, path)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn output(&self, path: &Path) -> anyhow::Result<Output> {
        let (args, options) = (self.args, &self.options);
        let schema = self.settings.layout.schema();
        if let Some(target) = collectors::target_of(path)? {
            return collectors::output(&target, args, self.settings, &options.wire, self.tls);
        }
        let format = format_of(path, args.format)?;
        let writer = if is_stdout(path) {
            let stdout = Box::new(self.stdout(format)?);
            to_writer(stdout, &name_of(path), format, schema, options)?
        } else if pipe::is_pipe(path) {
            let pipe = pipe::open_to_write(path, self.pipe_patience())?;
            to_writer(Box::new(pipe), &name_of(path), format, schema, options)?
        } else if let Some(pattern) = rotation::pattern_of(args, path)? {
            signals::will_write_in(directory_of(path));
            rotation::output(args, pattern, format, schema, options)?
        } else {
            signals::will_write_in(directory_of(&identity(path)));
            create(path, format, schema, options)?
        };
        Ok(Output {
            name: name_of(path),
            writer,
            may_stall: is_stdout(path) || is_device(path),
        })
    }

    /// How long the reader of a named pipe may take to come.
    fn pipe_patience(&self) -> Option<Duration> {
        (!self.args.interface.is_empty()).then_some(pipe::LIVE_PATIENCE)
    }

    fn stdout(&self, format: Format) -> anyhow::Result<Stdout> {
        let stdout = io::stdout().as_fd().try_clone_to_owned();
        let file = File::from(stdout.context("cannot write standard output")?);
        let is_binary = matches!(format, Format::Parquet | Format::Ipfix);
        if is_binary && file.is_terminal() {
            bail!("{format} is no text for a terminal: redirect standard output to a file");
        }
        Ok(Stdout {
            file,
            ends_run: self.args.write.len() == 1 && self.args.ledger.is_none(),
        })
    }
}

/// Folders of files that are to be written, as far as they are not there.
pub(super) fn absent_folders(args: &RecordArgs) -> impl Iterator<Item = String> {
    let files = args.write.iter().chain(&args.ledger);
    let files = files.chain(&args.unparsed_to);
    let files =
        files.filter(|path| !is_stdout(path) && !path.to_str().is_some_and(Target::is_meant));
    let folders: BTreeSet<_> = files.map(|path| directory_of(path)).collect();
    let absent = folders.into_iter().filter(|folder| !folder.is_dir());
    absent.map(|folder| format!("folder {}", folder.display()))
}

/// No file may be written twice, or be read and written.
fn check_names(args: &RecordArgs) -> anyhow::Result<()> {
    let written = args.write.iter().chain(&args.ledger);
    let written: Vec<&PathBuf> = written.chain(&args.unparsed_to).collect();
    for (index, path) in written.iter().enumerate() {
        // A collector is the same whether or not its port is spelled out.
        let target = collectors::target_of(path)?;
        let same = |other: &Path| match &target {
            Some(target) => collectors::target_of(other).is_ok_and(|o| o.as_ref() == Some(target)),
            None => identity(other) == identity(path) && !is_device(path),
        };
        if written[..index].iter().any(|other| same(other)) {
            bail!(
                "{} is to be written twice: give every output its own name",
                name_of(path)
            );
        }
        if !is_stdout(path) && args.read.iter().any(|read| same(read)) {
            bail!(
                "{} is to be read and written: give the output another name",
                path.display()
            );
        }
    }
    Ok(())
}

/// A format that no output asks for, or all say otherwise by their names, would be ignored.
fn check_format(args: &RecordArgs) -> anyhow::Result<()> {
    let Some(format) = args.format else {
        return Ok(());
    };
    let is_used = |path: &PathBuf| {
        let is_target = path.to_str().is_some_and(Target::is_meant);
        !is_target && format_of(path, args.format).is_ok_and(|its| its == format)
    };
    if args.write.iter().any(is_used) {
        return Ok(());
    }
    match args.write.first() {
        None => bail!("--format is of no use without -w: add `-w -` for standard output"),
        Some(path) => bail!(
            "--format {format} is of no use with {}, whose name says what it is: leave it out, or \
             write to another name or to `-`",
            name_of(path)
        ),
    }
}

pub(super) fn is_device(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

pub(super) fn format_of(path: &Path, given: Option<Format>) -> anyhow::Result<Format> {
    if is_stdout(path) {
        return given
            .context("which format on standard output? Add --format csv, jsonl, parquet or ipfix");
    }
    match (Format::from_path(path), given) {
        (Ok(format), _) | (Err(_), Some(format)) => Ok(format),
        (Err(error), None) => Err(error.into()),
    }
}

pub(super) fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

pub(super) fn name_of(path: &Path) -> String {
    if is_stdout(path) {
        "standard output".to_owned()
    } else {
        path.display().to_string()
    }
}

/// What a Parquet file says of its origin.
fn metadata(settings: &Settings) -> Vec<(String, String)> {
    [
        ("turboflow.version", env!("CARGO_PKG_VERSION").to_owned()),
        (DEFINITION_KEY, settings.config.definition.to_toml()),
        ("turboflow.biflow", settings.config.biflow.to_string()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .to_vec()
}

/// Standard output without std's line buffer.
struct Stdout {
    file: File,
    /// Whether nobody needs the rest of the run once the reader has gone.
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
