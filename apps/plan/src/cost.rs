// SPDX-License-Identifier: Apache-2.0
//! Cost of monitoring in money and power, per Tb/s of links (TurboFlow, sections 6.5 to 6.7).

use std::ops::{Add, Sub};

use serde::Serialize;

use crate::{Assumption, Assumptions};

/// Bits a second in a Tb/s.
pub(crate) const TERABIT: f64 = 1e12;

/// The rate of flow records, and the capacity of the links that make them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkloadRate {
    /// Flow records a second.
    pub flows_per_second: f64,
    /// Capacity of the links, in Tb/s.
    pub terabits_per_second: f64,
}

/// A server that processes flow records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Server {
    /// Number of cores.
    pub cores: f64,
    /// Price, in US dollars.
    pub cost_usd: f64,
    /// Power under full load, in watts.
    pub power_watts: f64,
}

/// Money or power per Tb/s of monitored links. A fraction of a server has a fraction of its price.
///
/// # Source
/// TurboFlow, section 6.6, Equation 3: `Cost = (FlowRate/Capacity) / (ServerTput/ServerCost)`.
/// Operations are in that order, in binary floating point: two printed cells depend on it.
#[must_use]
pub fn cost_per_terabit(
    rate: WorkloadRate,
    server_records_per_second: f64,
    server_cost: f64,
) -> f64 {
    (rate.flows_per_second / rate.terabits_per_second) / (server_records_per_second / server_cost)
}

/// Money and power per Tb/s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// US dollars per Tb/s.
    pub usd_per_terabit: f64,
    /// Watts per Tb/s.
    pub watts_per_terabit: f64,
}

impl Cost {
    /// The cost of servers with this throughput per core.
    fn of_servers(rate: WorkloadRate, server: Server, records_per_second_per_core: f64) -> Self {
        let records_per_second = records_per_second_per_core * server.cores;
        Self {
            usd_per_terabit: cost_per_terabit(rate, records_per_second, server.cost_usd),
            watts_per_terabit: cost_per_terabit(rate, records_per_second, server.power_watts),
        }
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            usd_per_terabit: self.usd_per_terabit + other.usd_per_terabit,
            watts_per_terabit: self.watts_per_terabit + other.watts_per_terabit,
        }
    }
}

impl Sub for Cost {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            usd_per_terabit: self.usd_per_terabit - other.usd_per_terabit,
            watts_per_terabit: self.watts_per_terabit - other.watts_per_terabit,
        }
    }
}

/// Cost of making and analysing flow records, and of the switches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MonitoringCost {
    /// The switches, with or without monitoring.
    pub switches: Cost,
    /// Making flow records and delivering them to the analysis.
    pub generation: Cost,
    /// Analysing flow records.
    pub analysis: Cost,
}

impl MonitoringCost {
    /// The switch makes the flow records: servers only collect them, and the switch's processor
    /// aggregates (TurboFlow, section 6.6, Table 12).
    #[must_use]
    pub fn in_switch(rate: WorkloadRate, assumptions: &Assumptions) -> Self {
        let watts = assumptions.get(Assumption::SwitchProcessorPowerWatts);
        let terabits = assumptions.get(Assumption::SwitchBitsPerSecond) / TERABIT;
        let processor = Cost {
            usd_per_terabit: 0.0,
            watts_per_terabit: watts / terabits,
        };
        let collector = Assumption::CollectorRecordsPerSecondPerCore;
        let mut cost = Self::with_generation_by(collector, rate, assumptions);
        cost.generation = processor + cost.generation;
        cost
    }

    /// Servers assemble the flow records: one update of a key-value store per flow, a lower bound
    /// for such systems (TurboFlow, section 6.6, Table 13).
    #[must_use]
    pub fn in_servers(rate: WorkloadRate, assumptions: &Assumptions) -> Self {
        let store = Assumption::KeyValueUpdatesPerSecondPerCore;
        Self::with_generation_by(store, rate, assumptions)
    }

    fn with_generation_by(
        generation: Assumption,
        rate: WorkloadRate,
        assumptions: &Assumptions,
    ) -> Self {
        let get = |assumption| assumptions.get(assumption);
        let server = Server {
            cores: get(Assumption::ServerCores),
            cost_usd: get(Assumption::ServerCostUsd),
            power_watts: get(Assumption::ServerPowerWatts),
        };
        let analysis = get(Assumption::AnalysisRecordsPerSecondPerCore);
        Self {
            switches: Cost {
                usd_per_terabit: get(Assumption::SwitchCostUsdPerTerabit),
                watts_per_terabit: get(Assumption::SwitchPowerWattsPerTerabit),
            },
            generation: Cost::of_servers(rate, server, get(generation)),
            analysis: Cost::of_servers(rate, server, analysis),
        }
    }

    /// Generation and analysis.
    #[must_use]
    pub fn monitoring(&self) -> Cost {
        self.generation + self.analysis
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_price_of_a_fraction_of_servers() {
        let rate = WorkloadRate {
            flows_per_second: 2e6,
            terabits_per_second: 0.5,
        };
        // 4M flows a second per Tb/s, and a server that processes 8M of them.
        assert_eq!(cost_per_terabit(rate, 8e6, 3_000.0), 1_500.0);
        let mut assumptions = Assumptions::default();
        let set = [
            (Assumption::ServerCores, 4.0),
            (Assumption::ServerCostUsd, 1_000.0),
            (Assumption::CollectorRecordsPerSecondPerCore, 10e6),
            (Assumption::KeyValueUpdatesPerSecondPerCore, 1e6),
            (Assumption::AnalysisRecordsPerSecondPerCore, 2e6),
        ];
        for (assumption, value) in set {
            assumptions.set(assumption, value, "the test").unwrap();
        }
        let ours = MonitoringCost::in_switch(rate, &assumptions);
        assert_eq!(ours.generation.usd_per_terabit, 100.0);
        assert_eq!(ours.generation.watts_per_terabit, 25.0 / 3.2 + 60.0);
        assert_eq!(ours.monitoring().usd_per_terabit, 600.0);
        let theirs = MonitoringCost::in_servers(rate, &assumptions);
        assert_eq!(theirs.generation.usd_per_terabit, 1_000.0);
        assert_eq!(theirs.analysis, ours.analysis);
        let saved = theirs.monitoring() - ours.monitoring();
        assert_eq!(saved.usd_per_terabit, 900.0);
    }

    #[test]
    fn free_servers_cost_nothing() {
        let rate = WorkloadRate {
            flows_per_second: 1e6,
            terabits_per_second: 1.0,
        };
        assert_eq!(cost_per_terabit(rate, 8e6, 0.0), 0.0);
    }
}
