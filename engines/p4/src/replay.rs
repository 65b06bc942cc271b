// SPDX-License-Identifier: Apache-2.0
//! Sends the frames of captures through a pipeline, as an engine.
//!
//! Time and length of a frame are arguments, so that it does not matter how fast the pipeline is.
//! When the clock enters a cell, every record of the last one is swept out of the table before the
//! next frame goes in.

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
    FLAG_ALL, FLAG_CUT_AT_ENDS, FLAG_LATE, FLAG_ODD, FLAG_RESET, Kind, Lane, MOST_CAPTURED_BYTES,
    Settings,
};
use crate::receiver::Receiver;
use crate::report::Status;
use crate::{P4Error, P4Record, Port, StrangeFrames, abilities};

/// Frames between two looks for what the pipeline has sent.
const FRAMES_A_TURN: usize = 256;
/// Records of a cell that is not over that are handed over together.
const MANY_RECORDS: usize = 4096;

/// Where frames come from.
pub trait Frames: Send {
    /// Hands the next frames to `take`, some hundred at most. Returns false once there are no more.
    ///
    /// # Errors
    /// The input is damaged. What was read before was handed over.
    fn next(&mut self, take: &mut dyn FnMut(&Frame<'_>)) -> io::Result<bool>;
}

/// How a pipeline meters.
#[derive(Clone, Copy, Debug)]
pub struct ReplayConfig {
    /// Slots of the table for IPv4, and as many for IPv6: a power of two.
    pub slots: u32,
    /// The length of a cell of the clock, in nanoseconds.
    pub cell_ns: u64,
    /// A packet that is more than this behind sets the clock back, in nanoseconds.
    pub tolerance_ns: u64,
    /// Whether no packet joins a record with FIN or RST: with a linger of 0.
    pub cuts_at_ends: bool,
    /// The seed of the hash.
    pub seeds: [u64; 2],
    /// Frames that may be on their way at once. `None`: the port says itself when it is full.
    pub window: Option<usize>,
}

/// A pipeline that is sent frames.
pub struct Replay {
    abilities: Abilities,
    config: ReplayConfig,
    input: Option<Box<dyn Frames>>,
    link: Link,
    clock: ReplayClock,
    parser: Parser,
    /// The number of the current cell; 0 before the first frame.
    cell: u32,
    /// Batches to hand over, with their watermarks.
    ready: VecDeque<(MicroflowBatch, Option<u64>)>,
    started_ns: u64,
    failure: Option<P4Error>,
    /// Packets and bytes that went in.
    seen: PortCounters,
    /// Frames since the last answer.
    under_way: usize,
}

/// The port and what comes from it.
struct Link {
    port: Box<dyn Port>,
    receiver: Receiver,
}

impl Link {
    fn exchange(&mut self, wait: bool) -> Result<(), P4Error> {
        let Self { port, receiver } = self;
        match port.exchange(wait, &mut |frame| receiver.take(frame)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(P4Error::Ended {
                port: self.port.name().to_owned(),
            }),
            Err(source) => Err(P4Error::Port {
                port: self.port.name().to_owned(),
                source,
            }),
        }
    }

    /// Sends a command that is answered by a status, and waits for that.
    fn ask(&mut self, parts: &[&[u8]]) -> Result<Status, P4Error> {
        self.receiver.status = None;
        self.port.send(parts);
        loop {
            self.exchange(true)?;
            if let Some(status) = self.receiver.status.take() {
                return Ok(status);
            }
        }
    }

    fn ask_status(&mut self, flags: u8) -> Result<Status, P4Error> {
        let lane = Lane::command(Kind::Status, flags, 0);
        self.ask(&[&lane.bytes()])
    }

    /// Sweeps all records that are in a list out of the table. `window`: how many commands may be
    /// under way at once.
    fn sweep(&mut self, list: u8, window: Option<usize>) -> Result<(), P4Error> {
        let listed = self.ask_status(list)?.listed;
        for place in 0..listed {
            let lane = Lane {
                argument: place,
                ..Lane::command(Kind::Sweep, FLAG_ALL | list, 0)
            };
            self.port.send(&[&lane.bytes()]);
            if (place as usize + 1).is_multiple_of(window.unwrap_or(FRAMES_A_TURN)) {
                match window {
                    Some(_) => drop(self.ask_status(0)?),
                    None => self.exchange(false)?,
                }
            }
        }
        self.ask_status(list | FLAG_RESET)?;
        Ok(())
    }

    /// Forgets what is in the table from an earlier run, and what was counted then.
    fn empty(&mut self, window: Option<usize>) -> Result<(), P4Error> {
        self.sweep(0, window)?;
        self.sweep(FLAG_ODD, window)?;
        self.receiver.begin();
        Ok(())
    }
}

impl Replay {
    /// Opens the port: the program behind it must have this record.
    ///
    /// # Errors
    /// The pipeline does not answer, or has another program.
    pub fn open(
        port: Box<dyn Port>,
        input: Box<dyn Frames>,
        record: P4Record,
        layout: &Layout,
        config: ReplayConfig,
    ) -> Result<Self, P4Error> {
        let wanted = record.id();
        let mut link = Link {
            port,
            receiver: Receiver::new(record, layout),
        };
        let lane = Lane::command(Kind::Settings, 0, 0);
        let settings = Settings {
            seeds: config.seeds,
            slots: config.slots,
        };
        let status = link.ask(&[&lane.bytes(), &settings.bytes()])?;
        let port = || link.port.name().to_owned();
        if status.program_id != wanted {
            return Err(P4Error::Definition {
                port: port(),
                found: status.program_id,
                wanted,
            });
        }
        if status.slots < config.slots {
            return Err(P4Error::Slots {
                port: port(),
                room: status.slots,
                wanted: config.slots,
            });
        }
        link.empty(config.window)?;
        let mut replay = Self {
            abilities: abilities(),
            config,
            input: Some(input),
            link,
            clock: ReplayClock::new(config.cell_ns, config.tolerance_ns),
            parser: Parser::new(ParserConfig::default()),
            cell: 0,
            ready: VecDeque::new(),
            started_ns: 0,
            failure: None,
            seen: PortCounters::default(),
            under_way: 0,
        };
        // The first frame says when the run begins.
        while replay.cell == 0 && replay.input.is_some() {
            replay.read_some();
        }
        Ok(replay)
    }

    /// Reports that did not arrive, according to their sequence numbers.
    #[must_use]
    pub const fn reports_lost(&self) -> u64 {
        self.link.receiver.reports_lost()
    }

    /// Frames from the port that were no reports.
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
        let goes_on = input.next(&mut |frame| {
            if failure.is_none() {
                failure = self.send(frame).err();
            }
        });
        match (failure, goes_on) {
            (Some(error), _) => self.failure = Some(error),
            (None, Ok(true)) => {
                self.input = Some(input);
                if self.link.receiver.batch.len() >= MANY_RECORDS {
                    let batch = std::mem::take(&mut self.link.receiver.batch);
                    self.ready.push_back((batch, None));
                }
            }
            (None, Ok(false)) => self.end(None),
            (None, Err(error)) => self.end(Some(P4Error::Input(error))),
        }
    }

    /// Sends a frame.
    fn send(&mut self, frame: &Frame<'_>) -> Result<(), P4Error> {
        // Packets move the clock, other frames do not.
        let tick = match self.parser.parse(frame) {
            Ok(_) => self.clock.tick(frame.timestamp_ns),
            Err(_) => Tick::Stays,
        };
        if tick == Tick::Enters {
            self.enter_cell()?;
        }
        self.seen.seen += 1;
        self.seen.delivered += 1;
        self.seen.delivered_bytes += u64::from(frame.wire_length_bytes);
        if frame.link_type != LinkType::Ethernet {
            // Ports of a switch are Ethernet.
            self.link.receiver.meter(frame);
            return Ok(());
        }
        let bytes = &frame.bytes[..frame.bytes.len().min(MOST_CAPTURED_BYTES)];
        let mut flags = 0;
        if tick == Tick::IsLate {
            flags |= FLAG_LATE;
        }
        if self.config.cuts_at_ends {
            flags |= FLAG_CUT_AT_ENDS;
        }
        let lane = Lane {
            kind: Kind::Replay,
            flags,
            captured_bytes: bytes.len() as u16,
            argument: 0,
            frame_length_bytes: frame.wire_length_bytes,
            cell: self.cell,
            time_ns: frame.timestamp_ns,
        };
        self.link.port.send(&[&lane.bytes(), bytes]);
        self.under_way += 1;
        match self.config.window {
            Some(window) if self.under_way >= window => {
                self.link.ask_status(0)?;
                self.under_way = 0;
            }
            None if self.under_way >= FRAMES_A_TURN => {
                self.link.exchange(false)?;
                self.under_way = 0;
            }
            _ => {}
        }
        Ok(())
    }

    /// Sweeps the records of the last cell, and enters that of the clock.
    fn enter_cell(&mut self) -> Result<(), P4Error> {
        if self.cell > 0 {
            self.sweep()?;
            let batch = std::mem::take(&mut self.link.receiver.batch);
            self.ready
                .push_back((batch, Some(self.clock.cell_start_ns())));
        } else {
            self.started_ns = self.clock.cell_start_ns();
        }
        // 31 bits of a slot's cell word. A record of cell 1 has left long ago.
        self.cell = self.cell % (u32::MAX >> 1) + 1;
        Ok(())
    }

    /// Reports every record in the table. None is of a later cell: no frame goes in meanwhile.
    fn sweep(&mut self) -> Result<(), P4Error> {
        let list = if self.cell.is_multiple_of(2) {
            0
        } else {
            FLAG_ODD
        };
        self.link.sweep(list, self.config.window)?;
        self.under_way = 0;
        self.link.receiver.end_cell();
        self.link.receiver.settle();
        Ok(())
    }

    /// The input is over: everything leaves the table.
    fn end(&mut self, failure: Option<P4Error>) {
        self.link.receiver.is_flushing = true;
        let swept = match self.cell {
            // No packet among the frames.
            0 => self.link.ask_status(0).map(drop),
            _ => self.sweep(),
        };
        self.link.receiver.end_cell();
        let batch = std::mem::take(&mut self.link.receiver.batch);
        self.ready.push_back((batch, None));
        self.failure = swept.err().or(failure);
    }
}

impl RemoteEngine for Replay {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn started_ns(&self) -> u64 {
        self.started_ns
    }

    fn collect(&mut self, batch: &mut MicroflowBatch) -> Result<Collected, EngineError> {
        while self.ready.is_empty() && self.input.is_some() {
            self.read_some();
        }
        match (self.ready.pop_front(), self.failure.take()) {
            (Some((mut ready, complete_ns)), failure) => {
                self.failure = failure;
                batch.append(&mut ready);
                Ok(Collected {
                    complete_ns,
                    has_more: true,
                })
            }
            (None, Some(error)) => {
                self.input = None;
                Err(EngineError::new(error))
            }
            (None, None) => Ok(Collected::default()),
        }
    }

    /// A capture is read as fast as it can be metered.
    fn longest_pause(&self) -> Duration {
        Duration::ZERO
    }

    fn counters(&mut self) -> Result<EngineCounters, EngineError> {
        Ok(self.link.receiver.counters())
    }

    fn ports(&mut self) -> Result<Vec<EnginePort>, EngineError> {
        Ok(vec![EnginePort {
            name: self.link.port.name().to_owned(),
            state: PortState::Up,
            interface_index: None,
            counters: PortCounters {
                dropped: self.link.receiver.frames_lost(),
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
