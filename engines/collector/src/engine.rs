// SPDX-License-Identifier: Apache-2.0
//! The engine: takes messages, and gives batches of microflow records in time order.

use std::num::NonZeroU64;
use std::time::Duration;

use turboflow_engine::wire;
use turboflow_engine::{
    Abilities, Collected, EngineCounters, EngineError, Evicted, KeyAbility, MicroflowBatch,
    OwnCount, Port, RemoteEngine,
};
use turboflow_merge::{Layout, MOST_STATE_WORDS};
use turboflow_record::{Input, InputSet};

use crate::counts::Counts;
use crate::decoder::{Decoder, Message};
use crate::exporters::Sender;
use crate::microflows::{Microflows, Refused};
use crate::order::{Bucket, Next, Order};
use crate::rows::{self, Rows};
use crate::stream::StreamError;

/// Pause after a source had no message.
const PAUSE: Duration = Duration::from_millis(5);

/// Maximum number of reads at the end of a run, for messages that sockets still hold.
const MOST_LAST_READS: usize = 256;

/// The abilities of a collector. Exporters split flows by their own rules, and report each
/// direction separately.
#[must_use]
pub fn abilities() -> Abilities {
    Abilities {
        inputs: rows::inputs(),
        keys: KeyAbility::Any,
        state_words: MOST_STATE_WORDS,
        cuts_on_gap: false,
        evicts_on_end: false,
        ordered: false,
        icmp_ports: true,
        instances: usize::MAX,
        ..Abilities::none("collector")
    }
}

/// The abilities if only microflow records are taken: those of the engines that send them. The
/// layout id of a message tells whether it belongs to this run's definition.
#[must_use]
pub fn abilities_of_microflows() -> Abilities {
    let all = Input::ALL.into_iter().collect::<InputSet>();
    Abilities {
        // Inspection results are numbers of texts in the sender's table, which is not sent. So they
        // are left out.
        inputs: all.without(InputSet::INSPECTED),
        ..abilities()
    }
}

/// The answer of a source that was polled for messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Polled {
    /// Whether it had messages, and may have more.
    pub had_any: bool,
    /// Whether nothing more will come.
    pub is_over: bool,
    /// The time now, in nanoseconds since 1970; `None` for files.
    pub now_ns: Option<u64>,
}

/// Takes a message, or returns why its connection must be closed. A message that is only damaged is
/// taken, and counted.
pub type TakeMessage<'a> = dyn FnMut(&Message<'_>) -> Result<(), Refused> + 'a;

/// Where messages come from: sockets or files. Never blocks.
pub trait MessageSource: Send {
    /// The source's name, for people.
    fn name(&self) -> String;

    /// Takes some of the available messages. `ended` is called for connections that have closed.
    ///
    /// # Errors
    /// If nothing can be read any more.
    fn poll(
        &mut self,
        take: &mut TakeMessage<'_>,
        ended: &mut Vec<Sender>,
    ) -> Result<Polled, StreamError>;

    /// Since when messages are received, in nanoseconds since 1970; `None` for files.
    fn since_ns(&self) -> Option<u64> {
        None
    }

    /// The source's own counters, always in the same order.
    fn own_counts(&self) -> Vec<OwnCount> {
        Vec::new()
    }
}

/// The configuration of a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectorConfig {
    /// Longest expected time from a record's first packet to its arrival, in nanoseconds. `None`,
    /// for files: records wait as long as there is room.
    pub lag_ns: Option<u64>,
    /// Maximum number of records that wait for older ones.
    pub most_records: usize,
    /// The cell of the run's clock, in nanoseconds.
    pub cell_ns: u64,
    /// Length of the windows at whose ends the run cuts its flows, in nanoseconds, if it does.
    pub window_ns: Option<NonZeroU64>,
    /// Whether ICMP type and code are stored as the destination port.
    pub icmp_ports: bool,
    /// Whether packets and bytes of sampled records are multiplied by the sampling interval.
    pub scales_sampled: bool,
    /// Whether microflow records of other TurboFlow processes are taken instead of flow records.
    /// Then the definition may have features that flow records do not contain.
    pub only_microflows: bool,
}

/// Flow records of other exporters.
pub struct CollectorEngine {
    abilities: Abilities,
    config: CollectorConfig,
    source: Box<dyn MessageSource>,
    decoder: Decoder,
    rows: Rows,
    microflows: Microflows,
    /// The latest export time so far; it also advances with time while exporters are silent.
    clock_ns: u64,
    now_ns: Option<u64>,
    /// Everything that arrived before this time has been read.
    read_until_ns: Option<u64>,
    is_idle: bool,
    is_over: bool,
    failure: Option<StreamError>,
    sums: Sums,
}

/// What was handed over so far.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    records: u64,
    packets: u64,
    bytes: u64,
}

impl CollectorEngine {
    /// An engine over a source, with records of `layout`.
    #[must_use]
    pub fn new(source: Box<dyn MessageSource>, layout: &Layout, config: CollectorConfig) -> Self {
        let order = Order::new(config.cell_ns, config.most_records);
        Self {
            abilities: abilities(),
            config,
            microflows: Microflows::new(layout, source.since_ns()),
            source,
            decoder: Decoder::new(layout.needs()),
            rows: Rows::new(layout, &config, order),
            clock_ns: 0,
            now_ns: None,
            read_until_ns: None,
            is_idle: false,
            is_over: false,
            failure: None,
            sums: Sums::default(),
        }
    }

    /// The counters in addition to the ledger.
    #[must_use]
    pub fn counts(&self) -> Counts {
        match self.is_over {
            true => self.decoder.final_counts(),
            false => self.decoder.counts,
        }
    }

    /// Numbers of known exporters and observation domains.
    #[must_use]
    pub fn known(&self) -> (usize, usize) {
        self.decoder.sizes()
    }

    /// Reads what the source has, if there is room.
    fn read(&mut self) {
        if !self.is_over && !self.rows.order.is_full() {
            self.take();
        }
    }

    fn take(&mut self) {
        let Self {
            source,
            decoder,
            rows,
            microflows,
            clock_ns,
            config,
            ..
        } = self;
        let mut ended = Vec::new();
        let polled = source.poll(
            &mut |message| {
                let told_ns = if wire::is_message(message.bytes) {
                    microflows.read(message, decoder, rows)?
                } else if config.only_microflows {
                    decoder.counts.flows_refused += 1;
                    return Err(Refused::Flows);
                } else {
                    decoder.decode(message, rows)
                };
                *clock_ns = (*clock_ns).max(told_ns.unwrap_or(0));
                Ok(())
            },
            &mut ended,
        );
        for sender in ended {
            self.decoder.forget(sender);
            self.microflows.probes.disconnect(sender);
        }
        match polled {
            Ok(polled) => {
                self.pass(polled.now_ns);
                self.is_idle = !polled.had_any;
                self.is_over = polled.is_over;
                if self.is_over {
                    self.microflows.probes.disconnect_all();
                }
                if self.is_idle || self.is_over {
                    self.read_until_ns = polled.now_ns;
                }
            }
            Err(error) => {
                self.failure = Some(error);
                self.is_over = true;
            }
        }
    }

    /// Advances the clock, even while exporters are silent.
    fn pass(&mut self, now_ns: Option<u64>) {
        if let (Some(before_ns), Some(now_ns)) = (self.now_ns, now_ns)
            && self.clock_ns > 0
        {
            self.clock_ns += now_ns.saturating_sub(before_ns);
        }
        self.now_ns = now_ns;
    }

    /// The time before which no more records are expected.
    fn watermark_ns(&self) -> u64 {
        let order = &self.rows.order;
        match self.config.lag_ns {
            _ if self.is_over => u64::MAX,
            Some(lag_ns) => order.floor(self.clock_ns.saturating_sub(lag_ns)),
            None => 0,
        }
    }

    /// Hands over the next cell if its time has come.
    fn hand_over(&mut self, to: &mut Bucket) -> Collected {
        let (watermark_ns, last_ns) = (self.watermark_ns(), self.rows.last_ns());
        let order = &mut self.rows.order;
        match order.next() {
            Next::Bucket(start_ns, end_ns) if end_ns <= watermark_ns || order.is_full() => {
                if start_ns > order.complete_ns() {
                    // No record is older than this bucket: first advance the watermark to it.
                    order.complete(start_ns);
                    return Collected::all_before(start_ns);
                }
                if end_ns > watermark_ns && self.config.lag_ns.is_some() {
                    order.count_early(&mut self.decoder.counts);
                }
                order.hand_over(to);
                // As for a capture, the clock of a file ends with its last packet.
                let is_last = self.is_over && order.next() == Next::Empty;
                let complete_ns = match is_last {
                    true => order.floor(last_ns).max(start_ns),
                    false => end_ns,
                };
                order.complete(complete_ns);
                Collected::all_before(complete_ns)
            }
            Next::Empty if !self.is_over && watermark_ns > order.complete_ns() => {
                order.complete(watermark_ns);
                Collected::all_before(watermark_ns)
            }
            Next::Bucket(start_ns, _)
                if start_ns.min(watermark_ns) > order.complete_ns() && !self.is_over =>
            {
                let complete_ns = start_ns.min(watermark_ns);
                order.complete(complete_ns);
                Collected::all_before(complete_ns)
            }
            _ => Collected {
                complete_ns: None,
                sets_back: false,
                has_more: !self.is_over && !self.is_idle,
            },
        }
    }

    fn is_drained(&self) -> bool {
        self.is_over && self.failure.is_none() && self.rows.order.len() == 0
    }
}

impl RemoteEngine for CollectorEngine {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn started_ns(&self) -> u64 {
        0
    }

    fn collect(&mut self, batch: &mut MicroflowBatch) -> Result<Collected, EngineError> {
        self.read();
        let mut bucket = Bucket::default();
        self.rows.order.hand_over_late(&mut bucket);
        let collected = self.hand_over(&mut bucket);
        self.sums.records += bucket.batch.len() as u64;
        self.sums.packets += bucket.packets;
        self.sums.bytes += bucket.bytes;
        batch.append(&mut bucket.batch);
        if collected.complete_ns.is_none()
            && let Some(error) = self.failure.take()
        {
            return Err(EngineError::new(error));
        }
        Ok(collected)
    }

    fn longest_pause(&self) -> Duration {
        match self.is_idle {
            true => PAUSE,
            false => Duration::ZERO,
        }
    }

    fn counters(&mut self) -> Result<EngineCounters, EngineError> {
        let told = self.microflows.probes.told();
        let lost = self.counts().records_lost + told.microflows_unsent;
        let Sums {
            records,
            packets,
            bytes,
        } = self.sums;
        let rejected: u64 = told.rejected_packets.iter().sum();
        let rejected_bytes: u64 = told.rejected_bytes.iter().sum();
        Ok(EngineCounters {
            packets_received: packets + rejected,
            bytes_received: bytes + rejected_bytes,
            rejected_packets: told.rejected_packets,
            rejected_bytes: told.rejected_bytes,
            packets_metered: packets,
            bytes_metered: bytes,
            evicted: Evicted {
                age: records + lost,
                ..Evicted::default()
            },
            microflows_dropped: lost,
            microflows_unnamed: lost,
            ..EngineCounters::default()
        })
    }

    fn own_counts(&mut self) -> Result<Vec<OwnCount>, EngineError> {
        let mut counts = self.counts().own_counts();
        counts.extend(self.source.own_counts());
        let (exporters, domains) = self.known();
        let gauge = |name, about, count: usize| OwnCount {
            name,
            about,
            is_gauge: true,
            count: count as u64,
        };
        counts.extend([
            gauge(
                "engine_collector_exporters",
                "exporters that are known",
                exporters,
            ),
            gauge(
                "engine_collector_domains",
                "observation domains that are known",
                domains,
            ),
            gauge(
                "engine_collector_records_waiting",
                "records that wait for older ones",
                self.rows.order.len(),
            ),
        ]);
        let (probes, until_ns) = (&self.microflows.probes, self.read_until_ns);
        counts.extend(probes.own_counts(until_ns, self.config.cell_ns));
        Ok(counts)
    }

    fn ports(&mut self) -> Result<Vec<Port>, EngineError> {
        let Sums { packets, bytes, .. } = self.sums;
        let (probes, name) = (&self.microflows.probes, self.source.name());
        let until_ns = self.read_until_ns;
        Ok(probes.ports(name, [packets, bytes], until_ns, self.config.cell_ns))
    }

    fn has_ended(&self) -> bool {
        self.is_drained()
    }

    fn ends_by_itself(&self) -> bool {
        self.config.lag_ns.is_none()
    }

    /// Reads only what has arrived until now.
    fn finish(&mut self) -> Result<(), EngineError> {
        for _ in 0..MOST_LAST_READS {
            if self.is_over || self.config.lag_ns.is_none() {
                break;
            }
            self.take();
            if self.is_idle {
                break;
            }
        }
        (self.is_over, self.read_until_ns) = (true, self.now_ns);
        Ok(())
    }
}
