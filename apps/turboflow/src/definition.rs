// SPDX-License-Identifier: Apache-2.0
//! `turboflow definition`: what a flow record may hold.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use turboflow_formats::table::{Align, Table};
use turboflow_merge::Layout;
use turboflow_packet::{PARSED_INPUTS, TELEMETRY_INPUTS};
use turboflow_record::{Column, ColumnKind, Definition, Input, InputSet, KeyField, Op};

use crate::engines::{self, EngineKind};
use crate::exit::{Outcome, print};
use crate::record::{AvailableInputs, read_definition};
use crate::units::counted;

/// Follows the options in `-h`, which is one screen.
const SHORT: &str = "--help has examples and exit codes.";

const EXAMPLES: &str = "\
Examples:
  Start a definition of your own from the default
    turboflow definition > mine.toml
  Check the definition
    turboflow definition --check mine.toml
  What can a feature be made of?
    turboflow definition --list
  Which columns will the outputs have?
    turboflow definition --schema mine.toml
  With applications, names and Community IDs
    turboflow definition --with-applications > apps.toml
  Use the definition
    turboflow record -r office.pcap -w flows.parquet --definition mine.toml

Exit codes: 0 all well; 2 the definition is wrong or cannot be read.";

/// Print, check and explain the definition of a flow record.
///
/// Without options, prints the default definition as a starting point: TOML with comments.
/// docs/definition.md is the reference.
#[derive(Debug, Args)]
#[command(after_help = SHORT, after_long_help = EXAMPLES)]
pub(crate) struct DefinitionArgs {
    /// Check a definition: print its first error, or how many fields, features and columns it has
    #[arg(long, value_name = "FILE", group = "what")]
    check: Option<PathBuf>,

    /// List every key field, input and op, one per line
    #[arg(long, group = "what")]
    list: bool,

    /// Print the columns of a definition's records and their types. Without FILE: the default
    /// definition
    #[arg(long, value_name = "FILE", num_args = 0..=1, group = "what")]
    schema: Option<Option<PathBuf>>,

    /// Print the default definition with the columns of inspection, and the Community ID
    #[arg(long, group = "what")]
    with_applications: bool,

    /// With --check or --schema: as in `turboflow record --biflow`
    #[arg(long)]
    biflow: bool,
}

/// The header of a printed definition, which is meant to be edited.
const LISTED_BY: &str = "# `turboflow definition --list` lists all fields, ops and inputs.\n";

pub(crate) fn run(args: &DefinitionArgs) -> anyhow::Result<Outcome> {
    if args.biflow && args.check.is_none() && args.schema.is_none() {
        bail!("--biflow is of no use without --check or --schema: add one, or leave it out");
    }
    let text = if let Some(path) = &args.check {
        check(path, args.biflow)?
    } else if args.list {
        list()
    } else if let Some(path) = &args.schema {
        schema(path.as_ref(), args.biflow)?
    } else if args.with_applications {
        LISTED_BY.to_owned() + &Definition::with_applications().to_toml()
    } else {
        LISTED_BY.to_owned() + &Definition::default().to_toml()
    };
    print(&text)?;
    Ok(Outcome::Well)
}

fn compile(path: Option<&PathBuf>, biflow: bool) -> anyhow::Result<(Definition, Layout)> {
    let definition = match path {
        Some(path) => {
            // A definition is valid if the engines together support all its inputs. Inspection adds
            // its inputs to any engine.
            let inputs = |engine: &dyn EngineKind| engine.abilities().inputs;
            let seen = AvailableInputs {
                inputs: engines::with_bridge()
                    .fold(InputSet::INSPECTED, |all, engine| all.union(inputs(engine))),
                by: "this program".to_owned(),
                others: Vec::new(),
            };
            read_definition(path, biflow, &seen, |_| Ok(()))?
        }
        None => Definition::default(),
    };
    let layout = Layout::compile(&definition, biflow)?;
    Ok((definition, layout))
}

fn check(path: &PathBuf, biflow: bool) -> anyhow::Result<String> {
    let (definition, layout) = compile(Some(path), biflow)?;
    let all = definition.inputs();
    let inputs = all.without(InputSet::INSPECTED);
    let elsewhere: InputSet = inputs
        .iter()
        .filter(|input| !PARSED_INPUTS.union(TELEMETRY_INPUTS).contains(*input))
        .collect();
    let inspected: InputSet = all.iter().filter(|input| input.is_inspected()).collect();
    let mut note = match elsewhere.is_empty() {
        true => String::new(),
        false => format!(
            "; {} with --engine {} only",
            elsewhere.names(),
            engines::listed(engines::supporting(inputs).into_iter())
        ),
    };
    if !inspected.is_empty() {
        note += &format!("; {} with application inspection only", inspected.names());
    }
    Ok(format!(
        "{} is valid: {}, {}, {}{note}\n",
        path.display(),
        counted(definition.key.len() as u64, "key field"),
        counted(definition.features.len() as u64, "feature"),
        counted(layout.schema().len() as u64, "column"),
    ))
}

fn schema(path: Option<&PathBuf>, biflow: bool) -> anyhow::Result<String> {
    let (_, layout) = compile(path, biflow)?;
    let headers = ["column", "CSV and JSON", "Parquet", "may be absent"];
    let mut table = Table::new(headers.map(|name| (name, Align::Left)));
    for Column {
        name,
        kind,
        nullable,
    } in layout.schema()
    {
        let (text, parquet) = types(*kind);
        let absent = if *nullable { "yes" } else { "no" };
        table.push(vec![
            name.clone(),
            text.to_owned(),
            parquet,
            absent.to_owned(),
        ]);
    }
    Ok(table.render(None))
}

/// How values of a kind appear in text files and in Parquet.
fn types(kind: ColumnKind) -> (&'static str, String) {
    match kind {
        ColumnKind::Address => ("address as text", "string".to_owned()),
        ColumnKind::Unsigned { bits } => ("number", format!("uint{bits}")),
        ColumnKind::TimestampNs => ("integer, ns since 1970", "timestamp(ns, UTC)".to_owned()),
        ColumnKind::Mac => ("MAC address as text", "string".to_owned()),
        ColumnKind::Float => ("real number", "double".to_owned()),
        ColumnKind::List => ("list of numbers", "list of uint64".to_owned()),
        ColumnKind::Text => ("text", "string".to_owned()),
    }
}

fn list() -> String {
    let input = |input: Input| {
        (
            input.name(),
            format!("{}{}", input.describe(), engines::note_on(input)),
        )
    };
    let field = |field: KeyField| {
        let note = if let KeyField::Input(input) = field {
            engines::note_on(input)
        } else {
            String::new()
        };
        (field.name(), format!("{}{note}", field.describe()))
    };
    let ops = Op::NAMES.map(|name| (name, Op::describe(name).unwrap_or_default().to_owned()));
    let fields = KeyField::all().map(field);
    [
        section("Key fields ([key] fields = [...])", fields),
        section("Ops ([[feature]] op = ...)", ops),
        section(
            "Inputs ([[feature]] of = ...)",
            Input::ALL.into_iter().map(input),
        ),
    ]
    .join("\n")
}

fn section(title: &str, lines: impl IntoIterator<Item = (&'static str, String)>) -> String {
    let mut text = format!("{title}\n");
    for (name, description) in lines {
        text += &format!("  {name:<26}{description}\n");
    }
    text
}
