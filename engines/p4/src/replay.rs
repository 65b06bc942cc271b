// SPDX-License-Identifier: Apache-2.0
//! An engine that sends the frames of captures through a pipeline.
//!
//! The time and the length of a frame are sent with it, so the speed of the pipeline does not
//! matter. When the clock enters a cell, all records of the previous cell are swept out of the
//! table before the next frame goes in.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use turboflow_engine::{
    Abilities, Collected, EngineCounters, EngineError, MicroflowBatch, Port as EnginePort,
    PortCounters, PortState, RemoteEngine,
};
use turboflow_merge::Layout;
use turboflow_packet::{Frame, LinkType, Parser, ParserConfig};

use crate::clock::{ReplayClock, Tick};
use crate::lane::{
    COMMAND_BYTES, FLAG_CUT_AT_ENDS, FLAG_LATE, Kind, Lane, MOST_CAPTURED_BYTES, Settings, list_of,
};
use crate::link::Link;
use crate::receiver::Receiver;
use crate::report::Status;
use crate::{ABILITIES, P4Error, P4Record, Port, StrangeFrames};

/// Number of records at which those of an unfinished cell are handed over.
const MANY_RECORDS: usize = 4096;
/// Pause after an input had nothing to read.
const PAUSE: Duration = Duration::from_millis(10);

/// Records without a watermark.
const RECORDS_ALONE: Collected = Collected {
    complete_ns: None,
    sets_back: false,
    has_more: true,
};

/// A source of frames.
pub trait Frames: Send {
    /// Passes the next frames to `take`, a few hundred at most.
    ///
    /// # Errors
    /// If the input is damaged. Everything read before that was handed over.
    fn next(&mut self, take: &mut dyn FnMut(&Frame<'_>)) -> io::Result<Came>;
}

/// The result of reading an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// The input has ended.
    End,
    /// Frames.
    Frames,
    /// There is nothing at the moment.
    Nothing,
}

/// Settings of a pipeline.
#[derive(Clone, Copy, Debug)]
pub struct ReplayConfig {
    /// Slots of the IPv4 table, and of the IPv6 table: a power of two.
    pub slots: u32,
    /// The length of a cell of the clock, in nanoseconds.
    pub cell_ns: u64,
    /// A packet that is more than this behind sets the clock back, in nanoseconds.
    pub tolerance_ns: u64,
    /// Whether no packet joins a record with FIN or RST, as with a linger of 0.
    pub cuts_at_ends: bool,
    /// The seeds of the hash.
    pub seeds: [u64; 2],
    /// Frames that may be under way at the same time. `None`: the port reports itself when it is
    /// full.
    pub window: Option<usize>,
}

/// A pipeline to which frames are sent.
pub struct Replay {
    cuts_at_ends: bool,
    input: Option<Box<dyn Frames>>,
    /// Whether the input had nothing at the last read.
    is_waiting: bool,
    link: Link,
    /// Maximum bytes of a frame that the port takes.
    most_captured_bytes: usize,
    clock: ReplayClock,
    parser: Parser,
    /// The number of the current cell; 0 before the first packet.
    cell: u32,
    ready: VecDeque<Ready>,
    failure: Option<P4Error>,
    /// Frames and bytes that were read.
    seen: PortCounters,
}

/// A batch to hand over.
struct Ready {
    batch: MicroflowBatch,
    collected: Collected,
}

impl Replay {
    /// Opens the port. The program there must have this record.
    ///
    /// # Errors
    /// If the pipeline does not answer, or has another program.
    pub fn open(
        port: Box<dyn Port>,
        input: Box<dyn Frames>,
        record: P4Record,
        layout: &Layout,
        config: &ReplayConfig,
    ) -> Result<Self, P4Error> {
        let settings = Settings {
            seeds: config.seeds,
            slots: config.slots,
            time_offset_ns: 0,
            meters: false,
        };
        let receiver = Receiver::new(record, layout);
        let mut link = Link::open(port, receiver, &settings, config.window)?;
        if !link.receiver.last_status().has(Status::REPLAY) {
            return Err(P4Error::OnlyLive { port: link.name() });
        }
        // Removes what an earlier run left.
        link.sweep_all()?;
        link.receiver.begin();
        let room = link.longest_frame_bytes().saturating_sub(COMMAND_BYTES);
        Ok(Self {
            most_captured_bytes: room.min(MOST_CAPTURED_BYTES),
            cuts_at_ends: config.cuts_at_ends,
            input: Some(input),
            is_waiting: false,
            link,
            clock: ReplayClock::new(config.cell_ns, config.tolerance_ns),
            parser: Parser::new(ParserConfig::default()),
            cell: 0,
            ready: VecDeque::new(),
            failure: None,
            seen: PortCounters::default(),
        })
    }

    /// Reports that did not arrive, according to their sequence numbers.
    #[must_use]
    pub const fn reports_lost(&self) -> u64 {
        self.link.receiver.reports_lost()
    }

    /// Frames from the port that were not reports.
    #[must_use]
    pub const fn strange_frames(&self) -> StrangeFrames {
        self.link.receiver.strange
    }

    /// Reads some frames, and sends them.
    fn read_some(&mut self) {
        let Some(mut input) = self.input.take() else {
            return;
        };
        let mut failure = None;
        let came = input.next(&mut |frame| {
            if failure.is_none() {
                failure = self.send(frame).err();
            }
        });
        self.is_waiting = matches!(came, Ok(Came::Nothing));
        match (failure, came) {
            (Some(error), _) => self.fail(error),
            (None, Ok(Came::End)) => self.end(None),
            (None, Ok(Came::Frames | Came::Nothing)) => {
                // While the input has nothing, reports under way have time to arrive.
                if self.is_waiting
                    && let Err(error) = self.link.status(0)
                {
                    return self.fail(error);
                }
                self.input = Some(input);
                let records = self.link.receiver.batch.len();
                if records >= MANY_RECORDS || self.is_waiting && records > 0 {
                    self.hand_over(RECORDS_ALONE);
                }
            }
            (None, Err(error)) => self.end(Some(P4Error::Input(error))),
        }
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// If the pipeline has ended, or does not answer.
    pub fn send(&mut self, frame: &Frame<'_>) -> Result<(), P4Error> {
        // Packets move the clock, other frames do not.
        let tick = match self.parser.parse(frame) {
            Ok(_) => self.clock.tick(frame.timestamp_ns),
            Err(_) => Tick::Stays,
        };
        if matches!(tick, Tick::Enters | Tick::SetsBack) {
            self.enter_cell(tick == Tick::SetsBack)?;
        }
        self.seen.seen += 1;
        self.seen.delivered += 1;
        self.seen.delivered_bytes += u64::from(frame.wire_length_bytes);
        if frame.link_type != LinkType::Ethernet {
            // The ports of a switch are Ethernet, so such a frame is metered here.
            self.link.receiver.meter(frame);
            return Ok(());
        }
        let bytes = &frame.bytes[..frame.bytes.len().min(self.most_captured_bytes)];
        let mut flags = 0;
        if tick == Tick::IsLate {
            flags |= FLAG_LATE;
        }
        if self.cuts_at_ends {
            flags |= FLAG_CUT_AT_ENDS;
        }
        self.link.receiver.count_sent();
        let lane = Lane {
            kind: Kind::Replay,
            flags,
            captured_bytes: bytes.len() as u16,
            argument: 0,
            frame_length_bytes: frame.wire_length_bytes,
            cell: self.cell,
            time_ns: frame.timestamp_ns,
        };
        self.link.send(&lane, bytes)
    }

    /// Sweeps the records of the last cell, and enters the clock's current cell.
    fn enter_cell(&mut self, sets_back: bool) -> Result<(), P4Error> {
        self.link.receiver.is_flushing = sets_back;
        if self.cell > 0 {
            self.sweep()?;
        }
        // Before the first packet there is nothing: first the clock advances to the packet's cell.
        self.hand_over(Collected {
            sets_back,
            ..Collected::all_before(self.clock.cell_start_ns())
        });
        // A slot has 31 bits for the cell. After a wrap, all records of cell 1 have long left.
        self.cell = self.cell % (u32::MAX >> 1) + 1;
        Ok(())
    }

    /// Takes all records out of the table. None belongs to a later cell: no frame goes in
    /// meanwhile.
    fn sweep(&mut self) -> Result<(), P4Error> {
        self.link.sweep(list_of(self.cell), self.cell, true)?;
        self.link.receiver.end_cell();
        self.link.receiver.settle();
        Ok(())
    }

    /// The input has ended: everything leaves the table.
    fn end(&mut self, failure: Option<P4Error>) {
        self.link.receiver.is_flushing = true;
        match self.sweep().err().or(failure) {
            Some(error) => self.fail(error),
            None => self.hand_over(RECORDS_ALONE),
        }
    }

    /// Nothing more can be metered: hands over what has arrived, and counts what is missing as
    /// lost.
    fn fail(&mut self, error: P4Error) {
        self.link.receiver.has_failed = true;
        self.link.receiver.end_cell();
        self.link.receiver.settle();
        self.hand_over(RECORDS_ALONE);
        self.failure = Some(error);
    }

    fn hand_over(&mut self, collected: Collected) {
        let batch = std::mem::take(&mut self.link.receiver.batch);
        self.ready.push_back(Ready { batch, collected });
    }
}

impl RemoteEngine for Replay {
    fn abilities(&self) -> &Abilities {
        &ABILITIES
    }

    /// Unknown: the first watermark tells it.
    fn started_ns(&self) -> u64 {
        0
    }

    fn collect(&mut self, batch: &mut MicroflowBatch) -> Result<Collected, EngineError> {
        if self.ready.is_empty() {
            self.read_some();
        }
        if let Some(mut ready) = self.ready.pop_front() {
            batch.append(&mut ready.batch);
            return Ok(ready.collected);
        }
        match self.failure.take() {
            Some(error) => {
                self.input = None;
                Err(EngineError::new(error))
            }
            None => Ok(Collected {
                complete_ns: None,
                sets_back: false,
                has_more: self.input.is_some() && !self.is_waiting,
            }),
        }
    }

    fn unread_ether_types(&self) -> Vec<(u16, u64)> {
        self.link.receiver.unread_ether_types()
    }

    /// A capture is read as fast as it can be metered.
    fn longest_pause(&self) -> Duration {
        match self.is_waiting {
            true => PAUSE,
            false => Duration::ZERO,
        }
    }

    fn counters(&mut self) -> Result<EngineCounters, EngineError> {
        Ok(self.link.receiver.counters())
    }

    fn ports(&mut self) -> Result<Vec<EnginePort>, EngineError> {
        let lost = self.link.receiver.frames_lost();
        Ok(vec![EnginePort {
            name: self.link.name(),
            state: PortState::Up,
            interface_index: None,
            counters: PortCounters {
                dropped: lost,
                delivered: self.seen.delivered.saturating_sub(lost),
                ..self.seen
            },
        }])
    }

    fn ends_by_itself(&self) -> bool {
        true
    }

    fn has_ended(&self) -> bool {
        self.input.is_none() && self.ready.is_empty() && self.failure.is_none()
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        if self.input.take().is_some() {
            self.end(None);
        }
        Ok(())
    }
}
