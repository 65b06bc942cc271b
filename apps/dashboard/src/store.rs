// SPDX-License-Identifier: Apache-2.0
//! The files of flow records as they are now.

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

/// Files that were opened together.
pub(crate) struct Snapshot {
    /// Another one stands for other files, also of another run of the program at this address.
    pub(crate) id: u64,
    pub(crate) files: Vec<Seen>,
    /// Opened once, so that the columns of all files have been compared.
    input: Mutex<Input>,
    /// What is known of addresses and ports, for every question.
    known: Option<Arc<Enrichment>>,
    pub(crate) fields: Vec<FieldName>,
    /// The times of the first and the last packet, in nanoseconds since 1970.
    pub(crate) times_ns: Option<Times>,
    /// What was passed over or left out, in sentences.
    pub(crate) notes: Vec<String>,
    /// Where files are cut, in sentences: their whole records are there.
    pub(crate) damages: Vec<String>,
    /// Why the files cannot be read.
    pub(crate) error: Option<String>,
    pub(crate) ledgers: Ledgers,
}

/// Of what a snapshot is taken.
pub(crate) struct Given {
    /// Files, folders and patterns.
    pub(crate) files: Vec<PathBuf>,
    /// Files of ledgers.
    pub(crate) ledgers: Vec<PathBuf>,
    /// Files that say more of addresses and ports.
    pub(crate) enrichment: EnrichmentFiles,
    /// What they said when they were read.
    pub(crate) known: Option<Arc<Enrichment>>,
}

/// How often files are looked for once more where they change while they are opened.
const TRIES: u32 = 2;

/// A bucket of the time that holds all: 136 years.
const ALL_OF_TIME: &str = "first_ns:50000d";

impl Snapshot {
    /// A snapshot of what the arguments stand for. What cannot be read is kept as the reason.
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

    /// As [`Self::of`], with the error.
    pub(crate) fn opened(given: &Given, id: u64) -> Result<Self, QueryError> {
        let mut tries = 0..TRIES;
        loop {
            let opened = Self::opened_once(given, id);
            let is_last = tries.next().is_none();
            match opened {
                // A file may have left, or been replaced, since it was found.
                Ok(snapshot) if is_last || snapshot.changed().is_none() => return Ok(snapshot),
                Err(error) if is_last => return Err(error),
                _ => {}
            }
        }
    }

    fn opened_once(given: &Given, id: u64) -> Result<Self, QueryError> {
        let found = found(&given.files)?;
        // Before they are read: what changes then is noticed.
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

    /// What has changed since this snapshot; `None` where it is as it was.
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

    /// The first file that is not any more what it was when the snapshot was taken.
    fn changed(&self) -> Option<&Seen> {
        self.files.iter().find(|file| !file.is_still_there())
    }

    /// The records, to be read from their start.
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

    /// The answer of `turboflow show`.
    ///
    /// # Errors
    /// Those of the question; [`QueryError::Changed`] where a file is another one meanwhile, so
    /// that the answers of a snapshot are about the same records.
    pub(crate) fn answer(
        &self,
        query: &Query,
        stop: Option<&Arc<AtomicBool>>,
    ) -> Result<Answer, QueryError> {
        self.read(stop, |input| answer(query, input, None))
    }

    /// As [`Self::answer`], of what reads the records from their start.
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

    /// Reads all records once: the times of the first and the last packet, and where files are cut.
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

    /// Whether the records have that field.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.name == name)
    }

    /// The measure of that everyday name: of biflows, that of both directions.
    pub(crate) fn measure<'a>(&self, name: &'a str) -> &'a str {
        match name {
            "bytes" if self.has("total_bytes") => "total_bytes",
            "packets" if self.has("total_packets") => "total_packets",
            other => other,
        }
    }

    /// What the page says of the files.
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

/// Refuses what cannot be read again for every question.
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
