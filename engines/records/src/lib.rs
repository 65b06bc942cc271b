// SPDX-License-Identifier: Apache-2.0
//! Microflow records in the wire form ([`turboflow_engine::wire`]) as an engine: replays files that
//! other engines wrote.
//!
//! The records of every sender are merged as if its engine ran here. The ledger includes the
//! counters of the senders and the losses on the way.

mod messages;
mod senders;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;
use turboflow_engine::wire::{Decoder, WireError};
use turboflow_engine::{
    Abilities, Collected, EngineCounters, EngineError, KeyAbility, MicroflowBatch, Port,
    PortCounters, PortState, RemoteEngine,
};
use turboflow_merge::{Layout, STATE_WORDS};
use turboflow_record::{Input, InputSet};

use messages::{Messages, Unreadable};
use senders::Senders;

/// Records handed over at once: few enough to stay in the processor's cache until they are merged.
const RECORDS_AT_ONCE: usize = 2_048;

/// The abilities of a replay: all of them, since the engine that wrote the records may have had
/// any. The layout id in the messages shows whether their definition is that of the run.
#[must_use]
pub fn abilities() -> Abilities {
    Abilities {
        inputs: Input::ALL.into_iter().collect::<InputSet>(),
        keys: KeyAbility::Any,
        state_words: STATE_WORDS[STATE_WORDS.len() - 1],
        cuts_on_gap: false,
        evicts_on_end: false,
        ordered: true,
        biflow: true,
        instances: usize::MAX,
        ..Abilities::none("records")
    }
}

/// Why records cannot be read.
#[derive(Debug, Error)]
pub enum RecordsError {
    /// The file cannot be opened or read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file contains something other than messages for the definition of this run.
    #[error("{path}, at byte {offset}: {source}")]
    Message {
        /// The file.
        path: PathBuf,
        /// Offset of the message in the file.
        offset: u64,
        /// Why it is invalid.
        source: WireError,
    },
}

/// Replays the messages of files, one file after the other.
pub struct RecordsEngine {
    abilities: Abilities,
    name: String,
    files: Vec<Messages<Box<dyn Read + Send>>>,
    decoder: Decoder,
    senders: Senders,
}

impl RecordsEngine {
    /// Opens files with messages for `layout`; `-` is standard input.
    ///
    /// # Errors
    /// The first file that cannot be opened.
    pub fn open(paths: &[PathBuf], layout: &Layout) -> Result<Self, RecordsError> {
        let open = |path: &PathBuf| Ok(Messages::new(path.clone(), stream(path)?));
        let mut files = paths
            .iter()
            .map(open)
            .collect::<Result<Vec<_>, RecordsError>>()?;
        files.reverse();
        Ok(Self {
            abilities: abilities(),
            name: match paths {
                [path] => path.display().to_string(),
                paths => format!("{} files", paths.len()),
            },
            files,
            decoder: Decoder::new(layout),
            senders: Senders::default(),
        })
    }

    /// What is replayed, in words.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Appends records until a batch is full or a cell is complete.
    fn read(&mut self, batch: &mut MicroflowBatch) -> Result<Collected, RecordsError> {
        while let Some(file) = self.files.last_mut() {
            let offset = file.offset();
            let read = match file.next() {
                Ok(None) => {
                    self.files.pop();
                    continue;
                }
                Ok(Some(message)) => self
                    .decoder
                    .decode(message, batch)
                    .map_err(Unreadable::Wrong),
                Err(unreadable) => Err(unreadable),
            };
            let decoded = match read {
                Ok(decoded) => decoded,
                Err(unreadable) => return Err(unreadable.at(file.path(), offset)),
            };
            if let Some(complete_ns) = self.senders.note(&decoded) {
                return Ok(Collected::all_before(complete_ns));
            }
            if batch.len() >= RECORDS_AT_ONCE {
                return Ok(Collected {
                    complete_ns: None,
                    has_more: true,
                });
            }
        }
        Ok(Collected::default())
    }
}

impl Unreadable {
    #[cold]
    fn at(self, path: &Path, offset: u64) -> RecordsError {
        let path = path.to_owned();
        match self {
            Self::Read(source) => RecordsError::Read { path, source },
            Self::Wrong(source) => RecordsError::Message {
                path,
                offset,
                source,
            },
        }
    }
}

fn stream(path: &Path) -> Result<Box<dyn Read + Send>, RecordsError> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdin()));
    }
    match File::open(path) {
        Ok(file) => Ok(Box::new(file)),
        Err(source) => Err(RecordsError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

impl RemoteEngine for RecordsEngine {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn started_ns(&self) -> u64 {
        0
    }

    fn collect(&mut self, batch: &mut MicroflowBatch) -> Result<Collected, EngineError> {
        self.read(batch).map_err(EngineError::new)
    }

    /// A file is read as fast as its records can be merged.
    fn longest_pause(&self) -> Duration {
        Duration::ZERO
    }

    fn counters(&mut self) -> Result<EngineCounters, EngineError> {
        Ok(self.senders.counters(&self.decoder, self.files.is_empty()))
    }

    fn ports(&mut self) -> Result<Vec<Port>, EngineError> {
        let counters = self.senders.counters(&self.decoder, self.files.is_empty());
        let rejected: u64 = counters.rejected_packets.iter().sum();
        let seen = counters.packets_metered + rejected;
        Ok(vec![Port {
            name: self.name.clone(),
            state: PortState::Up,
            interface_index: None,
            counters: PortCounters {
                seen,
                delivered: seen,
                delivered_bytes: counters.bytes_received,
                ..PortCounters::default()
            },
        }])
    }

    fn has_ended(&self) -> bool {
        self.files.is_empty()
    }

    /// Unread messages stay in the files.
    fn finish(&mut self) -> Result<(), EngineError> {
        self.files.clear();
        Ok(())
    }
}
