// SPDX-License-Identifier: Apache-2.0
//! Errors of writing flow records.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

/// Why flow records could not be written.
#[derive(Debug, Error)]
pub enum ExportError {
    /// No format has that name or file extension.
    #[error(
        "unknown format of {given:?}: use csv, jsonl, parquet, arrow or ipfix, or a file name \
         that ends in .csv, .jsonl, .ndjson, .json (also with .gz or .zst behind it), .parquet, \
         .arrow or .ipfix; a collector is written as ipfix+udp://HOST:PORT"
    )]
    UnknownFormat {
        /// The name or path given.
        given: String,
    },
    /// The target is a directory.
    #[error("cannot write {path}: it is a directory; name a file in it")]
    IsDirectory {
        /// The target.
        path: PathBuf,
    },
    /// The directory of the target does not exist.
    #[error("cannot write {path}: there is no directory {directory}; create it first")]
    NoDirectory {
        /// The target.
        path: PathBuf,
        /// Its directory.
        directory: PathBuf,
    },
    /// The target is a symbolic link, which [`FileOptions`](crate::FileOptions) refuse.
    #[error(
        "cannot write {path}: it is a symbolic link to {target}, and root writes through none by \
         itself; name the file that is meant"
    )]
    SymbolicLink {
        /// The target.
        path: PathBuf,
        /// Where it leads.
        target: PathBuf,
    },
    /// The target, or its temporary file, cannot be created.
    #[error("cannot write {path}: {source}")]
    Create {
        /// The target.
        path: PathBuf,
        /// The underlying I/O error.
        source: io::Error,
    },
    /// Writing failed later, for example because the disk is full.
    #[error("cannot write {place}: {source}; {}", describe_remainder(*.records, .kept.as_ref()))]
    Write {
        /// The target, or "standard output".
        place: String,
        /// Number of complete records in what was written.
        records: u64,
        /// The file that holds these records; `None` if the target is a stream or they could not be
        /// kept.
        kept: Option<PathBuf>,
        /// The underlying I/O error.
        source: io::Error,
    },
    /// The reader of the stream closed it, as in `turboflow ... | head`.
    #[error("the reader of the output went away")]
    BrokenPipe,
    /// The output stalled, and the writer stopped waiting for it to finish.
    #[error("cannot write {place}: it took nothing for {} s; {}", .waited.as_secs_f64(), describe_remainder(*.records, None))]
    Stalled {
        /// The target, or "standard output".
        place: String,
        /// Number of records written before it stalled.
        records: u64,
        /// How long the output stalled.
        waited: Duration,
    },
    /// Not every record was sent to the collector. The records that were sent are complete.
    #[error("{}", describe_unsent(place, *lost, unexportable, source.as_ref()))]
    NotSent {
        /// The collector, or the file.
        place: String,
        /// Records that were sent.
        records: u64,
        /// Octets that were sent.
        bytes: u64,
        /// Records that count as lost: not sent, or not acknowledged.
        lost: u64,
        /// Records that the format cannot hold.
        unexportable: Unexportable,
        /// The last I/O error.
        source: Option<io::Error>,
    },
    /// The name pattern of rotated files is invalid.
    #[error("cannot write {given:?}: {reason}")]
    Name {
        /// The name as given.
        given: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The format cannot hold the records with these options.
    #[error("cannot write {place} as {format}: {reason}")]
    Encode {
        /// The target, or "standard output".
        place: String,
        /// The format's name.
        format: &'static str,
        /// What does not fit.
        reason: String,
    },
}

/// Flow records that a format could not hold, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unexportable {
    /// IPv6 flows, or flows without an address, in a format that only has IPv4.
    pub not_ipv4: u64,
    /// Records longer than the maximum length of a message.
    pub too_large: u64,
    /// Records with a time that the format cannot hold: after 2106 in NetFlow, after 2104 in IPFIX
    /// elements with NTP's format, after 2262 in Parquet and Arrow. In NetFlow also flows longer
    /// than 47 days and, in v5, flows with more octets than the maximum number of parts can hold.
    pub out_of_range: u64,
    /// NetFlow v9 only: records whose combination of absent values needs a template beyond the
    /// limit.
    pub no_template: u64,
}

impl Unexportable {
    /// The sum over all reasons.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.not_ipv4 + self.too_large + self.out_of_range + self.no_template
    }
}

impl ExportError {
    /// Number of complete records that were written or sent.
    #[must_use]
    pub const fn records_written(&self) -> u64 {
        match self {
            Self::Write { records, .. }
            | Self::Stalled { records, .. }
            | Self::NotSent { records, .. } => *records,
            _ => 0,
        }
    }

    /// The output could not be flushed or renamed.
    pub(crate) fn unfinished(place: String, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::BrokenPipe => Self::BrokenPipe,
            _ => Self::Write {
                place,
                records: 0,
                kept: None,
                source,
            },
        }
    }
}

fn describe_remainder(records: u64, kept: Option<&PathBuf>) -> String {
    match kept {
        Some(path) => format!("the first {records} records are in {}", path.display()),
        None if records == 0 => "no record was written".to_owned(),
        None => format!("{records} records were written before"),
    }
}

fn describe_unsent(
    place: &str,
    lost: u64,
    unexportable: &Unexportable,
    source: Option<&io::Error>,
) -> String {
    let mut reasons = Vec::new();
    if lost > 0 || source.is_some() {
        let why = source.map_or_else(|| "it takes too few".to_owned(), ToString::to_string);
        reasons.push(format!("{lost} records count as lost ({why})"));
    }
    let unfit = [
        (
            unexportable.not_ipv4,
            "are not IPv4, the only family of NetFlow v5",
        ),
        (
            unexportable.too_large,
            "are longer than a message; raise `output.mtu`, or use TCP",
        ),
        (
            unexportable.out_of_range,
            "have times or counters that the format cannot hold",
        ),
        (
            unexportable.no_template,
            "need more templates than NetFlow v9 gets; use IPFIX",
        ),
    ];
    let unfit = unfit.iter().filter(|(count, _)| *count > 0);
    reasons.extend(unfit.map(|(count, what)| format!("{count} records {what}")));
    format!("{place}: {}", reasons.join("; "))
}
