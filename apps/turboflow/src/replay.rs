// SPDX-License-Identifier: Apache-2.0
//! `turboflow replay`: stored flow records to collectors and into files.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use turboflow_formats::wire::WireOptions;
use turboflow_formats::{FlowWriter, Format, TextOptions, TimeForm, WriteOptions, to_writer};
use turboflow_merge::Layout;
use turboflow_query::{Filter, Input};
use turboflow_record::{ColumnKind, Definition, ElementOptions, FlowBatch, Schema, Value};
use turboflow_run::CountAboveZero;
use turboflow_transport::{SendOptions, Target, send_to};

use crate::exit::Outcome;
use crate::log::say;
use crate::record::{
    FILE_DOMAIN, as_files, check_paths, file, format, origin, own_domain, sending, time_form,
};
use crate::show::{clock_ns, found, moment, say_damages};
use crate::signals::{self, STOP};
use crate::units::counted;
use crate::{anonymize, exit};

/// Its name in messages.
const STDOUT: &str = "standard output";

const EXAMPLES: &str = "\
Examples:
  A day of flow records to a collector that missed it
    turboflow replay flows/2024/03/01 -w ipfix+tcp://collector.example:4739
  Web traffic alone, at most 10,000 records a second
    turboflow replay flows.parquet --where 'tcp port 443' --rate 10k -w netflow9+udp://127.0.0.1:2055
  Into another format
    turboflow replay flows.csv.gz -w flows.parquet

Exit codes: 0 all well; 1 records were lost on the way; 2 it could not run.";

/// Send stored flow records to collectors, or write them into other files.
///
/// Records are sent with their own times. Reads what `turboflow show` reads, if the columns are
/// those of the default definition, or if the files hold their definition, as Parquet does.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ReplayArgs {
    /// Files of flow records, folders or patterns; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// A collector (ipfix+udp://HOST:PORT, ipfix+tcp://, ipfix+tls://, netflow9+udp://,
    /// netflow5+udp://) or a file, `-` is standard output; repeat for more
    #[arg(short, long = "write", value_name = "OUT", required = true)]
    write: Vec<String>,

    /// Format of files without such an extension: csv, jsonl, parquet or ipfix. Of standard output:
    /// csv
    #[arg(long, value_name = "FORMAT", value_parser = format(), hide_possible_values = true)]
    format: Option<Format>,

    /// How CSV and JSON have times: ns (first_ns), s (first_s) or iso (first_iso)
    #[arg(long, value_name = "FORM", default_value = "ns", value_parser = time_form())]
    #[arg(hide_possible_values = true)]
    time: TimeForm,

    /// Protocols and end reasons by name in CSV and JSON
    #[arg(long)]
    names: bool,

    /// Only records that match, as in `turboflow show`
    #[arg(long = "where", value_name = "EXPR")]
    filter: Option<String>,

    /// The time from which --where counts -1h and now. Default: the clock
    #[arg(long, value_name = "TIME", value_parser = moment)]
    now: Option<u64>,

    /// Have files on the disk before they get their names
    #[arg(long)]
    sync: bool,

    /// As root, write through outputs that are symbolic links
    #[arg(long)]
    follow_links: bool,

    /// Maximum flow records per second to a collector, such as 50k
    #[arg(long, value_name = "RATE", value_parser = str::parse::<CountAboveZero>)]
    rate: Option<CountAboveZero>,

    /// Observation domain of IPFIX, source id of NetFlow v9. Default: drawn for each collector, and
    /// 1 in files
    #[arg(long, value_name = "N")]
    observation_domain: Option<u32>,

    /// Replace addresses by pseudonyms that keep networks together, with the key in this file
    #[arg(long, value_name = "KEYFILE")]
    anonymize: Option<PathBuf>,
}

pub(crate) fn run(args: &ReplayArgs) -> anyhow::Result<Outcome> {
    let files = found(&args.files)?;
    let written: Vec<&Path> = args.write.iter().map(Path::new).collect();
    check_paths(&written, &files)?;
    let mut input = Input::open(&files)?;
    let schema = input.schema().clone();
    let filter = args.filter.as_deref();
    let filter = filter
        .map(|text| Filter::parse_at(text, &schema, Some(args.now.unwrap_or_else(clock_ns))))
        .transpose()?;
    let meaning = Meaning::of(&input)?;
    let mut outputs = Vec::new();
    for to in &args.write {
        outputs.push((to.as_str(), args.output(to, &meaning)?));
    }
    signals::listen("ending", false, None)?;
    let (mut is_lossy, mut out_of_range) = (false, 0);
    let read = each_batch(&mut input, |batch| {
        let kept = match &filter {
            Some(filter) => filter.apply(&batch, &schema),
            None => batch,
        };
        let (kept, dropped) = meaning.fitting(kept, &schema);
        out_of_range += dropped;
        outputs.retain_mut(|(to, writer)| match writer.write(&kept) {
            Ok(()) => true,
            Err(error) => {
                is_lossy = true;
                say!(Error OutputFailed, output = *to; "{error}");
                false
            }
        });
    });
    for (to, writer) in outputs {
        match writer.finish() {
            Ok(summary) => say!(Info Finished, output = to, records = summary.records;
                "{to}: {}", counted(summary.records, "flow record")),
            Err(error) => {
                is_lossy = true;
                say!(Error OutputFailed, output = to; "{error}");
            }
        }
    }
    if out_of_range > 0 {
        is_lossy = true;
        say!(Error OutOfRange, records = out_of_range;
            "{} left out: a number in them is missing, or larger than its field can be, such as a \
             port above 65535", counted(out_of_range, "flow record"));
    }
    if let Err(error) = read {
        // What was read before is sent, and that is no success.
        is_lossy = true;
        say!(Error CouldNotRun; "{}; the input was not read to its end", exit::in_words(&error));
    }
    is_lossy |= say_damages(&input) == Outcome::Lossy;
    if STOP.asked() {
        is_lossy = true;
        say!(Error Stopped; "stopped by a signal: the input was not read to its end");
    }
    Ok(if is_lossy {
        Outcome::Lossy
    } else {
        Outcome::Well
    })
}

fn each_batch(input: &mut Input, mut take: impl FnMut(FlowBatch)) -> anyhow::Result<()> {
    while !STOP.asked() {
        match input.next().transpose()? {
            Some(batch) => take(batch),
            None => break,
        }
    }
    Ok(())
}

impl ReplayArgs {
    fn output(&self, to: &str, meaning: &Meaning) -> anyhow::Result<Box<dyn FlowWriter>> {
        let schema = &meaning.schema;
        let elements = ElementOptions::default();
        let elements = meaning.definition.elements(meaning.is_biflow, &elements);
        let wire = |domain| WireOptions {
            elements,
            domain: self.observation_domain.unwrap_or(domain),
            ..WireOptions::default()
        };
        let key = self.anonymize.as_deref().map(anonymize::key).transpose()?;
        let writer = if Target::is_meant(to) {
            let options = SendOptions {
                rate: self.rate.map(|CountAboveZero(rate)| rate),
                ..sending()
            };
            // As `record` does: two exporters at one address are told apart.
            send_to(&to.parse()?, schema, &wire(own_domain()), &options)?
        } else if self.rate.is_some() {
            bail!("--rate is for collectors: {to} takes records as fast as they come");
        } else {
            let path = Path::new(to);
            let format = match self.format {
                Some(format) => Format::from_path(path).unwrap_or(format),
                None if is_hyphen(path) => Format::Csv,
                None => Format::from_path(path)?,
            };
            let options = WriteOptions {
                metadata: origin(&meaning.definition, meaning.is_biflow),
                files: as_files(self.sync, self.follow_links),
                wire: wire(FILE_DOMAIN),
                text: TextOptions {
                    time: self.time,
                    names: self.names,
                },
                ..WriteOptions::default()
            };
            if is_hyphen(path) {
                to_writer(Box::new(io::stdout()), STDOUT, format, schema, &options)?
            } else {
                file(path, format, schema, &options, None)?
            }
        };
        match key {
            Some(key) => anonymize::writer(writer, schema, key),
            None => Ok(writer),
        }
    }
}

/// What the columns are: a definition, and whether its biflows.
struct Meaning {
    definition: Definition,
    is_biflow: bool,
    /// The columns as the meter has them. In texts every value may be absent, and a collector would
    /// get templates for records that cannot be.
    schema: Schema,
}

impl Meaning {
    /// The records that the meter could have made, and how many others there are: texts may hold
    /// any number, and formats would cut it to what they have room for.
    fn fitting(&self, batch: FlowBatch, schema: &Schema) -> (FlowBatch, u64) {
        let fits = |row: usize| {
            let mut columns = self.schema.iter().enumerate();
            columns.all(|(index, column)| match batch.value(row, index) {
                Value::Unsigned(number) => number <= largest(column.kind),
                Value::Absent => column.nullable,
                _ => true,
            })
        };
        let wrong = (0..batch.rows()).filter(|&row| !fits(row)).count();
        if wrong == 0 && self.schema == *schema {
            return (batch, 0);
        }
        let mut kept = FlowBatch::new(&self.schema);
        for row in (0..batch.rows()).filter(|&row| fits(row)) {
            let values = (0..schema.len()).map(|column| batch.value(row, column));
            kept.push_row(&values.collect::<Vec<_>>());
        }
        (kept, wrong as u64)
    }

    /// The definition in the files, or the default one.
    fn of(input: &Input) -> anyhow::Result<Self> {
        let shape = input.shape();
        let definition = shape.definition.cloned().unwrap_or_default();
        for is_biflow in [false, true] {
            let layout =
                Layout::compile(&definition, is_biflow).context("the files' definition")?;
            let names = layout.schema().iter().map(|column| &column.name);
            if names.eq(shape.schema.iter().map(|column| &column.name)) {
                let schema = layout.schema().clone();
                return Ok(Self {
                    definition,
                    is_biflow,
                    schema,
                });
            }
        }
        bail!(
            "the columns are not those of the {} definition, so what they mean to a collector is \
             not known: Parquet files hold their definition, text files can be replayed with the \
             default one",
            if shape.definition.is_some() {
                "files'"
            } else {
                "default"
            }
        )
    }
}

/// The largest number that a column of this kind can have.
const fn largest(kind: ColumnKind) -> u64 {
    match kind {
        ColumnKind::Unsigned { bits } => u64::MAX >> (64 - bits as u32),
        ColumnKind::Mac => (1 << 48) - 1,
        _ => u64::MAX,
    }
}

/// Whether a path names standard output.
fn is_hyphen(path: &Path) -> bool {
    path.as_os_str() == "-"
}
