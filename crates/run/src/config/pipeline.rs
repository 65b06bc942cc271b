// SPDX-License-Identifier: Apache-2.0
//! The configuration of the meter, and its memory.

use std::fmt;
use std::sync::Arc;
use std::thread;

use turboflow_aggregate::{FlowCache, Timeouts};
use turboflow_engine::wire::SenderCounters;
use turboflow_engine::{PacketEngines, PlainEngines};
use turboflow_engine_software::Sizing;
use turboflow_inspect::InspectError;
use turboflow_merge::{Initiator, KeyWidths, Layout, WORDS_WIDE};
use turboflow_packet::{ReassemblyConfig, TELEMETRY_INPUTS, TelemetryConfig, TunnelSet};
use turboflow_record::{Definition, InspectedTexts, KeyField, WORDS_V4, WORDS_V6};

use super::{RunConfig, Window};
use crate::InspectionConfig;
use crate::engines::Engines;

/// Everything that determines the flow records of a capture, and how they are computed.
#[derive(Clone, Debug)]
pub struct PipelineConfig {
    /// What a flow record holds.
    pub definition: Definition,
    /// Whether the two directions of a conversation are one record.
    pub biflow: bool,
    /// When flows end.
    pub timeouts: Timeouts,
    /// The longest stay of a packet in the engine, in nanoseconds of the clock. Default 1 s.
    pub max_age_ns: u64,
    /// The microflow table of the software engine.
    pub sizing: Sizing,
    /// The engines that meter packets in this process. `None` means the software engine. Other
    /// engines meter records of the default definition, or of a part of it.
    pub packet_engines: Option<Arc<dyn PlainEngines>>,
    /// Maximum number of open flows, over all threads.
    pub max_flows: usize,
    /// Metering threads (shards) per reader. With more than one, another thread reads and parses.
    pub threads: usize,
    /// Whether a single shard also has its own thread, separate from reading and parsing. This is
    /// faster if there is a processor for each thread, and slower otherwise.
    pub meters_apart: bool,
    /// Readers of interfaces, each with its own shards. Files have one reader.
    pub readers: usize,
    /// Seed of the hash function.
    pub seed: u64,
    /// Who is the initiator of a biflow.
    pub initiator: Initiator,
    /// Tunnels whose inner packets are metered.
    pub decapsulate: TunnelSet,
    /// Whether ICMP type and code are stored in the destination port.
    pub icmp_ports: bool,
    /// Where in-band telemetry is looked for, if the definition has an input that depends on it.
    pub telemetry: TelemetryConfig,
    /// Whether later fragments join the flow of the first fragment. `None` means that they do not.
    pub reassemble_flows: Option<ReassemblyConfig>,
    /// The longest time from expiry of a flow to its export, in nanoseconds of the clock.
    pub sweep_ns: u64,
    /// Whether finished records are delivered at the end of every cell, and not only in large
    /// batches.
    pub prompt: bool,
    /// Inspection of payload for the applications of flows, if the definition asks for any. With
    /// `None`, their columns are empty.
    pub inspection: Option<InspectionConfig>,
    /// The texts that columns of texts show for the words of records. `None` means those of the
    /// inspection, if there is one.
    pub texts: Option<Arc<InspectedTexts>>,
    /// Whether the run is a probe. The microflow records of a probe leave without being merged, in
    /// columns of words ([`WordColumns`](turboflow_engine::wire::WordColumns)), and another host
    /// merges them. The value holds the counters of the run at its end. `None` means that records
    /// are merged here.
    pub probe: Option<Arc<SenderCounters>>,
}

impl PipelineConfig {
    /// The texts that columns of texts show for the words of records, if there are any.
    #[must_use]
    pub fn texts(&self) -> Option<&Arc<InspectedTexts>> {
        let inspected = self.inspection.as_ref().map(|its| &its.names);
        self.texts.as_ref().or(inspected)
    }
}

impl Default for PipelineConfig {
    fn default() -> Self {
        Self {
            definition: Definition::default(),
            biflow: false,
            timeouts: Timeouts::default(),
            max_age_ns: 1_000_000_000,
            sizing: Sizing::Adaptive,
            packet_engines: None,
            max_flows: 10_000_000,
            threads: 1,
            meters_apart: false,
            readers: 1,
            seed: 0,
            initiator: Initiator::default(),
            decapsulate: TunnelSet::default(),
            icmp_ports: false,
            telemetry: TelemetryConfig::default(),
            reassemble_flows: None,
            // No reader waits for the records of files. Rare sweeps leave the processor's caches to
            // the packets.
            sweep_ns: 10_000_000_000,
            prompt: false,
            inspection: None,
            texts: None,
            probe: None,
        }
    }
}

/// The setting of a [`RunConfig`] that an error refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// `active` of `[timeouts]`.
    ActiveTimeout,
    /// `align` of `[timeouts]`.
    Align,
    /// `decapsulate` of `[flow]`.
    Decapsulate,
    /// `idle` of `[timeouts]`.
    IdleTimeout,
    /// `int-report-port` of `[flow]`.
    IntReportPort,
    /// `linger` of `[timeouts]`.
    Linger,
    /// `max-flows` of `[meter]`.
    MaxFlows,
    /// `microflow-slots` of `[engine]`.
    MicroflowSlots,
    /// `readers` of `[source]`.
    Readers,
    /// `threads` of `[meter]`.
    Threads,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ActiveTimeout => "timeouts.active",
            Self::Align => "timeouts.align",
            Self::Decapsulate => "flow.decapsulate",
            Self::IdleTimeout => "timeouts.idle",
            Self::IntReportPort => "flow.int-report-port",
            Self::Linger => "timeouts.linger",
            Self::MaxFlows => "meter.max-flows",
            Self::MicroflowSlots => "engine.microflow-slots",
            Self::Readers => "source.readers",
            Self::Threads => "meter.threads",
        })
    }
}

/// Why packets of one flow might go to different readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separation {
    /// The key lacks an address.
    Key,
    /// Packets of one flow may come through tunnels with different pairs of addresses.
    Tunnels,
    /// Reports about one flow come from several nodes.
    Reports,
}

impl fmt::Display for Separation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key => f.write_str("a key without source_address and destination_address"),
            Self::Tunnels => write!(
                f,
                "`{}`: a flow may come through tunnels of several address pairs",
                Field::Decapsulate
            ),
            Self::Reports => write!(
                f,
                "`{}`: several nodes report about a flow",
                Field::IntReportPort
            ),
        }
    }
}

/// Why a configuration is invalid.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The definition needs inputs that capture files lack, or features that records cannot hold.
    #[error("{0}")]
    Definition(String),
    /// Several readers, although packets of one flow might go to different ones.
    #[error(
        "`{}` {readers} does not go with {separation}; leave one of them out",
        Field::Readers
    )]
    Readers {
        /// Number of readers.
        readers: usize,
        /// Why packets of one flow might go to different readers.
        separation: Separation,
    },
    /// The system refuses to start a thread.
    #[error(
        "cannot start a thread for {what}: {source}; raise the limit of processes or memory (ulimit -u, pids.max)"
    )]
    Thread {
        /// The purpose of the thread.
        what: &'static str,
        /// The error of the system.
        source: std::io::Error,
    },
    /// Payload cannot be inspected.
    #[error(transparent)]
    Inspection(#[from] InspectError),
    /// A number out of its range.
    #[error("`{field}` must be from {low} to {high}, not {value}")]
    OutOfRange {
        /// The setting. Times are in nanoseconds.
        field: Field,
        /// Smallest value.
        low: u64,
        /// Largest value.
        high: u64,
        /// The value given.
        value: u64,
    },
}

/// Largest number of open flows.
const MAX_FLOWS: u64 = 1_000_000_000;
/// Largest microflow table.
const MAX_SLOTS: u64 = 1 << 28;
/// Most metering threads.
const MAX_THREADS: u64 = 256;
/// Most readers: the number of rings that an interface can have.
const MAX_READERS: u64 = 64;
/// Longest timeout: about 292 years.
const MAX_TIMEOUT_NS: u64 = i64::MAX as u64;

impl TryFrom<&RunConfig> for PipelineConfig {
    type Error = ConfigError;

    /// The settings of the meter. The definition is the default one, and a missing seed is 0,
    /// because the program reads the definition file and draws the seed.
    fn try_from(run: &RunConfig) -> Result<Self, ConfigError> {
        let sizing = match run.engine.microflow_slots {
            // Other engines check the limits of their own microflow tables.
            _ if !run.engine.is_software() => Sizing::Off,
            None => Sizing::Adaptive,
            Some(slots) => Sizing::Fixed(fit(Field::MicroflowSlots, slots.0, MAX_SLOTS)?),
        };
        let threads = run.meter.threads;
        let config = Self {
            biflow: run.flow.biflow,
            timeouts: Timeouts {
                idle_ns: run.timeouts.idle.0,
                active_ns: run.timeouts.active.0,
                linger_ns: run.timeouts.linger.0,
                align_ns: run
                    .timeouts
                    .align
                    .map(|Window(length)| length.as_secs() * 1_000_000_000),
            },
            sizing,
            max_flows: fit(Field::MaxFlows, run.meter.max_flows.0, MAX_FLOWS)?,
            threads: fit(
                Field::Threads,
                threads.map_or(1, |count| count.0),
                MAX_THREADS,
            )?,
            meters_apart: threads.is_none()
                && !run.is_live()
                && thread::available_parallelism().is_ok_and(|count| count.get() > 1),
            readers: fit(Field::Readers, run.source.readers.0, MAX_READERS)?,
            seed: run.meter.seed.map_or(0, |seed| seed.0),
            initiator: run.flow.initiator,
            decapsulate: run.flow.decapsulate,
            icmp_ports: run.flow.icmp_ports,
            telemetry: run.flow.telemetry(),
            reassemble_flows: run.flow.reassemble.then(ReassemblyConfig::default),
            ..Self::default()
        };
        Ok(if run.goes_on() { config.live() } else { config })
    }
}

/// Checks and converts a number, which must be at least 1.
fn fit<T: TryFrom<u64>>(field: Field, value: u64, high: u64) -> Result<T, ConfigError> {
    range(field, value, 1, high)?;
    let too_large = |_| ConfigError::OutOfRange {
        field,
        low: 1,
        high,
        value,
    };
    T::try_from(value).map_err(too_large)
}

impl PipelineConfig {
    /// Adapts the configuration to a live source, whose records are needed promptly.
    #[must_use]
    pub fn live(self) -> Self {
        Self {
            sweep_ns: self.max_age_ns,
            prompt: true,
            ..self
        }
    }

    /// Whether shards have threads of their own.
    pub(crate) const fn has_shard_threads(&self) -> bool {
        self.threads > 1 || self.meters_apart
    }

    /// Checks the numbers and computes the layout of records.
    ///
    /// # Errors
    /// The first invalid setting. If it is a number out of range, with that range.
    pub fn compile(&self) -> Result<Layout, ConfigError> {
        let least = u64::from(self.sizing != Sizing::Off);
        range(
            Field::MicroflowSlots,
            u64::from(self.sizing.slots()),
            least,
            MAX_SLOTS,
        )?;
        range(Field::MaxFlows, self.max_flows as u64, 1, MAX_FLOWS)?;
        range(Field::Threads, self.threads as u64, 1, MAX_THREADS)?;
        range(Field::Readers, self.readers as u64, 1, MAX_READERS)?;
        self.check_readers()?;
        let Timeouts {
            idle_ns,
            active_ns,
            linger_ns,
            align_ns,
        } = self.timeouts;
        let times = [
            (Field::IdleTimeout, idle_ns.unwrap_or(1), 1),
            (Field::ActiveTimeout, active_ns.unwrap_or(1), 1),
            (Field::Linger, linger_ns.unwrap_or(0), 0),
            (Field::Align, align_ns.unwrap_or(1), 1),
        ];
        for (field, ns, least) in times {
            range(field, ns, least, MAX_TIMEOUT_NS)?;
        }
        let layout = Layout::compile(&self.definition, self.biflow)
            .map_err(|error| ConfigError::Definition(error.to_string()))?;
        Ok(layout.with_initiator(self.initiator))
    }

    /// Whether INT reports are metered as the packets that they report.
    fn reads_reports(&self) -> bool {
        let wants_telemetry = TELEMETRY_INPUTS.intersects(self.definition.inputs());
        wants_telemetry && self.telemetry.int_report_port.is_some()
    }

    /// Packets are distributed to readers by their outermost pair of addresses, so all packets of a
    /// flow must have the same pair.
    fn check_readers(&self) -> Result<(), ConfigError> {
        let has = |field| self.definition.key.contains(&field);
        let both = has(KeyField::SourceAddress) && has(KeyField::DestinationAddress);
        let separation = match () {
            () if self.readers == 1 => return Ok(()),
            () if !self.decapsulate.is_empty() => Separation::Tunnels,
            () if self.reads_reports() => Separation::Reports,
            () if !both => Separation::Key,
            () => return Ok(()),
        };
        Err(ConfigError::Readers {
            readers: self.readers,
            separation,
        })
    }

    /// The maximum memory of the tables. `layout` is that of the records in memory.
    #[must_use]
    pub fn sizes(&self, layout: &Layout) -> RunSizes {
        crate::state_words::with_state_words!(layout.state_words(), N => self.sizes_of::<N>(layout))
    }

    fn sizes_of<const N: usize>(&self, layout: &Layout) -> RunSizes {
        let (shards, flows) = (self.shards(), self.flows_a_shard());
        let engines = Engines::of(self);
        let (engine, cache) = match layout.key_widths() {
            KeyWidths::ByFamily => (
                engines.size_bytes::<WORDS_V4, N>(shards)
                    + engines.size_bytes::<WORDS_V6, N>(shards),
                FlowCache::<WORDS_V4, N>::max_size_bytes(flows)
                    + FlowCache::<WORDS_V6, N>::max_size_bytes(flows),
            ),
            KeyWidths::Wide => (
                engines.size_bytes::<WORDS_WIDE, N>(shards),
                FlowCache::<WORDS_WIDE, N>::max_size_bytes(flows),
            ),
        };
        RunSizes {
            microflow_table_bytes: engine * self.shards(),
            flow_cache_max_bytes: match self.probe {
                Some(_) => 0,
                None => cache * self.shards(),
            },
        }
    }

    /// The number of shards of all readers.
    pub(crate) const fn shards(&self) -> usize {
        self.threads * self.readers
    }

    /// The most open flows of one shard.
    pub(crate) fn flows_a_shard(&self) -> usize {
        self.max_flows.div_ceil(self.shards())
    }
}

fn range(field: Field, value: u64, low: u64, high: u64) -> Result<(), ConfigError> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(ConfigError::OutOfRange {
        field,
        low,
        high,
        value,
    })
}

/// Memory of the tables of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunSizes {
    /// Microflow tables of all shards, allocated at the start.
    pub microflow_table_bytes: usize,
    /// Full flow caches of all shards. They start small.
    pub flow_cache_max_bytes: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use turboflow_packet::Tunnel;

    #[test]
    fn several_readers_need_flows_of_one_pair_of_addresses() {
        let with = |change: fn(&mut PipelineConfig)| {
            let mut config = PipelineConfig {
                readers: 2,
                ..PipelineConfig::default()
            };
            change(&mut config);
            config
                .compile()
                .map(drop)
                .map_err(|error| error.to_string())
        };
        assert_eq!(with(|_| ()), Ok(()));
        assert_eq!(with(|config| config.biflow = true), Ok(()));
        let enters = with(|config| config.decapsulate = config.decapsulate.with(Tunnel::Gre));
        assert!(enters.unwrap_err().contains("flow.decapsulate"));
        let by_source = with(|config| config.definition.key.retain(is_no_destination));
        assert!(by_source.unwrap_err().contains("destination_address"));
        assert!(with(|config| config.readers = 65).is_err());
    }

    fn is_no_destination(field: &KeyField) -> bool {
        *field != KeyField::DestinationAddress
    }
}
