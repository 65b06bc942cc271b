// SPDX-License-Identifier: Apache-2.0
//! `turboflow show`: answers questions about files of flow records.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use turboflow_formats::{table, tells_more};
use turboflow_query::{
    Answer, Input, PlainStyle, Query, Question, Show, TableStyle, TableText, TimeForm, flow_files,
    time_text,
};
use turboflow_record::{Column, ColumnKind};

use crate::anonymize;
use crate::enrich::enrich;
use crate::enrich_args::EnrichArgs;
use crate::exit::{Outcome, print, terminal_width};
use crate::log::say;
use crate::question_error;
use crate::record::time_form;
use crate::units::{count, grouped};

/// Follows the options in `-h`, which is one screen.
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
  Which hosts moved most in the last hour, both directions together?
    turboflow show flows.parquet --within -1h.. --group-by host --top 10
  The three largest senders of every minute
    turboflow show flows.parquet --group-by time:1m,src_addr --top-each 3
  Connections that were opened and never answered, as CSV
    turboflow show flows.csv --where 'tcp and tcp_flags == S' --format csv
  Which countries and autonomous systems, and which of our networks, by files of your own
    turboflow show flows.parquet --country country.mmdb --asn asn.mmdb --networks sites.csv \\
      --where 'dst_country != CH' --group-by src_owner,dst_as_name
  All files of a day, in folders by date
    turboflow show flows/2024/03/01 --group-by host
  Several files as one, compressed, and one from a pipe
    ssh probe cat day1.csv.gz | turboflow show - day2.csv.zst --group-by protocol

Expressions (--where):
  FIELD == VALUE   also != < <= > >=; numbers may have k, M, G, bytes kB, MiB, durations
                   a unit (duration > 2s)
  FIELD in (A, B)  also networks and ranges: src_addr in 10.0.0.0/8, dst_port in 8000-8100
  FIELD has VALUE  flags (tcp_flags has S) and elements of lists
  FIELD/FIELD      a ratio: bytes/packets > 100
  bps, pps, bytes_per_packet    rates of a record; bps and pps if it lasts longer than 0 s
  first > -1h      times from now (--now last: from the last packet); also 2024-03-01T12:30Z,
                   and ranges with two dots
  host ADDRESS, net NETWORK, port NUMBER, portrange A-B   on either side, or after src or dst:
                   dst port 443, src net 10.0.0.0/8, port in (80,443), port 80 or 443
  tcp, udp, icmp, ip, ip6, proto NAME      alone, or before a test: tcp port 443
  https, domain, ssh, ...                  instead of a port number: dst port https, not alone
  and, or, not, ( )

Groups (--group-by): FIELD for every value; FIELD:WIDTH for ranges (bytes:1M, duration:10s);
  ADDRESS/LENGTH for networks (IPv6: /64; src_addr/24/48 names both lengths). Groups have records,
  packets, bytes, their share in percent, first and last. --by and --select can name other columns:
  amounts are added up, of min_... the smallest and of max_... the largest value is shown;
  sum(FIELD), min(FIELD) and max(FIELD) choose one of these. bps, pps and bytes_per_packet are of
  the whole group. Of biflows, total_packets and total_bytes count both directions.
  host counts a record at both of its addresses: all that a host sent and received; host/24 does so
  for networks.
  time:WIDTH is over time: packets and bytes of a record are spread over the buckets from its
  first to its last packet, in proportion to the time it spent in each, and add up exactly; the
  record is counted in the bucket in which it began. start is the start of a bucket. If time:WIDTH
  is the only field, empty buckets are shown as zeros.
  With more fields, --top-each N shows the N largest of every bucket.
  first_ns:WIDTH puts whole records into the bucket of their first packet, last_ns:WIDTH of their
  last.

Exit codes: 0 all well, also if the reader closes the pipe (`| head`); 1 a file was cut, and only
its complete records were read; 2 the question or a file could not be read.";

/// Query files of flow records: who talks most, on which ports, when.
///
/// Reads CSV, JSON lines, Parquet and IPFIX, as `turboflow record` writes them. The format, gzip
/// and zstd are recognised by the content. Fields are the names of the files' columns, `duration`,
/// and for biflows `total_packets` and `total_bytes`.
#[derive(Debug, Args)]
#[command(after_help = SHORT, after_long_help = EXAMPLES)]
pub(crate) struct ShowArgs {
    /// Files of flow records with the same columns, folders of them, or patterns in quotes
    /// ('flows/2024-*.parquet'); `-` is standard input (CSV or JSON lines)
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Only records that match
    #[arg(long = "where", value_name = "EXPR", help_heading = "Question")]
    filter: Option<String>,

    /// Only records with packets from FROM and before TO; one may be absent:
    /// 2024-03-01T12:30..2024-03-01T13:00, or -1h..
    ///
    /// Times are UTC, or have an offset: 2024-03-01T13:30+01:00.
    ///
    /// Each record counts as a whole, or with --clip only its part within that time. With
    /// --group-by time:WIDTH, only the buckets within that time are shown.
    #[arg(long, value_name = "FROM..TO", allow_hyphen_values = true)]
    #[arg(help_heading = "Question")]
    within: Option<String>,

    /// Count only the part of each record within that time
    #[arg(long, requires_all = ["within", "group_by"], help_heading = "Question")]
    clip: bool,

    /// Add up records with equal values in these comma-separated fields
    #[arg(long, value_name = "FIELD,...", help_heading = "Question")]
    group_by: Option<String>,

    /// Sort by this field, largest first, and show it. Default: bytes, of biflows total_bytes;
    /// groups by time: time
    #[arg(long, value_name = "FIELD", help_heading = "Question")]
    by: Option<String>,

    /// Smallest first
    #[arg(long, help_heading = "Question")]
    ascending: bool,

    /// How many rows; 0 for all. Default: 20 in tables, but all if groups are by time; all in
    /// CSV and JSON
    #[arg(long, value_name = "N", value_parser = count, help_heading = "Question")]
    top: Option<u64>,

    /// How many rows of every time bucket, sorted by --by; for groups such as time:5m,src_addr
    #[arg(long, value_name = "N", value_parser = count, help_heading = "Question")]
    top_each: Option<u64>,

    /// The time of `now`, and for -1h, in --where and --within: a time, or `last` for that of the
    /// last packet. Default: the clock
    #[arg(long, value_name = "TIME", value_parser = now, help_heading = "Question")]
    now: Option<Now>,

    /// Columns to print, comma-separated: of records, or `all`; of groups, after their fields.
    /// Default: those that fit a terminal; all of records in CSV and JSON
    #[arg(long, value_name = "FIELD,...", help_heading = "Answer")]
    select: Option<String>,

    /// How to print the answer
    #[arg(long, value_enum, default_value_t = AnswerFormat::Table, help_heading = "Answer")]
    format: AnswerFormat,

    /// Times in CSV and JSON: ns (as in first_ns), s or iso. Default: ns
    #[arg(long, value_name = "FORM", value_parser = time_form(), hide_possible_values = true)]
    #[arg(help_heading = "Answer")]
    time: Option<TimeForm>,

    /// Protocols and end reasons by name in CSV and JSON, as in tables
    #[arg(long, help_heading = "Answer")]
    names: bool,

    /// Replace addresses with prefix-preserving pseudonyms, by the key in this file
    ///
    /// As `turboflow record --anonymize` does; --where and groups use the true addresses.
    #[arg(long, value_name = "KEYFILE", help_heading = "Answer")]
    anonymize: Option<PathBuf>,

    #[command(flatten)]
    enrich: EnrichArgs,

    /// Exact numbers in tables rather than 3.4 GB and 1.2 M
    #[arg(long, help_heading = "Answer")]
    exact: bool,
}

/// How answers are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AnswerFormat {
    /// For people; as wide as the terminal
    Table,
    /// For programs; numbers and times as integers
    Csv,
    /// One object a line
    #[value(alias = "jsonl")]
    Json,
}

/// The time that `-1h` and `now` in a question count from.
#[derive(Clone, Copy, Debug)]
enum Now {
    /// A time, in nanoseconds since 1970.
    At(u64),
    /// The time of the last packet.
    Last,
}

/// Default number of table rows.
const TABLE_ROWS: usize = 20;

/// The files to read. Logs those that are skipped.
pub(crate) fn found(given: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let found = flow_files(given)?;
    for told in found.passed_over {
        say!(Warning FileNotRead; "{told}: not read; name it to read it");
    }
    for told in found.read_once {
        say!(Warning FileNotRead; "{told}");
    }
    Ok(found.files)
}

pub(crate) fn run(args: &ShowArgs) -> anyhow::Result<Outcome> {
    args.check()?;
    let files = found(&args.files)?;
    let mut input = Input::open(&files)?;
    say_left_out(&input);
    enrich(&args.enrich.files(), &mut input)?;
    let now_ns = match args.now {
        Some(Now::At(time_ns)) => time_ns,
        Some(Now::Last) => {
            let last_ns = last_packet_ns(&files)?;
            last_ns.context("--now last: the records have no times")?
        }
        None => clock_ns(),
    };
    let query = Query::parse(&args.question(input.schema(), now_ns), input.shape())
        .map_err(question_error::in_options)?;
    for note in query.notes() {
        say!(Info AnswerNote; "{note}");
    }
    let key = args.anonymize.as_deref().map(anonymize::key).transpose()?;
    let key = key.as_ref();
    let pseudonym = key.map(|key| move |address| key.pseudonym(address));
    let pseudonym = pseudonym
        .as_ref()
        .map(|its| its as &dyn Fn(IpAddr) -> IpAddr);
    let answer = turboflow_query::answer(&query, &mut input, pseudonym)
        .map_err(question_error::in_options)?;
    if key.is_some() {
        let more = answer.columns.iter().find_map(|column| {
            let kind = match column.show {
                Show::Mac => ColumnKind::Mac,
                Show::Text => ColumnKind::Text,
                _ => return None,
            };
            let what = tells_more(&column.name, kind)?;
            Some(format!("{} holds {what}", column.name))
        });
        if let Some(more) = more {
            return Err(anonymize::no_pseudonym(&more));
        }
    }
    let is_biflow = input
        .schema()
        .iter()
        .any(|column| column.name == "reverse_bytes");
    if let Some(note) = args.note_of_times(&answer, &query) {
        say!(Info AnswerNote; "{note}");
    }
    match args.format {
        AnswerFormat::Table => print(&args.table(&answer, is_biflow))?,
        AnswerFormat::Csv => stream(|output| answer.write_csv(output, args.plain()))?,
        AnswerFormat::Json => stream(|output| answer.write_json_lines(output, args.plain()))?,
    }
    Ok(say_damages(&input))
}

/// Logs which columns of other programs are not read.
pub(crate) fn say_left_out(input: &Input) {
    if !input.left_out().is_empty() {
        let columns = input.left_out().join(", ");
        say!(Warning ColumnsLeftOut;
            "columns that flow records do not have are left out: {columns}");
    }
}

/// Logs which files are truncated. Their complete records were read.
pub(crate) fn say_damages(input: &Input) -> Outcome {
    for damage in input.damages() {
        say!(Error RecordsCut; "{damage}; the flow records before that were read");
    }
    match input.damages() {
        [] => Outcome::Well,
        _ => Outcome::Lossy,
    }
}

/// The time of the last packet of all records, in nanoseconds. This reads the files once before the
/// question does.
fn last_packet_ns(files: &[PathBuf]) -> anyhow::Result<Option<u64>> {
    if let Some(place) = pipe_of(files) {
        bail!("--now last reads the records twice, but {place} can be read once: write a time");
    }
    Ok(turboflow_query::last_packet_ns(&mut Input::open(files)?)?)
}

/// The first input that can be read only once, for messages.
pub(crate) fn pipe_of(files: &[PathBuf]) -> Option<String> {
    let is_pipe = |file: &&PathBuf| file.as_os_str() == "-" || file.exists() && !file.is_file();
    let pipe = files.iter().find(is_pipe)?;
    Some(match pipe.to_str() {
        Some("-") => "standard input".to_owned(),
        _ => pipe.display().to_string(),
    })
}

/// Parses `--now`.
fn now(text: &str) -> Result<Now, String> {
    match text {
        "last" => Ok(Now::Last),
        _ => moment(text)
            .map(Now::At)
            .map_err(|why| format!("{why}, or last for the time of the last packet")),
    }
}

fn as_rows(rows: u64) -> usize {
    usize::try_from(rows).unwrap_or(usize::MAX)
}

/// Parses a time in a question, into nanoseconds since 1970.
pub(crate) fn moment(text: &str) -> Result<u64, String> {
    let time_ns = turboflow_query::time_ns(text);
    time_ns.ok_or_else(|| "write a time such as 2024-03-01T12:30:00Z".to_owned())
}

#[allow(
    clippy::disallowed_methods,
    reason = "a question may be about the last hour"
)]
pub(crate) fn clock_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

impl ShowArgs {
    /// Refuses options that would have no effect.
    fn check(&self) -> anyhow::Result<()> {
        if self.format == AnswerFormat::Table && (self.time.is_some() || self.names) {
            let option = if self.names { "--names" } else { "--time" };
            bail!("{option} is for --format csv and json: tables have times and names for people");
        }
        if self.anonymize.is_some() && !self.enrich.files().is_empty() {
            bail!(
                "--anonymize replaces addresses, but names, networks and countries would reveal \
                 them: leave out one of the two"
            );
        }
        Ok(())
    }

    fn plain(&self) -> PlainStyle {
        PlainStyle {
            time: self.time.unwrap_or_default(),
            names: self.names,
        }
    }

    fn question(&self, schema: &[Column], now_ns: u64) -> Question {
        let is_table = self.format == AnswerFormat::Table;
        let mut fields = self.group_by.iter().flat_map(|fields| fields.split(','));
        let is_time = |name: &str| {
            let mut times = schema.iter().filter(|c| c.kind == ColumnKind::TimestampNs);
            let name = name.to_lowercase();
            let is_it = |column: &str| column == name || column.strip_suffix("_ns") == Some(&name);
            let is_first_or_last = ["time", "start", "end"].contains(&&*name);
            is_first_or_last || times.any(|column| is_it(&column.name))
        };
        let in_time = fields.any(|field| {
            let bucket = field.trim().split_once(':');
            bucket.is_some_and(|(name, _)| is_time(name))
        });
        let top = match self.top {
            Some(0) => None,
            Some(rows) => Some(as_rows(rows)),
            None => (is_table && !in_time).then_some(TABLE_ROWS),
        };
        let all = self.select.as_deref() == Some("all");
        Question {
            filter: self.filter.clone(),
            within: self.within.clone(),
            clip: self.clip,
            group_by: self.group_by.clone(),
            by: self.by.clone(),
            select: self.select.clone().filter(|_| !all),
            ascending: self.ascending,
            top,
            // As with --top, 0 means all.
            top_each: self.top_each.filter(|rows| *rows > 0).map(as_rows),
            now_ns: Some(now_ns),
            all_columns: all || !is_table,
        }
    }

    /// The time span of the records, if no record matched a question about a range of time or one
    /// that counts from now.
    fn note_of_times(&self, answer: &Answer, query: &Query) -> Option<String> {
        let (first_ns, last_ns) = answer.times_read_ns?;
        if answer.totals.matched.records > 0 {
            return None;
        }
        let second = |time_ns: u64| time_text(time_ns / 1_000_000_000 * 1_000_000_000);
        let span = format!(
            "the records are from {} to {}",
            second(first_ns),
            second(last_ns)
        );
        if !query.counts_from_now() {
            let (from_ns, to_ns) = query.within_ns()?;
            let is_outside = to_ns < first_ns || last_ns < from_ns;
            return is_outside.then(|| format!("no record is within this time: {span}"));
        }
        let from = match self.now {
            None => "the clock",
            Some(Now::At(_)) => "--now",
            Some(Now::Last) => return None,
        };
        Some(format!(
            "no record matched: times are counted from {from}, but {span}; --now last counts from \
             their last packet"
        ))
    }

    /// What biflow records are sorted by without `--by`, if no column shows it.
    fn note_of_order(&self, answer: &Answer, is_biflow: bool) -> Option<&'static str> {
        let is_sorted = self.by.is_none() && self.group_by.is_none() && self.top != Some(0);
        let is_shown = answer
            .columns
            .iter()
            .any(|column| column.name == "total_bytes");
        let is_hidden = is_biflow && is_sorted && !is_shown && answer.rows.len() > 1;
        is_hidden.then_some("Sorted by total_bytes.")
    }

    fn table(&self, answer: &Answer, is_biflow: bool) -> String {
        let width = terminal_width();
        let style = TableStyle {
            width,
            humanise: !self.exact,
        };
        let (read, matched) = (answer.totals.read, answer.totals.matched);
        let shown = answer.rows.len() as u64;
        let cut = if shown < answer.totals.rows {
            format!(
                "{} of {} rows ({}); ",
                grouped(shown),
                grouped(answer.totals.rows),
                match self.top_each {
                    Some(_) => "the largest of each bucket",
                    None => "--top 0 shows all",
                },
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
        let TableText {
            table,
            mut notes,
            left_out,
        } = answer.to_table(style);
        if !left_out.is_empty() {
            let columns = left_out.join(", ");
            notes.push(format!("No room for {columns}: --select chooses columns."));
        }
        notes.extend(self.note_of_order(answer, is_biflow).map(str::to_owned));
        let as_wholes = match self.clip {
            true => ", each as a whole",
            false => "",
        };
        notes.push(format!(
            "{cut}{} of {} records matched{with}{as_wholes}",
            grouped(matched.records),
            grouped(read.records),
        ));
        let notes = notes.iter().map(|note| table::wrapped(note, width));
        format!("{table}\n{}", notes.collect::<String>())
    }
}

/// Writes to standard output. A reader that has closed the pipe is not an error.
fn stream(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    let mut stdout = BufWriter::new(io::stdout().lock());
    match write(&mut stdout).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            // Discard the buffered rest, which has no reader either.
            let _ = stdout.into_parts();
            Ok(())
        }
        outcome => outcome.context("cannot write standard output"),
    }
}
