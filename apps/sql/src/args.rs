// SPDX-License-Identifier: Apache-2.0
//! The arguments of `turboflow sql`. The program `turboflow`, which passes them on, includes this
//! file too, so that its help, completions and manual pages list them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use turboflow_record::quantity::size_bytes;

/// The last line of `-h`, which fits on one screen.
const SHORT: &str = "--help has examples, the types of columns, functions, and exit codes.";

const EXAMPLES: &str = "\
Examples:
  Who sends most?
    turboflow sql 'select src_addr, sum(bytes) b from flows group by 1 order by b desc limit 10' \\
      flows.parquet
  Which columns are there?
    turboflow sql 'describe flows' flows.parquet
  Bytes per minute of two networks, as CSV
    turboflow sql \"select date_trunc('minute', first_ns) minute, sum(bytes) b from flows
      where in_network(src_addr, '10.0.0.0/8') or in_network(src_addr, '2001:db8::/32')
      group by 1 order by 1\" --format csv 'flows/*.parquet'
  How long flows to each port last, in seconds
    turboflow sql 'select dst_port, count(*) n, approx_percentile_cont(0.95)
      within group (order by seconds(last_ns - first_ns)) p95
      from flows group by 1 order by n desc limit 10' flows.parquet
  Flows that one vantage point saw and another did not
    turboflow sql 'select * from flows left anti join far
      using (src_addr, dst_addr, src_port, dst_port, protocol)' near.parquet --table far=far.parquet

The table `flows` holds the records of the files, with the files' column names. Numbers are unsigned
integers, times (first_ns) are timestamps in UTC, addresses are texts, lists are lists.
Functions in addition to those of DataFusion (https://datafusion.apache.org/user-guide/sql):
  in_network(ADDRESS, NETWORK)     whether the address is in the network: '10.0.0.0/8'
  network(ADDRESS, LENGTH)         its network, with a prefix of LENGTH bits: network(src_addr, 24)
  network(ADDRESS, LENGTH, LENGTH) with a length for IPv4 and for IPv6: network(src_addr, 24, 48)
  seconds(DURATION)                a difference of times as a number: seconds(last_ns - first_ns)

In CSV and JSON, times in columns whose names end in _ns are nanoseconds since 1970, other times
look like 2024-03-01T12:30:00Z, and durations are nanoseconds.

Exit codes: 0 all well, also if the reader closes the pipe (`| head`); 1 a file was cut, only its
complete records were read; 2 the query or a file could not be read; 130 ended by Ctrl-C.";

/// Query files of flow records in SQL: joins, windows, percentiles (turboflow-query).
///
/// Reads what `turboflow show` reads, and from Parquet only the columns of the query. A query only
/// reads: it changes and writes nothing. Runs on DataFusion, in the program `turboflow-query`.
#[derive(Debug, Args)]
#[command(after_help = SHORT, after_long_help = EXAMPLES)]
pub(crate) struct SqlArgs {
    /// One query: select ..., or describe TABLE
    #[arg(value_name = "QUERY")]
    pub(crate) query: String,

    /// Files of the table `flows`, with the same columns; folders of them, or patterns in quotes
    /// ('flows/2024-*.parquet'); `-` is standard input (CSV or JSON lines)
    #[arg(value_name = "FILE", required_unless_present = "tables")]
    pub(crate) files: Vec<PathBuf>,

    /// Another table, of a file, folder or pattern; repeat for more tables, or more files of one
    #[arg(long = "table", id = "tables", value_name = "NAME=FILES", value_parser = table)]
    pub(crate) tables: Vec<(String, PathBuf)>,

    /// How to print the answer
    #[arg(long, value_enum, default_value_t = SqlFormat::Table, help_heading = "Answer")]
    pub(crate) format: SqlFormat,

    /// Maximum rows of a table; 0 for all. CSV and JSON have all
    #[arg(long, value_name = "N", default_value_t = 100, help_heading = "Answer")]
    pub(crate) rows: usize,

    /// Exact numbers in tables rather than 3.4 GB and 1.2 M
    #[arg(long, help_heading = "Answer")]
    pub(crate) exact: bool,

    /// Memory for groups, sorts and joins: a query that needs more is refused
    #[arg(long, value_name = "SIZE", default_value = "2GiB", value_parser = memory)]
    #[arg(help_heading = "Limits")]
    pub(crate) memory: usize,

    /// A folder for data that does not fit into that memory; without it, nothing is written
    #[arg(long, value_name = "FOLDER", help_heading = "Limits")]
    pub(crate) spill: Option<PathBuf>,

    /// Threads. Default: one for each processor
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub(crate) threads: Option<std::num::NonZeroUsize>,
}

/// How answers are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SqlFormat {
    /// For people; as wide as the terminal
    Table,
    /// For programs
    Csv,
    /// One object a line
    #[value(alias = "jsonl")]
    Json,
}

/// Parses `--table`.
fn table(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, files)) if !files.is_empty() && is_name(name) => {
            Ok((name.to_ascii_lowercase(), files.into()))
        }
        _ => Err("write a name of letters, digits and _, and files: far=far.parquet".to_owned()),
    }
}

fn is_name(name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_word)
}

/// Minimum memory limit: enough for the batches of a small query.
const LEAST_MEMORY_BYTES: usize = 1 << 20;

/// Parses `--memory`.
fn memory(text: &str) -> Result<usize, String> {
    match usize::try_from(size_bytes(text)?) {
        Ok(bytes) if bytes >= LEAST_MEMORY_BYTES => Ok(bytes),
        Ok(_) => Err("at least 1MiB".to_owned()),
        Err(_) => Err("the size is too large".to_owned()),
    }
}
