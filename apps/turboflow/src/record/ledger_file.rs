// SPDX-License-Identifier: Apache-2.0
//! `--ledger FILE.json`: every counter of a run, for programs.

use serde::Serialize;
use serde_json::{Map, Value};
use turboflow_engine::OwnCount;
use turboflow_record::{ColumnKind, Value as Cell};
use turboflow_run::{Ledger, RunConfig, RunSizes, ShortFlows};

use super::Settings;
use super::report::{EndedEarly, Report};
use super::summary::text;
use super::unparsed::UnparsedReport;
use crate::keys::spelled;

/// The JSON file. The counters of the ledger are further keys of the same object.
#[derive(Serialize)]
pub(super) struct LedgerFile<'a> {
    version: &'static str,
    seed: u64,
    threads: usize,
    readers: usize,
    max_flows: usize,
    microflow_table_bytes: usize,
    flow_cache_max_bytes: usize,
    files: Vec<String>,
    interfaces: Vec<InterfaceFile<'a>>,
    /// The filter expression; null if there is none.
    filter: Option<String>,
    /// Flows for which the engine lost microflow records, in descending order of lost packets:
    /// their key fields, and what is missing from their flow records. Null if the engine could not
    /// tell.
    flows_short: Option<Vec<Map<String, Value>>>,
    /// Lost microflow records of flows that are not listed, because there were too many. Null if
    /// the engine could not tell.
    microflows_dropped_unnamed: Option<u64>,
    /// Whether every packet and record is accounted for.
    balanced: bool,
    imbalances: Vec<String>,
    /// Whether a signal ended the run before the end of the input.
    stopped: bool,
    /// The error that ended the run before the end of the input: an engine or an interface failed.
    /// Null otherwise.
    failure: Option<String>,
    damaged: Vec<DamagedFile>,
    /// Files among others that were not metered, and why.
    passed_over: Vec<String>,
    outputs: Vec<OutputFile>,
    /// The file of `--unparsed-to`; null if there is none.
    unparsed: Option<&'a UnparsedReport>,
    /// Counters that only the engine of the run has, by name.
    #[serde(skip_serializing_if = "Map::is_empty")]
    engine_counts: Map<String, Value>,
    #[serde(flatten)]
    ledger: &'a Ledger,
}

#[derive(Serialize)]
struct InterfaceFile<'a> {
    name: &'a str,
    /// Seen by the kernel and passed by the filter, including dropped packets.
    packets_seen: u64,
    packets_dropped: u64,
    packets_delivered: u64,
    /// Delivered packets that the kernel had merged from several on the wire.
    packets_merged: u64,
    /// Why its packets stopped before the end of the run: `displaced` (the engine was detached from
    /// it) or `removed`. Null otherwise.
    ended_early: Option<&'static str>,
}

#[derive(Serialize)]
struct DamagedFile {
    file: String,
    /// Number of the packet that could not be read, counted from 1.
    packet: u64,
    offset_bytes: u64,
    damage: String,
}

#[derive(Serialize)]
struct OutputFile {
    name: String,
    records: u64,
    bytes: u64,
    records_dropped: u64,
    error: Option<String>,
}

impl<'a> LedgerFile<'a> {
    pub(super) fn new(
        run: &RunConfig,
        settings: &Settings,
        sizes: RunSizes,
        report: &'a Report,
    ) -> Self {
        let damaged = report.damaged.iter().map(|error| DamagedFile {
            file: error.name.clone(),
            packet: error.packet,
            offset_bytes: error.offset_bytes,
            damage: error.damage.to_string(),
        });
        let interfaces = report.live.iter().flat_map(|live| &live.interfaces);
        let interfaces = interfaces.map(|seen| InterfaceFile {
            name: &seen.name,
            packets_seen: seen.packets_seen,
            packets_dropped: seen.packets_dropped,
            packets_delivered: seen.packets_delivered,
            packets_merged: seen.packets_merged,
            ended_early: seen.ended_early.map(EndedEarly::name),
        });
        let outputs = report.outputs.iter().map(|output| OutputFile {
            name: output.name.clone(),
            records: output.records_written(),
            bytes: output.bytes_written(),
            records_dropped: output.records_dropped,
            error: output
                .outcome
                .as_ref()
                .err()
                .map(|error| spelled(&error.to_string()).into_owned()),
        });
        let nothing = ShortFlows::default();
        let short = match &report.live {
            Some(live) => live.short.as_ref(),
            None => Some(&nothing),
        };
        let imbalances: Vec<_> = report.imbalances.iter().map(ToString::to_string).collect();
        Self {
            version: env!("CARGO_PKG_VERSION"),
            seed: settings.config.seed,
            threads: settings.config.threads,
            readers: settings.config.readers,
            max_flows: settings.config.max_flows,
            microflow_table_bytes: sizes.microflow_table_bytes,
            flow_cache_max_bytes: sizes.flow_cache_max_bytes,
            files: run
                .source
                .files
                .iter()
                .map(|path| path.display().to_string())
                .collect(),
            interfaces: interfaces.collect(),
            filter: run.source.filter.clone(),
            flows_short: short.map(flows_short),
            microflows_dropped_unnamed: short.map(|short| short.microflows_unnamed),
            balanced: imbalances.is_empty(),
            imbalances,
            stopped: report.stopped,
            failure: report.failure().map(ToString::to_string),
            damaged: damaged.collect(),
            passed_over: report.passed_over.iter().map(ToString::to_string).collect(),
            outputs: outputs.collect(),
            unparsed: report.unparsed.as_ref(),
            engine_counts: own_counts(&report.own_counts),
            ledger: &report.ledger,
        }
    }

    pub(super) fn to_json(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

fn own_counts(counts: &[OwnCount]) -> Map<String, Value> {
    let counts = counts.iter();
    counts
        .map(|own| (own.name.to_owned(), own.count.into()))
        .collect()
}

/// One map per flow, from column to value.
fn flows_short(short: &ShortFlows) -> Vec<Map<String, Value>> {
    let rows = short.microflows.iter().enumerate();
    rows.map(|(row, microflows)| {
        let columns = short.schema.iter().enumerate();
        let columns = columns.filter(|(_, column)| column.name != "end_reason");
        let mut flow: Map<String, Value> = columns
            .map(|(index, column)| {
                let value = short.flows.value(row, index);
                (column.name.clone(), json(value, column.kind))
            })
            .collect();
        flow.insert("microflows_dropped".to_owned(), (*microflows).into());
        flow
    })
    .collect()
}

fn json(value: Cell<'_>, kind: ColumnKind) -> Value {
    match value {
        Cell::Absent => Value::Null,
        Cell::Unsigned(number) if kind != ColumnKind::Mac => number.into(),
        value => text(value, kind).into(),
    }
}
