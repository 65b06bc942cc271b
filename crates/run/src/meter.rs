// SPDX-License-Identifier: Apache-2.0
//! A meter: frames in, flow records out, in memory.

use std::sync::Arc;

use turboflow_engine::{EngineCounters, PacketEngines};
use turboflow_merge::Layout;
use turboflow_packet::Frame;
use turboflow_record::{InputValues, Packet};

use crate::engines::Engines;
use crate::feed::{FinishShards, Shards};
use crate::front::{Front, FrontReport};
use crate::inspecting::{Inspecting, Naming};
use crate::shard::{DeliverRecords, OwnShard, Shard, ShardReport};
use crate::state_words::with_state_words;
use crate::threads::ThreadedShards;
use crate::{ConfigError, InspectionConfig, Ledger, PipelineConfig};

/// The result of a meter.
#[derive(Clone, Debug)]
pub struct MeterReport {
    /// The counters of the meter. Those of the source and the outputs are still 0.
    pub ledger: Ledger,
}

/// Counters of the front and the shards at one moment.
pub(crate) struct Counts {
    front: FrontReport,
    shards: ShardReport,
}

impl Counts {
    pub(crate) fn ledger(&self) -> Ledger {
        Ledger::new(&self.front, &self.shards)
    }

    /// Counts for frames that were inspected, not metered.
    pub(crate) fn of_frames(frames: u64, bytes: u64) -> Self {
        Self {
            front: FrontReport::of_frames(frames, bytes),
            shards: ShardReport::default(),
        }
    }

    /// Counters of remote engines, and of the shards that merged their records.
    pub(crate) fn of_engine(
        mut shards: ShardReport,
        engine: &EngineCounters,
        clock_steps: u64,
    ) -> Self {
        let front = FrontReport::of_engine(engine, shards.packets_recorded, clock_steps);
        shards.packets_in = front.packets;
        let not_merged = engine
            .evicted
            .total()
            .saturating_sub(shards.cache.microflows_merged);
        shards.microflows_dropped = engine.microflows_dropped.min(not_merged);
        shards.microflows_waiting = not_merged - shards.microflows_dropped;
        shards.evicted = engine.evicted;
        Self { front, shards }
    }

    /// Adds the counters of a remote engine's inspection, if it has one.
    pub(crate) fn inspected_elsewhere(mut self, inspection: Option<&InspectionConfig>) -> Self {
        self.front.inspection = inspection.and_then(InspectionConfig::counters_elsewhere);
        self
    }

    /// Adds the counters of another meter.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.front.merge(&other.front);
        self.shards.merge(&other.shards);
    }
}

/// The pipeline without files: takes frames until it is finished.
///
/// If the configuration asks for threads, they start with the meter and end in [`Meter::finish`].
pub struct Meter {
    work: Box<dyn MeterWork>,
    layout: Layout,
}

trait MeterWork {
    fn frames(&mut self, frames: &[Frame<'_>]);
    fn packet(&mut self, packet: &Packet, values: &InputValues);
    fn advance(&mut self, delivered_ns: u64);
    fn snapshot(&mut self) -> Counts;
    fn finish(self: Box<Self>) -> Counts;
}

impl Meter {
    /// A meter without flows. `deliver` is called once per shard; the closure that it returns runs
    /// on the thread of that shard.
    ///
    /// # Errors
    /// If the configuration is invalid, a thread cannot be started, or payload cannot be inspected.
    pub fn new(
        config: &PipelineConfig,
        mut deliver: impl FnMut(usize) -> DeliverRecords,
    ) -> Result<Self, ConfigError> {
        Self::start(config, &mut deliver)
    }

    /// Takes `dyn FnMut` so that engines and flow caches of every record size are compiled only
    /// once, in this crate.
    fn start(
        config: &PipelineConfig,
        deliver: &mut dyn FnMut(usize) -> DeliverRecords,
    ) -> Result<Self, ConfigError> {
        // Remote engines fill state words. Packets of this process need none if their biflows can
        // have the two-way form.
        let mut layout = config.compile()?.in_two_way_form();
        if let Some(texts) = config.texts() {
            layout = layout.with_texts(Arc::clone(texts));
        }
        let work = with_state_words!(layout.state_words(), N => {
            start::<N>(config, &layout, deliver)?
        });
        Ok(Self { work, layout })
    }

    /// The layout of its records.
    #[must_use]
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Meters frames in order of arrival.
    pub fn frames(&mut self, frames: &[Frame<'_>]) {
        self.work.frames(frames);
    }

    /// Meters a packet that the caller has parsed, with the inputs that the layout needs.
    pub fn packet(&mut self, packet: &Packet, values: &InputValues) {
        self.work.packet(packet, values);
    }

    /// Moves the clock without a packet. A live source has delivered every packet up to this time,
    /// in nanoseconds since 1970. Flows that are due are exported even if the source is silent.
    pub fn advance(&mut self, delivered_ns: u64) {
        self.work.advance(delivered_ns);
    }

    /// The ledger at this moment, with all threads at the same point of the input. Every packet is
    /// in a record, resident, or in a counter.
    ///
    /// Waits until the records queued for the shards have been metered, which are some ten thousand
    /// packets.
    pub fn snapshot(&mut self) -> Ledger {
        self.counts().ledger()
    }

    /// Counters up to now.
    pub(crate) fn counts(&mut self) -> Counts {
        self.work.snapshot()
    }

    /// Flushes everything and returns the report.
    #[must_use]
    pub fn finish(self) -> MeterReport {
        MeterReport {
            ledger: self.finish_counting().ledger(),
        }
    }

    /// Flushes everything and returns the final counters.
    pub(crate) fn finish_counting(self) -> Counts {
        self.work.finish()
    }
}

fn start<const N: usize>(
    config: &PipelineConfig,
    layout: &Layout,
    deliver: &mut dyn FnMut(usize) -> DeliverRecords,
) -> Result<Box<dyn MeterWork>, ConfigError> {
    let inspecting = match &config.inspection {
        Some(inspection) if !layout.annotation().is_empty() => Some(Inspecting::start(inspection)?),
        _ => None,
    };
    let naming = inspecting.as_ref().map(Inspecting::naming);
    let front = Front::<N>::new(config, layout, inspecting);
    let engines = Engines::of(config);
    if !config.has_shard_threads() {
        let shards = OwnShard(Shard::new(
            config,
            layout,
            Some(&engines),
            naming,
            deliver(0),
        ));
        return Ok(Box::new(RunningMeter { front, shards }));
    }
    let shards = start_threads::<_, N>(config, layout, Some(engines), naming, deliver)?;
    Ok(Box::new(RunningMeter { front, shards }))
}

/// Starts one thread per shard.
pub(crate) fn start_threads<F: PacketEngines, const N: usize>(
    config: &PipelineConfig,
    layout: &Layout,
    engines: Option<F>,
    naming: Option<Naming>,
    deliver: &mut dyn FnMut(usize) -> DeliverRecords,
) -> Result<ThreadedShards<N>, ConfigError> {
    let shards = (0..config.threads).map(|shard| {
        let (config, layout, deliver) = (config.clone(), layout.clone(), deliver(shard));
        let (engines, naming) = (engines.clone(), naming.clone());
        move || Shard::<F, N>::new(&config, &layout, engines.as_ref(), naming, deliver)
    });
    ThreadedShards::start(shards).map_err(|source| ConfigError::Thread {
        what: "metering",
        source,
    })
}

struct RunningMeter<const N: usize, S> {
    front: Front<N>,
    shards: S,
}

impl<const N: usize, S: Shards<N> + FinishShards> MeterWork for RunningMeter<N, S> {
    fn frames(&mut self, frames: &[Frame<'_>]) {
        self.front.frames(frames, &mut self.shards);
    }

    fn packet(&mut self, packet: &Packet, values: &InputValues) {
        self.front.parsed(packet, values, &mut self.shards);
    }

    fn advance(&mut self, delivered_ns: u64) {
        self.front.advance(delivered_ns, &mut self.shards);
    }

    fn snapshot(&mut self) -> Counts {
        self.front.settle(&mut self.shards);
        Counts {
            front: self.front.report().clone(),
            shards: self.shards.snapshot(),
        }
    }

    fn finish(self: Box<Self>) -> Counts {
        let Self {
            mut front,
            mut shards,
        } = *self;
        front.finish(&mut shards);
        let shards = shards.finish();
        // All records have taken their texts by now.
        front.count_inspection();
        Counts {
            front: front.report().clone(),
            shards,
        }
    }
}
