// SPDX-License-Identifier: Apache-2.0
//! The planner's question, and the answer to it.

use serde::Serialize;

use crate::cost::TERABIT;
use crate::impossible::above_zero;
use crate::{
    Assumed, Assumption, Assumptions, Impossible, Limit, Machine, Measured, MonitoringCost,
    ShareCurve, Traffic, WorkloadRate, slots_for_rate, worst_case_microflows_per_second,
};

/// What the table is to be large enough for, or what there is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// Ten packets for each microflow record (TurboFlow's slides), or four fifths of what a table
    /// without end reaches where that is less.
    Default,
    /// So many packets for each microflow record.
    PacketsPerMicroflow(f64),
    /// So many microflow records a second, from all links.
    MicroflowsPerSecond(f64),
    /// As many microflow records as so many cores merge.
    Cores(f64),
    /// A table of that size for all links is there.
    TableBytes(f64),
    /// Table and cores are there: how many links do they carry?
    Machine {
        /// Memory of the table for all links.
        table_bytes: f64,
        /// Cores that aggregate.
        cores: f64,
    },
}

impl Target {
    /// Says what cannot be, whatever the traffic.
    ///
    /// # Errors
    /// A ratio below 1, or anything else that is no number above 0.
    pub fn check(self) -> Result<(), Impossible> {
        let checked = match self {
            Self::Default => Ok(1.0),
            Self::PacketsPerMicroflow(ratio) if ratio >= 1.0 && ratio.is_finite() => Ok(ratio),
            Self::PacketsPerMicroflow(ratio) => {
                let mend = "a record holds a packet at least: 1 or more is needed";
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

/// Packets for each microflow record that a table is to reach where nobody says otherwise.
const DEFAULT_RATIO: f64 = 10.0;
/// The share of what a table without end reaches that one with an end should be asked for.
const REACHABLE: f64 = 0.8;

/// A planner's question.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// What passes on one link.
    pub traffic: Traffic,
    /// What was measured on such packets, with the active timeout that is assumed; else only the worst
    /// case can be told.
    pub measured: Option<&'a Measured>,
    /// How many independent copies of what was measured pass on one link: 1 where it was measured on such
    /// a link, more where that was emptier than the links that are planned for.
    pub copies: f64,
    /// How many such links there are, independent of each other, each with its share of the table.
    pub links: u64,
    /// What is wanted, or there.
    pub target: Target,
    /// What is taken for granted.
    pub assumptions: &'a Assumptions,
}

/// What a table takes and gives, for all links together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Need {
    /// Slots of each link's table.
    pub slots_per_link: u64,
    /// Memory of the tables of all links.
    pub table_bytes: f64,
    /// Microflow records a second.
    pub microflows_per_second: f64,
    /// Packets for each microflow record.
    pub packets_per_microflow: f64,
    /// Cores that merge them.
    pub aggregator_cores: f64,
    /// Load on the bus between forwarding engine and processor.
    pub bus_bits_per_second: f64,
    /// That load as a share of what the bus takes: above 1 it is too much.
    pub bus_share: f64,
}

/// Flow records on their way to a collector, from all links.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Export {
    /// Flow records a second: those counted on what was measured, else at most one a flow, and one
    /// for each active timeout that passes while it is active.
    pub flow_records_per_second: f64,
    /// Bandwidth they take, with the headers of their messages.
    pub bits_per_second: f64,
    /// Whether there may be fewer: stated rates do not say how long flows last.
    pub is_upper_bound: bool,
}

/// How many links a machine carries (TurboFlow, Table 11).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Capacity {
    /// Memory of its table, for all links.
    pub table_bytes: f64,
    /// Cores that aggregate.
    pub cores: f64,
    /// Links, not necessarily whole, at worst.
    pub links_worst_case: f64,
    /// What keeps it from carrying more then.
    pub limit_worst_case: Limit,
    /// Links, by what was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links_measured: Option<f64>,
    /// What keeps it from carrying more by that.
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
    /// Packets for each microflow record, at worst.
    pub worst_case_packets_per_microflow: f64,
    /// The same by what was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_packets_per_microflow: Option<f64>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// What passes on one link.
    pub traffic: Traffic,
    /// Copies of what was measured that make up this traffic.
    pub copies: f64,
    /// Links like it.
    pub links: u64,
    /// What the table is to reach: packets for each microflow record; `None` where its size is given.
    pub target_packets_per_microflow: Option<f64>,
    /// What Equation 2 asks for; `None` where no table of up to 2^40 slots is enough.
    pub worst_case: Option<Need>,
    /// What was measured; `None` where nothing was, or no table that was simulated is enough.
    pub measured: Option<Need>,
    /// How many links a given machine carries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Capacity>,
    /// Cores if the same processor meters the packets, without another forwarding engine.
    pub software_cores: f64,
    /// Flow records out.
    pub export: Export,
    /// With flow records made in switches.
    pub cost: MonitoringCost,
    /// With servers that put flow records together.
    pub server_based_cost: MonitoringCost,
    /// Capacity of all links, in Tb/s: what costs are multiplied with.
    pub terabits_per_second: f64,
    /// Sizes of table, side by side.
    pub tables: Vec<TableRow>,
    /// Machines side by side: the memory and the cores of Table 11.
    pub machines: Vec<Capacity>,
    /// What was taken for granted.
    pub assumptions: Vec<Assumed>,
}

/// Slots of tables that are shown where nothing was measured: powers of four.
const SHOWN_SLOTS: std::ops::RangeInclusive<u32> = 3..=12;

/// Memory and cores of machines that are shown (TurboFlow, Table 11).
const SHOWN_TABLE_BYTES: [f64; 6] = [0.0, 1e6, 4e6, 8e6, 16e6, 24e6];
const SHOWN_CORES: [f64; 4] = [1.0, 2.0, 3.0, 4.0];

impl Question<'_> {
    /// Answers it.
    ///
    /// # Errors
    /// What cannot be, or contradicts itself.
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

    /// What a core is planned to do of what it can.
    fn planned(&self, rate_per_core: Assumption) -> f64 {
        self.get(rate_per_core) * self.get(Assumption::CoreUtilization)
    }

    fn check(&self) -> Result<(), Impossible> {
        self.traffic.check()?;
        self.assumptions.check()?;
        self.target.check()?;
        above_zero("copies", self.copies)?;
        if self.links == 0 {
            let mend = "one link at least is needed";
            return Err(Impossible::new("links", 0.0, mend));
        }
        let capacity = self.get(Assumption::LinkBitsPerSecond);
        match self.traffic.bits_per_second() {
            Some(load) if load > capacity => {
                let mend = format!(
                    "the traffic of one link is {load:.0} bits a second: more than it carries"
                );
                let name = Assumption::LinkBitsPerSecond.name();
                Err(Impossible::new(name, capacity, mend))
            }
            _ => Ok(()),
        }
    }

    /// Microflow records a second that one link may make; `None` where the table is given instead.
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
                "no table is large enough: flows alone make {all:.0} records a second, one for \
                 {most:.2} packets"
            );
            return Err(Impossible::new(argument, value, mend));
        }
        Ok(Some(allowed))
    }

    /// The table that is needed, at worst and by what was measured.
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
        // Only powers of two were simulated; a smaller table that is enough at worst is enough.
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

    /// Slots of a link's table that give every copy of what was measured that many.
    fn slots_per_link(&self, slots: u32) -> u64 {
        (f64::from(slots) * self.copies).ceil() as u64
    }

    /// Microflow records a second that one link makes with a table of so many slots.
    fn measured_rate(&self, curve: &ShareCurve, slots: f64) -> f64 {
        curve.share(slots / self.copies) * self.traffic.packets_per_second
    }

    /// Slots that each link has of a table whose size is given.
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
                "{} links need a slot of {record_bytes} bytes each at least",
                self.links
            );
            return Err(Impossible::new("table_memory", bytes, mend));
        }
        Ok(slots as u64)
    }

    /// What a table takes and gives, from the records that one link's share of it makes.
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
