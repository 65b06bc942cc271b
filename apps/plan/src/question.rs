// SPDX-License-Identifier: Apache-2.0
//! The planner's question, and the answer to it.

use serde::Serialize;

use crate::cost::TERABIT;
use crate::impossible::above_zero;
use crate::{
    Assumed, Assumption, Assumptions, Impossible, Limit, Machine, Measured, MonitoringCost,
    ShareCurve, Traffic, WorkloadRate, slots_for_rate, worst_case_microflows_per_second,
};

/// The target that the table must reach, or the resources that exist.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// Ten packets per microflow record (TurboFlow's slides), or four fifths of the ratio of an
    /// infinite table if that is less.
    Default,
    /// This many packets per microflow record.
    PacketsPerMicroflow(f64),
    /// This many microflow records per second, from all links.
    MicroflowsPerSecond(f64),
    /// As many microflow records as this number of cores can merge.
    Cores(f64),
    /// All links share an existing table of this size, in bytes.
    TableBytes(f64),
    /// Table and cores exist: how many links do they carry?
    Machine {
        /// Memory of the table for all links.
        table_bytes: f64,
        /// Cores of the aggregator.
        cores: f64,
    },
}

impl Target {
    /// Checks the target, independently of the traffic.
    ///
    /// # Errors
    /// If a ratio is below 1, or another number is not above 0.
    pub fn check(self) -> Result<(), Impossible> {
        let checked = match self {
            Self::Default => Ok(1.0),
            Self::PacketsPerMicroflow(ratio) if ratio >= 1.0 && ratio.is_finite() => Ok(ratio),
            Self::PacketsPerMicroflow(ratio) => {
                let mend = "a record holds at least one packet: 1 or more is needed";
                Err(Impossible::new("target_ratio", ratio, mend))
            }
            Self::MicroflowsPerSecond(rate) => above_zero("target_rate", rate),
            Self::Cores(cores) => above_zero("cores", cores),
            Self::TableBytes(bytes) => above_zero("table_memory", bytes),
            Self::Machine { table_bytes, cores } => {
                above_zero("table_memory", table_bytes).and(above_zero("cores", cores))
            }
        };
        checked.map(drop)
    }
}

/// Default target of packets per microflow record.
const DEFAULT_RATIO: f64 = 10.0;
/// A default target above this share of an infinite table's ratio is not considered reachable.
const REACHABLE: f64 = 0.8;

/// The input of a plan.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// The traffic on one link.
    pub traffic: Traffic,
    /// Measurements on such traffic, made with the assumed active timeout. Without them, the answer
    /// contains only the worst case.
    pub measured: Option<&'a Measured>,
    /// How many independent copies of the measured traffic one link carries: 1 if it was measured
    /// on such a link, more if the planned links are busier.
    pub copies: f64,
    /// Number of such links. They are independent, and share the table equally.
    pub links: u64,
    /// The target, or the existing resources.
    pub target: Target,
    /// The assumptions.
    pub assumptions: &'a Assumptions,
}

/// The resources of a table and the resulting rates, for all links together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Need {
    /// Slots of one link's table.
    pub slots_per_link: u64,
    /// Memory of the tables of all links, in bytes.
    pub table_bytes: f64,
    /// Microflow records per second.
    pub microflows_per_second: f64,
    /// Packets per microflow record.
    pub packets_per_microflow: f64,
    /// Aggregator cores that merge them.
    pub aggregator_cores: f64,
    /// Load on the bus between forwarding engine and processor.
    pub bus_bits_per_second: f64,
    /// That load as a share of the bus's throughput: above 1 it is too high.
    pub bus_share: f64,
}

/// The flow records exported to a collector, from all links.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Export {
    /// Flow records per second. Without a measurement, an upper bound: one per flow, and one per
    /// active timeout for each active flow.
    pub flow_records_per_second: f64,
    /// Bandwidth of the export, including the headers of its messages.
    pub bits_per_second: f64,
    /// Whether the rates are upper bounds, because the durations of flows are unknown.
    pub is_upper_bound: bool,
}

/// How many links a machine carries (TurboFlow, Table 11).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Capacity {
    /// Memory of the table, for all links.
    pub table_bytes: f64,
    /// Cores of the aggregator.
    pub cores: f64,
    /// Links in the worst case, not necessarily whole.
    pub links_worst_case: f64,
    /// The limit in the worst case.
    pub limit_worst_case: Limit,
    /// Links according to the measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links_measured: Option<f64>,
    /// The limit according to the measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_measured: Option<Limit>,
}

/// One size of table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TableRow {
    /// Slots of one link's table.
    pub slots_per_link: u64,
    /// Memory of one link's table.
    pub table_bytes_per_link: f64,
    /// Packets per microflow record in the worst case.
    pub worst_case_packets_per_microflow: f64,
    /// Packets per microflow record according to the measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_packets_per_microflow: Option<f64>,
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// The traffic on one link.
    pub traffic: Traffic,
    /// Copies of the measured traffic that make up this traffic.
    pub copies: f64,
    /// Number of such links.
    pub links: u64,
    /// The target in packets per microflow record; `None` if the table's size is given.
    pub target_packets_per_microflow: Option<f64>,
    /// The need by Equation 2; `None` if no table of up to 2^40 slots is sufficient.
    pub worst_case: Option<Need>,
    /// The need according to the measurement; `None` without one, or if no simulated table is
    /// sufficient.
    pub measured: Option<Need>,
    /// How many links the given machine carries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Capacity>,
    /// Cores needed if the processor also meters the packets, without another forwarding engine.
    pub software_cores: f64,
    /// The export of flow records.
    pub export: Export,
    /// Cost with flow records made in switches.
    pub cost: MonitoringCost,
    /// Cost with flow records assembled in servers.
    pub server_based_cost: MonitoringCost,
    /// Capacity of all links in Tb/s, by which the costs per Tb/s are to be multiplied.
    pub terabits_per_second: f64,
    /// A comparison of table sizes.
    pub tables: Vec<TableRow>,
    /// A comparison of machines, with the memory and cores of Table 11.
    pub machines: Vec<Capacity>,
    /// The assumptions used.
    pub assumptions: Vec<Assumed>,
}

/// Exponents of the table sizes shown without a measurement, which are powers of four.
const SHOWN_SLOTS: std::ops::RangeInclusive<u32> = 3..=12;

/// Memory and cores of the machines shown (TurboFlow, Table 11).
const SHOWN_TABLE_BYTES: [f64; 6] = [0.0, 1e6, 4e6, 8e6, 16e6, 24e6];
const SHOWN_CORES: [f64; 4] = [1.0, 2.0, 3.0, 4.0];

impl Question<'_> {
    /// Computes the answer.
    ///
    /// # Errors
    /// If an input is invalid, or inputs contradict each other.
    pub fn answer(&self) -> Result<Plan, Impossible> {
        self.check()?;
        let (worst_case, measured) = self.needs()?;
        let rate = WorkloadRate {
            flows_per_second: self.traffic.flows_per_second,
            terabits_per_second: self.get(Assumption::LinkBitsPerSecond) / TERABIT,
        };
        let packets_per_second = self.traffic.packets_per_second * self.links as f64;
        let meter_rate = Assumption::MeterPacketsPerSecondPerCore;
        Ok(Plan {
            traffic: self.traffic,
            copies: self.copies,
            links: self.links,
            target_packets_per_microflow: self
                .allowed_per_link()?
                .map(|allowed| (self.traffic.packets_per_second / allowed).max(1.0)),
            worst_case,
            measured,
            capacity: match self.target {
                Target::Machine { table_bytes, cores } => Some(self.capacity(table_bytes, cores)),
                _ => None,
            },
            software_cores: packets_per_second / self.planned(meter_rate),
            export: self.export(),
            cost: MonitoringCost::in_switch(rate, self.assumptions),
            server_based_cost: MonitoringCost::in_servers(rate, self.assumptions),
            terabits_per_second: rate.terabits_per_second * self.links as f64,
            tables: self.tables(),
            machines: self.machines(),
            assumptions: self.assumptions.shown(),
        })
    }

    fn get(&self, assumption: Assumption) -> f64 {
        self.assumptions.get(assumption)
    }

    /// The planned rate of a core: its maximum rate times the planned utilization.
    fn planned(&self, rate_per_core: Assumption) -> f64 {
        self.get(rate_per_core) * self.get(Assumption::CoreUtilization)
    }

    fn check(&self) -> Result<(), Impossible> {
        self.traffic.check()?;
        self.assumptions.check()?;
        self.target.check()?;
        above_zero("copies", self.copies)?;
        if self.links == 0 {
            let mend = "at least one link is needed";
            return Err(Impossible::new("links", 0.0, mend));
        }
        let capacity = self.get(Assumption::LinkBitsPerSecond);
        match self.traffic.bits_per_second() {
            Some(load) if load > capacity => {
                let mend = format!(
                    "the traffic of one link is {load:.0} bits a second, more than this capacity"
                );
                let name = Assumption::LinkBitsPerSecond.name();
                Err(Impossible::new(name, capacity, mend))
            }
            _ => Ok(()),
        }
    }

    /// Microflow records per second allowed for one link; `None` if the table is given instead.
    fn allowed_per_link(&self) -> Result<Option<f64>, Impossible> {
        let links = self.links as f64;
        let packets_per_second = self.traffic.packets_per_second;
        let (argument, value, allowed) = match self.target {
            Target::Default => {
                let reachable = REACHABLE * self.traffic.packets_per_flow();
                let ratio = DEFAULT_RATIO.min(reachable).max(1.0);
                return Ok(Some(packets_per_second / ratio));
            }
            Target::PacketsPerMicroflow(ratio) => {
                ("target_ratio", ratio, packets_per_second / ratio)
            }
            Target::MicroflowsPerSecond(rate) => ("target_rate", rate, rate / links),
            Target::Cores(cores) => {
                let per_core = self.planned(Assumption::AggregatorRecordsPerSecondPerCore);
                ("cores", cores, cores * per_core / links)
            }
            Target::TableBytes(_) | Target::Machine { .. } => return Ok(None),
        };
        let flows_per_second = self.traffic.flows_per_second;
        if allowed < flows_per_second {
            let most = self.traffic.packets_per_flow();
            let all = flows_per_second * links;
            let mend = format!(
                "no table is large enough: one record for each flow is already {all:.0} records a \
                 second, one for {most:.2} packets"
            );
            return Err(Impossible::new(argument, value, mend));
        }
        Ok(Some(allowed))
    }

    /// The table needed, in the worst case and according to the measurement.
    fn needs(&self) -> Result<(Option<Need>, Option<Need>), Impossible> {
        let worst = |slots| worst_case_microflows_per_second(&self.traffic, slots);
        let curve = self.curve();
        let Some(allowed) = self.allowed_per_link()? else {
            let slots = self.given_slots()?;
            let rate = |curve| self.measured_rate(&curve, slots as f64);
            let measured = curve.map(|curve| self.need(slots, rate(curve)));
            return Ok((Some(self.need(slots, worst(slots))), measured));
        };
        let worst_case = slots_for_rate(&self.traffic, allowed);
        let worst_case = worst_case.map(|slots| self.need(slots, worst(slots)));
        let measured = curve.as_ref().and_then(|curve| {
            let simulated = self
                .measured
                .into_iter()
                .flat_map(|measured| &measured.tables);
            let slots = simulated.map(|table| self.slots_per_link(table.slots));
            let slots = std::iter::once(0).chain(slots);
            let rates = slots.map(|slots| (slots, self.measured_rate(curve, slots as f64)));
            let mut enough = rates.filter(|(_, rate)| *rate <= allowed * (1.0 + 1e-12));
            enough.next().map(|(slots, rate)| self.need(slots, rate))
        });
        // Only powers of two were simulated. If a smaller table suffices in the worst case, take
        // it.
        let measured = match (measured, worst_case, curve) {
            (Some(need), Some(worst), Some(curve))
                if worst.slots_per_link < need.slots_per_link =>
            {
                let slots = worst.slots_per_link;
                let at_most = worst.microflows_per_second / self.links as f64;
                let rate = self.measured_rate(&curve, slots as f64).min(at_most);
                Some(self.need(slots, rate))
            }
            (measured, ..) => measured,
        };
        Ok((worst_case, measured))
    }

    fn curve(&self) -> Option<ShareCurve> {
        let measured = self.measured?;
        (!measured.tables.is_empty() && measured.packets > 0).then(|| measured.curve())
    }

    /// Slots of a link's table, so that each copy of the measured traffic has `slots` slots.
    fn slots_per_link(&self, slots: u32) -> u64 {
        (f64::from(slots) * self.copies).ceil() as u64
    }

    /// Microflow records per second of one link with a table of `slots` slots.
    fn measured_rate(&self, curve: &ShareCurve, slots: f64) -> f64 {
        curve.share(slots / self.copies) * self.traffic.packets_per_second
    }

    /// Slots of each link's share of a given table.
    fn given_slots(&self) -> Result<u64, Impossible> {
        let (Target::TableBytes(bytes)
        | Target::Machine {
            table_bytes: bytes, ..
        }) = self.target
        else {
            return Ok(0);
        };
        let record_bytes = self.get(Assumption::MicroflowRecordBytes);
        let slots = bytes / record_bytes / self.links as f64;
        if slots < 1.0 {
            let mend = format!(
                "{} links need at least one slot of {record_bytes} bytes each",
                self.links
            );
            return Err(Impossible::new("table_memory", bytes, mend));
        }
        Ok(slots as u64)
    }

    /// The need of all links, from the slots and the microflow record rate of one link.
    fn need(&self, slots_per_link: u64, microflows_per_second_per_link: f64) -> Need {
        let links = self.links as f64;
        let microflows_per_second = microflows_per_second_per_link * links;
        let record_bytes = self.get(Assumption::MicroflowRecordBytes);
        let per_core = self.planned(Assumption::AggregatorRecordsPerSecondPerCore);
        let bus_bits_per_second = microflows_per_second * record_bytes * 8.0;
        Need {
            slots_per_link,
            table_bytes: slots_per_link as f64 * links * record_bytes,
            microflows_per_second,
            packets_per_microflow: self.traffic.packets_per_second / microflows_per_second_per_link,
            aggregator_cores: microflows_per_second / per_core,
            bus_bits_per_second,
            bus_share: bus_bits_per_second / self.get(Assumption::BusBitsPerSecond),
        }
    }

    fn machines(&self) -> Vec<Capacity> {
        let of = |table_bytes| SHOWN_CORES.map(|cores| self.capacity(table_bytes, cores));
        SHOWN_TABLE_BYTES.into_iter().flat_map(of).collect()
    }

    fn capacity(&self, table_bytes: f64, cores: f64) -> Capacity {
        let record_bytes = self.get(Assumption::MicroflowRecordBytes);
        let per_core = self.planned(Assumption::AggregatorRecordsPerSecondPerCore);
        let machine = Machine {
            table_slots: table_bytes / record_bytes,
            core_records_per_second: cores * per_core,
            bus_records_per_second: self.get(Assumption::BusBitsPerSecond) / (8.0 * record_bytes),
        };
        let worst = |slots: f64| worst_case_microflows_per_second(&self.traffic, slots as u64);
        let (links_worst_case, limit_worst_case) = machine.carries(worst);
        let measured = self
            .curve()
            .map(|curve| machine.carries(|slots| self.measured_rate(&curve, slots)));
        let (links_measured, limit_measured) = measured.unzip();
        Capacity {
            table_bytes,
            cores,
            links_worst_case,
            limit_worst_case,
            links_measured,
            limit_measured,
        }
    }

    fn export(&self) -> Export {
        let links = self.links as f64;
        let counted = self
            .measured
            .filter(|measured| measured.observed_ns > 0)
            .map(|measured| measured.flow_records as f64 / measured.seconds() * self.copies);
        let at_most = || {
            let cuts = self.traffic.active_flows / self.get(Assumption::ActiveTimeoutSeconds);
            self.traffic.flows_per_second + cuts
        };
        let flow_records_per_second = counted.unwrap_or_else(at_most) * links;
        let header_bytes = self.get(Assumption::ExportHeaderBytes);
        let record_bytes = self.get(Assumption::ExportRecordBytes);
        let room_bytes = self.get(Assumption::ExportMessageBytes) - header_bytes;
        let header_share = header_bytes / (room_bytes / record_bytes).floor();
        Export {
            flow_records_per_second,
            bits_per_second: flow_records_per_second * (record_bytes + header_share) * 8.0,
            is_upper_bound: counted.is_none(),
        }
    }

    fn tables(&self) -> Vec<TableRow> {
        let curve = self.curve();
        let slots: Vec<u64> = match self.measured {
            Some(measured) => {
                let tables = measured.tables.iter();
                tables
                    .map(|table| self.slots_per_link(table.slots))
                    .collect()
            }
            None => SHOWN_SLOTS.map(|power| 4u64.pow(power)).collect(),
        };
        let packets_per_second = self.traffic.packets_per_second;
        let row = |slots: u64| TableRow {
            slots_per_link: slots,
            table_bytes_per_link: slots as f64 * self.get(Assumption::MicroflowRecordBytes),
            worst_case_packets_per_microflow: packets_per_second
                / worst_case_microflows_per_second(&self.traffic, slots),
            measured_packets_per_microflow: curve
                .as_ref()
                .map(|curve| packets_per_second / self.measured_rate(curve, slots as f64)),
        };
        slots.into_iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests;
