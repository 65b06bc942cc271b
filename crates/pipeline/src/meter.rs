// SPDX-License-Identifier: Apache-2.0
//! A meter: frames in, flow records out, in memory.

use turboflow_aggregate::Cell;
#[cfg(all(target_os = "linux", feature = "kernel"))]
use turboflow_engine_software::EngineCounters;
#[cfg(all(target_os = "linux", feature = "kernel"))]
use turboflow_engine_xdp::{Batch, KernelCounters};
use turboflow_packet::Frame;
use turboflow_record::{FlowBatch, InputValues, Layout, Packet};

use crate::front::{Front, FrontReport, Shards};
use crate::pending::Pending;
use crate::shard::{Shard, ShardReport};
use crate::threads::ThreadedShards;
use crate::{ConfigError, Ledger, PipelineConfig};

/// Takes batches of finished flow records; it may take the batch's contents out and leave an empty
/// batch of the same schema.
pub type DeliverRecords = Box<dyn FnMut(&mut FlowBatch) + Send>;

/// Runs an expression with `N` standing for a number of state words. This crate's own unit tests have definitions of few: engines and flow
/// caches of every record size are not compiled once more for them. `tests/` and the program's tests have the others.
macro_rules! with_state_words {
    ($words:expr, $n:ident => $body:expr) => {{
        match $words {
            0 => {
                const $n: usize = 0;
                $body
            }
            8 => {
                const $n: usize = 8;
                $body
            }
            #[cfg(not(test))]
            24 => {
                const $n: usize = 24;
                $body
            }
            #[cfg(not(test))]
            120 => {
                const $n: usize = 120;
                $body
            }
            #[cfg(not(test))]
            504 => {
                const $n: usize = 504;
                $body
            }
            #[cfg(test)]
            other => unreachable!("{other} state words are for tests/, not for unit tests"),
            #[cfg(not(test))]
            other => unreachable!("{other} is no number of state words"),
        }
    }};
}
pub(crate) use with_state_words;

/// What a meter has done.
#[derive(Clone, Debug)]
pub struct MeterReport {
    /// Every counter; sources and outputs add theirs.
    pub ledger: Ledger,
}

/// What front and shards have counted at a moment.
pub(crate) struct Counts {
    front: FrontReport,
    shards: ShardReport,
}

impl Counts {
    pub(crate) fn ledger(&self) -> Ledger {
        Ledger::new(&self.front, &self.shards)
    }

    /// The same with what an engine in the kernel has counted in the place of front and software engine. Of what its ring had no room
    /// for, the frames' bytes are not known: they are among those received. CPUs go on while their counters are read, so that differences
    /// may be off by what they do meanwhile.
    #[cfg(all(target_os = "linux", feature = "kernel"))]
    pub(crate) fn of_kernel(mut self, kernel: &KernelCounters) -> Self {
        let (front, shards) = (&mut self.front, &mut self.shards);
        front.rejected = kernel.rejected_packets;
        front.rejected_bytes = kernel.rejected_bytes;
        let held = kernel
            .packets_metered
            .saturating_sub(kernel.packets_dropped);
        front.packets = held.max(shards.packets_recorded);
        front.frames = front.packets + front.rejected.iter().sum::<u64>();
        front.packet_frame_bytes = kernel.frame_bytes_metered();
        front.frame_bytes = front.packet_frame_bytes + front.rejected_bytes.iter().sum::<u64>();
        front.packet_bytes = kernel.bytes_metered.saturating_sub(kernel.bytes_dropped);
        shards.packets_in = front.packets;
        let not_merged = kernel
            .evicted()
            .saturating_sub(shards.cache.microflows_merged);
        shards.microflows_dropped = kernel.microflows_dropped.min(not_merged);
        shards.microflows_waiting = not_merged - shards.microflows_dropped;
        shards.engine = EngineCounters {
            evicted_collision: kernel.evicted_collision,
            evicted_age: kernel.evicted_age,
            evicted_cut: kernel.evicted_cut,
            evicted_flush: kernel.evicted_flush,
            ..EngineCounters::default()
        };
        self
    }

    /// Adds those of another meter.
    #[cfg(target_os = "linux")]
    pub(crate) fn merge(&mut self, other: &Self) {
        self.front.merge(&other.front);
        self.shards.merge(&other.shards);
    }
}

/// The pipeline without files: give it frames, then finish it.
///
/// Threads of its own, if the configuration asks for them, start with it and end with
/// [`Meter::finish`].
pub struct Meter {
    work: Box<dyn MeterWork>,
    layout: Layout,
}

trait MeterWork {
    fn frames(&mut self, frames: &[Frame<'_>]);
    fn packet(&mut self, packet: &Packet, values: &InputValues);
    #[cfg(all(target_os = "linux", feature = "kernel"))]
    fn microflows(&mut self, batch: &mut Batch);
    fn advance(&mut self, delivered_ns: u64);
    fn snapshot(&mut self) -> Counts;
    fn finish(self: Box<Self>) -> Counts;
}

impl Meter {
    /// A meter that has seen nothing. `deliver` is asked once for every shard, and what it
    /// gives is called on that shard's thread.
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub fn new(
        config: &PipelineConfig,
        mut deliver: impl FnMut(usize) -> DeliverRecords,
    ) -> Result<Self, ConfigError> {
        Self::start(config, &mut deliver)
    }

    /// The same for any closure: engines and flow caches of every record size are compiled here, and not once more in every crate that
    /// has a closure.
    fn start(
        config: &PipelineConfig,
        deliver: &mut dyn FnMut(usize) -> DeliverRecords,
    ) -> Result<Self, ConfigError> {
        let layout = config.compile()?;
        let work = with_state_words!(layout.state_words(), N => {
            start::<N>(config, &layout, deliver)?
        });
        Ok(Self { work, layout })
    }

    /// The columns of its records.
    #[must_use]
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Meters frames, in the order of their arrival.
    pub fn frames(&mut self, frames: &[Frame<'_>]) {
        self.work.frames(frames);
    }

    /// Meters one packet that was parsed elsewhere, with the inputs that the layout needs.
    pub fn packet(&mut self, packet: &Packet, values: &InputValues) {
        self.work.packet(packet, values);
    }

    /// Merges microflow records that an engine elsewhere has made of the current cell's packets, those of a flow in the order of time.
    /// They do not move the clock.
    #[cfg(all(target_os = "linux", feature = "kernel"))]
    pub(crate) fn microflows(&mut self, batch: &mut Batch) {
        self.work.microflows(batch);
    }

    /// Moves the clock without a packet: a live source has delivered every packet up to this time,
    /// in nanoseconds since 1970. Flows that are due leave, however silent the source is.
    pub fn advance(&mut self, delivered_ns: u64) {
        self.work.advance(delivered_ns);
    }

    /// Where everything is at this moment, all threads at the same point of the input: every packet
    /// is in a record, resident, or in a counter.
    ///
    /// It waits until what is queued for the shards is metered, some ten thousand packets.
    pub fn snapshot(&mut self) -> Ledger {
        self.counts().ledger()
    }

    /// The same as numbers that can be added up.
    pub(crate) fn counts(&mut self) -> Counts {
        self.work.snapshot()
    }

    /// Exports everything that is open.
    #[must_use]
    pub fn finish(self) -> MeterReport {
        MeterReport {
            ledger: self.finish_counting().ledger(),
        }
    }

    /// The same, for numbers that can be added up.
    pub(crate) fn finish_counting(self) -> Counts {
        self.work.finish()
    }
}

fn start<const N: usize>(
    config: &PipelineConfig,
    layout: &Layout,
    deliver: &mut dyn FnMut(usize) -> DeliverRecords,
) -> Result<Box<dyn MeterWork>, ConfigError> {
    let front = Front::<N>::new(config, layout);
    if !config.has_shard_threads() {
        let shards = OwnShard(Shard::new(config, layout, deliver(0)));
        return Ok(Box::new(Running { front, shards }));
    }
    let shards = (0..config.threads).map(|shard| {
        let (config, layout, deliver) = (config.clone(), layout.clone(), deliver(shard));
        move || Shard::<N>::new(&config, &layout, deliver)
    });
    let shards = ThreadedShards::start(shards).map_err(|source| ConfigError::Thread {
        what: "metering",
        source,
    })?;
    Ok(Box::new(Running { front, shards }))
}

/// Shards that can be asked for their reports.
pub(crate) trait FinishShards {
    /// When everything that was given to them is metered.
    fn snapshot(&mut self) -> ShardReport;
    /// At the end.
    fn finish(self) -> ShardReport;
}

struct Running<const N: usize, S> {
    front: Front<N>,
    shards: S,
}

impl<const N: usize, S: Shards<N> + FinishShards> MeterWork for Running<N, S> {
    fn frames(&mut self, frames: &[Frame<'_>]) {
        self.front.frames(frames, &mut self.shards);
    }

    fn packet(&mut self, packet: &Packet, values: &InputValues) {
        self.front.parsed(packet, values, &mut self.shards);
    }

    #[cfg(all(target_os = "linux", feature = "kernel"))]
    fn microflows(&mut self, batch: &mut Batch) {
        self.front.microflows(batch, &mut self.shards);
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

    fn finish(mut self: Box<Self>) -> Counts {
        self.front.finish(&mut self.shards);
        Counts {
            front: self.front.report().clone(),
            shards: self.shards.finish(),
        }
    }
}

/// The one shard of a meter without threads.
struct OwnShard<const N: usize>(Shard<N>);

impl<const N: usize> Shards<N> for OwnShard<N> {
    fn packets(&mut self, _shard: usize, batch: &mut Pending<N>) {
        self.0.packets(batch);
        batch.clear();
    }

    fn enter(&mut self, cell: Cell) {
        self.0.enter(cell);
    }

    fn set_back(&mut self, cell: Cell) {
        self.0.set_back(cell);
    }
}

impl<const N: usize> FinishShards for OwnShard<N> {
    fn snapshot(&mut self) -> ShardReport {
        self.0.report()
    }

    fn finish(mut self) -> ShardReport {
        self.0.flush();
        self.0.report()
    }
}
