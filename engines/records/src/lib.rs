// SPDX-License-Identifier: Apache-2.0
//! Microflow records in the wire form ([`turboflow_engine::wire`]) as an engine: replays what
//! another engine wrote to a file.
//!
//! A file is the stream of one engine. All records between two watermarks are read before any of
//! them is handed over, so that a run over several files can merge them in time order. What the
//! sender counted, and what was lost on the way, goes into the ledger.
//!
//! Frames that a sender handed over whole take the same path ([`FrameMessages`]).

mod error;
mod frames;
mod messages;
mod totals;

use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

use turboflow_engine::wire::{Decoder, engine_id_of};
use turboflow_engine::{
    Abilities, Collected, EngineCounters, EngineError, KeyAbility, MicroflowBatch, Port,
    PortCounters, PortState, RemoteEngine,
};
use turboflow_merge::{Layout, MOST_STATE_WORDS};
use turboflow_record::{Input, InputSet};

pub use error::RecordsError;
pub use frames::{FrameMessages, FrameSource};
use messages::{Messages, Unreadable};
use totals::Totals;

/// Maximum number of records that are kept in memory until their watermark is read.
const MAX_CELL_RECORDS: usize = 1 << 23;
/// Length of a cell, unless the run has shorter ones.
const CELL_NS: u64 = 1_000_000_000;
/// Pause after a stream had nothing to read.
const PAUSE: Duration = Duration::from_millis(10);

/// The abilities of a replay: those of any engine that may have written the records. The layout id
/// of the messages tells whether they have the definition of this run.
#[must_use]
pub fn abilities() -> Abilities {
    Abilities {
        // Records hold inspection results as numbers of texts, and the texts are not in the stream.
        inputs: Input::ALL
            .into_iter()
            .collect::<InputSet>()
            .without(InputSet::INSPECTED),
        keys: KeyAbility::Any,
        state_words: MOST_STATE_WORDS,
        cuts_on_gap: false,
        evicts_on_end: false,
        ordered: true,
        biflow: true,
        instances: usize::MAX,
        ..Abilities::none("records")
    }
}

/// The state of reading a stream.
#[derive(Debug)]
enum State {
    /// More may follow.
    Reading,
    /// The stream has ended, or the run has left it.
    Ended,
    /// It cannot be read further. Reported once, after the records that were read before.
    Failed(RecordsError),
}

/// Replays the messages of one stream.
pub struct RecordsEngine {
    abilities: Abilities,
    messages: Messages<Box<dyn Read + Send>>,
    layout: Layout,
    decoder: Decoder,
    /// The sender of the stream, known after its first message.
    sender: Option<u32>,
    /// Whether the sender has reported its end.
    is_complete: bool,
    state: State,
    /// Whether the stream had nothing to read at the last attempt.
    is_waiting: bool,
    /// Records that were read and not yet handed over.
    cell: MicroflowBatch,
    /// Whether `cell` is ready to be handed over, and its watermark.
    ready: Option<Option<u64>>,
    /// The last watermark that was handed over.
    complete_ns: u64,
    /// Length of the cells of the run's clock, in nanoseconds. Never 0.
    cell_ns: u64,
    totals: Totals,
}

impl RecordsEngine {
    /// An engine over a stream with records of `layout`. `path` names the stream in errors.
    #[must_use]
    pub fn new(path: PathBuf, stream: Box<dyn Read + Send>, layout: &Layout) -> Self {
        Self {
            abilities: abilities(),
            messages: Messages::new(path, stream),
            layout: layout.clone(),
            decoder: Decoder::new(layout),
            sender: None,
            is_complete: false,
            state: State::Reading,
            is_waiting: false,
            cell: MicroflowBatch::default(),
            ready: None,
            complete_ns: 0,
            cell_ns: CELL_NS,
            totals: Totals::default(),
        }
    }

    /// Sets the length of the run's cells, in nanoseconds. The default is a second.
    #[must_use]
    pub fn in_cells_of(mut self, cell_ns: u64) -> Self {
        self.cell_ns = cell_ns.max(1);
        self
    }

    /// Reads up to the first watermark, which tells where in time the stream begins. Returns false
    /// if an endless stream (a pipe) has not got there yet: then this must be called again.
    ///
    /// # Errors
    /// The stream does not begin with messages of this layout.
    pub fn begin(&mut self) -> Result<bool, RecordsError> {
        self.read_cell();
        if self.cell.is_empty()
            && let Some(error) = self.take_failure()
        {
            return Err(error);
        }
        let first_ns = self.cell.first_ns().into_iter();
        let earliest_ns = first_ns.chain(self.ready.flatten()).min();
        self.complete_ns = earliest_ns.unwrap_or(0);
        Ok(self.ready.is_some())
    }

    /// The name of the stream.
    #[must_use]
    pub fn name(&self) -> String {
        self.messages.path().display().to_string()
    }

    /// Reads up to the next watermark. Stops earlier if the stream has nothing to read at the
    /// moment; does nothing if a cell is ready.
    fn read_cell(&mut self) {
        while self.ready.is_none() && matches!(self.state, State::Reading) {
            let offset = self.messages.offset();
            match self.read_message() {
                Ok(true) => self.is_waiting = false,
                Ok(false) => break,
                Err(unreadable) => {
                    let path = self.messages.path().to_owned();
                    self.state = State::Failed(unreadable.at(path, offset));
                    self.ready = Some(None);
                }
            }
        }
    }

    /// Reads one message. Returns false if there is none.
    fn read_message(&mut self) -> Result<bool, Unreadable> {
        let message = match self.messages.next() {
            Ok(Some(message)) => message,
            Ok(None) if self.is_complete => {
                self.state = State::Ended;
                self.ready = Some(None);
                return Ok(false);
            }
            Ok(None) => return Err(Unreadable::NoEnd),
            Err(Unreadable::Read(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                self.is_waiting = true;
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        if std::mem::take(&mut self.is_complete) {
            // The sender was restarted: its sequence numbers and counters start again.
            self.totals.begin_anew(self.decoder.lost());
            self.decoder = Decoder::new(&self.layout);
        }
        let engine_id = engine_id_of(message)?;
        if *self.sender.get_or_insert(engine_id) != engine_id {
            return Err(Unreadable::Senders);
        }
        let repeated = self.decoder.repeated();
        let decoded = self.decoder.decode(message, &mut self.cell)?;
        if self.decoder.repeated() > repeated {
            return Err(Unreadable::Repeated);
        }
        if !self.totals.arrive(&decoded) {
            return Err(Unreadable::TooMany);
        }
        if let Some(counters) = decoded.counters {
            self.totals.sent = counters;
        }
        self.is_complete = decoded.is_end;
        if decoded.is_end || decoded.watermark_ns.is_some() {
            self.ready = Some(decoded.watermark_ns);
        } else if self.cell.len() > MAX_CELL_RECORDS {
            return Err(Unreadable::NoWatermark);
        }
        Ok(true)
    }

    /// Hands over records that began before the watermark, but only those of one cell of the run's
    /// clock, which must advance between cells. Watermarks may be missing, because a sender with
    /// much to send passes on only the last of several. Records may be later than the watermark
    /// that follows them, because it is that of the sender's slowest thread.
    fn hand_over(&mut self, batch: &mut MicroflowBatch, watermark_ns: Option<u64>) -> Collected {
        let cell = self.complete_ns / self.cell_ns;
        let end_ns = cell.saturating_add(1).saturating_mul(self.cell_ns);
        let complete_ns = match watermark_ns {
            // The sender's clock was set back, so it has sent everything from before.
            Some(watermark_ns) if watermark_ns < self.complete_ns => {
                batch.append(&mut self.cell);
                watermark_ns
            }
            _ => watermark_ns.map_or(end_ns, |watermark_ns| watermark_ns.min(end_ns)),
        };
        let mut slice = MicroflowBatch::default();
        self.cell.split_off_before(complete_ns, &mut slice);
        batch.append(&mut slice);
        let is_all = self.cell.is_empty() || watermark_ns == Some(complete_ns);
        if !is_all {
            self.complete_ns = complete_ns;
            return Collected::all_before(complete_ns);
        }
        self.ready = None;
        self.complete_ns = watermark_ns.unwrap_or(self.complete_ns);
        Collected {
            complete_ns: watermark_ns,
            sets_back: false,
            has_more: true,
        }
    }

    /// Why the stream cannot be read further. Returned once; after that the stream has ended.
    fn take_failure(&mut self) -> Option<RecordsError> {
        match self.state {
            State::Failed(_) => match std::mem::replace(&mut self.state, State::Ended) {
                State::Failed(error) => Some(error),
                State::Reading | State::Ended => None,
            },
            State::Reading | State::Ended => None,
        }
    }

    fn is_over(&self) -> bool {
        self.ready.is_none() && matches!(self.state, State::Ended)
    }
}

impl RemoteEngine for RecordsEngine {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn started_ns(&self) -> u64 {
        self.complete_ns
    }

    fn collect(&mut self, batch: &mut MicroflowBatch) -> Result<Collected, EngineError> {
        self.read_cell();
        let Some(watermark_ns) = self.ready else {
            let failure = self.take_failure();
            return failure.map_or(Ok(Collected::default()), |error| {
                Err(EngineError::new(error))
            });
        };
        // If the records are later than the last watermark, nothing came until then: the clock
        // advances to them first, together with the run's other engines.
        let first_ns = self.cell.first_ns();
        match first_ns.map(|first_ns| first_ns.min(watermark_ns.unwrap_or(u64::MAX))) {
            Some(begin_ns) if begin_ns > self.complete_ns => {
                self.complete_ns = begin_ns;
                Ok(Collected::all_before(begin_ns))
            }
            _ => Ok(self.hand_over(batch, watermark_ns)),
        }
    }

    /// A file is read as fast as it can be merged.
    fn longest_pause(&self) -> Duration {
        match self.is_waiting {
            true => PAUSE,
            false => Duration::ZERO,
        }
    }

    fn counters(&mut self) -> Result<EngineCounters, EngineError> {
        Ok(self.totals.counters(self.decoder.lost(), self.is_over()))
    }

    fn ports(&mut self) -> Result<Vec<Port>, EngineError> {
        let counters = self.totals.counters(self.decoder.lost(), self.is_over());
        let rejected: u64 = counters.rejected_packets.iter().sum();
        let delivered = counters.packets_metered.saturating_add(rejected);
        Ok(vec![Port {
            name: self.name(),
            state: PortState::Up,
            interface_index: None,
            counters: PortCounters {
                seen: delivered.saturating_add(counters.source_dropped),
                delivered,
                delivered_bytes: counters.bytes_received,
                ..PortCounters::default()
            },
        }])
    }

    fn has_ended(&self) -> bool {
        self.is_over()
    }

    fn ends_by_itself(&self) -> bool {
        true
    }

    /// The rest stays unread in the file.
    fn finish(&mut self) -> Result<(), EngineError> {
        if matches!(self.state, State::Reading) {
            self.totals.leave_the_rest();
            self.state = State::Ended;
            self.ready.get_or_insert(None);
        }
        Ok(())
    }
}
