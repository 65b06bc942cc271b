// SPDX-License-Identifier: Apache-2.0
//! `turboflow show`: questions about files of flow records.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, ValueEnum};
use rustix::termios::tcgetwinsize;
use turboflow_formats::table;
use turboflow_query::{Answer, Input, Query, Question, TableStyle};
use turboflow_record::{Column, ColumnKind};

use crate::exit::{Outcome, print};
use crate::units::{count, grouped};

/// Behind `-h`, which is one screen.
const SHORT: &str = "--help has examples, the language of --where and of groups, and exit codes.";

const EXAMPLES: &str = "\
Examples:
  The largest flow records
    turboflow show flows.parquet --top 10
  Who sends most?
    turboflow show flows.parquet --group-by src_addr --top 10
  Which services get most packets?
    turboflow show flows.parquet --group-by protocol,dst_port --by packets
  How much, minute by minute, to and from a web server?
    turboflow show flows.parquet --where 'host 192.0.2.10 and port 443' --group-by time:1m
  Which networks talk to each other?
    turboflow show flows.parquet --group-by src_addr/24,dst_addr/24
  Connections that were opened and never answered, as CSV
    turboflow show flows.csv --where 'tcp and tcp_flags == S' --format csv
  Several files as one, compressed and from a pipe too
    ssh probe cat day1.csv.gz | turboflow show - day2.csv.zst --group-by protocol

Expressions (--where):
  FIELD == VALUE   also != < <= > >=; numbers may have k, M, G, bytes kB, MiB, durations a unit (duration > 2s)
  FIELD in (A, B)  also networks: src_addr in 10.0.0.0/8
  FIELD has VALUE  flags (tcp_flags has S) and elements of lists
  host ADDRESS, net NETWORK, port NUMBER   on either side
  tcp, udp, icmp, ...                      by protocol
  and, or, not, ( )

Groups (--group-by): FIELD for every value; FIELD:WIDTH for ranges (bytes:1M, duration:10s);
  ADDRESS/LENGTH for networks (IPv6: /64; src_addr/24/48 names both lengths). Groups have records,
  packets, bytes, their share, first and last; any other column of amounts is added up where --by
  or --select names it, of min_... and max_... the least and the largest is shown. Of biflows,
  total_packets and total_bytes are of both directions.
  time:WIDTH is over time: packets and bytes of a record are spread over the buckets from its
  first to its last packet, in proportion to the time it spent in each, and add up exactly; the
  record is counted in the bucket in which it began. Alone, it shows silent buckets as zeros.
  first_ns:WIDTH puts whole records where they began, last_ns:WIDTH where they ended.

Exit codes: 0 all well, also when the reader went away (`| head`); 2 the question or a file could
not be read.";

/// Ask questions of files of flow records: who talks most, on which ports, when.
///
/// Reads CSV, JSON lines and Parquet, as `turboflow record` writes them; the format shows in the
/// content, and so do gzip and zstd. Fields are the names of the files' columns, `duration`, and of
/// biflows `total_packets` and `total_bytes`.
#[derive(Debug, Args)]
#[command(after_help = SHORT, after_long_help = EXAMPLES)]
pub(crate) struct ShowArgs {
    /// Files of flow records with the same columns; `-` is standard input (CSV or JSON lines)
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Only records that match
    #[arg(long = "where", value_name = "EXPR", help_heading = "Question")]
    filter: Option<String>,

    /// Add up the records that agree in these fields, with commas between
    #[arg(long, value_name = "FIELD,...", help_heading = "Question")]
    group_by: Option<String>,

    /// Sort by this field, largest first, and show it. Default: bytes, of biflows total_bytes;
    /// groups by time in order
    #[arg(long, value_name = "FIELD", help_heading = "Question")]
    by: Option<String>,

    /// Smallest first
    #[arg(long, help_heading = "Question")]
    ascending: bool,

    /// How many rows; 0 for all. Default: 20 in tables, or all where groups are by time; all in
    /// CSV and JSON
    #[arg(long, value_name = "N", value_parser = count, help_heading = "Question")]
    top: Option<u64>,

    /// Columns to print, with commas between: of records, or `all`; of groups after their fields.
    /// Default: those that fit a terminal; all of records in CSV and JSON
    #[arg(long, value_name = "FIELD,...", help_heading = "Answer")]
    select: Option<String>,

    /// How to print the answer
    #[arg(long, value_enum, default_value_t = AnswerFormat::Table, help_heading = "Answer")]
    format: AnswerFormat,

    /// Exact numbers in tables rather than 3.4 GB and 1.2 M
    #[arg(long, help_heading = "Answer")]
    exact: bool,
}

/// How answers are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AnswerFormat {
    /// For people; as wide as the terminal
    Table,
    /// For programs; numbers and times as integers
    Csv,
    /// One object a line
    #[value(alias = "jsonl")]
    Json,
}

/// Default number of table rows.
const TABLE_ROWS: usize = 20;

pub(crate) fn run(args: &ShowArgs) -> anyhow::Result<Outcome> {
    let input = Input::open(&args.files)?;
    let query = Query::parse(&args.question(input.schema()), input.shape())?;
    let answer = turboflow_query::run(&query, input)?;
    match args.format {
        AnswerFormat::Table => print(&args.table(&answer))?,
        AnswerFormat::Csv => stream(|output| answer.write_csv(output))?,
        AnswerFormat::Json => stream(|output| answer.write_json_lines(output))?,
    }
    Ok(Outcome::Well)
}

impl ShowArgs {
    fn question(&self, schema: &[Column]) -> Question {
        let is_table = self.format == AnswerFormat::Table;
        let mut fields = self.group_by.iter().flat_map(|fields| fields.split(','));
        let is_time = |name: &str| {
            let mut times = schema.iter().filter(|c| c.kind == ColumnKind::TimestampNs);
            name == "time" || times.any(|column| column.name == name)
        };
        let in_time = fields.any(|field| {
            let bucket = field.trim().split_once(':');
            bucket.is_some_and(|(name, _)| is_time(name))
        });
        let top = match self.top {
            Some(0) => None,
            Some(rows) => Some(usize::try_from(rows).unwrap_or(usize::MAX)),
            None => (is_table && !in_time).then_some(TABLE_ROWS),
        };
        let all = self.select.as_deref() == Some("all");
        Question {
            filter: self.filter.clone(),
            group_by: self.group_by.clone(),
            by: self.by.clone(),
            select: self.select.clone().filter(|_| !all),
            ascending: self.ascending,
            top,
            all_columns: all || !is_table,
        }
    }

    fn table(&self, answer: &Answer) -> String {
        let width = tcgetwinsize(io::stdout())
            .ok()
            .map(|size| usize::from(size.ws_col));
        let style = TableStyle {
            width,
            humanise: !self.exact,
        };
        let (read, matched) = (answer.totals.read, answer.totals.matched);
        let shown = answer.rows.len() as u64;
        let cut = if shown < answer.totals.rows {
            format!(
                "{} of {} rows (--top 0 shows all); ",
                grouped(shown),
                grouped(answer.totals.rows)
            )
        } else {
            String::new()
        };
        let packets = matched.packets.map(|n| format!("{} packets", grouped(n)));
        let bytes = matched.bytes.map(table::bytes);
        let with: Vec<String> = packets.into_iter().chain(bytes).collect();
        let with = match with.is_empty() {
            true => String::new(),
            false => format!(", with {}", with.join(" and ")),
        };
        format!(
            "{}\n{cut}{} of {} records matched{with}\n",
            answer.to_table(style),
            grouped(matched.records),
            grouped(read.records),
        )
    }
}

/// Writes to standard output. A reader that has closed its end is not an error.
fn stream(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    let mut stdout = BufWriter::new(io::stdout().lock());
    match write(&mut stdout).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            // The buffered rest has no reader either.
            let _ = stdout.into_parts();
            Ok(())
        }
        outcome => outcome.context("cannot write standard output"),
    }
}
