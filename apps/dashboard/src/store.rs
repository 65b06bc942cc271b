// SPDX-License-Identifier: Apache-2.0
//! The current files of flow records.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use turboflow_query::{
    Answer, Cell, Enrichment, EnrichmentFiles, FieldName, Input, Query, QueryError, Question,
    answer, fields,
};

use crate::DashboardError;
use crate::files::{Seen, found, seen};
use crate::ledger::{Ledgers, Places};

/// The times of a first and a last packet, in nanoseconds since 1970.
type Times = (u64, u64);

/// Files that were opened together, and what is known about them.
pub(crate) struct Snapshot {
    /// Identifies the set of files, also across runs of the program at this address.
    pub(crate) id: u64,
    pub(crate) files: Vec<Seen>,
    /// Opened once, so that the columns of all files have been compared.
    input: Mutex<Input>,
    /// Information about addresses and ports, for every question.
    known: Option<Arc<Enrichment>>,
    pub(crate) fields: Vec<FieldName>,
    /// The times of the first and the last packet, in nanoseconds since 1970.
    pub(crate) times_ns: Option<Times>,
    /// What was skipped or left out, in sentences.
    pub(crate) notes: Vec<String>,
    /// Where damaged files end early, in sentences. Their complete records are used.
    pub(crate) damages: Vec<String>,
    /// Why the files cannot be read.
    pub(crate) error: Option<String>,
    pub(crate) ledgers: Ledgers,
}

/// What snapshots are taken of.
pub(crate) struct Given {
    /// Files, folders and patterns.
    pub(crate) files: Vec<PathBuf>,
    /// Ledger files.
    pub(crate) ledgers: Vec<PathBuf>,
    /// Files that add information about addresses and ports.
    pub(crate) enrichment: EnrichmentFiles,
    /// Their content, as it was read.
    pub(crate) known: Option<Arc<Enrichment>>,
}

/// How often to search again if files change while they are opened.
const TRIES: u32 = 2;

/// A bucket that contains all times: 136 years.
const ALL_OF_TIME: &str = "first_ns:50000d";

impl Snapshot {
    /// A snapshot of what the arguments stand for. If it fails, the snapshot holds the reason.
    pub(crate) fn of(given: &Given, id: u64) -> Self {
        Self::opened(given, id).unwrap_or_else(|error| Self::none(id, seen(&given.files), error))
    }

    fn none(id: u64, files: Vec<Seen>, error: QueryError) -> Self {
        let nothing: [PathBuf; 0] = [];
        let input = Input::open(&nothing);
        Self {
            id,
            files,
            input: Mutex::new(input.expect("no file cannot be unreadable")),
            known: None,
            fields: Vec::new(),
            times_ns: None,
            notes: Vec::new(),
            damages: Vec::new(),
            error: Some(error.to_string()),
            ledgers: Ledgers::default(),
        }
    }

    /// Like [`Self::of`], but returns the error.
    pub(crate) fn opened(given: &Given, id: u64) -> Result<Self, QueryError> {
        let mut tries = 0..TRIES;
        loop {
            let opened = Self::opened_once(given, id);
            let is_last = tries.next().is_none();
            match opened {
                // A file may have been deleted or replaced after it was found.
                Ok(snapshot) if is_last || snapshot.changed().is_none() => return Ok(snapshot),
                Err(error) if is_last => return Err(error),
                _ => {}
            }
        }
    }

    fn opened_once(given: &Given, id: u64) -> Result<Self, QueryError> {
        let found = found(&given.files)?;
        // Taken before the files are read, so that later changes are noticed.
        let files: Vec<Seen> = found.files.iter().cloned().map(Seen::of).collect();
        let mut input = Input::open(&found.files)?;
        let mut notes = found.passed_over;
        notes.extend(found.read_once);
        let empty = found.empty.iter().map(|place| place.display());
        notes.extend(empty.map(|place| format!("{place} has no file of flow records yet")));
        if !input.left_out().is_empty() {
            let columns = input.left_out().join(", ");
            notes.push(format!("columns that are not read: {columns}"));
        }
        if let Some(known) = &given.known {
            let taken = input.enrich(Arc::clone(known));
            if !taken.is_empty() {
                let taken = taken.join(", ");
                notes.push(format!("columns that the records have themselves: {taken}"));
            }
        }
        let fields = fields(input.shape());
        let snapshot = Self {
            id,
            ledgers: Ledgers::of(places(given, &files)),
            files,
            fields,
            input: Mutex::new(input),
            known: given.known.clone(),
            times_ns: None,
            notes,
            damages: Vec::new(),
            error: None,
        };
        let (times_ns, damages) = match snapshot.files[..] {
            [] => (None, Vec::new()),
            _ => snapshot.read_through()?,
        };
        Ok(Self {
            times_ns,
            damages,
            ..snapshot
        })
    }

    /// A new snapshot if anything has changed since this one; otherwise `None`.
    pub(crate) fn next(&self, given: &Given) -> Option<Self> {
        let id = self.id + 1;
        if seen(&given.files) != self.files {
            return Some(Self::of(given, id));
        }
        let places = places(given, &self.files);
        if !self.ledgers.are_old(places) {
            return None;
        }
        Some(Self {
            id,
            ledgers: Ledgers::of(places),
            files: self.files.clone(),
            input: Mutex::new(self.input()),
            known: self.known.clone(),
            fields: self.fields.clone(),
            times_ns: self.times_ns,
            notes: self.notes.clone(),
            damages: self.damages.clone(),
            error: self.error.clone(),
        })
    }

    /// The first file that was replaced or shortened after the snapshot was taken.
    fn changed(&self) -> Option<&Seen> {
        self.files.iter().find(|file| !file.is_still_there())
    }

    /// The records, read from the start.
    fn input(&self) -> Input {
        let paths: Vec<&PathBuf> = self.files.iter().map(|file| &file.path).collect();
        let input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        let mut input = input.again(&paths);
        if let Some(known) = &self.known {
            input.enrich(Arc::clone(known));
        }
        input
    }

    /// The question, bound to these records.
    pub(crate) fn query(&self, question: &Question) -> Result<Query, QueryError> {
        Query::parse(question, self.input().shape())
    }

    /// Answers like `turboflow show`.
    ///
    /// # Errors
    /// Errors of the question. [`QueryError::Changed`] if a file was replaced meanwhile: all
    /// answers of a snapshot must be about the same records.
    pub(crate) fn answer(
        &self,
        query: &Query,
        stop: Option<&Arc<AtomicBool>>,
    ) -> Result<Answer, QueryError> {
        self.read(stop, |input| answer(query, input, None))
    }

    /// Like [`Self::answer`], for any function that reads the records from the start.
    pub(crate) fn read<T>(
        &self,
        stop: Option<&Arc<AtomicBool>>,
        read: impl FnOnce(&mut Input) -> Result<T, QueryError>,
    ) -> Result<T, QueryError> {
        let mut input = self.input();
        if let Some(stop) = stop {
            input.stop_where(Arc::clone(stop));
        }
        match (read(&mut input), self.changed()) {
            (Err(QueryError::Stopped), _) => Err(QueryError::Stopped),
            (_, Some(file)) => Err(QueryError::Changed {
                place: file.path.display().to_string(),
                difference: "it is another file, or shorter".to_owned(),
            }),
            (answer, None) => answer,
        }
    }

    /// Reads all records once. Returns the times of the first and last packet, and where damaged
    /// files end early.
    fn read_through(&self) -> Result<(Option<Times>, Vec<String>), QueryError> {
        let has_times = self.has("first_ns") && self.has("last_ns");
        let question = match has_times {
            true => Question {
                group_by: Some(ALL_OF_TIME.to_owned()),
                select: Some("first_ns,last_ns".to_owned()),
                ..Question::default()
            },
            false => Question {
                top: Some(1),
                ..Question::default()
            },
        };
        let mut input = self.input();
        let rows = answer(&self.query(&question)?, &mut input, None)?.rows;
        let damages = input.damages().to_vec();
        let times = rows.iter().filter_map(|row| match row[..] {
            [_, Cell::Unsigned(first), Cell::Unsigned(last)] if has_times => Some((first, last)),
            _ => None,
        });
        let times = times.reduce(|all, its| (all.0.min(its.0), all.1.max(its.1)));
        Ok((times, damages))
    }

    /// Whether the records have a field with that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.name == name)
    }

    /// The measure for an everyday name; for biflows, the one over both directions.
    pub(crate) fn measure<'a>(&self, name: &'a str) -> &'a str {
        match name {
            "bytes" if self.has("total_bytes") => "total_bytes",
            "packets" if self.has("total_packets") => "total_packets",
            other => other,
        }
    }

    /// The description of the files for the page.
    pub(crate) fn to_json(&self, given: &[PathBuf]) -> Value {
        let files = self.files.iter().map(|file| {
            json!({
                "name": file.path.display().to_string(),
                "bytes": file.bytes,
            })
        });
        json!({
            "snapshot": self.id,
            "given": given.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
            "files": files.collect::<Vec<_>>(),
            "first_ns": self.times_ns.map(|(first, _)| first.to_string()),
            "last_ns": self.times_ns.map(|(_, last)| last.to_string()),
            "notes": self.notes,
            "damages": self.damages,
            "error": self.error,
            "version": env!("CARGO_PKG_VERSION"),
        })
    }
}

fn places<'a>(given: &'a Given, files: &'a [Seen]) -> Places<'a> {
    Places {
        given: &given.files,
        files,
        named: &given.ledgers,
    }
}

/// Refuses inputs that cannot be read again for every question.
pub(crate) fn check(given: &[PathBuf]) -> Result<(), DashboardError> {
    let is_odd = |path: &&PathBuf| path.exists() && !path.is_file() && !path.is_dir();
    let is_pipe = |path: &&PathBuf| path.as_os_str() == "-" || is_odd(path);
    match given.iter().find(is_pipe) {
        Some(pipe) => Err(DashboardError::NoFile {
            place: pipe.display().to_string(),
        }),
        None => Ok(()),
    }
}
