// SPDX-License-Identifier: Apache-2.0
//! Runs one query, from its text to the last row of the answer.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use anyhow::{Context, bail};
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SendableRecordBatchStream, SessionStateBuilder};
use datafusion::optimizer::{Analyzer, AnalyzerRule};
use datafusion::prelude::{SQLOptions, SessionConfig, SessionContext};
use futures::StreamExt;
use rustix::termios::tcgetwinsize;
use turboflow_formats::table::{grouped, wrapped};
use turboflow_query::{Answer, AnswerColumn, Cell, Input, PlainStyle, TableStyle, flow_files};

use crate::args::{SqlArgs, SqlFormat};
use crate::differences::WideDifferences;
use crate::functions::functions;
use crate::rows::{Look, looks, rows};
use crate::statement;
use crate::tables::{Damages, FlowTable};
use crate::{say, wrong};

/// The table for files that are given without a table name.
const FLOWS: &str = "flows";

/// Maximum number of cells in a printed table, which is held in memory until the widths of its
/// columns are known.
const TABLE_CELLS_MAX: usize = 4_000_000;

/// Where the answer is written.
type Output = BufWriter<io::StdoutLock<'static>>;

/// Answers the query, and reports damaged files. Returns whether all files were complete.
pub(crate) async fn answer(args: &SqlArgs) -> anyhow::Result<bool> {
    let statement = statement::parse(&args.query)?;
    let damages = Damages::default();
    let context = session(args)?;
    for (name, given) in tables(args)? {
        let table = table(&name, &given, &damages)?;
        context.register_table(name.as_str(), Arc::new(table))?;
    }
    let told = |error| wrong::query(&error, &args.query);
    let plan = context
        .state()
        .statement_to_plan(statement)
        .await
        .map_err(told)?;
    let reads = SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_dml(false)
        .with_allow_statements(false);
    reads.verify_plan(&plan).map_err(told)?;
    let frame = context.execute_logical_plan(plan).await.map_err(told)?;
    let rows = frame.execute_stream().await.map_err(told)?;
    write(args, rows).await?;
    let damages = damages.lock().unwrap_or_else(PoisonError::into_inner);
    for damage in damages.iter() {
        say(&format!("{damage}; the flow records before that were read"));
    }
    Ok(damages.is_empty())
}

/// The files of each table.
fn tables(args: &SqlArgs) -> anyhow::Result<Vec<(String, Vec<PathBuf>)>> {
    let mut tables: Vec<(String, Vec<PathBuf>)> = Vec::new();
    if !args.files.is_empty() {
        tables.push((FLOWS.to_owned(), args.files.clone()));
    }
    for (name, files) in &args.tables {
        if name == FLOWS && !args.files.is_empty() {
            bail!(
                "--table {FLOWS}={}: the files after the query already are this table",
                files.display()
            );
        }
        match tables.iter_mut().find(|(its, _)| its == name) {
            Some((_, its)) => its.push(files.clone()),
            None => tables.push((name.clone(), vec![files.clone()])),
        }
    }
    Ok(tables)
}

fn table(name: &str, given: &[PathBuf], damages: &Damages) -> anyhow::Result<FlowTable> {
    let found = flow_files(given)?;
    for told in found.passed_over {
        say(&format!("{told}: not read; name it to read it"));
    }
    for told in found.read_once {
        say(&told);
    }
    let opened = Input::open(&found.files)?;
    if !opened.left_out().is_empty() {
        let columns = opened.left_out().join(", ");
        say(&format!(
            "columns that flow records do not have are left out: {columns}"
        ));
    }
    if opened.schema().is_empty() {
        let place = given[0].display();
        bail!("table {name}: {place} has no records, so its columns are not known");
    }
    Ok(FlowTable::new(
        name,
        found.files,
        opened,
        Arc::clone(damages),
    ))
}

/// The environment of the query: its memory limit, and no temporary files unless a folder for them
/// was given.
fn session(args: &SqlArgs) -> anyhow::Result<SessionContext> {
    let files = match &args.spill {
        Some(folder) if !folder.is_dir() => {
            bail!(
                "--spill {}: there is no such folder; create it first",
                folder.display()
            )
        }
        Some(folder) => DiskManagerMode::Directories(vec![folder.clone()]),
        None => DiskManagerMode::Disabled,
    };
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(FairSpillPool::new(args.memory)))
        .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(files))
        .build_arc()
        .context("cannot begin")?;
    let config = SessionConfig::new()
        .with_target_partitions(threads(args))
        .set_bool("datafusion.sql_parser.collect_spans", true)
        // Every recursion step would read the files again.
        .set_bool("datafusion.execution.enable_recursive_ctes", false);
    let ours: Arc<dyn AnalyzerRule + Send + Sync> = Arc::new(WideDifferences);
    let rules = [ours].into_iter().chain(Analyzer::new().rules);
    let state = SessionStateBuilder::new_with_default_features()
        .with_config(config)
        .with_analyzer_rules(rules.collect())
        .with_runtime_env(runtime)
        .build();
    let context = SessionContext::new_with_state(state);
    for function in functions() {
        context.register_udf(function);
    }
    Ok(context)
}

/// Number of worker threads.
pub(crate) fn threads(args: &SqlArgs) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, |its| its.get());
    args.threads.map_or(processors, |threads| threads.get())
}

/// Writes the rows as they are computed. It is not an error if the reader closes its end.
async fn write(args: &SqlArgs, rows: SendableRecordBatchStream) -> anyhow::Result<()> {
    let looks = looks(&rows.schema(), args.format);
    let mut output = BufWriter::new(io::stdout().lock());
    let written = match args.format {
        SqlFormat::Table => table_of(args, rows, &looks, &mut output).await,
        SqlFormat::Csv | SqlFormat::Json => plain(args, rows, &looks, &mut output).await,
    };
    let Err(error) = written else {
        return Ok(());
    };
    // Drops the buffered rest without writing it: no one reads it either.
    let _ = output.into_parts();
    match error.downcast_ref::<io::Error>() {
        Some(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Some(_) => Err(error.context("cannot write standard output")),
        None => Err(error),
    }
}

fn columns(looks: &[Look]) -> Vec<AnswerColumn> {
    looks.iter().map(|look| look.column.clone()).collect()
}

/// Writes rows for programs, batch by batch.
async fn plain(
    args: &SqlArgs,
    mut stream: SendableRecordBatchStream,
    looks: &[Look],
    output: &mut Output,
) -> anyhow::Result<()> {
    let style = PlainStyle::default();
    let is_csv = args.format == SqlFormat::Csv;
    let mut page = Answer::of_rows(columns(looks), Vec::new());
    if is_csv {
        page.write_csv(output, style)?;
    }
    while let Some(batch) = stream.next().await {
        let batch = batch.map_err(|error| wrong::query(&error, &args.query))?;
        page.rows = rows(looks, &batch)?;
        match is_csv {
            true => page.write_csv_rows(output, style)?,
            false => page.write_json_lines(output, style)?,
        }
    }
    Ok(output.flush()?)
}

/// Writes the first rows, as a table for people.
async fn table_of(
    args: &SqlArgs,
    mut stream: SendableRecordBatchStream,
    looks: &[Look],
    output: &mut Output,
) -> anyhow::Result<()> {
    let most = if args.rows == 0 {
        usize::MAX
    } else {
        args.rows
    };
    let mut shown: Vec<Vec<Cell>> = Vec::new();
    let mut all = 0;
    while let Some(batch) = stream.next().await {
        let batch = batch.map_err(|error| wrong::query(&error, &args.query))?;
        all += batch.num_rows();
        let first = batch.slice(0, batch.num_rows().min(most - shown.len()));
        if (shown.len() + first.num_rows()).saturating_mul(looks.len()) > TABLE_CELLS_MAX {
            bail!(
                "the table would have more than {} values: --format csv or json writes all rows, \
                 or --rows fewer",
                grouped(TABLE_CELLS_MAX as u64)
            );
        }
        shown.extend(rows(looks, &first)?);
    }
    let count = shown.len();
    let width = terminal_width();
    let style = TableStyle {
        width,
        humanise: !args.exact,
    };
    let mut text = Answer::of_rows(columns(looks), shown).to_table(style);
    if !text.left_out.is_empty() {
        let columns = text.left_out.join(", ");
        text.notes
            .push(format!("No room for {columns}: select fewer columns."));
    }
    text.notes.push(match count < all {
        true => format!(
            "{} of {} rows (--rows 0 shows all)",
            grouped(count as u64),
            grouped(all as u64)
        ),
        false => format!(
            "{} row{}",
            grouped(all as u64),
            if all == 1 { "" } else { "s" }
        ),
    });
    let notes = text.notes.iter().map(|note| wrapped(note, width));
    write!(output, "{}\n{}", text.table, notes.collect::<String>())?;
    Ok(output.flush()?)
}

/// Width of the terminal on standard output, if it is one.
fn terminal_width() -> Option<usize> {
    let size = tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}
