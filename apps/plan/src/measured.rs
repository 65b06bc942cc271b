// SPDX-License-Identifier: Apache-2.0
//! Measurements on packets of a capture or an interface.

use serde::Serialize;

use crate::{Impossible, ShareCurve, Traffic, worst_case_microflows_per_second};

/// The results for one simulated table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MeasuredTable {
    /// Number of slots.
    pub slots: u32,
    /// Microflow records begun: those evicted, and those still in the table at the end.
    pub microflows: u64,
    /// Records evicted by another flow.
    pub evictions: u64,
}

/// Counts of IPv6 traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ipv6 {
    /// Packets.
    pub packets: u64,
    /// Flow records.
    pub flow_records: u64,
}

/// Counts for one time interval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Interval {
    /// Start of the interval, in nanoseconds since 1970.
    pub start_ns: u64,
    /// Packets in it.
    pub packets: u64,
    /// Flows that began in it.
    pub flows_opened: u64,
    /// Microflow records begun in it, one count per table of [`Measured::tables`].
    pub microflows: Vec<u64>,
}

/// The results of a [`Simulation`](crate::Simulation).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Packets.
    pub packets: u64,
    /// Bytes on the wire.
    pub wire_bytes: u64,
    /// Counts of IPv6 traffic.
    pub ipv6: Ipv6,
    /// Time between the first and the last packet, in nanoseconds, without gaps longer than the
    /// idle timeout and without backward clock steps.
    pub observed_ns: u64,
    /// Sum of the gaps longer than the idle timeout, in nanoseconds. No rate includes them.
    pub silent_ns: u64,
    /// Flows begun. A flow that is silent for longer than the idle timeout begins again.
    pub flows_opened: u64,
    /// Peak number of flows with a packet within the idle timeout.
    ///
    /// This is the `â` that makes Equation 2 a bound: between two packets of a flow, at most this
    /// many other flows can have taken its slot. Flows active within a second, for example, would
    /// be too few, because flows pause for longer. A flow is counted for up to a 64th of the
    /// timeout too long.
    pub peak_active_flows: u64,
    /// Flow records: one for each flow begun, and another each time a flow exceeds the active
    /// timeout.
    pub flow_records: u64,
    /// Packets of flows beyond the limit on tracked flows. Each counts as a flow begun, none as an
    /// active flow.
    pub untracked_packets: u64,
    /// Number of times that the clock was set back by more than the idle timeout, as happens
    /// between unrelated captures.
    pub clock_steps: u64,
    /// The tables, ordered by size.
    pub tables: Vec<MeasuredTable>,
    /// Length of the intervals, in nanoseconds.
    pub interval_ns: u64,
    /// Counts by interval, without empty intervals.
    pub intervals: Vec<Interval>,
}

impl Measured {
    /// The observed time, in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.observed_ns as f64 / 1e9
    }

    /// The traffic as input of Equation 2: means over the whole time, and the peak of active flows.
    ///
    /// # Errors
    /// If no rate can be computed, because no two packets have different times.
    pub fn traffic(&self) -> Result<Traffic, Impossible> {
        if self.observed_ns == 0 {
            let mend = "two packets at different times are needed to compute a rate: \
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

    /// The share of IPv6 for the plan: its share of packets or of flow records, whichever is
    /// larger. With small tables, its share of microflow records may be larger still.
    #[must_use]
    pub fn ipv6_share(&self) -> f64 {
        let share = |part: u64, all: u64| part as f64 / all.max(1) as f64;
        let of_packets = share(self.ipv6.packets, self.packets);
        of_packets.max(share(self.ipv6.flow_records, self.flow_records))
    }

    /// Packets per second in the busiest interval. At least the mean, and equal to the mean if the
    /// observed time is shorter than an interval.
    #[must_use]
    pub fn busiest_packets_per_second(&self) -> f64 {
        let most = self.intervals.iter().map(|interval| interval.packets).max();
        let busiest = most.unwrap_or_default() as f64 * 1e9 / self.interval_ns as f64;
        if self.observed_ns == 0 {
            return busiest;
        }
        busiest.max(self.packets as f64 / self.seconds())
    }

    /// Microflow records per packet, by size of the table (TurboFlow, Figure 11).
    ///
    /// # Panics
    /// If no table was simulated, or there was no packet.
    #[must_use]
    pub fn curve(&self) -> ShareCurve {
        let packets = self.packets as f64;
        let tables = self.tables.iter();
        ShareCurve::new(
            tables.map(|table| (u64::from(table.slots), table.microflows as f64 / packets)),
        )
    }

    /// The worst case of Equation 2 divided by the measurement, for one table: above 1 if the bound
    /// held (TurboFlow, Figure 14). Both use the means of the measured traffic.
    #[must_use]
    pub fn worst_case_to_measured(&self, table: &MeasuredTable) -> f64 {
        // Rates are not needed, because the time cancels out.
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
