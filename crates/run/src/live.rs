// SPDX-License-Identifier: Apache-2.0
//! The other main job: packets of network interfaces in, outputs written, until somebody asks for
//! the end.
//!
//! # The clock
//! A flow must leave on time though no packet comes, and no packet may come too late for its flow.
//! So every interface says up to which time it has delivered everything: the time of its last
//! packet after a block; the wall clock, read first, when the kernel's count then says that no
//! packet waits in the ring. The smallest of these times, less what a packet may spend between its
//! timestamp and the kernel's count ([`LAG_NS`]), moves the clock of the run.

mod together;

use std::io;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use turboflow_capture::live::{Interface, InterfaceCounters, State, wait};
use turboflow_engine::{PortCounters, PortState};
use turboflow_packet::Frame;

use crate::files::Stop;
use crate::meter::DeliverRecords;
use crate::outputs::Outputs;
use crate::snapshots::Snapshots;
use crate::{ConfigError, Ledger, LiveOutputs, Meter, OutputReport, PipelineConfig, ShortFlows};
use together::EndsTheRun;
pub(crate) use together::{Part, Together};

/// How long a packet may be on its way from its timestamp into the ring: queues between interrupt
/// and socket, another processor's turn. A thousand times what is seen on an idle machine; a
/// packet that takes longer is metered all the same, and at worst begins a record of its own.
const LAG_NS: u64 = 100_000_000;
/// How long to wait for packets at a time: a signal may go unheard so long.
const WAIT: Duration = Duration::from_millis(50);
/// How long the kernel may take at the end to hand over a block of packets that it has counted:
/// 40 ms on an idle machine. Metering them may take as long as it takes.
const CLOSING: Duration = Duration::from_secs(2);

/// When a run ends by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveLimits {
    /// After so much time.
    pub duration: Option<Duration>,
    /// After so many packets.
    pub packets: Option<u64>,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveProgress {
    /// Packets read.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// Packets that the kernel dropped.
    pub dropped: u64,
}

/// What happens during a run.
#[derive(Clone, Copy, Debug)]
pub enum LiveEvent<'a> {
    /// An interface has changed its state.
    Changed(&'a str, PortState),
    /// Some time has passed.
    Progress(LiveProgress),
    /// A frame that is no packet was handed up by an engine that was asked to.
    Unparsed(Frame<'a>),
}

/// What a run over interfaces did.
#[derive(Debug)]
pub struct LiveReport {
    /// Where everything went.
    pub ledger: Ledger,
    /// What each interface counted, by name, and what became of it.
    pub interfaces: Vec<(String, PortCounters, PortState)>,
    /// Why capturing ended early, if a system call failed.
    pub failure: Option<io::Error>,
    /// Frames that were to be handed up as [`LiveEvent::Unparsed`] and came too fast.
    pub unparsed_lost: u64,
    /// Flows that an engine in the kernel lost records of; `None` where it could not say.
    pub short: Option<ShortFlows>,
    /// What became of the outputs.
    pub outputs: Vec<OutputReport>,
}

/// Meters the packets of interfaces until `stop` is asked for, a limit is reached, or every
/// interface is gone. Everything in the rings is metered then.
///
/// `readers` has for each reader its own ring of every interface. The first reads on this thread,
/// the others on threads of their own.
///
/// `observe` is called many times a second; whoever asks `snapshots` is answered as often.
///
/// # Errors
/// What is wrong with the configuration. What fails later is in the report.
pub fn record_interfaces(
    config: &PipelineConfig,
    readers: Vec<Vec<Interface>>,
    limits: LiveLimits,
    outputs: LiveOutputs,
    stop: &Stop,
    snapshots: &Snapshots,
    observe: impl FnMut(LiveEvent<'_>),
) -> Result<LiveReport, ConfigError> {
    let layout = config.compile()?;
    let mut writing = Outputs::start(outputs.first, config.prompt)?;
    let together = Together::new(limits, readers.len().max(1));
    let delivers = |writing: &Outputs| -> Vec<DeliverRecords> {
        let shards = 0..config.threads;
        shards.map(|_| writing.deliver(layout.schema())).collect()
    };
    let mut readers = readers.into_iter().enumerate();
    let (_, first) = readers.next().unwrap_or_default();
    let finished = thread::scope(|scope| {
        let _ends = EndsTheRun(&together);
        let (closed, is_closed) = channel::<()>();
        let mut others = Vec::new();
        for (reader, interfaces) in readers {
            let (delivers, closed, together) = (delivers(&writing), closed.clone(), &together);
            let (may_finish, finishes) = channel::<()>();
            let metering = move || {
                let _ends = EndsTheRun(together);
                let meter = meter(config, delivers)?;
                let mut listening = Listening::new(interfaces, meter, reader, together, |_| {});
                let ran = listening.run(stop, |listening| {
                    together.contribute(snapshots, reader, || listening.part());
                });
                drop(closed);
                let _ = finishes.recv();
                Ok(listening.finish(ran.err()))
            };
            let thread = thread::Builder::new().name("reader".to_owned());
            let what = "a reader";
            let thread = thread.spawn_scoped(scope, metering);
            let thread = thread.map_err(|source| ConfigError::Thread { what, source })?;
            others.push((may_finish, thread));
        }
        drop(closed);
        let meter = meter(config, delivers(&writing))?;
        let mut listening = Listening::new(first, meter, 0, &together, observe);
        let ran = listening.run(stop, |listening| {
            writing.change(&outputs.changes);
            together.contribute(snapshots, 0, || listening.part());
            together.answer(snapshots, &writing);
        });
        // Nobody sends: this is over once no ring of any reader can overflow any more.
        let _ = is_closed.recv();
        writing.change(&outputs.changes);
        writing.wait_for_all(outputs.end_patience);
        let (gates, threads): (Vec<_>, Vec<_>) = others.into_iter().unzip();
        drop(gates);
        let mut finished = vec![listening.finish(ran.err())];
        for thread in threads {
            match thread.join() {
                Ok(other) => finished.push(other?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(finished)
    })?;
    let report = LiveReport::of(finished);
    Ok(report.with_outputs(writing.finish()))
}

/// The meter of one reader.
fn meter(config: &PipelineConfig, delivers: Vec<DeliverRecords>) -> Result<Meter, ConfigError> {
    let mut delivers = delivers.into_iter();
    let one_each = |_shard| delivers.next().expect("there is one for every shard");
    Meter::new(config, one_each)
}

/// A reader that has ended.
struct Finished {
    part: Part,
    failure: Option<io::Error>,
    interfaces: Vec<Interface>,
}

impl LiveReport {
    fn of(finished: Vec<Finished>) -> Self {
        let (mut parts, mut failure, mut rings) = (Vec::new(), None, Vec::new());
        for reader in finished {
            parts.push(reader.part);
            failure = failure.or(reader.failure);
            rings.extend(reader.interfaces);
        }
        // Together: the kernel deals packets of a ring that is gone out to the others.
        drop(rings);
        let sum = Part::sum(parts).expect("there is a reader");
        Self::of_part(sum, failure)
    }

    /// The same with what became of its outputs.
    pub(crate) fn with_outputs(mut self, outputs: Vec<OutputReport>) -> Self {
        self.ledger.records_dropped = outputs.iter().map(|output| output.records_dropped).sum();
        self.ledger.records_written = outputs.iter().map(OutputReport::records_written).sum();
        self.outputs = outputs;
        self
    }

    /// What a run came to, but for its outputs.
    pub(crate) fn of_part(sum: Part, failure: Option<io::Error>) -> Self {
        Self {
            ledger: sum.ledger(),
            interfaces: sum.interfaces,
            failure,
            unparsed_lost: 0,
            short: Some(ShortFlows::default()),
            outputs: Vec::new(),
        }
    }
}

/// One reader: its rings, and what meters them.
struct Listening<'a, O> {
    interfaces: Vec<Interface>,
    /// Up to which time each has delivered everything.
    delivered_ns: Vec<u64>,
    states: Vec<PortState>,
    /// Up to which time all of them have.
    clock_ns: u64,
    meter: Meter,
    reader: usize,
    together: &'a Together,
    /// Packets past the limit that lay in the rings.
    unread: u64,
    /// How far all readers had been when progress was told last.
    told: Vec<u64>,
    observe: O,
}

impl<'a, O: FnMut(LiveEvent<'_>)> Listening<'a, O> {
    fn new(
        interfaces: Vec<Interface>,
        meter: Meter,
        reader: usize,
        together: &'a Together,
        observe: O,
    ) -> Self {
        Self {
            delivered_ns: vec![0; interfaces.len()],
            states: interfaces
                .iter()
                .map(|interface| port_state(interface.state()))
                .collect(),
            interfaces,
            clock_ns: 0,
            meter,
            reader,
            together,
            unread: 0,
            told: Vec::new(),
            observe,
        }
    }

    /// Listens to the end of the run and meters what the rings hold, though listening may have failed.
    fn run(&mut self, stop: &Stop, between: impl FnMut(&mut Self)) -> io::Result<()> {
        let listened = self.listen(stop, between);
        self.together.end();
        let closed = self.close(CLOSING);
        self.together.has_ended(self.reader);
        listened.and(closed)
    }

    /// `between` is called whenever all that was read is metered.
    fn listen(&mut self, stop: &Stop, mut between: impl FnMut(&mut Self)) -> io::Result<()> {
        let mut looked = instant();
        while !stop.asked() && !self.is_over() {
            // An interface that goes away is noticed though blocks of another one always wait.
            let patience = match self.meter_block() {
                false => Some(self.patience()),
                true => (looked.elapsed() >= WAIT).then_some(Duration::ZERO),
            };
            if let Some(patience) = patience {
                wait(&mut self.interfaces, patience)?;
                looked = instant();
            }
            self.notice_silence()?;
            self.tell();
            between(self);
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.together.is_over() || self.states.iter().all(|state| state.is_final())
    }

    /// How long to wait for packets: not past the end of the run.
    fn patience(&self) -> Duration {
        let left = self
            .together
            .ends()
            .map(|ends| ends.saturating_duration_since(instant()));
        // A wait of part of a millisecond is none at all, and would be tried again and again.
        let tick = Duration::from_millis(1);
        left.map_or(WAIT, |left| left.min(WAIT).max(tick))
    }

    /// Meters the oldest block that waits in any ring, so that interfaces stay in step.
    fn meter_block(&mut self) -> bool {
        let waiting = self.interfaces.iter().enumerate();
        let oldest = waiting
            .filter_map(|(index, interface)| Some((interface.next_ns()?, index)))
            .min();
        let Some((_, index)) = oldest else {
            return false;
        };
        let interface = &mut self.interfaces[index];
        let Some(batch) = interface.next_batch() else {
            return true;
        };
        let taken = self.together.take(batch.frames().len());
        let (frames, unread) = batch.frames().split_at(taken);
        self.unread += unread.len() as u64;
        let lengths = frames
            .iter()
            .map(|frame| u64::from(frame.wire_length_bytes));
        self.together.count(lengths.sum());
        self.meter.frames(frames);
        drop(batch);
        self.delivered_ns[index] = interface.last_ns();
        true
    }

    /// Rings that are empty have delivered everything until now.
    fn notice_silence(&mut self) -> io::Result<()> {
        let now_ns = wall_ns();
        for (interface, delivered_ns) in self.interfaces.iter_mut().zip(&mut self.delivered_ns) {
            if interface.is_empty()? {
                *delivered_ns = now_ns;
            }
        }
        if let Some(delivered_ns) = self.delivered_ns.iter().min()
            && *delivered_ns > 0
        {
            self.clock_ns = delivered_ns.saturating_sub(LAG_NS);
            self.meter.advance(self.clock_ns);
        }
        Ok(())
    }

    fn tell(&mut self) {
        let mut dropped = 0;
        for (interface, state) in self.interfaces.iter_mut().zip(&mut self.states) {
            dropped += interface.dropped();
            let now = port_state(interface.state());
            if *state != now {
                *state = now;
                (self.observe)(LiveEvent::Changed(interface.name(), *state));
            }
        }
        self.together.been_round(self.reader, dropped);
        // A reader that stands still is no progress, whatever the others do.
        if self.together.all_been_round(&mut self.told) {
            (self.observe)(LiveEvent::Progress(self.together.progress()));
        }
    }

    /// Lets no further packet in and meters those that are in the rings. Nothing follows them, so
    /// this ends: `patience` is for a kernel that hands over no block though it has counted packets.
    fn close(&mut self, patience: Duration) -> io::Result<()> {
        for interface in &self.interfaces {
            interface.close_intake()?;
        }
        // One that went away in the last moment is said.
        wait(&mut self.interfaces, Duration::ZERO)?;
        let mut gives_up = instant() + patience;
        loop {
            if self.meter_block() {
                gives_up = instant() + patience;
                self.tell();
                continue;
            }
            let mut empty = true;
            for interface in &mut self.interfaces {
                empty &= interface.is_empty()?;
            }
            if empty {
                break;
            }
            if instant() >= gives_up {
                let message = "the kernel has counted packets that it does not hand over";
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            wait(&mut self.interfaces, Duration::from_millis(1))?;
        }
        self.tell();
        Ok(())
    }

    /// Where everything is at this moment.
    fn part(&mut self) -> Part {
        let counts = self.meter.counts();
        let mut part = Part {
            counts,
            interfaces: self.count_source(),
            dropped_of_all: 0,
            unread: 0,
            clock_ns: self.clock_ns,
        };
        // What the kernel has seen by now, and the meter has not read yet.
        part.find_unread();
        part
    }

    /// What the interfaces counted, by name.
    fn count_source(&mut self) -> Vec<(String, PortCounters, PortState)> {
        let interfaces = self.interfaces.iter_mut().zip(&self.states);
        let counted = interfaces.map(|(interface, state)| {
            // One that does not tell any more leaves the ledger unequal, which is then said.
            let counters = interface.counters().unwrap_or_default();
            (interface.name().to_owned(), port_counters(counters), *state)
        });
        counted.collect()
    }

    /// Exports everything that is open.
    fn finish(mut self, failure: Option<io::Error>) -> Finished {
        let interfaces = self.count_source();
        let mut part = Part {
            counts: self.meter.finish_counting(),
            interfaces,
            dropped_of_all: 0,
            unread: self.unread,
            clock_ns: self.clock_ns,
        };
        if failure.is_some() {
            // The rest is in rings that could not be read to their end.
            part.find_unread();
        }
        Finished {
            part,
            failure,
            interfaces: self.interfaces,
        }
    }
}

/// What a port behind an interface is doing.
pub(crate) const fn port_state(state: State) -> PortState {
    match state {
        State::Down => PortState::Down,
        State::Gone => PortState::Gone,
        State::Up => PortState::Up,
    }
}

const fn port_counters(counters: InterfaceCounters) -> PortCounters {
    let InterfaceCounters {
        seen,
        dropped,
        delivered,
        delivered_bytes,
        copies,
        merged,
    } = counters;
    PortCounters {
        seen,
        dropped,
        delivered,
        delivered_bytes,
        copies,
        merged,
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a run of a given duration has to end"
)]
pub(crate) fn instant() -> Instant {
    Instant::now()
}

/// The clock that the kernel stamps packets with, in nanoseconds since 1970.
#[allow(
    clippy::disallowed_methods,
    reason = "the clock of a live source that is silent"
)]
#[must_use]
pub fn wall_ns() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    since_1970.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

#[cfg(test)]
mod tests;
