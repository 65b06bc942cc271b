// SPDX-License-Identifier: Apache-2.0
//! The main job with the engine in the kernel: microflow records in, outputs written, until somebody asks for the end.
//!
//! Packets never come here. The engine hands over the records of one cell of the clock after another, and says when it has
//! handed over all of a cell; nothing is left to do but to merge them.

use std::io;
use std::time::Duration;

use turboflow_capture::live::{InterfaceCounters, State, States};
use turboflow_engine_xdp::{Attachment, Batch, KernelCounters, KernelEngine, UnparsedFrame};
use turboflow_packet::{Frame, LinkType};

use crate::files::Stop;
use crate::live::{Part, Together, instant};
use crate::meter::Counts;
use crate::outputs::Outputs;
use crate::snapshots::Snapshots;
use crate::{
    ConfigError, LiveEvent, LiveLimits, LiveOutputs, LiveProgress, LiveReport, Meter,
    PipelineConfig, ShortFlows,
};

/// How long the ring fills between two looks at it, at most: each is a wake-up, and the larger a batch, the less merging costs a record.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
/// At least: the kernel's timers are not much finer.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
/// What may come into the ring in a second: 13 M records, more than any processor merges.
const MOST_BYTES_A_SECOND: u32 = 1 << 30;
/// As many records at one look mean that there are more by now.
const MANY_RECORDS: usize = 16_384;
/// How often the engine's counters are read for whoever watches: system calls, though few. And how often frames that are no packet are
/// handed up: their ring's worth so often at most.
const TELL_EVERY: Duration = Duration::from_millis(50);

/// Meters the interfaces that an engine is on, until `stop` is asked for, a limit is reached, or every interface is gone.
///
/// With a limit on packets, the run ends soon after so many were seen; those that come meanwhile are metered too. What the engine's
/// ring had no room for is in the ledger as `source_dropped`, and at no interface: the ring is one for all of them.
///
/// # Errors
/// What is wrong with the configuration. What fails later is in the report.
pub fn record_kernel(
    config: &PipelineConfig,
    engine: KernelEngine,
    limits: LiveLimits,
    outputs: LiveOutputs,
    stop: &Stop,
    snapshots: &Snapshots,
    observe: impl FnMut(LiveEvent<'_>),
) -> Result<LiveReport, ConfigError> {
    let layout = config.compile()?;
    let mut writing = Outputs::start(outputs.first, config.prompt)?;
    let meter = Meter::new(config, |_shard| writing.deliver(layout.schema()))?;
    let together = Together::new(limits, 1);
    let interfaces = engine.interface_names();
    let interfaces = interfaces
        .map(|name| (name.to_owned(), State::Up))
        .collect();
    let mut listening = Listening {
        engine,
        meter,
        batch: Batch::default(),
        counters: KernelCounters::default(),
        clock_ns: 0,
        interfaces,
        states: States::default(),
        together: &together,
        packets_limit: limits.packets,
        observe,
    };
    let listened = listening.listen(stop, |listening| {
        writing.change(&outputs.changes);
        if snapshots.are_wanted()
            && let Ok(part) = listening.part()
        {
            together.contribute(snapshots, 0, || part);
            together.answer(snapshots, &writing);
        }
    });
    let closed = listening.close();
    writing.change(&outputs.changes);
    writing.wait_for_all(outputs.end_patience);
    let lost = listening.engine.unparsed_lost().map_err(io::Error::other);
    let unparsed_lost = *lost.as_ref().unwrap_or(&0);
    let short = listening.short_flows(config);
    let (short, unknown) = match short {
        Ok(short) => (Some(short), None),
        Err(error) => (None, Some(error)),
    };
    let failure = listened.and(closed).err().or(lost.err()).or(unknown);
    let report = LiveReport {
        unparsed_lost,
        short,
        ..LiveReport::of_part(listening.finish(), failure)
    };
    Ok(report.with_outputs(writing.finish()))
}

/// The engine, and what merges its records.
struct Listening<'a, O> {
    engine: KernelEngine,
    meter: Meter,
    batch: Batch,
    counters: KernelCounters,
    /// Up to which time everything has been metered.
    clock_ns: u64,
    interfaces: Vec<(String, State)>,
    states: States,
    together: &'a Together,
    packets_limit: Option<u64>,
    observe: O,
}

impl<O: FnMut(LiveEvent<'_>)> Listening<'_, O> {
    fn listen(&mut self, stop: &Stop, mut between: impl FnMut(&mut Self)) -> io::Result<()> {
        self.advance(self.engine.started_ns());
        let mut tell = instant();
        while !stop.asked() && !self.is_over() {
            if self.merge_what_came()? < MANY_RECORDS {
                let until_told = tell.saturating_duration_since(instant());
                pause(pause_for(self.engine.ring_bytes()).min(until_told));
            }
            if instant() >= tell {
                tell = instant() + TELL_EVERY;
                self.tell()?;
                between(self);
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        let is_enough = |limit| self.counters.received() >= limit;
        self.together.is_over()
            || self.packets_limit.is_some_and(is_enough)
            || self.interfaces.iter().all(|(_, state)| state.is_final())
    }

    /// Merges what the engine has, or many records of it; how many that were.
    fn merge_what_came(&mut self) -> io::Result<usize> {
        let mut records = 0;
        loop {
            let collected = self.engine.collect(&mut self.batch);
            records += self.batch.len();
            self.meter.microflows(&mut self.batch);
            self.batch.clear();
            let collected = collected.map_err(io::Error::other)?;
            if let Some(complete_ns) = collected.complete_ns {
                self.advance(complete_ns);
            } else if !collected.has_more || records >= MANY_RECORDS {
                // Whoever writes may be faster than this, and there is more to do here.
                return Ok(records);
            }
        }
    }

    fn advance(&mut self, complete_ns: u64) {
        self.clock_ns = complete_ns;
        self.meter.advance(complete_ns);
    }

    fn tell(&mut self) -> io::Result<()> {
        let observe = &mut self.observe;
        self.engine
            .take_unparsed(|frame| observe(LiveEvent::Unparsed(frame_of(frame))));
        self.counters = self.engine.counters().map_err(io::Error::other)?;
        for ((name, state), attachment) in self.interfaces.iter_mut().zip(self.engine.attachments())
        {
            let now = match attachment {
                Attachment::Displaced => State::Displaced,
                Attachment::Gone => State::Gone,
                Attachment::Holds { index } => self.states.of(index)?,
            };
            // What is said first is why its packets stopped to come.
            if !state.is_final() && *state != now {
                *state = now;
                (self.observe)(LiveEvent::Changed(name, now));
            }
        }
        (self.observe)(LiveEvent::Progress(LiveProgress {
            packets: self.counters.received(),
            bytes: self.counters.bytes_received.iter().sum(),
            dropped: self.counters.packets_dropped,
        }));
        Ok(())
    }

    /// Takes the engine off its interfaces, and merges all that was in it.
    fn close(&mut self) -> io::Result<()> {
        self.engine.finish().map_err(io::Error::other)?;
        self.merge_what_came()?;
        self.tell()
    }

    /// The flows that records were lost of, once all is over.
    fn short_flows(&self, config: &PipelineConfig) -> io::Result<ShortFlows> {
        let flows = self.engine.short_flows().map_err(io::Error::other)?;
        ShortFlows::new(&config.definition.key, flows, &self.counters)
    }

    /// Where everything is at this moment.
    fn part(&mut self) -> io::Result<Part> {
        // What the shards have first: an engine is never behind.
        let counts = self.meter.counts();
        self.counters = self.engine.counters().map_err(io::Error::other)?;
        let mut part = part(counts, &self.counters, &self.interfaces, self.clock_ns);
        // CPUs are in the middle of packets, and go on while they are read.
        part.find_unread();
        Ok(part)
    }

    /// Exports everything that is open.
    fn finish(self) -> Part {
        let Self {
            meter,
            counters,
            interfaces,
            clock_ns,
            ..
        } = self;
        part(meter.finish_counting(), &counters, &interfaces, clock_ns)
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "nothing says that the ring has something"
)]
fn pause(pause: Duration) {
    std::thread::sleep(pause);
}

/// How long a ring of this size can be left alone: until a quarter of it is full at most, so that this thread may be late.
fn pause_for(ring_bytes: u32) -> Duration {
    let fills = Duration::from_secs(1) * (ring_bytes / 4) / MOST_BYTES_A_SECOND;
    fills.clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
}

fn frame_of(unparsed: UnparsedFrame<'_>) -> Frame<'_> {
    Frame {
        bytes: unparsed.bytes,
        timestamp_ns: unparsed.timestamp_ns,
        wire_length_bytes: unparsed.wire_length_bytes,
        link_type: LinkType::Ethernet,
        interface: 0,
    }
}

fn part(
    counts: Counts,
    counters: &KernelCounters,
    interfaces: &[(String, State)],
    clock_ns: u64,
) -> Part {
    let interfaces = interfaces
        .iter()
        .enumerate()
        .map(|(place, (name, state))| {
            let seen = counters.packets_received[place];
            let counted = InterfaceCounters {
                seen,
                delivered: seen,
                delivered_bytes: counters.bytes_received[place],
                merged: counters.packets_merged[place],
                ..InterfaceCounters::default()
            };
            (name.clone(), counted, *state)
        })
        .collect();
    Part {
        counts: counts.of_kernel(counters),
        interfaces,
        dropped_of_all: counters.packets_dropped,
        unread: 0,
        clock_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_ring_is_looked_at_more_often() {
        let pauses = [1 << 12, 1 << 23, 1 << 26, 1 << 31].map(pause_for);
        assert_eq!(
            pauses.map(|pause| pause.as_micros()),
            [1_000, 1_953, 15_625, 20_000]
        );
    }
}
