// SPDX-License-Identifier: Apache-2.0
//! Assumptions of a plan: every number that is neither traffic nor a target. Each has a name, a
//! default and a source, and can be changed.

use std::ops::{Bound, RangeBounds};

use serde::Serialize;

use crate::Impossible;
use crate::impossible::{ABOVE_ZERO, LEAST, MOST, ZERO_OR_MORE};

/// An assumption, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assumption {
    /// Maximum duration of a flow record; a longer flow has several.
    ActiveTimeoutSeconds,
    /// Microflow records per second that a core merges.
    AggregatorRecordsPerSecondPerCore,
    /// Flow records per second that a core analyses.
    AnalysisRecordsPerSecondPerCore,
    /// Throughput of the bus between forwarding engine and processor.
    BusBitsPerSecond,
    /// Flow records per second that a core of a server collects and copies.
    CollectorRecordsPerSecondPerCore,
    /// The share of a core's time that a plan may use.
    CoreUtilization,
    /// Headers of an export message: IPv4, UDP, IPFIX, set.
    ExportHeaderBytes,
    /// Maximum size of an export message, including all headers.
    ExportMessageBytes,
    /// Size of a flow record in an export message.
    ExportRecordBytes,
    /// Core time to inspect a packet, in nanoseconds.
    InspectionNsPerPacket,
    /// Packets of a flow that are inspected before its application is decided.
    InspectionPacketsPerFlow,
    /// The share of traffic with IPv6 addresses, whose records are larger.
    Ipv6Share,
    /// Updates per second that a core makes to a key-value store.
    KeyValueUpdatesPerSecondPerCore,
    /// Capacity of one link.
    LinkBitsPerSecond,
    /// Packets per second that a core meters without another forwarding engine.
    MeterPacketsPerSecondPerCore,
    /// Size of a microflow record, in the table and on the bus.
    MicroflowRecordBytes,
    /// Core time to offload a flow, in nanoseconds: to add and remove its row, and to read its
    /// counters.
    OffloadNsPerFlow,
    /// Number of cores of a server.
    ServerCores,
    /// Price of a server.
    ServerCostUsd,
    /// Power of a server under full load.
    ServerPowerWatts,
    /// Capacity of the switch whose processor runs the aggregator.
    SwitchBitsPerSecond,
    /// Price of switches per Tb/s.
    SwitchCostUsdPerTerabit,
    /// Power of the switch's processor under full load.
    SwitchProcessorPowerWatts,
    /// Power of switches per Tb/s.
    SwitchPowerWattsPerTerabit,
}

use Assumption as A;

/// Properties of an assumption.
struct Entry {
    assumption: Assumption,
    name: &'static str,
    default: f64,
    source: &'static str,
}

const fn entry(
    assumption: Assumption,
    name: &'static str,
    default: f64,
    source: &'static str,
) -> Entry {
    Entry {
        assumption,
        name,
        default,
        source,
    }
}

const ENTRIES: [Entry; 24] = [
    entry(
        A::ActiveTimeoutSeconds,
        "active_timeout_seconds",
        120.0,
        "the default active timeout",
    ),
    entry(
        A::AggregatorRecordsPerSecondPerCore,
        "aggregator_records_per_second_per_core",
        27.2e6,
        "the slowest row of `turboflow-lab bench aggregate` in docs/lab/2026-11-21.md (20M flows, uniform)",
    ),
    entry(
        A::AnalysisRecordsPerSecondPerCore,
        "analysis_records_per_second_per_core",
        4.25e6,
        "TurboFlow, section 6.6: a traffic classifier",
    ),
    entry(
        A::BusBitsPerSecond,
        "bus_bits_per_second",
        31.5e9,
        "PCIe 3.0 x4, of Tofino and NFP-4000 (TurboFlow, section 6.3): 4 lanes of 8 GT/s, 128b/130b",
    ),
    entry(
        A::CollectorRecordsPerSecondPerCore,
        "collector_records_per_second_per_core",
        50e6,
        "TurboFlow, section 6.6: collecting flow records and copying them",
    ),
    entry(
        A::CoreUtilization,
        "core_utilization",
        0.8,
        "ours: a fifth is left for peaks between averages",
    ),
    entry(
        A::ExportHeaderBytes,
        "export_header_bytes",
        48.0,
        "IPv4 20, UDP 8, IPFIX message 16 and set 4 (RFC 7011, section 3)",
    ),
    entry(
        A::ExportMessageBytes,
        "export_message_bytes",
        1_428.0,
        "the default limit of an export message, 1400, with IPv4 and UDP",
    ),
    entry(
        A::ExportRecordBytes,
        "export_record_bytes",
        58.0,
        "the default definition in IPFIX: 58 with IPv4, 82 with IPv6, by ipv6_share; the paper's record 24",
    ),
    entry(
        A::InspectionNsPerPacket,
        "inspection_ns_per_packet",
        1_550.0,
        "bench/runs/2026-11-27-intel-xeon-inspection, els0r__default: 6.05 us a flow of 3.9 packets",
    ),
    entry(
        A::InspectionPacketsPerFlow,
        "inspection_packets_per_flow",
        4.0,
        "the median of TCP; 3.9 in the run of inspection_ns_per_packet; 9 to 23 for random payload in nDPI",
    ),
    entry(
        A::Ipv6Share,
        "ipv6_share",
        0.0,
        "not known for stated rates; measured where packets are read",
    ),
    entry(
        A::KeyValueUpdatesPerSecondPerCore,
        "key_value_updates_per_second_per_core",
        625e3,
        "TurboFlow, section 6.6: Redis, with one update for each flow in a server-based system",
    ),
    entry(
        A::LinkBitsPerSecond,
        "link_bits_per_second",
        10e9,
        "TurboFlow, Table 6: an Internet router link",
    ),
    entry(
        A::MeterPacketsPerSecondPerCore,
        "meter_packets_per_second_per_core",
        14e6,
        "the slowest row of `turboflow-lab bench pipeline` in docs/lab/2026-11-21.md (20M flows, uniform)",
    ),
    entry(
        A::MicroflowRecordBytes,
        "microflow_record_bytes",
        64.0,
        "the default definition: 64 with IPv4, 128 with IPv6, by ipv6_share; the paper's switch 24",
    ),
    entry(
        A::OffloadNsPerFlow,
        "offload_ns_per_flow",
        2_000.0,
        "ours: a limit for adding and removing a flow's row and reading its counters",
    ),
    entry(
        A::ServerCores,
        "server_cores",
        8.0,
        "TurboFlow, section 6.6: Intel Silver 4110",
    ),
    entry(
        A::ServerCostUsd,
        "server_cost_usd",
        3_500.0,
        "TurboFlow, section 6.6: approximately, in 2017",
    ),
    entry(
        A::ServerPowerWatts,
        "server_power_watts",
        600.0,
        "TurboFlow, section 6.6: under full load",
    ),
    entry(
        A::SwitchBitsPerSecond,
        "switch_bits_per_second",
        3.2e12,
        "TurboFlow, section 6.6: Wedge 100BF-32X, 32 times 100 Gb/s",
    ),
    entry(
        A::SwitchCostUsdPerTerabit,
        "switch_cost_usd_per_terabit",
        3_600.0,
        "TurboFlow, section 6.6: Wedge 100 series",
    ),
    entry(
        A::SwitchProcessorPowerWatts,
        "switch_processor_power_watts",
        25.0,
        "TurboFlow, section 6.6: the whole processor of a Wedge 100BF-32X",
    ),
    entry(
        A::SwitchPowerWattsPerTerabit,
        "switch_power_watts_per_terabit",
        150.0,
        "TurboFlow, section 6.6: Wedge 100 series, typical",
    ),
];

impl Assumption {
    /// All assumptions, ordered by name.
    pub fn all() -> impl Iterator<Item = Self> {
        ENTRIES.iter().map(|entry| entry.assumption)
    }

    /// The assumption with that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let entry = ENTRIES.iter().find(|entry| entry.name == name);
        entry.map(|entry| entry.assumption)
    }

    /// Its name, with its unit.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.entry().name
    }

    /// The default.
    #[must_use]
    pub const fn default_value(self) -> f64 {
        self.entry().default
    }

    /// Where the default comes from.
    #[must_use]
    pub const fn source(self) -> &'static str {
        self.entry().source
    }

    const fn entry(self) -> &'static Entry {
        &ENTRIES[self as usize]
    }

    /// Whether only plans of flow offload depend on it.
    #[must_use]
    pub const fn is_of_offload(self) -> bool {
        matches!(
            self,
            A::InspectionNsPerPacket | A::InspectionPacketsPerFlow | A::OffloadNsPerFlow
        )
    }

    /// The default for IPv6, if its records have another size.
    const fn of_ipv6(self) -> Option<f64> {
        match self {
            A::ExportRecordBytes => Some(82.0),
            A::MicroflowRecordBytes => Some(128.0),
            _ => None,
        }
    }

    /// The allowed values, as bounds and in words.
    const fn bounds(self) -> ((Bound<f64>, Bound<f64>), &'static str) {
        use Bound::{Excluded, Included};
        match self {
            A::CoreUtilization => (
                (Excluded(0.0), Included(1.0)),
                "a share above 0 and up to 1 is needed",
            ),
            A::Ipv6Share => (
                (Included(0.0), Included(1.0)),
                "a share from 0 to 1 is needed",
            ),
            A::ServerCostUsd
            | A::ServerPowerWatts
            | A::SwitchCostUsdPerTerabit
            | A::SwitchProcessorPowerWatts
            | A::SwitchPowerWattsPerTerabit
            | A::ExportHeaderBytes
            | A::InspectionNsPerPacket
            | A::OffloadNsPerFlow => ((Included(0.0), Included(MOST)), ZERO_OR_MORE),
            _ => ((Included(LEAST), Included(MOST)), ABOVE_ZERO),
        }
    }
}

/// An assumption and its value, for the answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Assumed {
    /// Its name, with its unit.
    pub name: &'static str,
    /// The value used for the answer.
    pub value: f64,
    /// Whether that is the default.
    pub is_default: bool,
    /// The source of the value.
    pub source: String,
}

/// A value for every assumption.
#[derive(Clone, Debug, PartialEq)]
pub struct Assumptions {
    values: [f64; ENTRIES.len()],
    /// The sources of values that are not the default.
    sources: [Option<String>; ENTRIES.len()],
}

impl Default for Assumptions {
    fn default() -> Self {
        Self {
            values: std::array::from_fn(|index| ENTRIES[index].default),
            sources: [const { None }; ENTRIES.len()],
        }
    }
}

impl Assumptions {
    /// The assumed value. Record sizes that were not set are averages of IPv4 and IPv6, weighted by
    /// the share of IPv6.
    #[must_use]
    pub fn get(&self, assumption: Assumption) -> f64 {
        let value = self.values[assumption as usize];
        match assumption.of_ipv6() {
            Some(of_ipv6) if self.is_default(assumption) => {
                value + self.get(A::Ipv6Share) * (of_ipv6 - value)
            }
            _ => value,
        }
    }

    /// Whether the value is the default, because none was set.
    #[must_use]
    pub const fn is_default(&self, assumption: Assumption) -> bool {
        self.sources[assumption as usize].is_none()
    }

    /// Sets a value; `source` says where it comes from.
    ///
    /// # Errors
    /// If the value is invalid: a share above 1, a negative price, not a number.
    pub fn set(
        &mut self,
        assumption: Assumption,
        value: f64,
        source: impl Into<String>,
    ) -> Result<(), Impossible> {
        let (bounds, mend) = assumption.bounds();
        if !value.is_finite() || !bounds.contains(&value) {
            return Err(Impossible::new(assumption.name(), value, mend));
        }
        self.values[assumption as usize] = value;
        self.sources[assumption as usize] = Some(source.into());
        Ok(())
    }

    /// Checks that the assumptions do not contradict each other.
    ///
    /// # Errors
    /// If an export message has no room for a record.
    pub fn check(&self) -> Result<(), Impossible> {
        let message = self.get(A::ExportMessageBytes);
        let needed = self.get(A::ExportHeaderBytes) + self.get(A::ExportRecordBytes);
        if message < needed {
            let mend = format!("the headers and one record already take {needed} bytes");
            return Err(Impossible::new(A::ExportMessageBytes.name(), message, mend));
        }
        Ok(())
    }

    /// All assumptions, for the answer.
    #[must_use]
    pub fn shown(&self) -> Vec<Assumed> {
        let shown = Assumption::all().map(|assumption| {
            let index = assumption as usize;
            let source = self.sources[index].clone();
            Assumed {
                name: assumption.name(),
                value: self.get(assumption),
                is_default: source.is_none(),
                source: source.unwrap_or_else(|| assumption.source().to_owned()),
            }
        });
        shown.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_assumption_has_its_own_entry_and_a_valid_default() {
        for (index, assumption) in Assumption::all().enumerate() {
            assert_eq!(assumption as usize, index);
            assert_eq!(Assumption::named(assumption.name()), Some(assumption));
            let mut assumptions = Assumptions::default();
            let set = assumptions.set(assumption, assumption.default_value(), "the test");
            assert_eq!(set, Ok(()));
            assert!(assumption.source().len() > 10);
        }
        assert_eq!(Assumptions::default().check(), Ok(()));
        assert_eq!(Assumption::named("server_cost"), None);
    }

    #[test]
    fn refuses_invalid_values_and_shows_the_sources() {
        let mut assumptions = Assumptions::default();
        for (assumption, value) in [
            (A::ServerCostUsd, -1.0),
            (A::ServerCores, 0.0),
            (A::CoreUtilization, 1.1),
            (A::CoreUtilization, 0.0),
            (A::LinkBitsPerSecond, f64::NAN),
            (A::BusBitsPerSecond, f64::INFINITY),
            (A::ServerPowerWatts, 1e19),
            (A::SwitchBitsPerSecond, 1e-300),
        ] {
            let error = assumptions.set(assumption, value, "the test").unwrap_err();
            assert_eq!(error.argument, assumption.name());
        }
        assert_eq!(assumptions, Assumptions::default());
        assumptions.set(A::ServerCostUsd, 0.0, "a gift").unwrap();
        let shown = assumptions.shown();
        let cost = shown.iter().find(|shown| shown.name == "server_cost_usd");
        let cost = cost.unwrap();
        assert_eq!(
            (cost.value, cost.is_default, cost.source.as_str()),
            (0.0, false, "a gift")
        );
        assert_eq!(shown.iter().filter(|shown| shown.is_default).count(), 23);
        for (share, microflow_bytes, export_bytes) in [(0.25, 80.0, 64.0), (1.0, 128.0, 82.0)] {
            assumptions.set(A::Ipv6Share, share, "the test").unwrap();
            assert_eq!(assumptions.get(A::MicroflowRecordBytes), microflow_bytes);
            assert_eq!(assumptions.get(A::ExportRecordBytes), export_bytes);
        }
        // A value that was set is not weighted.
        assumptions
            .set(A::MicroflowRecordBytes, 24.0, "the test")
            .unwrap();
        assert_eq!(assumptions.get(A::MicroflowRecordBytes), 24.0);
        assumptions
            .set(A::ExportMessageBytes, 60.0, "the test")
            .unwrap();
        let error = assumptions.check().unwrap_err();
        assert_eq!(error.argument, "export_message_bytes");
    }
}
