// SPDX-License-Identifier: Apache-2.0
//! `turboflow classify`: flow records with the application that a trained model names.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use turboflow_classify::{Classified, Classifier, Model};
use turboflow_formats::{ExportError, FlowWriter, Format, WriteOptions, to_writer};
use turboflow_query::Input;
use turboflow_record::{Column, FlowBatch, Schema};

use crate::exit::Outcome;
use crate::file_args::FileArgs;
use crate::log::say;
use crate::record::{check_paths, file, is_stdout, name_of, origin, stdout};
use crate::show::{found, say_damages, say_left_out};
use crate::signals::{self, STOP};
use crate::units::counted;

const EXAMPLES: &str = "\
Examples:
  What do these flows carry?
    turboflow classify flows.parquet --model applications.model -w named.parquet
    turboflow show named.parquet --group-by application
  Only what the model is sure of
    turboflow show named.parquet --where 'confidence > 0.9' --group-by application
  In a second column, beside the applications that inspection found
    turboflow classify inspected.parquet --model applications.model --as guess -w both.parquet
    turboflow show both.parquet --group-by application,guess

contrib/classifier/train.py trains models on records that inspection has labelled; docs/classify.md
has the format of a model file, and how accurate the models are.

Exit codes: 0 all well; 1 records were lost on the way; 2 it could not run.";

/// The formats that can hold the columns that a model adds.
const FORMATS: &str = "Format of files if no extension selects it: csv, jsonl, parquet or arrow. \
    For standard output: csv";

/// Name the application of flow records with a trained model
///
/// A model is a tree, a forest or a linear model. Reads what `turboflow show` reads. Adds two
/// columns to the records: `application`, a name, and `confidence`, from 0 to 1.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
#[command(mut_arg("format", |format| format.help(FORMATS)))]
pub(crate) struct ClassifyArgs {
    /// Files of flow records with the same columns, folders or patterns; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// The model
    #[arg(long, value_name = "FILE")]
    model: PathBuf,

    /// Where the records are written, `-` is standard output
    #[arg(short, long = "write", value_name = "FILE", default_value = "-")]
    write: PathBuf,

    /// Name of the application column. If it is not `application`, confidences are in
    /// NAME_confidence
    #[arg(long = "as", value_name = "NAME", default_value = APPLICATION)]
    name: String,

    #[command(flatten)]
    as_files: FileArgs,
}

/// The default name of the column.
const APPLICATION: &str = "application";

pub(crate) fn run(args: &ClassifyArgs) -> anyhow::Result<Outcome> {
    let files = found(&args.files)?;
    check_paths(&[&args.write], &files)?;
    args.check_use()?;
    let model = model(&args.model)?;
    let mut input = Input::open(&files)?;
    say_left_out(&input);
    let schema = args.schema(input.schema())?;
    let bound = Classifier::new(&model, input.schema());
    let mut classifier = bound.with_context(|| args.model.display().to_string())?;
    let mut writer = args.writer(&schema, &input)?;
    signals::listen("ending", false, None)?;
    let mut written = Ok(());
    while written.is_ok() && !STOP.asked() {
        let Some(batch) = input.next_batch()? else {
            break;
        };
        written = writer.write(&with_classes(&mut classifier, &batch));
    }
    let finished = match written {
        Ok(()) => writer.finish(),
        Err(error) => Err(error),
    };
    let mut outcome = say_damages(&input);
    let to = name_of(&args.write);
    match finished {
        Ok(summary) => say!(Info Finished, output = &*to, records = summary.records;
            "{to}: {}", counted(summary.records, "flow record")),
        // The reader closed the pipe, which is not an error.
        Err(ExportError::BrokenPipe) => {}
        Err(error) => {
            outcome = Outcome::Lossy;
            say!(Error OutputFailed, output = &*to; "{error}");
        }
    }
    if STOP.asked() {
        outcome = Outcome::Lossy;
        say!(Error Stopped; "stopped by a signal: the input was not read to its end");
    }
    Ok(outcome)
}

/// Reads a model.
fn model(path: &Path) -> anyhow::Result<Model> {
    let place = path.display();
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read the model {place}"))?;
    Model::parse(&text).map_err(|error| anyhow!("{place}, {error}"))
}

/// The records with two more columns: application and confidence.
fn with_classes(classifier: &mut Classifier<'_>, batch: &FlowBatch) -> FlowBatch {
    let mut found = Classified::default();
    classifier.classify(batch, &mut found);
    batch.with_columns(classifier.values(found))
}

impl ClassifyArgs {
    /// Refuses options that do not fit the output.
    fn check_use(&self) -> anyhow::Result<()> {
        self.as_files.check_use(&[&self.write])?;
        if self.as_files.format(&self.write)? == Format::Ipfix {
            bail!(
                "IPFIX has no information element for the answer of a model: write .parquet, \
                 .arrow, .csv or .jsonl"
            );
        }
        Ok(())
    }

    /// The columns of the records, and the two new ones.
    fn schema(&self, schema: &[Column]) -> anyhow::Result<Schema> {
        let confidence = match &*self.name {
            APPLICATION => "confidence".to_owned(),
            name => format!("{name}_confidence"),
        };
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if !self.name.starts_with(|c: char| c.is_ascii_lowercase())
            || !self.name.chars().all(is_name)
        {
            bail!(
                "--as {:?}: write the name of a column, such as guess",
                self.name
            );
        }
        let own = Classifier::columns(&self.name, &confidence);
        let is_taken = |column: &&Column| own.iter().any(|its| its.name == column.name);
        if let Some(taken) = schema.iter().find(is_taken) {
            bail!(
                "the records already have a column `{}`: choose another name, such as --as guess",
                taken.name
            );
        }
        Ok(schema.iter().cloned().chain(own).collect())
    }

    fn writer(&self, schema: &Schema, input: &Input) -> anyhow::Result<Box<dyn FlowWriter>> {
        let is_reverse = |column: &Column| column.name.starts_with("reverse_");
        let is_biflow = schema.iter().any(is_reverse);
        let definition = input.shape().definition;
        let options = WriteOptions {
            metadata: definition.map_or_else(Vec::new, |its| origin(its, is_biflow)),
            ..self.as_files.write_options()
        };
        let (path, format) = (&*self.write, self.as_files.format(&self.write)?);
        if is_stdout(path) {
            let stdout = stdout(format, false)?;
            return Ok(to_writer(
                Box::new(stdout),
                &name_of(path),
                format,
                schema,
                &options,
            )?);
        }
        file(path, format, schema, &options, None)
    }
}
