// SPDX-License-Identifier: Apache-2.0
//! `turboflow replay`: sends stored flow records to collectors, or writes them to files.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use turboflow_formats::wire::WireOptions;
use turboflow_formats::{ExportError, FlowWriter, Identity, WriteOptions, to_writer};
use turboflow_kafka::KafkaTarget;
use turboflow_merge::Layout;
use turboflow_query::{Filter, Input};
use turboflow_record::{ColumnKind, Definition, ElementOptions, FlowBatch, Schema, Value};
use turboflow_run::CountAboveZero;
use turboflow_transport::{SendOptions, Target, send_to};

use crate::exit::Outcome;
use crate::file_args::FileArgs;
use crate::keys::Key;
use crate::log::say;
use crate::record::{
    FILE_DOMAIN, applies_to, check_paths, file, is_stdout, name_of, origin, own_domain, sending,
    stdout,
};
use crate::show::{clock_ns, found, moment, say_damages, say_left_out};
use crate::signals::{self, STOP};
use crate::units::counted;
use crate::{anonymize, exit, question_error};

const EXAMPLES: &str = "\
Examples:
  A day of flow records to a collector that missed it
    turboflow replay flows/2024/03/01 -w ipfix+tcp://collector.example:4739
  Only web traffic, at most 10,000 records a second
    turboflow replay flows.parquet --where 'tcp port 443' --rate 10k \\
      -w netflow9+udp://127.0.0.1:2055
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

    #[command(flatten)]
    as_files: FileArgs,

    /// Only records that match, as in `turboflow show`
    #[arg(long = "where", value_name = "EXPR")]
    filter: Option<String>,

    /// The time of `now`, and for -1h, in --where. Default: the clock
    #[arg(long, value_name = "TIME", value_parser = moment)]
    now: Option<u64>,

    /// Maximum flow records per second to a collector, such as 50k
    #[arg(long, value_name = "RATE", value_parser = str::parse::<CountAboveZero>)]
    rate: Option<CountAboveZero>,

    /// Observation domain of IPFIX, source id of NetFlow v9. Default: random, one for each
    /// collector; 1 in files
    #[arg(long, value_name = "N")]
    observation_domain: Option<u32>,

    /// Replace addresses with prefix-preserving pseudonyms, by the key in this file
    #[arg(long, value_name = "KEYFILE")]
    anonymize: Option<PathBuf>,
}

pub(crate) fn run(args: &ReplayArgs) -> anyhow::Result<Outcome> {
    let files = found(&args.files)?;
    let written: Vec<&Path> = args.write.iter().map(Path::new).collect();
    check_paths(&written, &files)?;
    args.check_outputs()?;
    args.as_files.check_use(&written)?;
    let mut input = Input::open(&files)?;
    say_left_out(&input);
    let schema = input.schema().clone();
    let filter = args.filter.as_deref();
    let filter = filter
        .map(|text| Filter::parse_at(text, input.shape(), Some(args.now.unwrap_or_else(clock_ns))))
        .transpose()
        .map_err(question_error::in_options)?;
    for note in filter.iter().flat_map(Filter::notes) {
        say!(Info AnswerNote; "{note}");
    }
    let meaning = Meaning::of(&input)?;
    let mut outputs = args.outputs(&meaning)?;
    signals::listen("ending", false, None)?;
    let (mut is_lossy, mut left_out) = (false, LeftOut::default());
    let read = each_batch(&mut input, |batch| {
        let kept = match &filter {
            Some(filter) => filter.apply(&batch, &schema),
            None => batch,
        };
        let kept = meaning.fitting(kept, &mut left_out);
        outputs.retain_mut(|(to, writer)| match writer.write(&kept) {
            Ok(()) => true,
            // The reader closed the pipe, which is not an error.
            Err(ExportError::BrokenPipe) => false,
            Err(error) => {
                is_lossy = true;
                say!(Error OutputFailed, output = *to; "{error}");
                false
            }
        });
        !outputs.is_empty()
    });
    for (to, writer) in outputs {
        match writer.finish() {
            Ok(summary) => say!(Info Finished, output = to, records = summary.records;
                "{}: {}", name_of(Path::new(to)), counted(summary.records, "flow record")),
            Err(ExportError::BrokenPipe) => {}
            Err(error) => {
                is_lossy = true;
                say!(Error OutputFailed, output = to; "{error}");
            }
        }
    }
    is_lossy |= left_out.say();
    if let Err(error) = read {
        // Records read so far are sent, but the run did not succeed.
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

/// Hands over batches until there are no more, or until `take` returns false.
fn each_batch(input: &mut Input, mut take: impl FnMut(FlowBatch) -> bool) -> anyhow::Result<()> {
    while !STOP.asked() {
        let batch = input.next().transpose()?;
        if !batch.is_some_and(&mut take) {
            break;
        }
    }
    Ok(())
}

/// Counts of records that the meter cannot have produced.
#[derive(Debug, Default)]
struct LeftOut {
    too_large: u64,
    incomplete: u64,
}

impl LeftOut {
    /// Logs how many, and why. Returns whether there are any.
    fn say(&self) -> bool {
        let Self {
            too_large,
            incomplete,
        } = *self;
        if too_large > 0 {
            say!(Error OutOfRange, records = too_large;
                "{} left out: a number in them is too large for its field, such as a port above \
                 65535", counted(too_large, "flow record"));
        }
        if incomplete > 0 {
            say!(Error Incomplete, records = incomplete;
                "{} left out: they lack a value that every flow record has, such as an address",
                counted(incomplete, "flow record"));
        }
        too_large + incomplete > 0
    }
}

impl ReplayArgs {
    /// Refuses outputs that cannot be replayed to, and options that apply to no output.
    fn check_outputs(&self) -> anyhow::Result<()> {
        if let Some(to) = self.write.iter().find(|to| KafkaTarget::is_meant(to)) {
            bail!("{to}: records go to Kafka while they are made, by `turboflow record` and `run`");
        }
        let rate = self.rate.map(|_| ("--rate", Key::Rate, "collectors"));
        let domain = self.observation_domain.map(|_| {
            let (option, key) = ("--observation-domain", Key::ObservationDomain);
            (option, key, "collectors and IPFIX files")
        });
        for (option, key, outputs) in rate.into_iter().chain(domain) {
            let applies = |to: &String| {
                let to = Path::new(to);
                applies_to(key, to, self.as_files.format(to).ok(), false)
            };
            if !self.write.iter().any(applies) {
                let to = name_of(Path::new(&self.write[0]));
                bail!(
                    "{option} is of no use with {to}: it is for {outputs}, such as \
                     -w ipfix+udp://HOST:PORT"
                );
            }
        }
        Ok(())
    }

    /// The outputs with their names.
    fn outputs(&self, meaning: &Meaning) -> anyhow::Result<Vec<(&str, Box<dyn FlowWriter>)>> {
        let (path, schema) = (self.anonymize.as_deref(), &meaning.schema);
        let key = path.map(anonymize::key).transpose()?;
        // Before an output is touched.
        if key.is_some() {
            anonymize::check(schema)?;
        }
        let output = |to: &String| {
            let writer = self.output(to, meaning)?;
            match &key {
                Some(key) => anonymize::writer(writer, schema, key.clone()),
                None => Ok(writer),
            }
        };
        let writes = self.write.iter();
        writes.map(|to| Ok((to.as_str(), output(to)?))).collect()
    }

    fn output(&self, to: &str, meaning: &Meaning) -> anyhow::Result<Box<dyn FlowWriter>> {
        let schema = &meaning.schema;
        let elements = ElementOptions::default();
        let elements = meaning.definition.elements(meaning.is_biflow, &elements);
        let wire = |domain| WireOptions {
            elements,
            domain: self.observation_domain.unwrap_or(domain),
            ..WireOptions::default()
        };
        Ok(if Target::is_meant(to) {
            let options = SendOptions {
                rate: self.rate.map(|CountAboveZero(rate)| rate),
                ..sending()
            };
            // As in `record`: distinguishes exporters that share an address.
            send_to(&to.parse()?, schema, &wire(own_domain()), &options)?
        } else {
            let path = Path::new(to);
            let format = self.as_files.format(path)?;
            let options = WriteOptions {
                metadata: origin(&meaning.definition, meaning.is_biflow),
                wire: wire(FILE_DOMAIN),
                ..self.as_files.write_options()
            };
            if is_stdout(path) {
                let stdout = stdout(format, false)?;
                to_writer(Box::new(stdout), &name_of(path), format, schema, &options)?
            } else {
                file(path, format, schema, &options, None)?
            }
        })
    }
}

/// The meaning of the columns: a definition, and whether its records are biflows.
struct Meaning {
    definition: Definition,
    is_biflow: bool,
    /// The columns as the meter defines them. In text files every value may be absent, but
    /// templates for a collector must not describe records that cannot exist.
    schema: Schema,
}

impl Meaning {
    /// The records that the meter could have produced, without the columns of an identity. Text
    /// files may hold numbers of any size, which other formats would truncate.
    fn fitting(&self, mut batch: FlowBatch, left_out: &mut LeftOut) -> FlowBatch {
        batch.keep_columns(self.schema.len());
        let columns = || self.schema.iter().enumerate();
        let is_too_large = |row: usize| {
            columns().any(|(index, column)| match batch.value(row, index) {
                Value::Unsigned(number) => number > largest(column.kind),
                _ => false,
            })
        };
        let is_incomplete = |row: usize| {
            let mut required = columns().filter(|(_, column)| !column.nullable);
            required.any(|(index, _)| batch.value(row, index) == Value::Absent)
        };
        let (mut rows, before) = (Vec::new(), (left_out.too_large, left_out.incomplete));
        for row in 0..batch.rows() {
            match (is_incomplete(row), is_too_large(row)) {
                (true, _) => left_out.incomplete += 1,
                (false, true) => left_out.too_large += 1,
                (false, false) => rows.push(row),
            }
        }
        if (left_out.too_large, left_out.incomplete) == before {
            return batch;
        }
        let mut kept = FlowBatch::new(&self.schema);
        for row in rows {
            let values = (0..self.schema.len()).map(|column| batch.value(row, column));
            kept.push_row(&values.collect::<Vec<_>>());
        }
        kept
    }

    /// The definition in the files, or the default one. The columns of a run's identity may follow,
    /// and are left out: the records that are written have another exporter.
    fn of(input: &Input) -> anyhow::Result<Self> {
        let shape = input.shape();
        let definition = shape.definition.cloned().unwrap_or_default();
        let own = Identity::columns().map(|column| column.name);
        let found: Vec<&str> = shape.schema.iter().map(|column| &column.name[..]).collect();
        let found = found
            .strip_suffix(&own.each_ref().map(|name| &name[..]))
            .unwrap_or(&found);
        let mut unknown = None;
        for is_biflow in [false, true] {
            let layout =
                Layout::compile(&definition, is_biflow).context("the files' definition")?;
            let names: Vec<&str> = layout
                .schema()
                .iter()
                .map(|column| &column.name[..])
                .collect();
            unknown = found.iter().find(|name| !names.contains(name));
            if names == found {
                let schema = layout.schema().clone();
                return Ok(Self {
                    definition,
                    is_biflow,
                    schema,
                });
            }
        }
        let which = match shape.definition {
            Some(_) => "the definition in the file",
            None => {
                "the default definition; text files of others cannot be replayed, but Parquet \
                     files can"
            }
        };
        match unknown {
            Some(name) => bail!("there is a column `{name}` that is not in {which}"),
            None => bail!("columns are missing, or in another order than in {which}"),
        }
    }
}

/// The largest number that a column of this kind can hold.
const fn largest(kind: ColumnKind) -> u64 {
    match kind {
        ColumnKind::Unsigned { bits } => u64::MAX >> (64 - bits as u32),
        ColumnKind::Mac => (1 << 48) - 1,
        _ => u64::MAX,
    }
}
