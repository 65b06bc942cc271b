// SPDX-License-Identifier: Apache-2.0
//! How a run is set up, and what it costs in memory.

use turboflow_aggregate::{FlowCache, Timeouts};
use turboflow_engine::PacketEngines;
use turboflow_engine_software::{Sizing, SoftwareEngines};
use turboflow_merge::{KeyWidths, Layout, WORDS_WIDE};
use turboflow_packet::{ReassemblyConfig, TunnelSet};
use turboflow_record::{Definition, KeyField, WORDS_V4, WORDS_V6};

/// Everything that decides which flow records a capture gives, and how.
#[derive(Clone, Debug)]
pub struct PipelineConfig {
    /// What a flow record holds.
    pub definition: Definition,
    /// Whether the two directions of a conversation are one record.
    pub biflow: bool,
    /// When flows end.
    pub timeouts: Timeouts,
    /// The longest a packet stays in the engine, in nanoseconds of the clock. Default 1 s.
    pub max_age_ns: u64,
    /// The microflow table.
    pub sizing: Sizing,
    /// The most flows open at once, over all threads.
    pub max_flows: usize,
    /// Threads that meter (shards) for each reader; more than one adds a thread that reads and
    /// parses.
    pub threads: usize,
    /// Whether a single shard has a thread of its own too, beside the one that reads and parses:
    /// faster where there is a processor for each, dearer where there is not.
    pub meters_apart: bool,
    /// Readers of interfaces, each with shards of its own. Files have one.
    pub readers: usize,
    /// Seed of the hash function.
    pub seed: u64,
    /// Tunnels to enter.
    pub decapsulate: TunnelSet,
    /// ICMP type and code as destination port.
    pub icmp_ports: bool,
    /// Whether later fragments join the flow of the first.
    pub reassemble_flows: Option<ReassemblyConfig>,
    /// In how much time of the clock an expired flow leaves at the latest, in nanoseconds.
    pub sweep_ns: u64,
    /// Whether finished records go on at the end of every cell, rather than when there are many.
    pub prompt: bool,
}

impl Default for PipelineConfig {
    fn default() -> Self {
        Self {
            definition: Definition::default(),
            biflow: false,
            timeouts: Timeouts::default(),
            max_age_ns: 1_000_000_000,
            sizing: Sizing::Adaptive,
            max_flows: 10_000_000,
            threads: 1,
            meters_apart: false,
            readers: 1,
            seed: 0,
            decapsulate: TunnelSet::default(),
            icmp_ports: false,
            reassemble_flows: None,
            // In files nobody waits for a record; a rare sweep leaves the caches to the packets.
            sweep_ns: 10_000_000_000,
            prompt: false,
        }
    }
}

/// What is wrong with a configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The definition asks for something capture files do not have or records cannot hold.
    #[error("{0}")]
    Definition(String),
    /// Several readers, and packets of a flow that may come to different ones.
    #[error("--readers {readers} does not go with {what}; leave one of them out")]
    Readers {
        /// How many.
        readers: usize,
        /// What separates packets of a flow.
        what: &'static str,
    },
    /// The system refuses a thread.
    #[error(
        "cannot start a thread for {what}: {source}; raise the limit of processes or memory (ulimit -u, pids.max)"
    )]
    Thread {
        /// What it would do.
        what: &'static str,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A number out of its range.
    #[error("{what} must be from {low} to {high}, not {value}")]
    OutOfRange {
        /// Which option.
        what: &'static str,
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
/// Most readers, as many as an interface has rings at most.
const MAX_READERS: u64 = 64;
/// Longest timeout: about 292 years.
const MAX_TIMEOUT_NS: u64 = i64::MAX as u64;

impl PipelineConfig {
    /// The same for packets that arrive now: somebody waits for their records.
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

    /// Checks the numbers and works out the layout of records.
    ///
    /// # Errors
    /// The first thing that is wrong, with its range.
    pub fn compile(&self) -> Result<Layout, ConfigError> {
        let least = u64::from(self.sizing != Sizing::Off);
        range(
            "--microflow-slots",
            u64::from(self.sizing.slots()),
            least,
            MAX_SLOTS,
        )?;
        range("--max-flows", self.max_flows as u64, 1, MAX_FLOWS)?;
        range("--threads", self.threads as u64, 1, MAX_THREADS)?;
        range("--readers", self.readers as u64, 1, MAX_READERS)?;
        self.check_readers()?;
        let Timeouts {
            idle_ns,
            active_ns,
            linger_ns,
        } = self.timeouts;
        range(
            "--idle-timeout (ns)",
            idle_ns.unwrap_or(1),
            1,
            MAX_TIMEOUT_NS,
        )?;
        range(
            "--active-timeout (ns)",
            active_ns.unwrap_or(1),
            1,
            MAX_TIMEOUT_NS,
        )?;
        range("--linger (ns)", linger_ns.unwrap_or(0), 0, MAX_TIMEOUT_NS)?;
        Layout::compile(&self.definition, self.biflow)
            .map_err(|error| ConfigError::Definition(error.to_string()))
    }

    /// Packets are dealt out to readers by their outermost pair of addresses: a flow must have one.
    fn check_readers(&self) -> Result<(), ConfigError> {
        let has = |field| self.definition.key.contains(&field);
        let both = has(KeyField::SourceAddress) && has(KeyField::DestinationAddress);
        let what = match () {
            () if self.readers == 1 => return Ok(()),
            () if !self.decapsulate.is_empty() => {
                "--decapsulate: a flow may come through tunnels of several address pairs"
            }
            () if !both => "a key without source_address and destination_address",
            () => return Ok(()),
        };
        Err(ConfigError::Readers {
            readers: self.readers,
            what,
        })
    }

    /// The most memory that tables of this configuration take.
    #[must_use]
    pub fn sizes(&self, layout: &Layout) -> RunSizes {
        crate::meter::with_state_words!(layout.state_words(), N => self.sizes_of::<N>(layout))
    }

    fn sizes_of<const N: usize>(&self, layout: &Layout) -> RunSizes {
        let (shards, flows) = (self.shards(), self.flows_a_shard());
        let engines = SoftwareEngines {
            sizing: self.sizing,
        };
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
            flow_cache_max_bytes: cache * self.shards(),
        }
    }

    /// Shards of all readers.
    pub(crate) const fn shards(&self) -> usize {
        self.threads * self.readers
    }

    /// Open flows of one shard.
    pub(crate) fn flows_a_shard(&self) -> usize {
        self.max_flows.div_ceil(self.shards())
    }
}

fn range(what: &'static str, value: u64, low: u64, high: u64) -> Result<(), ConfigError> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(ConfigError::OutOfRange {
        what,
        low,
        high,
        value,
    })
}

/// Memory of the tables of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunSizes {
    /// Microflow tables of all shards, taken at once.
    pub microflow_table_bytes: usize,
    /// Flow caches of all shards when full; they start small.
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
        assert!(enters.unwrap_err().contains("--decapsulate"));
        let by_source = with(|config| config.definition.key.retain(is_no_destination));
        assert!(by_source.unwrap_err().contains("destination_address"));
        assert!(with(|config| config.readers = 65).is_err());
    }

    fn is_no_destination(field: &KeyField) -> bool {
        *field != KeyField::DestinationAddress
    }
}
