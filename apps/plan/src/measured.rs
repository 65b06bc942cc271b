// SPDX-License-Identifier: Apache-2.0
//! What was measured on packets that really came.

use serde::Serialize;

use crate::{Impossible, ShareCurve, Traffic, worst_case_microflows_per_second};

/// What one table would have handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MeasuredTable {
    /// Its slots.
    pub slots: u32,
    /// Microflow records that were begun: those evicted, and those still in the table at the end.
    pub microflows: u64,
    /// Records that another flow evicted.
    pub evictions: u64,
}

/// What of the packets has IPv6 addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ipv6 {
    /// Packets.
    pub packets: u64,
    /// Flow records of them.
    pub flow_records: u64,
}

/// Counts of one interval of time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Interval {
    /// When it began, in nanoseconds since 1970.
    pub start_ns: u64,
    /// Packets in it.
    pub packets: u64,
    /// Flows that began in it.
    pub flows_opened: u64,
    /// Microflow records begun in it, by table as in [`Measured::tables`].
    pub microflows: Vec<u64>,
}

/// What a [`Simulation`](crate::Simulation) saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Packets.
    pub packets: u64,
    /// Their bytes on the wire.
    pub wire_bytes: u64,
    /// Those with IPv6 addresses.
    pub ipv6: Ipv6,
    /// Time between the first packet and the last, without silences longer than the idle timeout and
    /// without steps back.
    pub observed_ns: u64,
    /// Flows that began: a flow that is silent for longer than the idle timeout begins again.
    pub flows_opened: u64,
    /// The most flows that had a packet within the idle timeout, at any time.
    ///
    /// This is the `â` that makes Equation 2 a bound: between two packets of a flow, no more than so
    /// many others can have taken its slot. Flows active within a second, say, would not do, for flows
    /// pause for longer. It counts a flow for up to a 64th of the timeout too long.
    pub peak_active_flows: u64,
    /// Flow records of them: one for each flow that began, and one more whenever it has gone on for
    /// longer than the active timeout.
    pub flow_records: u64,
    /// Packets of flows for which there was no room: each counted as a flow that began, none as active.
    pub untracked_packets: u64,
    /// How often time was set back by more than the idle timeout, as between unrelated captures.
    pub clock_steps: u64,
    /// The tables, by size.
    pub tables: Vec<MeasuredTable>,
    /// Length of the intervals.
    pub interval_ns: u64,
    /// Counts by interval; those without packets are left out.
    pub intervals: Vec<Interval>,
}

impl Measured {
    /// The time observed, in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.observed_ns as f64 / 1e9
    }

    /// The traffic, as Equation 2 asks for it: means over the whole time, and the peak of active flows.
    ///
    /// # Errors
    /// Where rates cannot be told: no two packets at different times.
    pub fn traffic(&self) -> Result<Traffic, Impossible> {
        if self.observed_ns == 0 {
            let mend = "two packets at different times are needed to tell a rate: \
                        give a longer capture, or watch longer";
            return Err(Impossible::new("observed_seconds", 0.0, mend));
        }
        Ok(Traffic {
            packets_per_second: self.packets as f64 / self.seconds(),
            flows_per_second: self.flows_opened as f64 / self.seconds(),
            active_flows: self.peak_active_flows.max(1) as f64,
            mean_packet_bytes: Some(self.wire_bytes as f64 / self.packets as f64),
        })
    }

    /// The share of IPv6 that is planned with: the larger of its shares of packets and of flow records.
    /// Where tables are small, its share of microflow records may be larger still.
    #[must_use]
    pub fn ipv6_share(&self) -> f64 {
        let share = |part: u64, all: u64| part as f64 / all.max(1) as f64;
        let of_packets = share(self.ipv6.packets, self.packets);
        of_packets.max(share(self.ipv6.flow_records, self.flow_records))
    }

    /// Packets a second in the interval that had the most: what the mean does not tell. Never below
    /// the mean, which it is where nothing as long as an interval was observed.
    #[must_use]
    pub fn busiest_packets_per_second(&self) -> f64 {
        let most = self.intervals.iter().map(|interval| interval.packets).max();
        let busiest = most.unwrap_or_default() as f64 * 1e9 / self.interval_ns as f64;
        if self.observed_ns == 0 {
            return busiest;
        }
        busiest.max(self.packets as f64 / self.seconds())
    }

    /// Microflow records for each packet, by size of the table (TurboFlow, Figure 11).
    ///
    /// # Panics
    /// When no table was simulated, or no packet came.
    #[must_use]
    pub fn curve(&self) -> ShareCurve {
        let packets = self.packets as f64;
        let tables = self.tables.iter();
        ShareCurve::new(
            tables.map(|table| (u64::from(table.slots), table.microflows as f64 / packets)),
        )
    }

    /// The worst case by Equation 2, divided by what was measured, for one table: above 1 where the
    /// bound held (TurboFlow, Figure 14). With means of the same traffic for both.
    #[must_use]
    pub fn worst_case_to_measured(&self, table: &MeasuredTable) -> f64 {
        // Time cancels out.
        let counts = Traffic {
            packets_per_second: self.packets as f64,
            flows_per_second: self.flows_opened as f64,
            active_flows: self.peak_active_flows.max(1) as f64,
            mean_packet_bytes: None,
        };
        let worst = worst_case_microflows_per_second(&counts, table.slots.into());
        worst / table.microflows as f64
    }
}
