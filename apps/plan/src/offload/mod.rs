// SPDX-License-Identifier: Apache-2.0
//! Flow offload: a table counts the packets of flows that are known, so that only the first
//! packets of a flow reach the host.
//!
//! ```text
//! packets at host = births (K + rate of a flow x delay) + all packets of flows that were refused
//! host cores      = births (c_flow + K c_inspection) + packets at host x c_packet
//! ```
//!
//! K is the number of packets until a flow is decided. Every flow is taken for one that is
//! offloaded; those that end before they are decided make it cheaper than this.
//!
//! # Source
//! Deri and others, "Advancements in Traffic Processing Using Programmable Hardware Flow Offload",
//! section III, for what happens to a packet.

mod card;
mod cuckoo_cost;

use serde::Serialize;

use crate::{Assumption, Assumptions, Impossible, Traffic};

pub use card::{Card, CuckooMemory, Place};
pub use cuckoo_cost::{cuckoo_points, cuckoo_shapes};

/// What the host does with one way of metering.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Host {
    /// Packets a second that reach the host's flow cache.
    pub packets_per_second: f64,
    /// Those as a share of all packets.
    pub packet_share: f64,
    /// Cores.
    pub cores: f64,
    /// Load of the bus; `None` if the size of packets is unknown.
    pub bus_bits_per_second: Option<f64>,
}

/// What can be exhausted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bottleneck {
    /// Rows of the table.
    Rows,
    /// New flows a second.
    Births,
    /// Cores of the host.
    HostCores,
    /// The bus between card and host.
    Bus,
}

/// How much of something the traffic needs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Use {
    /// Of what.
    pub of: Bottleneck,
    /// The need.
    pub needed: f64,
    /// What there is.
    pub available: f64,
    /// The need as a share of that. Above 1 it is too much.
    pub share: f64,
}

/// Flow offload of the traffic of all links, by one table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OffloadPlan {
    /// The table.
    pub card: Card,
    /// The share of flows that get a row.
    pub offloaded_share: f64,
    /// What is used of what there is: rows, births, host cores, and the bus where it is known.
    pub uses: Vec<Use>,
    /// What is exhausted first as the traffic grows.
    pub first_limit: Bottleneck,
    /// The host, with the table and with inspection of the first packets of flows.
    pub inspected: Host,
    /// The host with the table, without inspection: the first packet decides.
    pub uninspected: Host,
    /// The host without the table, with inspection.
    pub software_inspected: Host,
    /// The host without the table and without inspection.
    pub software: Host,
    /// Memory of the host for its flows, if the card tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_bytes: Option<f64>,
}

/// The traffic of all links, and the costs of the host.
#[derive(Clone, Copy)]
struct Model<'a> {
    traffic: Traffic,
    card: &'a Card,
    assumptions: &'a Assumptions,
    offloaded_share: f64,
}

impl OffloadPlan {
    /// Plans the offload of the traffic of `links` links like one, by one table.
    ///
    /// # Errors
    /// Where a number of the card is impossible.
    pub fn of(
        card: &Card,
        traffic: &Traffic,
        links: u64,
        assumptions: &Assumptions,
    ) -> Result<Self, Impossible> {
        card.check()?;
        let traffic = traffic.times(links as f64);
        let births = traffic.flows_per_second;
        let rows_needed = traffic.active_flows + births * card.event_lag_seconds;
        let rows = used(Bottleneck::Rows, rows_needed, card.usable_rows(births));
        let learned = used(Bottleneck::Births, births, card.comfortable_rate());
        // The flows beyond the scarcer of the two stay in software.
        let offloaded_share = (1.0 / rows.share.max(learned.share)).min(1.0);
        let model = Model {
            traffic,
            card,
            assumptions,
            offloaded_share,
        };
        let inspection_seconds = model.inspection_seconds();
        let inspected = model.offloaded(model.decided_after(), inspection_seconds);
        let uses = model.uses(rows, learned, &inspected);
        // Once flows are refused, cores and bus are flooded by what another limit let through. So
        // the first limit is that of traffic of which every flow still has a row.
        let before = Model {
            offloaded_share: 1.0,
            ..model
        };
        let host = before.offloaded(before.decided_after(), inspection_seconds);
        let before = before.uses(rows, learned, &host);
        let first = before.iter().max_by(|a, b| a.share.total_cmp(&b.share));
        let first_limit = first.map_or(Bottleneck::Rows, |first| first.of);
        Ok(Self {
            card: card.clone(),
            offloaded_share,
            first_limit,
            inspected,
            uninspected: model.offloaded(1.0, 0.0),
            software_inspected: model.host(traffic.packets_per_second, inspection_seconds),
            software: model.host(traffic.packets_per_second, 0.0),
            host_bytes: card
                .host_bytes_per_flow
                .map(|bytes| bytes * traffic.active_flows),
            uses,
        })
    }

    /// Bits a second that no longer cross the bus; `None` if the size of packets is unknown.
    #[must_use]
    pub fn bus_bits_per_second_saved(&self) -> Option<f64> {
        let before = self.software_inspected.bus_bits_per_second?;
        Some(before - self.inspected.bus_bits_per_second?)
    }
}

fn used(of: Bottleneck, needed: f64, available: f64) -> Use {
    Use {
        of,
        needed,
        available,
        share: needed / available,
    }
}

impl Model<'_> {
    fn get(&self, assumption: Assumption) -> f64 {
        self.assumptions.get(assumption)
    }

    /// Packets of a flow until it is decided: no more than it has.
    fn decided_after(&self) -> f64 {
        let packets = self.get(Assumption::InspectionPacketsPerFlow);
        packets.min(self.traffic.packets_per_flow())
    }

    /// Seconds of a core a second for inspection.
    fn inspection_seconds(&self) -> f64 {
        let per_packet = self.get(Assumption::InspectionNsPerPacket) * 1e-9;
        self.traffic.flows_per_second * self.decided_after() * per_packet
    }

    /// The host with the table, when a flow is decided after that many packets.
    fn offloaded(&self, decided_after: f64, inspection_seconds: f64) -> Host {
        let Traffic {
            packets_per_second,
            flows_per_second,
            active_flows,
            ..
        } = self.traffic;
        let late = packets_per_second / active_flows * self.card.delay_seconds;
        let first = (decided_after + late).min(self.traffic.packets_per_flow());
        let refused = (1.0 - self.offloaded_share) * packets_per_second;
        let packets = self.offloaded_share * flows_per_second * first + refused;
        let offloading = flows_per_second * self.get(Assumption::OffloadNsPerFlow) * 1e-9;
        self.host(packets, inspection_seconds + offloading)
    }

    /// The host when that many packets a second reach it, beside other work in seconds a second.
    fn host(&self, packets_per_second: f64, other_seconds: f64) -> Host {
        let metering = packets_per_second / self.get(Assumption::MeterPacketsPerSecondPerCore);
        let on_the_bus = match self.card.place {
            Place::Card => packets_per_second,
            Place::Host => self.traffic.packets_per_second,
        };
        Host {
            packets_per_second,
            packet_share: packets_per_second / self.traffic.packets_per_second,
            cores: (metering + other_seconds) / self.get(Assumption::CoreUtilization),
            bus_bits_per_second: self
                .traffic
                .mean_packet_bytes
                .map(|bytes| on_the_bus * bytes * 8.0),
        }
    }

    /// What is used of what there is.
    fn uses(&self, rows: Use, learned: Use, host: &Host) -> Vec<Use> {
        let there_are = self.get(Assumption::ServerCores);
        let mut uses = vec![rows, learned];
        uses.push(used(Bottleneck::HostCores, host.cores, there_are));
        uses.extend(self.bus(host));
        uses
    }

    /// The use of the bus of a card.
    fn bus(&self, host: &Host) -> Option<Use> {
        let is_card = self.card.place == Place::Card;
        let needed = host.bus_bits_per_second.filter(|_| is_card)?;
        let assumed = self.get(Assumption::BusBitsPerSecond);
        let available = self.card.bus_bits_per_second.unwrap_or(assumed);
        Some(used(Bottleneck::Bus, needed, available))
    }
}

#[cfg(test)]
mod tests;
