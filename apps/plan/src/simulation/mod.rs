// SPDX-License-Identifier: Apache-2.0
//! One pass over the hashes and times of packets. It counts flows, and the microflow records that
//! tables of several sizes would evict.

mod flows;
mod intervals;
mod tables;

use turboflow_merge::KeyHash;

use crate::impossible::Impossible;
use crate::measured::{Interval, Ipv6, Measured, MeasuredTable};
use flows::Flows;
use intervals::Intervals;
use tables::Table;

pub use intervals::MAX_INTERVALS;

/// Maximum number of simulated tables.
pub const MAX_TABLES: usize = 64;

/// Configuration of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulationConfig {
    /// Slots of each table.
    pub table_slots: Vec<u32>,
    /// A flow ends after this long without packets.
    pub idle_timeout_ns: u64,
    /// Maximum duration of a flow record; a longer flow has several.
    pub active_timeout_ns: u64,
    /// Length of the intervals for counts.
    pub interval_ns: u64,
    /// Maximum number of tracked flows, of 32 to 64 bytes each.
    pub max_flows: usize,
}

impl Default for SimulationConfig {
    /// Tables of 1 to 2^20 slots; idle timeout 30 s, active timeout 120 s; intervals of half a
    /// second (TurboFlow, Figure 13); ten million flows.
    fn default() -> Self {
        Self {
            table_slots: (0..=20).map(|power| 1 << power).collect(),
            idle_timeout_ns: 30_000_000_000,
            active_timeout_ns: 120_000_000_000,
            interval_ns: 500_000_000,
            max_flows: 10_000_000,
        }
    }
}

/// The properties of a packet that the simulation needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// Hash of its flow key.
    pub hash: KeyHash,
    /// Nanoseconds since 1970.
    pub timestamp_ns: u64,
    /// Bytes on the wire.
    pub wire_bytes: u32,
    /// Whether its flow has IPv6 addresses, whose records are larger.
    pub is_ipv6: bool,
}

/// Simulates tables and flows.
///
/// The tables are the paper's: direct-mapped, and a record is evicted only when another flow takes
/// its slot. The software engine also empties its table every second, and bypasses the table when
/// that is faster; both depend on more than hashes.
pub struct Simulation {
    tables: Vec<Table>,
    flows: Flows,
    intervals: Intervals,
    open: Option<Interval>,
    /// Counts at the start of the open interval.
    before: Interval,
    idle_timeout_ns: u64,
    packets: u64,
    wire_bytes: u64,
    ipv6: Ipv6,
    hashes: Vec<KeyHash>,
}

impl Simulation {
    /// A simulation that has observed no packet.
    ///
    /// # Errors
    /// If a table has no slots, there are more than [`MAX_TABLES`] tables, or a time or the number
    /// of flows is 0.
    pub fn new(config: &SimulationConfig) -> Result<Self, Impossible> {
        for (argument, value) in [
            ("idle_timeout_ns", config.idle_timeout_ns),
            ("interval_ns", config.interval_ns),
            ("max_flows", config.max_flows as u64),
        ] {
            if value == 0 {
                return Err(Impossible::new(argument, 0.0, "at least 1 is needed"));
            }
        }
        if config.table_slots.contains(&0) {
            return Err(Impossible::new(
                "table_slots",
                0.0,
                "a table has at least one slot",
            ));
        }
        let count = config.table_slots.len();
        if count > MAX_TABLES {
            let mend = format!("at most {MAX_TABLES} tables are simulated at once");
            return Err(Impossible::new("table_slots", count as f64, mend));
        }
        let mut table_slots = config.table_slots.clone();
        table_slots.sort_unstable();
        table_slots.dedup();
        Ok(Self {
            before: Interval {
                microflows: vec![0; table_slots.len()],
                ..Interval::default()
            },
            tables: table_slots.into_iter().map(Table::new).collect(),
            flows: Flows::new(config),
            intervals: Intervals::new(config.interval_ns),
            open: None,
            idle_timeout_ns: config.idle_timeout_ns,
            packets: 0,
            wire_bytes: 0,
            ipv6: Ipv6::default(),
            hashes: Vec::new(),
        })
    }

    /// Observes packets, in order of arrival.
    pub fn observe(&mut self, packets: &[Observed]) {
        let mut left = packets;
        while let Some(first) = left.first() {
            let open_ns = self.open.as_ref().map(|open| open.start_ns);
            self.intervals.begin(first.timestamp_ns);
            let start_ns = match open_ns {
                Some(start_ns) if self.is_of_interval(start_ns, first) => start_ns,
                _ => self.open_interval(first.timestamp_ns),
            };
            let is_of_it = |packet: &&Observed| self.is_of_interval(start_ns, packet);
            let count = left.iter().take_while(is_of_it).count();
            let (now, later) = left.split_at(count);
            self.observe_interval(now);
            left = later;
        }
    }

    /// Late packets belong to the open interval, unless the clock was set back.
    const fn is_of_interval(&self, start_ns: u64, packet: &Observed) -> bool {
        let timestamp_ns = packet.timestamp_ns;
        self.intervals.start_of(timestamp_ns) <= start_ns
            && timestamp_ns.saturating_add(self.idle_timeout_ns) >= start_ns
    }

    fn open_interval(&mut self, timestamp_ns: u64) -> u64 {
        self.close_interval();
        let start_ns = self.intervals.start_of(timestamp_ns);
        self.open = Some(Interval {
            start_ns,
            ..Interval::default()
        });
        start_ns
    }

    /// Processes the tables one by one, so that the current one stays in the cache.
    fn observe_interval(&mut self, packets: &[Observed]) {
        self.hashes.clear();
        self.hashes.extend(packets.iter().map(|packet| packet.hash));
        for table in &mut self.tables {
            table.observe(&self.hashes);
        }
        for packet in packets {
            let records_before = self.flows.records;
            self.flows.observe(packet.hash, packet.timestamp_ns);
            self.wire_bytes += u64::from(packet.wire_bytes);
            if packet.is_ipv6 {
                self.ipv6.packets += 1;
                self.ipv6.flow_records += self.flows.records - records_before;
            }
        }
        self.packets += packets.len() as u64;
    }

    fn close_interval(&mut self) {
        let Some(mut interval) = self.open.take() else {
            return;
        };
        let before = &mut self.before;
        let since = |now: u64, before: &mut u64| now - std::mem::replace(before, now);
        interval.packets = since(self.packets, &mut before.packets);
        interval.flows_opened = since(self.flows.opened, &mut before.flows_opened);
        let tables = self.tables.iter().zip(&mut before.microflows);
        interval.microflows = tables
            .map(|(table, before)| since(table.started, before))
            .collect();
        self.intervals.close(interval);
    }

    /// The results.
    #[must_use]
    pub fn finish(mut self) -> Measured {
        self.close_interval();
        let (interval_ns, intervals) = self.intervals.finish();
        let tables = self.tables.iter().map(|table| MeasuredTable {
            slots: table.slots(),
            microflows: table.started,
            evictions: table.evicted,
        });
        Measured {
            packets: self.packets,
            wire_bytes: self.wire_bytes,
            ipv6: self.ipv6,
            observed_ns: self.flows.observed_ns,
            silent_ns: self.flows.silent_ns,
            flows_opened: self.flows.opened,
            peak_active_flows: self.flows.peak_active,
            flow_records: self.flows.records,
            untracked_packets: self.flows.untracked_packets,
            clock_steps: self.flows.clock_steps,
            tables: tables.collect(),
            interval_ns,
            intervals,
        }
    }
}

#[cfg(test)]
mod tests;
