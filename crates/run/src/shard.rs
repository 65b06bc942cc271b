// SPDX-License-Identifier: Apache-2.0
//! The flows of one shard: its tables, and the columns of its finished records.

use turboflow_aggregate::{CacheCounters, Cell, ExportSink};
use turboflow_engine::wire::WordColumns;
use turboflow_engine::{Evicted, PacketEngines};
use turboflow_merge::{KeyWidths, Layout, MicroflowRecord, WORDS_WIDE};
use turboflow_record::{FlowBatch, WORDS_V4, WORDS_V6};

use crate::PipelineConfig;
use crate::batch::ShardBatch;
use crate::feed::{FinishShards, Shards};
use crate::inspecting::Naming;
use crate::tables::Tables;
use crate::watermark::Watermark;

/// Takes batches of finished flow records. It may take the contents of a batch and leave an empty
/// batch of the same schema. A batch without records only moves the watermark.
pub type DeliverRecords = Box<dyn FnMut(&mut FlowBatch) + Send>;

/// How many finished records are delivered together.
const BATCH_RECORDS: usize = 8_192;

/// Counters of a shard, for the ledger.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ShardReport {
    pub(crate) evicted: Evicted,
    pub(crate) cache: CacheCounters,
    /// Packets that the shard was given.
    pub(crate) packets_in: u64,
    pub(crate) microflows_waiting: u64,
    /// Records that a remote engine could not hand over.
    pub(crate) microflows_dropped: u64,
    pub(crate) packets_recorded: u64,
    pub(crate) bytes_recorded: u64,
    /// Records of flows about which inspection has found anything.
    pub(crate) records_named: u64,
}

pub(crate) struct Shard<F: PacketEngines, const N: usize> {
    v4: Option<Tables<F::Engine<WORDS_V4, N>, WORDS_V4, N>>,
    v6: Option<Tables<F::Engine<WORDS_V6, N>, WORDS_V6, N>>,
    wide: Option<Tables<F::Engine<WORDS_WIDE, N>, WORDS_WIDE, N>>,
    columns: Columns,
    packets_in: u64,
    prompt: bool,
    /// Derives the watermark of the records from the start of a cell.
    watermark: Watermark,
}

impl<F: PacketEngines, const N: usize> Shard<F, N> {
    /// A shard that meters packets with one of `engines`. Without engines, it merges the records of
    /// remote engines.
    pub(crate) fn new(
        config: &PipelineConfig,
        layout: &Layout,
        engines: Option<&F>,
        naming: Option<Naming>,
        deliver: DeliverRecords,
    ) -> Self {
        let by_family = matches!(layout.key_widths(), KeyWidths::ByFamily);
        Self {
            v4: by_family.then(|| Tables::new(config, layout, engines)),
            v6: by_family.then(|| Tables::new(config, layout, engines)),
            wide: (!by_family).then(|| Tables::new(config, layout, engines)),
            columns: Columns::new(config, layout.clone(), naming, deliver),
            packets_in: 0,
            // The host that merges the records of a probe waits for the probe's clock.
            prompt: config.prompt || config.probe.is_some(),
            watermark: Watermark::new(config),
        }
    }

    pub(crate) fn take(&mut self, batch: &ShardBatch<N>) {
        self.packets_in += batch.len() as u64;
        if let (Some(tables), false) = (&mut self.v4, batch.v4.is_empty()) {
            tables.take(&batch.v4, &mut self.columns);
        }
        if let (Some(tables), false) = (&mut self.v6, batch.v6.is_empty()) {
            tables.take(&batch.v6, &mut self.columns);
        }
        if let (Some(tables), false) = (&mut self.wide, batch.wide.is_empty()) {
            tables.take(&batch.wide, &mut self.columns);
        }
    }

    pub(crate) fn enter(&mut self, cell: Cell) {
        if let Some(tables) = &mut self.v4 {
            tables.enter(cell, &mut self.columns);
        }
        if let Some(tables) = &mut self.v6 {
            tables.enter(cell, &mut self.columns);
        }
        if let Some(tables) = &mut self.wide {
            tables.enter(cell, &mut self.columns);
        }
        // Not before this point: due records leave until every table has been swept.
        self.columns.watermark_ns = self.watermark.after(cell);
        if self.prompt {
            self.columns.hand_over();
        }
    }

    /// Flushes because the clock was set back, and enters a cell of the new time.
    pub(crate) fn set_back(&mut self, cell: Cell) {
        self.flush();
        self.enter(cell);
    }

    pub(crate) fn flush(&mut self) {
        if let Some(tables) = &mut self.v4 {
            tables.flush(&mut self.columns);
        }
        if let Some(tables) = &mut self.v6 {
            tables.flush(&mut self.columns);
        }
        if let Some(tables) = &mut self.wide {
            tables.flush(&mut self.columns);
        }
        self.columns.hand_over();
    }

    pub(crate) fn report(&self) -> ShardReport {
        let mut report = ShardReport {
            packets_in: self.packets_in,
            packets_recorded: self.columns.packets,
            bytes_recorded: self.columns.bytes,
            records_named: self.columns.named,
            ..ShardReport::default()
        };
        let tables = [
            self.v4.as_ref().map(Tables::counters),
            self.v6.as_ref().map(Tables::counters),
            self.wide.as_ref().map(Tables::counters),
        ];
        for counters in tables.into_iter().flatten() {
            report.add(&counters.evicted, &counters.cache);
            report.microflows_waiting += counters.waiting;
        }
        report
    }
}

impl ShardReport {
    fn add(&mut self, evicted: &Evicted, cache: &CacheCounters) {
        self.evicted += *evicted;
        self.cache += *cache;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.add(&other.evicted, &other.cache);
        self.packets_in += other.packets_in;
        self.microflows_waiting += other.microflows_waiting;
        self.microflows_dropped += other.microflows_dropped;
        self.packets_recorded += other.packets_recorded;
        self.bytes_recorded += other.bytes_recorded;
        self.records_named += other.records_named;
    }
}

/// Turns finished records into columns and counts their packets and bytes.
struct Columns {
    layout: Layout,
    /// The columns of a probe's microflow records.
    words: Option<WordColumns>,
    batch: FlowBatch,
    naming: Option<Naming>,
    deliver: DeliverRecords,
    packets: u64,
    bytes: u64,
    named: u64,
    /// The watermark of the next batch. `delivered_ns` is that of the last one.
    watermark_ns: u64,
    delivered_ns: u64,
}

impl Columns {
    fn new(
        config: &PipelineConfig,
        layout: Layout,
        naming: Option<Naming>,
        deliver: DeliverRecords,
    ) -> Self {
        let words = config.probe.is_some().then(|| WordColumns::new(&layout));
        let schema = words.as_ref().map_or(layout.schema(), WordColumns::schema);
        Self {
            batch: FlowBatch::new(schema),
            layout,
            words,
            naming,
            deliver,
            packets: 0,
            bytes: 0,
            named: 0,
            watermark_ns: 0,
            delivered_ns: 0,
        }
    }

    fn hand_over(&mut self) {
        if self.batch.rows() > 0 || self.watermark_ns != self.delivered_ns {
            self.batch.set_watermark(self.watermark_ns);
            (self.deliver)(&mut self.batch);
            self.batch.clear();
            self.delivered_ns = self.watermark_ns;
        }
    }
}

impl<const K: usize, const N: usize> ExportSink<K, N> for Columns {
    fn export(&mut self, records: &[MicroflowRecord<K, N>]) {
        for record in records {
            self.packets += record.base.packets;
            self.bytes += record.base.bytes;
        }
        match (&self.words, &self.naming) {
            (Some(words), _) => words.append(records, &mut self.batch),
            (None, None) => self.layout.append(records, &mut self.batch),
            (None, Some(naming)) => {
                let mut named = records.to_vec();
                self.named += naming.annotate(&self.layout, &mut named);
                self.layout.append(&named, &mut self.batch);
            }
        }
        if self.batch.rows() >= BATCH_RECORDS {
            self.hand_over();
        }
    }
}

/// The one shard of a meter without threads.
pub(crate) struct OwnShard<F: PacketEngines, const N: usize>(pub(crate) Shard<F, N>);

impl<F: PacketEngines, const N: usize> Shards<N> for OwnShard<F, N> {
    fn take(&mut self, _shard: usize, batch: &mut ShardBatch<N>) {
        self.0.take(batch);
        batch.clear();
    }

    fn enter(&mut self, cell: Cell) {
        self.0.enter(cell);
    }

    fn set_back(&mut self, cell: Cell) {
        self.0.set_back(cell);
    }
}

impl<F: PacketEngines, const N: usize> FinishShards for OwnShard<F, N> {
    fn snapshot(&mut self) -> ShardReport {
        self.0.report()
    }

    fn finish(mut self) -> ShardReport {
        self.0.flush();
        self.0.report()
    }
}
