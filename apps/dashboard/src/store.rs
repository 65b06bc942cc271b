// SPDX-License-Identifier: Apache-2.0
//! The files of flow records as they are now.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde_json::{Value, json};
use turboflow_query::{
    Answer, Cell, FieldName, Input, Query, QueryError, Question, answer, fields, flow_files,
};

use crate::DashboardError;

/// A file, and what would tell that it has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    modified: Option<SystemTime>,
}

/// Files that were opened together.
pub(crate) struct Snapshot {
    /// Counts up; another one stands for other files.
    pub(crate) id: u64,
    pub(crate) files: Vec<Seen>,
    /// Opened once, so that the columns of all files have been compared.
    input: Mutex<Input>,
    pub(crate) fields: Vec<FieldName>,
    /// The times of the first and the last packet, in nanoseconds since 1970.
    pub(crate) times_ns: Option<(u64, u64)>,
    /// What was passed over or left out, in sentences.
    pub(crate) notes: Vec<String>,
    /// Why the files cannot be read.
    pub(crate) error: Option<String>,
}

/// A bucket of the time that holds all: 136 years.
const ALL_OF_TIME: &str = "first_ns:50000d";

impl Snapshot {
    /// A snapshot of what the arguments stand for. What cannot be read is kept as the reason.
    pub(crate) fn of(given: &[PathBuf], id: u64) -> Self {
        Self::opened(given, id).unwrap_or_else(|error| Self::none(id, seen(given), error))
    }

    fn none(id: u64, files: Vec<Seen>, error: QueryError) -> Self {
        let nothing: [PathBuf; 0] = [];
        let input = Input::open(&nothing);
        Self {
            id,
            files,
            input: Mutex::new(input.expect("no file cannot be unreadable")),
            fields: Vec::new(),
            times_ns: None,
            notes: Vec::new(),
            // A folder that has no file yet is waited for.
            error: match error {
                QueryError::NoFiles { .. } => None,
                error => Some(error.to_string()),
            },
        }
    }

    /// As [`Self::of`], with the error.
    pub(crate) fn opened(given: &[PathBuf], id: u64) -> Result<Self, QueryError> {
        let found = match given {
            [] => return Ok(Self::none(id, Vec::new(), no_files())),
            given => flow_files(given)?,
        };
        let input = Input::open(&found.files)?;
        let mut notes = found.passed_over;
        notes.extend(found.read_once);
        if !input.left_out().is_empty() {
            let columns = input.left_out().join(", ");
            notes.push(format!("columns that are not read: {columns}"));
        }
        let fields = fields(input.shape());
        let snapshot = Self {
            id,
            files: found.files.into_iter().map(Seen::of).collect(),
            fields,
            input: Mutex::new(input),
            times_ns: None,
            notes,
            error: None,
        };
        let times_ns = snapshot.find_times()?;
        Ok(Self {
            times_ns,
            ..snapshot
        })
    }

    /// The records, to be read from their start.
    fn input(&self) -> Input {
        let paths: Vec<&PathBuf> = self.files.iter().map(|file| &file.path).collect();
        let input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        input.again(&paths)
    }

    /// The question, bound to these records.
    pub(crate) fn query(&self, question: &Question) -> Result<Query, QueryError> {
        Query::parse(question, self.input().shape())
    }

    /// The answer of `turboflow show`.
    pub(crate) fn answer(
        &self,
        query: &Query,
        stop: Option<&Arc<AtomicBool>>,
    ) -> Result<Answer, QueryError> {
        let mut input = self.input();
        if let Some(stop) = stop {
            input.stop_where(Arc::clone(stop));
        }
        answer(query, &mut input, None)
    }

    fn find_times(&self) -> Result<Option<(u64, u64)>, QueryError> {
        if !self.has("first_ns") || !self.has("last_ns") {
            return Ok(None);
        }
        let question = Question {
            group_by: Some(ALL_OF_TIME.to_owned()),
            select: Some("first_ns,last_ns".to_owned()),
            ..Question::default()
        };
        let rows = self.answer(&self.query(&question)?, None)?.rows;
        let times = rows.iter().filter_map(|row| match row[..] {
            [_, Cell::Unsigned(first), Cell::Unsigned(last)] => Some((first, last)),
            _ => None,
        });
        Ok(times.reduce(|all, its| (all.0.min(its.0), all.1.max(its.1))))
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
            "error": self.error,
            "version": env!("CARGO_PKG_VERSION"),
        })
    }
}

fn no_files() -> QueryError {
    QueryError::NoFiles {
        place: String::new(),
    }
}

impl Seen {
    fn of(path: PathBuf) -> Self {
        let metadata = fs::metadata(&path).ok();
        Self {
            bytes: metadata.as_ref().map_or(0, fs::Metadata::len),
            modified: metadata.and_then(|its| its.modified().ok()),
            path,
        }
    }
}

/// The files that the arguments stand for now.
pub(crate) fn seen(given: &[PathBuf]) -> Vec<Seen> {
    let found = match given {
        [] => Vec::new(),
        given => flow_files(given).map(|it| it.files).unwrap_or_default(),
    };
    found.into_iter().map(Seen::of).collect()
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
