// SPDX-License-Identifier: Apache-2.0
//! Inputs that the paper states. Where it states none, or contradicts itself, the inputs are
//! inferred from its tables.

use crate::{Assumption, Assumptions, WorkloadRate};

/// Size of a microflow record and of a flow record, in bytes.
///
/// The size is not printed. The table sizes of Table 10 are powers of two times 24 bytes, truncated
/// (49 KB, 98 KB, 196 KB, ...). Section 6.6 speaks of 25.
pub const RECORD_BYTES: f64 = 24.0;

/// Packets a second of a core link: "~328k per second" (slides, CAIDA 02/2015). Within the 250 K to
/// 600 K of Table 6.
pub const INTERNET_PACKETS_PER_SECOND: f64 = 328e3;

/// Flows a second of that link: "8.9k per second" (slides).
pub const INTERNET_FLOWS_PER_SECOND: f64 = 8.9e3;

/// Flows a second of the Internet workload in Tables 12 and 13: "a high flow rate of 40K / s"
/// (section 6.6).
pub const INTERNET_HIGH_FLOWS_PER_SECOND: f64 = 40e3;

/// Capacity of a link between core routers, in Gb/s (Table 6).
pub const INTERNET_GIGABITS_PER_SECOND: f64 = 10.0;

/// A switch of the simulated data centre (Table 6).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Switch {
    /// Its name in the tables.
    pub name: &'static str,
    /// Packets a second.
    pub packets_per_second: f64,
    /// Flows a second.
    pub flows_per_second: f64,
    /// Capacity in Tb/s.
    pub terabits_per_second: f64,
}

/// The top-of-rack switch.
pub const TOR: Switch = Switch {
    name: "ToR",
    packets_per_second: 124.0e6,
    flows_per_second: 478e3,
    terabits_per_second: 1.28,
};

/// The aggregation switch.
pub const AGGREGATION: Switch = Switch {
    name: "Aggregation",
    packets_per_second: 134.0e6,
    flows_per_second: 1_291e3,
    terabits_per_second: 1.44,
};

/// Records a second that the aggregator merges with 1 to 4 cores (Figure 12, section 6.3: 13.73 M,
/// then 8.4, 8.9 and 7.79 M more).
pub const AGGREGATOR_RECORDS_PER_SECOND: [f64; 4] = [13.73e6, 22.13e6, 31.03e6, 38.82e6];

/// Records per second and core in Table 11: the mean of Figure 12's four.
///
/// The rows of Table 11 assume one rate for every core: a link makes the same number of records in
/// all cells that give it the same memory. With Figure 12's rates, one core without memory would
/// carry 420 Gb/s instead of 300, and four would carry the printed 1200.
pub const RECORDS_PER_SECOND_PER_CORE: f64 = AGGREGATOR_RECORDS_PER_SECOND[3] / 4.0;

/// Price of a server in Tables 12 and 13.
///
/// Section 6.6 says "approximately $3500". Every printed price follows from 3600, and none of the
/// larger ones from 3500.
pub const SERVER_COST_USD: f64 = 3_600.0;

/// The workloads of Tables 12 and 13, by name.
#[must_use]
pub fn workloads() -> [(&'static str, WorkloadRate); 3] {
    let rate = |flows_per_second, terabits_per_second| WorkloadRate {
        flows_per_second,
        terabits_per_second,
    };
    let internet = INTERNET_GIGABITS_PER_SECOND / 1e3;
    [
        (
            "DC ToR",
            rate(TOR.flows_per_second, TOR.terabits_per_second),
        ),
        (
            "DC Agg.",
            rate(
                AGGREGATION.flows_per_second,
                AGGREGATION.terabits_per_second,
            ),
        ),
        ("Internet", rate(INTERNET_HIGH_FLOWS_PER_SECOND, internet)),
    ]
}

/// The assumptions of Tables 12 and 13: those of section 6.6, except the price of a server.
#[must_use]
pub fn assumptions() -> Assumptions {
    let mut assumptions = Assumptions::default();
    let set = [
        (
            Assumption::ServerCostUsd,
            SERVER_COST_USD,
            "what Tables 12 and 13 follow from; section 6.6 says approximately 3500",
        ),
        (
            Assumption::MicroflowRecordBytes,
            RECORD_BYTES,
            "the table sizes of Table 10",
        ),
        (
            Assumption::ExportRecordBytes,
            RECORD_BYTES,
            "the network load of Table 10",
        ),
        (
            Assumption::AggregatorRecordsPerSecondPerCore,
            RECORDS_PER_SECOND_PER_CORE,
            "the mean of four cores in Figure 12",
        ),
        (Assumption::CoreUtilization, 1.0, "the paper leaves nothing"),
    ];
    for (assumption, value, source) in set {
        let accepted = assumptions.set(assumption, value, source);
        accepted.expect("the paper's inputs are possible");
    }
    assumptions
}
