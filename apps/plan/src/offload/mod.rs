// SPDX-License-Identifier: Apache-2.0
//! Flow offload: a table counts the packets of known flows, so that only the first packets of a
//! flow reach the host.
//!
//! ```text
//! packets at host = births (K + rate of a flow x delay) + all packets of flows that were refused
//! host cores      = births (c_flow + K c_inspection) + packets at host x c_packet
//! ```
//!
//! K is the number of packets until a flow is decided. The model assumes that every flow lives long
//! enough to be offloaded. Flows that end earlier cost less than this.
//!
//! # Source
//! Deri and others, "Advancements in Traffic Processing Using Programmable Hardware Flow Offload",
//! section III, for the path of a packet.

mod card;
mod cuckoo_cost;

use serde::Serialize;

use crate::{Assumption, Assumptions, Impossible, Traffic};

pub use card::{Card, CuckooMemory, Place};
pub use cuckoo_cost::{cuckoo_points, cuckoo_shapes};

/// The load of the host with one way of metering.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Host {
    /// Packets per second that reach the host's flow cache.
    pub packets_per_second: f64,
    /// These packets as a share of all packets.
    pub packet_share: f64,
    /// Number of cores needed.
    pub cores: f64,
    /// Load of the bus; `None` if the size of packets is unknown.
    pub bus_bits_per_second: Option<f64>,
}

/// Resources that can run out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bottleneck {
    /// Rows of the table.
    Rows,
    /// New flows per second.
    Births,
    /// Cores of the host.
    HostCores,
    /// The bus between card and host.
    Bus,
}

/// How much of a resource the traffic needs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Use {
    /// The resource.
    pub of: Bottleneck,
    /// The amount needed.
    pub needed: f64,
    /// The amount available.
    pub available: f64,
    /// The need as a share of what is available. Above 1 it is too much.
    pub share: f64,
}

/// Offload of the flows of all links with one table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OffloadPlan {
    /// The table.
    pub card: Card,
    /// The share of flows that get a row.
    pub offloaded_share: f64,
    /// The use of each resource: rows, births, host cores, and the bus if its load is known.
    pub uses: Vec<Use>,
    /// The resource that runs out first as the traffic grows.
    pub first_limit: Bottleneck,
    /// The load of the host with the table and with inspection of the first packets of flows.
    pub inspected: Host,
    /// The load with the table but without inspection: the first packet decides.
    pub uninspected: Host,
    /// The load without the table, with inspection.
    pub software_inspected: Host,
    /// The load without the table and without inspection.
    pub software: Host,
    /// Host memory for its flows, in bytes, if the memory per flow is known.
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
    /// Plans the offload of the traffic of `links` identical links with one table.
    ///
    /// # Errors
    /// If a number of the card is impossible.
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
        // Flows beyond the scarcer of the two resources stay in software.
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
        // Refused flows load cores and bus, so their use would hide the limit that refused them.
        // The first limit therefore comes from traffic in which every flow gets a row.
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

    /// Bits per second that no longer cross the bus; `None` if the size of packets is unknown.
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

    /// Packets of a flow until it is decided, but not more than the flow has.
    fn decided_after(&self) -> f64 {
        let packets = self.get(Assumption::InspectionPacketsPerFlow);
        packets.min(self.traffic.packets_per_flow())
    }

    /// Core time per second that inspection takes, in seconds.
    fn inspection_seconds(&self) -> f64 {
        let per_packet = self.get(Assumption::InspectionNsPerPacket) * 1e-9;
        self.traffic.flows_per_second * self.decided_after() * per_packet
    }

    /// The load of the host with the table, if a flow is decided after `decided_after` packets.
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

    /// The load of the host if `packets_per_second` reach it. `other_seconds` is further core time
    /// per second.
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

    /// The use of each resource.
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
