// SPDX-License-Identifier: Apache-2.0
//! The driver of remote engines: merges microflow records and writes outputs until the run stops.
//!
//! The driver never sees packets. Each engine hands over the records of one clock cell after
//! another, and reports when a cell is complete. With several engines, the clock follows the
//! slowest. An engine that is ahead is not polled until the others have completed the same cell.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use turboflow_capture::live::States;
use turboflow_engine::{
    EngineCounters, EngineError, EngineEvent, MicroflowBatch, OwnCount, Port, RemoteEngine,
    UnparsedFrame,
};
use turboflow_merge::Layout;
use turboflow_packet::{Frame, LinkType};

#[cfg(target_os = "linux")]
use super::interfaces::port_state;
use super::shared::{Shared, Totals, instant};
use super::{Controls, Engines, LiveProgress, Progress, RunEvent, RunReport, Steps};
use crate::merger::Merger;
use crate::{ConfigError, PipelineConfig, ShortFlows, Stop};

/// While this many records are merged, more have arrived, so the next poll follows without a pause.
const MANY_RECORDS: usize = 16_384;
/// How often counters, ports and events are read; each read costs a few system calls. This also
/// limits unparsed frames to one ring per interval.
const REPORT_INTERVAL: Duration = Duration::from_millis(50);
/// How long the clock waits for a silent engine while others continue. Records that this engine
/// hands over afterwards are merged as late records.
const PATIENCE: Duration = Duration::from_secs(10);

/// Merges the records of remote engines until the run ends, or until every engine has ended or lost
/// its ports.
///
/// With a limit on packets, the run ends soon after the limit is reached; packets that arrive until
/// then are metered too. Losses between an engine and this process are in the ledger as
/// `source_dropped`. They are not in the counters of ports, because all ports of an engine share
/// one path.
pub(super) fn merge(
    config: &PipelineConfig,
    layout: &Layout,
    Engines { engines, files }: Engines,
    steps: &mut Steps<'_>,
    observe: impl FnMut(RunEvent<'_>),
) -> Result<RunReport, ConfigError> {
    let Controls {
        limits,
        stop,
        snapshots,
    } = steps.controls;
    let merger = Merger::new(config, layout, &mut |_shard| {
        steps.writing.deliver(&steps.schema)
    })?;
    let shared = Shared::new(limits, 1);
    let mut driver = Driver {
        sources: engines.into_iter().map(Source::new).collect(),
        merger,
        batch: MicroflowBatch::default(),
        clock_ns: 0,
        is_set_back: false,
        #[cfg(target_os = "linux")]
        states: States::default(),
        shared: &shared,
        packets_limit: limits.packets,
        observe,
    };
    let ran = driver.run(stop, |driver| {
        steps.change_outputs();
        if snapshots.are_wanted()
            && let Ok(totals) = driver.totals()
        {
            shared.contribute(snapshots, 0, || totals);
            shared.answer(snapshots, &steps.writing);
        }
    });
    let stopped = stop.asked() && driver.sources.iter().any(Source::is_cut_short);
    let closed = driver.close(|| steps.end());
    let lost = driver.events_lost().map_err(io::Error::other);
    let unparsed_lost = *lost.as_ref().unwrap_or(&0);
    let (short, unknown) = match driver.short_flows(config) {
        Ok(short) => (Some(short), None),
        Err(error) => (None, Some(error)),
    };
    let failed = driver
        .sources
        .iter_mut()
        .find_map(|source| source.failure.take());
    let failure = failed.or(ran.and(closed).err()).or(lost.err()).or(unknown);
    let unread = driver.unread_ether_types();
    let mut report = driver.finish().report(failure);
    let files = *files.lock().unwrap_or_else(PoisonError::into_inner);
    files.count_besides(&mut report.ledger);
    report.ledger.name_unread_ether_types(unread);
    Ok(RunReport {
        captures_dropped: files.source_dropped(),
        stopped,
        unparsed_lost,
        short,
        ..report
    })
}

/// An engine and its progress.
struct Source {
    engine: Box<dyn RemoteEngine>,
    /// The records of all packets before this time have been merged.
    complete_ns: u64,
    /// When the engine last completed a cell or handed over a record.
    heard: Instant,
    /// Whether the engine has been ended and has handed over everything.
    is_drained: bool,
    /// Why the engine hands over nothing more. Other engines continue.
    failure: Option<io::Error>,
    counters: EngineCounters,
    own_counts: Vec<OwnCount>,
    ports: Vec<Port>,
}

impl Source {
    fn new(mut engine: Box<dyn RemoteEngine>) -> Self {
        Self {
            complete_ns: engine.started_ns(),
            heard: instant(),
            is_drained: false,
            failure: None,
            counters: EngineCounters::default(),
            own_counts: Vec::new(),
            // An error here is reported at the next attempt.
            ports: engine.ports().unwrap_or_default(),
            engine,
        }
    }

    /// Adds ports that did not exist before, such as those of senders that started later.
    fn note_new(&mut self, ports: &mut Vec<Port>) {
        if ports.len() > self.ports.len() {
            self.ports.extend(ports.drain(self.ports.len()..));
        }
    }

    /// Whether a run that ends now has not seen all of a finite input.
    fn is_cut_short(&self) -> bool {
        self.engine.ends_by_itself() && !self.engine.has_ended() && self.failure.is_none()
    }

    /// Whether the clock waits for this engine.
    fn holds_the_clock(&self, now: Instant) -> bool {
        !self.is_drained
            && self.failure.is_none()
            && !self.engine.has_ended()
            && now.saturating_duration_since(self.heard) < PATIENCE
    }
}

/// The engines, and the merger of their records.
struct Driver<'a, O> {
    sources: Vec<Source>,
    merger: Merger,
    batch: MicroflowBatch,
    /// All records before this time have been merged.
    clock_ns: u64,
    /// Whether the clock is to be set back, no matter by how much.
    is_set_back: bool,
    #[cfg(target_os = "linux")]
    states: States,
    shared: &'a Shared,
    packets_limit: Option<u64>,
    observe: O,
}

impl<O: FnMut(RunEvent<'_>)> Driver<'_, O> {
    fn run(&mut self, stop: &Stop, mut between: impl FnMut(&mut Self)) -> io::Result<()> {
        let started = self.sources.iter().map(|source| source.complete_ns);
        self.advance(started.min().unwrap_or_default());
        let mut tell = instant();
        while !stop.asked() && !self.is_over() {
            if self.merge_available(stop, tell)? < MANY_RECORDS {
                let until_told = tell.saturating_duration_since(instant());
                pause(self.longest_pause().min(until_told));
            }
            if instant() >= tell {
                tell = instant() + REPORT_INTERVAL;
                self.tell()?;
                between(self);
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        let is_done = |source: &Source| {
            let is_final = |port: &Port| port.state.is_final();
            source.engine.has_ended()
                || source.failure.is_some()
                || !source.ports.is_empty() && source.ports.iter().all(is_final)
        };
        self.shared.is_over()
            || self
                .packets_limit
                .is_some_and(|limit| self.counters().packets_received >= limit)
            || self.sources.iter().all(is_done)
    }

    fn longest_pause(&self) -> Duration {
        let pauses = self
            .sources
            .iter()
            .map(|source| source.engine.longest_pause());
        pauses.min().unwrap_or_default()
    }

    /// Merges the available records of all engines, but stops after many records or at `tell`.
    /// Returns the number of records merged.
    fn merge_available(&mut self, stop: &Stop, tell: Instant) -> io::Result<usize> {
        let mut records = 0;
        loop {
            let mut has_more = false;
            for place in 0..self.sources.len() {
                // An engine that is ahead waits for the others.
                if self.sources[place].complete_ns <= self.clock_ns {
                    has_more |= self.collect(place, &mut records)?;
                }
            }
            self.follow_the_slowest();
            if !has_more || records >= MANY_RECORDS || stop.asked() || instant() >= tell {
                // An engine may be faster than this loop, so the caller gets time for its other
                // work.
                return Ok(records);
            }
        }
    }

    /// Merges one batch of an engine. Returns whether the engine has more.
    fn collect(&mut self, place: usize, records: &mut usize) -> io::Result<bool> {
        let source = &mut self.sources[place];
        let collected = source.engine.collect(&mut self.batch);
        *records += self.batch.len();
        let is_heard = !self.batch.is_empty();
        self.merger.microflows(&mut self.batch);
        self.batch.clear();
        let collected = match collected {
            Ok(collected) => collected,
            Err(error) => {
                if source.failure.is_none() {
                    source.failure = Some(io::Error::other(error));
                    self.say_failure(place);
                }
                return Ok(false);
            }
        };
        if is_heard || collected.complete_ns.is_some() {
            source.heard = instant();
        }
        if let Some(complete_ns) = collected.complete_ns {
            if complete_ns < source.complete_ns {
                // The clock of this engine was set back: all engines follow.
                self.is_set_back |= collected.sets_back;
                for source in &mut self.sources {
                    source.complete_ns = source.complete_ns.min(complete_ns);
                }
            }
            self.sources[place].complete_ns = complete_ns;
            return Ok(true);
        }
        Ok(collected.has_more)
    }

    /// Reports at once why an engine hands over nothing more. For the last engine this is not
    /// needed, because the end of the run reports it.
    fn say_failure(&mut self, place: usize) {
        let goes_on = |source: &Source| source.failure.is_none() && !source.engine.has_ended();
        if self.sources.iter().any(goes_on)
            && let Some(failure) = &self.sources[place].failure
        {
            (self.observe)(RunEvent::Failed(failure));
        }
    }

    /// Advances the clock to the slowest engine that it waits for.
    fn follow_the_slowest(&mut self) {
        let now = instant();
        let waited_for = self
            .sources
            .iter()
            .filter(|source| source.holds_the_clock(now));
        let slowest = waited_for.map(|source| source.complete_ns).min();
        let all = self.sources.iter().map(|source| source.complete_ns);
        if let Some(complete_ns) = slowest.or(all.max())
            && complete_ns != self.clock_ns
        {
            self.advance(complete_ns);
        }
    }

    fn advance(&mut self, complete_ns: u64) {
        self.clock_ns = complete_ns;
        match std::mem::take(&mut self.is_set_back) {
            true => self.merger.set_back(complete_ns),
            false => self.merger.advance(complete_ns),
        }
    }

    fn tell(&mut self) -> io::Result<()> {
        for source in &mut self.sources {
            let observe = &mut self.observe;
            source
                .engine
                .events(&mut |event| match event {
                    EngineEvent::Unparsed(frame) => observe(RunEvent::Unparsed(frame_of(frame))),
                })
                .map_err(io::Error::other)?;
            source.counters = source.engine.counters().map_err(io::Error::other)?;
            source.own_counts = source.engine.own_counts().map_err(io::Error::other)?;
            let mut ports = source.engine.ports().map_err(io::Error::other)?;
            source.note_new(&mut ports);
            for (port, now) in source.ports.iter_mut().zip(ports) {
                port.counters = now.counters;
                // Only the first reason why a port stopped is reported. An engine that has been
                // ended has already left its ports.
                let is_known = port.state.is_unheard() || now.state.is_unheard();
                if source.is_drained && !is_known || port.state.is_final() {
                    continue;
                }
                #[cfg(not(target_os = "linux"))]
                let state = now.state;
                #[cfg(target_os = "linux")]
                let state = match now.interface_index {
                    Some(index) => port_state(self.states.of(index)?),
                    None => now.state,
                };
                if port.state != state {
                    port.state = state;
                    (self.observe)(RunEvent::Changed(&port.name, state));
                }
            }
        }
        let counters = self.counters();
        (self.observe)(RunEvent::Progress(Progress::Live(LiveProgress {
            packets: counters.packets_received,
            bytes: counters.bytes_received,
            dropped: counters.packets_dropped,
        })));
        Ok(())
    }

    /// Ends the engines, and merges their remaining records. `ended` is called once they have
    /// ended: from then on, waiting for an output loses nothing.
    fn close(&mut self, ended: impl FnOnce()) -> io::Result<()> {
        let finished = self.sources.iter_mut().try_for_each(|source| {
            let finished = source.engine.finish();
            finished.map_err(io::Error::other)
        });
        ended();
        finished?;
        // The slowest engine first, so that cells stay in step to the end.
        let slowest = |sources: &[Source]| {
            let left = sources.iter().enumerate();
            let left = left.filter(|(_, source)| !source.is_drained);
            left.min_by_key(|(_, source)| source.complete_ns)
                .map(|(place, _)| place)
        };
        while let Some(place) = slowest(&self.sources) {
            self.sources[place].is_drained = !self.collect(place, &mut 0)?;
            self.follow_the_slowest();
        }
        self.tell()
    }

    fn counters(&self) -> EngineCounters {
        sum(&self.sources)
    }

    fn events_lost(&mut self) -> Result<u64, EngineError> {
        let lost = self.sources.iter_mut();
        lost.map(|source| source.engine.events_lost()).sum()
    }

    /// EtherTypes that the engines could not read, most frequent first.
    fn unread_ether_types(&self) -> Vec<(u16, u64)> {
        let mut sums = BTreeMap::new();
        for (ether_type, frames) in self
            .sources
            .iter()
            .flat_map(|its| its.engine.unread_ether_types())
        {
            *sums.entry(ether_type).or_insert(0) += frames;
        }
        let mut unread: Vec<(u16, u64)> = sums.into_iter().collect();
        unread.sort_by_key(|(_, frames)| Reverse(*frames));
        unread
    }

    /// The flows with lost records, at the end of the run.
    fn short_flows(&mut self, config: &PipelineConfig) -> io::Result<ShortFlows> {
        let mut flows = Vec::new();
        for source in &mut self.sources {
            flows.extend(source.engine.short_flows().map_err(io::Error::other)?);
        }
        ShortFlows::new(&config.definition.key, flows, &self.counters())
    }

    /// Counters and clock at this moment.
    fn totals(&mut self) -> Result<Totals, EngineError> {
        let sources = &mut self.sources;
        let counts = self.merger.counts(|| {
            for source in sources.iter_mut() {
                source.counters = source.engine.counters()?;
                source.own_counts = source.engine.own_counts()?;
                let mut ports = source.engine.ports()?;
                source.note_new(&mut ports);
                for (port, now) in source.ports.iter_mut().zip(ports) {
                    port.counters = now.counters;
                }
            }
            Ok(sum(sources))
        })?;
        let mut totals = totals(counts, &self.sources, self.clock_ns);
        // Engines continue while their counters are read, in the middle of packets.
        totals.find_unread();
        Ok(totals)
    }

    /// Flushes everything and returns the totals.
    fn finish(self) -> Totals {
        let counters = self.counters();
        let counts = self.merger.finish(&counters);
        totals(counts, &self.sources, self.clock_ns)
    }
}

fn sum(sources: &[Source]) -> EngineCounters {
    sources
        .iter()
        .fold(EngineCounters::default(), |mut sum, source| {
            sum += &source.counters;
            sum
        })
}

/// The own counters of all engines. Counters with the same name are added up.
fn own_counts(sources: &[Source]) -> Vec<OwnCount> {
    let mut sums: Vec<OwnCount> = Vec::new();
    for own in sources.iter().flat_map(|source| &source.own_counts) {
        match sums.iter_mut().find(|sum| sum.name == own.name) {
            Some(sum) => sum.count = sum.count.saturating_add(own.count),
            None => sums.push(*own),
        }
    }
    sums
}

#[allow(clippy::disallowed_methods, reason = "engines are polled")]
fn pause(pause: Duration) {
    std::thread::sleep(pause);
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

fn totals(counts: crate::meter::Counts, sources: &[Source], clock_ns: u64) -> Totals {
    let ports = sources.iter().flat_map(|source| &source.ports);
    Totals {
        counts,
        ports: ports
            .map(|port| (port.name.clone(), port.counters, port.state))
            .collect(),
        own_counts: own_counts(sources),
        dropped_on_shared_path: {
            let all = sum(sources);
            all.packets_dropped.saturating_add(all.source_dropped)
        },
        unread: 0,
        clock_ns,
    }
}
