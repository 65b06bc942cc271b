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

use std::io;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use turboflow_capture::live::{Interface, InterfaceCounters, State, wait};

use crate::files::Stop;
use crate::outputs::{OutputChange, Outputs};
use crate::snapshots::{LiveSnapshot, Snapshots};
use crate::{ConfigError, Ledger, Meter, Output, OutputReport, PipelineConfig};

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

/// Where a run writes.
pub struct LiveOutputs {
    /// From the beginning.
    pub first: Vec<Output>,
    /// What becomes of them while the run goes on.
    pub changes: Receiver<OutputChange>,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveEvent<'a> {
    /// An interface has changed its state.
    Changed(&'a str, State),
    /// Some time has passed.
    Progress(LiveProgress),
}

/// What a run over interfaces did.
#[derive(Debug)]
pub struct LiveReport {
    /// Where everything went.
    pub ledger: Ledger,
    /// What each interface counted, by name.
    pub interfaces: Vec<(String, InterfaceCounters)>,
    /// Interfaces that went away while they were captured.
    pub gone: Vec<String>,
    /// Why capturing ended early, if a system call failed.
    pub failure: Option<io::Error>,
    /// What became of the outputs.
    pub outputs: Vec<OutputReport>,
}

/// Meters the packets of interfaces until `stop` is asked for, a limit is reached, or every
/// interface is gone. Everything in the rings is metered then.
///
/// `observe` is called many times a second; whoever asks `snapshots` is answered as often.
///
/// # Errors
/// What is wrong with the configuration. What fails later is in the report.
pub fn record_interfaces(
    config: &PipelineConfig,
    interfaces: Vec<Interface>,
    limits: LiveLimits,
    outputs: LiveOutputs,
    stop: &Stop,
    snapshots: &Snapshots,
    observe: impl FnMut(LiveEvent<'_>),
) -> Result<LiveReport, ConfigError> {
    let layout = config.compile()?;
    let mut writing = Outputs::start(outputs.first, config.prompt);
    let meter = Meter::new(config, |_shard| writing.deliver(layout.schema()))?;
    let between = |listening: &mut Listening<_>| {
        writing.change(&outputs.changes);
        if snapshots.are_wanted() {
            snapshots.answer(listening.snapshot(&writing));
        }
    };
    let mut listening = Listening::new(interfaces, meter, limits, observe);
    let listened = listening.listen(stop, between);
    // What the rings hold is metered though listening has failed.
    let closed = listening.close(CLOSING);
    writing.wait_for_all();
    let mut report = listening.report(listened.and(closed).err());
    report.outputs = writing.finish();
    let outputs = &report.outputs;
    report.ledger.records_dropped = outputs.iter().map(|output| output.records_dropped).sum();
    report.ledger.records_written = outputs.iter().map(OutputReport::records_written).sum();
    Ok(report)
}

struct Listening<O> {
    interfaces: Vec<Interface>,
    /// Up to which time each has delivered everything.
    delivered_ns: Vec<u64>,
    states: Vec<State>,
    /// Up to which time all of them have.
    clock_ns: u64,
    meter: Meter,
    limits: LiveLimits,
    ends: Option<Instant>,
    progress: LiveProgress,
    /// Packets past the limit that lay in the rings.
    unread: u64,
    observe: O,
}

impl<O: FnMut(LiveEvent<'_>)> Listening<O> {
    fn new(interfaces: Vec<Interface>, meter: Meter, limits: LiveLimits, observe: O) -> Self {
        Self {
            delivered_ns: vec![0; interfaces.len()],
            states: interfaces.iter().map(Interface::state).collect(),
            interfaces,
            clock_ns: 0,
            meter,
            limits,
            ends: limits
                .duration
                .and_then(|duration| instant().checked_add(duration)),
            progress: LiveProgress::default(),
            unread: 0,
            observe,
        }
    }

    /// `between` is called whenever all that was read is metered.
    fn listen(&mut self, stop: &Stop, mut between: impl FnMut(&mut Self)) -> io::Result<()> {
        while !stop.asked() && !self.is_over() {
            if !self.meter_block() {
                let patience = self.patience();
                wait(&mut self.interfaces, patience)?;
            }
            self.notice_silence()?;
            self.tell();
            between(self);
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.has_enough()
            || self.ends.is_some_and(|ends| instant() >= ends)
            || self.states.iter().all(|state| *state == State::Gone)
    }

    fn has_enough(&self) -> bool {
        let limit = self.limits.packets;
        limit.is_some_and(|limit| self.progress.packets >= limit)
    }

    /// How long to wait for packets: not past the end of the run.
    fn patience(&self) -> Duration {
        let left = self
            .ends
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
        let left = match self.limits.packets {
            Some(limit) => usize::try_from(limit - self.progress.packets).unwrap_or(usize::MAX),
            None => usize::MAX,
        };
        let interface = &mut self.interfaces[index];
        let Some(batch) = interface.next_batch() else {
            return true;
        };
        let (frames, unread) = batch.frames().split_at(left.min(batch.frames().len()));
        self.unread += unread.len() as u64;
        self.progress.packets += frames.len() as u64;
        self.progress.bytes += frames
            .iter()
            .map(|frame| u64::from(frame.wire_length_bytes))
            .sum::<u64>();
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
        self.progress.dropped = 0;
        for (interface, state) in self.interfaces.iter_mut().zip(&mut self.states) {
            self.progress.dropped += interface.dropped();
            if *state != interface.state() {
                *state = interface.state();
                (self.observe)(LiveEvent::Changed(interface.name(), *state));
            }
        }
        (self.observe)(LiveEvent::Progress(self.progress));
    }

    /// Lets no further packet in and meters those that are in the rings. Nothing follows them, so
    /// this ends: `patience` is for a kernel that hands over no block though it has counted packets.
    fn close(&mut self, patience: Duration) -> io::Result<()> {
        for interface in &self.interfaces {
            interface.close_intake()?;
        }
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

    fn snapshot(&mut self, writing: &Outputs) -> LiveSnapshot {
        let mut ledger = self.meter.snapshot();
        let counters = count_source(&mut self.interfaces, &mut ledger);
        // What the kernel has seen by now, and the meter has not read yet.
        let accounted = ledger.packets_received + ledger.source_dropped;
        ledger.source_unread = ledger.source_seen.saturating_sub(accounted);
        let interfaces = counters.into_iter().zip(&self.states);
        LiveSnapshot {
            ledger,
            clock_ns: self.clock_ns,
            interfaces: interfaces
                .map(|((name, counters), state)| (name, counters, *state))
                .collect(),
            outputs: writing.snapshot(),
        }
    }

    fn report(mut self, failure: Option<io::Error>) -> LiveReport {
        let mut ledger = self.meter.finish().ledger;
        let interfaces = count_source(&mut self.interfaces, &mut ledger);
        ledger.source_unread = self.unread;
        if failure.is_some() {
            // The rest is in rings that could not be read to their end.
            let accounted = ledger.packets_received + ledger.source_dropped;
            ledger.source_unread = ledger.source_seen.saturating_sub(accounted);
        }
        let gone = self.interfaces.iter().zip(&self.states);
        let gone = gone.filter(|(_, state)| **state == State::Gone);
        LiveReport {
            ledger,
            gone: gone
                .map(|(interface, _)| interface.name().to_owned())
                .collect(),
            interfaces,
            failure,
            outputs: Vec::new(),
        }
    }
}

/// Puts what the interfaces counted into the ledger; gives it by name.
fn count_source(
    interfaces: &mut [Interface],
    ledger: &mut Ledger,
) -> Vec<(String, InterfaceCounters)> {
    ledger.is_live = true;
    let mut all = Vec::new();
    for interface in interfaces {
        // One that does not tell any more leaves the ledger unequal, which is then said.
        let counters = interface.counters().unwrap_or_default();
        ledger.source_seen += counters.seen - counters.copies;
        ledger.source_dropped += counters.dropped;
        all.push((interface.name().to_owned(), counters));
    }
    all
}

#[allow(
    clippy::disallowed_methods,
    reason = "a run of a given duration has to end"
)]
fn instant() -> Instant {
    Instant::now()
}

/// The clock that the kernel stamps packets with, in nanoseconds since 1970.
#[allow(
    clippy::disallowed_methods,
    reason = "the clock of a live source that is silent"
)]
fn wall_ns() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    since_1970.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

#[cfg(test)]
mod tests;
