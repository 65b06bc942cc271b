// SPDX-License-Identifier: Apache-2.0
//! Network interfaces: packets are read from the kernel's rings as they arrive.
//!
//! # The clock
//! A flow must be exported on time even if no packet arrives, and no packet may arrive too late for
//! its flow. Each interface therefore has a time up to which it has delivered everything. After a
//! block of packets, this is the time of the last packet. If the kernel's count shows that no
//! packet waits in the ring, it is the wall clock, which is read before that count. The smallest of
//! these times drives the clock of the run, reduced by the time that a packet may spend between its
//! timestamp and the kernel's count ([`LAG_NS`]).

use std::io;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use turboflow_capture::live::{Interface, InterfaceCounters, State, wait};
use turboflow_engine::{PortCounters, PortState};

use super::shared::{EndOnDrop, Shared, Totals, instant, wall_ns};
use super::sink::FrameSink;
use super::{Controls, Limits, Progress, RunEvent, RunReport, Steps};
use crate::shard::DeliverRecords;
use crate::{ConfigError, Meter, PipelineConfig, Stop};

/// How long a packet may take from its timestamp into the ring, through the queues between
/// interrupt and socket. This is a thousand times the delay of an idle machine. A slower packet is
/// metered too; at worst it begins a record of its own.
const LAG_NS: u64 = 100_000_000;
/// How long to wait for packets at a time. This also bounds the delay until a signal is noticed.
const WAIT: Duration = Duration::from_millis(50);
/// How long the kernel may take at the end to hand over a block of packets that it has counted. An
/// idle machine takes 40 ms. Metering the packets has no time limit.
const CLOSING: Duration = Duration::from_secs(2);

/// Meters the packets of interfaces until the run ends, and then everything that is left in the
/// rings.
///
/// `readers` has, for each reader, its own ring of every interface. The first reader runs on this
/// thread, the others on threads of their own.
pub(super) fn capture(
    config: &PipelineConfig,
    readers: Vec<Vec<Interface>>,
    steps: &mut Steps<'_>,
    observe: impl FnMut(RunEvent<'_>),
) -> Result<RunReport, ConfigError> {
    let Controls {
        limits,
        stop,
        snapshots,
    } = steps.controls;
    let shared = Shared::new(limits, readers.len().max(1));
    // All before the first record: the watermark of the run waits only for known shards.
    let delivers = (0..readers.len().max(1)).map(|_| delivers(config, steps));
    let mut delivers = delivers.collect::<Vec<_>>().into_iter();
    let mut readers = readers.into_iter().enumerate();
    let (_, first) = readers.next().unwrap_or_default();
    let first_delivers = delivers.next().unwrap_or_default();
    let finished = thread::scope(|scope| {
        let _ends = EndOnDrop(&shared);
        let (closed, is_closed) = channel::<()>();
        let mut others = Vec::new();
        for ((index, interfaces), delivers) in readers.zip(delivers) {
            let (closed, shared) = (closed.clone(), &shared);
            let (may_finish, finishes) = channel::<()>();
            let metering = move || -> Result<_, ConfigError> {
                let _ends = EndOnDrop(shared);
                let meter = meter(config, delivers)?;
                let mut reader = Reader::new(interfaces, meter, index, shared, |_| {});
                let ran = reader.run(stop, |reader| {
                    shared.contribute(snapshots, index, || reader.totals());
                });
                drop(closed);
                let _ = finishes.recv();
                Ok(reader.finish(ran.err()))
            };
            let thread = thread::Builder::new().name("reader".to_owned());
            let what = "a reader";
            let thread = thread.spawn_scoped(scope, metering);
            let thread = thread.map_err(|source| ConfigError::Thread { what, source })?;
            others.push((may_finish, thread));
        }
        drop(closed);
        let meter = meter(config, first_delivers)?;
        let mut reader = Reader::new(first, meter, 0, &shared, observe);
        let ran = reader.run(stop, |reader| {
            steps.change_outputs();
            shared.contribute(snapshots, 0, || reader.totals());
            shared.answer(snapshots, &steps.writing);
        });
        // Nothing is sent: this returns once every reader has closed its rings. From then on no
        // ring can overflow, and metering may wait for outputs.
        let _ = is_closed.recv();
        steps.end();
        let (gates, threads): (Vec<_>, Vec<_>) = others.into_iter().unzip();
        drop(gates);
        let mut finished = vec![reader.finish(ran.err())];
        for thread in threads {
            match thread.join() {
                Ok(other) => finished.push(other?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok::<_, ConfigError>(finished)
    })?;
    Ok(report(finished))
}

/// Hands the frames of all interfaces to `sink`, on this thread.
pub(super) fn inspect(
    readers: Vec<Vec<Interface>>,
    limits: Limits,
    stop: &Stop,
    sink: impl FrameSink,
) -> RunReport {
    let shared = Shared::new(limits, 1);
    let interfaces = readers.into_iter().flatten().collect();
    let mut reader = Reader::new(interfaces, sink, 0, &shared, |_| {});
    let ran = reader.run(stop, |_| {});
    report(vec![reader.finish(ran.err())])
}

/// The functions that deliver records, one for each shard of a reader.
fn delivers(config: &PipelineConfig, steps: &Steps<'_>) -> Vec<DeliverRecords> {
    let shards = 0..config.threads;
    shards
        .map(|_| steps.writing.deliver(&steps.schema))
        .collect()
}

/// The meter of one reader.
fn meter(config: &PipelineConfig, delivers: Vec<DeliverRecords>) -> Result<Meter, ConfigError> {
    let mut delivers = delivers.into_iter();
    let one_each = |_shard| delivers.next().expect("there is one for every shard");
    Meter::new(config, one_each)
}

/// A reader that has ended.
struct FinishedReader {
    totals: Totals,
    failure: Option<io::Error>,
    interfaces: Vec<Interface>,
}

/// Combines the results of all readers.
fn report(finished: Vec<FinishedReader>) -> RunReport {
    let (mut parts, mut failure, mut rings) = (Vec::new(), None, Vec::new());
    for reader in finished {
        parts.push(reader.totals);
        failure = failure.or(reader.failure);
        rings.extend(reader.interfaces);
    }
    // Dropped together, because the kernel sends the packets of a closed ring to the others.
    drop(rings);
    let sum = Totals::sum(parts).expect("there is a reader");
    sum.report(failure)
}

/// One reader: its rings, and the sink of their frames.
struct Reader<'a, S, O> {
    interfaces: Vec<Interface>,
    /// For each interface, the time up to which it has delivered everything.
    delivered_ns: Vec<u64>,
    states: Vec<PortState>,
    /// The time up to which all interfaces have delivered everything.
    clock_ns: u64,
    sink: S,
    /// Index of this reader.
    index: usize,
    shared: &'a Shared,
    /// Packets beyond the limit that were in the rings.
    unread: u64,
    /// The rounds of all readers at the last progress report.
    told: Vec<u64>,
    /// Why the counters of an interface could not be read.
    failure: Option<io::Error>,
    observe: O,
}

impl<'a, S: FrameSink, O: FnMut(RunEvent<'_>)> Reader<'a, S, O> {
    fn new(
        interfaces: Vec<Interface>,
        sink: S,
        index: usize,
        shared: &'a Shared,
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
            sink,
            index,
            shared,
            unread: 0,
            told: Vec::new(),
            failure: None,
            observe,
        }
    }

    /// Reads until the end of the run, and then meters what the rings hold, even if reading failed.
    fn run(&mut self, stop: &Stop, between: impl FnMut(&mut Self)) -> io::Result<()> {
        let listened = self.listen(stop, between);
        self.shared.end();
        let closed = self.close(CLOSING);
        self.shared.has_ended(self.index);
        listened.and(closed)
    }

    /// Reads until the end of the run. Calls `between` whenever all packets read so far have been
    /// metered.
    fn listen(&mut self, stop: &Stop, mut between: impl FnMut(&mut Self)) -> io::Result<()> {
        let mut looked = instant();
        while !stop.asked() && !self.is_over() {
            // Checks from time to time, so that a lost interface is noticed even if another is
            // always busy.
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
        self.shared.is_over() || self.states.iter().all(|state| state.is_final())
    }

    /// How long to wait for packets, but not beyond the end of the run.
    fn patience(&self) -> Duration {
        let left = self
            .shared
            .ends()
            .map(|ends| ends.saturating_duration_since(instant()));
        // A wait of less than a millisecond would be rounded down to none, and the loop would spin.
        let tick = Duration::from_millis(1);
        left.map_or(WAIT, |left| left.min(WAIT).max(tick))
    }

    /// Meters the oldest block in any ring, so that interfaces stay in step.
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
        let taken = self.shared.take(batch.frames().len());
        let (frames, unread) = batch.frames().split_at(taken);
        self.unread += unread.len() as u64;
        let lengths = frames
            .iter()
            .map(|frame| u64::from(frame.wire_length_bytes));
        self.shared.count(lengths.sum());
        self.sink.frames(frames);
        drop(batch);
        self.delivered_ns[index] = interface.last_ns();
        true
    }

    /// Notes that interfaces with empty rings have delivered everything until now.
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
            self.sink.advance(self.clock_ns);
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
                (self.observe)(RunEvent::Changed(interface.name(), *state));
            }
        }
        self.shared.count_round(self.index, dropped);
        // If a reader is blocked, progress must stop, even if the others continue.
        if self.shared.all_made_a_round(&mut self.told) {
            (self.observe)(RunEvent::Progress(Progress::Live(self.shared.progress())));
        }
    }

    /// Stops the intake and meters the packets left in the rings, which is a finite amount of work.
    /// `patience` bounds the wait for a kernel that has counted packets but hands over no block.
    fn close(&mut self, patience: Duration) -> io::Result<()> {
        for interface in &self.interfaces {
            interface.close_intake()?;
        }
        // Reports an interface that was lost at the last moment.
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

    /// Counters and clock at this moment.
    fn totals(&mut self) -> Totals {
        let counts = self.sink.counts();
        let mut totals = Totals {
            counts,
            ports: self.count_source(),
            own_counts: Vec::new(),
            dropped_on_shared_path: 0,
            unread: 0,
            clock_ns: self.clock_ns,
        };
        // Packets that the kernel has counted, but that the meter has not read yet.
        totals.find_unread();
        totals
    }

    /// Counters and state of each interface, by name.
    fn count_source(&mut self) -> Vec<(String, PortCounters, PortState)> {
        let interfaces = self.interfaces.iter_mut().zip(&self.states);
        let counted = interfaces.map(|(interface, state)| {
            let counters = interface.counters().unwrap_or_else(|error| {
                // Its zeros unbalance the ledger, and this error explains why.
                self.failure.get_or_insert(error);
                InterfaceCounters::default()
            });
            (interface.name().to_owned(), port_counters(counters), *state)
        });
        counted.collect()
    }

    /// Flushes everything and returns the result of this reader.
    fn finish(mut self, failure: Option<io::Error>) -> FinishedReader {
        let interfaces = self.count_source();
        let failure = failure.or(self.failure.take());
        let mut totals = Totals {
            counts: self.sink.finish(),
            ports: interfaces,
            own_counts: Vec::new(),
            dropped_on_shared_path: 0,
            unread: self.unread,
            clock_ns: self.clock_ns,
        };
        if failure.is_some() {
            // The remaining packets are in rings that could not be read to their end.
            totals.find_unread();
        }
        FinishedReader {
            totals,
            failure,
            interfaces: self.interfaces,
        }
    }
}

/// The state of the port for an interface.
pub(super) const fn port_state(state: State) -> PortState {
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

#[cfg(test)]
mod tests;
