// SPDX-License-Identifier: Apache-2.0
//! `turboflow p4`: the sources of the P4 program, for a compiler.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use clap::{Args, Subcommand, ValueEnum};
use turboflow_engine_p4::{P4Record, SOURCES, Unsupported};
use turboflow_merge::Layout;
use turboflow_record::{Definition, Input};

use crate::exit::{Outcome, print};
use crate::log::say;
use crate::record::{AvailableInputs, read_definition};

const EXAMPLES: &str = "\
Examples:
  Write the program for bmv2 with a definition of your own, and compile it
    turboflow p4 generate --target v1model --definition mine.toml switch
    cd switch/v1model && p4c-bm2-ss -I ../shared/records/mine turboflow.p4 -o turboflow.json

Exit codes: 0 all well; 2 it could not run.";

/// Write the sources of the P4 program, for your own compiler.
///
/// The program of engine p4 (turboflow record --engine p4) is compiled for one record definition.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct P4Args {
    #[command(subcommand)]
    command: P4Command,
}

#[derive(Debug, Subcommand)]
enum P4Command {
    /// Write the sources of the P4 program for a record definition
    Generate(GenerateP4Args),
}

/// Write the sources of the P4 program for a record definition.
///
/// The features of the definition become registers of the program. Features that the pipeline
/// cannot compute are refused by name.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
struct GenerateP4Args {
    /// The pipeline to write it for
    #[arg(long, value_enum)]
    target: Target,

    /// The record definition. Default: the default definition
    #[arg(long, value_name = "FILE")]
    definition: Option<PathBuf>,

    /// Replace all files in the folder that differ, even if they were edited
    #[arg(long)]
    overwrite: bool,

    /// The folder for the sources. It is created
    folder: PathBuf,
}

/// A kind of pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Target {
    /// DPDK's software pipeline
    Pna,
    /// Tofino
    Tna,
    /// bmv2's simple_switch
    V1model,
}

impl Target {
    const fn folder(self) -> &'static str {
        match self {
            Self::Pna => "pna",
            Self::Tna => "tna",
            Self::V1model => "v1model",
        }
    }

    /// The command of the target's open-source compiler. `is_behind_queue`: whether the record has
    /// features known only behind a queue.
    const fn compiler(self, is_behind_queue: bool) -> &'static str {
        match (self, is_behind_queue) {
            (Self::Pna, _) => "p4c-dpdk --arch pna --excludeMidendPasses P4::LocalCopyPropagation",
            (Self::Tna, false) => "p4c --target tofino --arch tna",
            (Self::Tna, true) => "p4c --target tofino --arch tna -DQUEUE_FEATURES",
            (Self::V1model, false) => "p4c-bm2-ss",
            (Self::V1model, true) => "p4c-bm2-ss -DBEHIND_QUEUE",
        }
    }

    /// The extension of the compiler's output; for Tofino it names a folder.
    const fn artefact(self) -> &'static str {
        match self {
            Self::Pna => "spec",
            Self::Tna => "tofino",
            Self::V1model => "json",
        }
    }

    /// What the switch needs in addition to the program.
    const fn more_to_do(self, is_behind_queue: bool) -> &'static str {
        match (self, is_behind_queue) {
            (Self::V1model, true) => {
                "in simple_switch_CLI, before anything is metered: mirroring_add 101 64\n"
            }
            (Self::Tna, _) => {
                "With -DWITH_V6 the switch also meters IPv6; without it, IPv6 frames go to the \
                 receiver whole.\ndocs/p4.md says what the owner of the switch has to set.\n"
            }
            _ => "",
        }
    }

    /// The words of a record. Whether the program supports them depends on `layout` alone.
    ///
    /// # Errors
    /// The first feature that the program does not support.
    fn record(self, definition: &Definition, layout: &Layout) -> anyhow::Result<P4Record> {
        let refused = |lacking| anyhow!("this pipeline does not support {lacking}");
        let record = match self {
            Self::Pna => P4Record::new(definition, layout),
            Self::Tna | Self::V1model => P4Record::behind_queue(definition, layout),
        };
        let record = record.map_err(refused)?;
        let mut features = record.features().iter();
        if self == Self::Tna && features.any(|feature| feature.of == Input::EgressInterface) {
            // The table's second pass runs at the CPU port, which is not the packet's egress port.
            return Err(refused(Unsupported::Input(Input::EgressInterface)));
        }
        Ok(record)
    }
}

pub(crate) fn run(args: &P4Args) -> anyhow::Result<Outcome> {
    let P4Command::Generate(args) = &args.command;
    generate(args)
}

fn generate(args: &GenerateP4Args) -> anyhow::Result<Outcome> {
    let (name, definition) = definition(args)?;
    let layout = Layout::compile(&definition, false)?;
    let record = args.target.record(&definition, &layout)?;
    let target = args.target.folder();
    let of_target = SOURCES.iter().filter(|(path, _)| {
        let folder = path.split('/').next();
        folder == Some("shared") || folder == Some(target)
    });
    let sources = of_target.map(|(path, text)| (args.folder.join(path), *text));
    let sources: Vec<_> = sources.collect();
    if args.folder.exists() && !args.folder.is_dir() {
        bail!(
            "{} is not a folder: name one for the sources",
            args.folder.display()
        );
    }
    if !args.overwrite {
        refuse_changed(&sources)?;
    }
    for (path, text) in &sources {
        write(path, text)?;
    }
    // This one is made of the definition alone.
    let records = format!("shared/records/{name}");
    let path = args.folder.join(&records).join("record.p4");
    let own = record.source(&name);
    let is_changed = std::fs::read_to_string(&path).is_ok_and(|before| before != own);
    write(&path, &own)?;
    if is_changed {
        say!(Warning AnswerNote; "{} has changed: programs of other pipelines that were compiled \
             with it no longer fit this definition; compile them again", path.display());
    }
    print(&format!(
        "the program is in {}; compile it there:\n  cd {} && {} -I ../{records} turboflow.p4 \
         -o turboflow.{}\n{}",
        args.folder.display(),
        quoted(&args.folder.join(target)),
        args.target.compiler(record.needs_queue()),
        args.target.artefact(),
        args.target.more_to_do(record.needs_queue()),
    ))?;
    Ok(Outcome::Well)
}

/// A path as a word of the shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+".contains(letter);
    match text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// The definition and its name, which is the file's name without its extension.
fn definition(args: &GenerateP4Args) -> anyhow::Result<(String, Definition)> {
    let Some(path) = &args.definition else {
        return Ok(("default".to_owned(), Definition::default()));
    };
    let seen = AvailableInputs {
        inputs: turboflow_engine_p4::ABILITIES.inputs,
        by: "engine `p4`".to_owned(),
        others: Vec::new(),
    };
    let definition = read_definition(path, false, &seen, |layout| {
        let record = args.target.record(&Definition::default(), layout);
        record.map(drop)
    })?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    if name.is_empty() || !name.chars().all(is_plain) {
        bail!(
            "{}: the sources are named after this file: use only letters, digits, - and _ for it",
            path.display()
        );
    }
    Ok((name.into_owned(), definition))
}

/// Refuses to replace files that differ from what would be written: they may have been edited.
fn refuse_changed(sources: &[(PathBuf, &str)]) -> anyhow::Result<()> {
    let mut changed = Vec::new();
    for (path, text) in sources {
        match std::fs::read(path) {
            Ok(present) if present == text.as_bytes() => {}
            Ok(_) => changed.push(path.display().to_string()),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        }
    }
    if !changed.is_empty() {
        bail!(
            "these files differ from what would be written, and may have been edited: {}; choose \
             another folder, or replace them all with --overwrite",
            changed.join(", ")
        );
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(path, text))
        .with_context(|| format!("cannot write {}", path.display()))
}
