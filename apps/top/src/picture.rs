// SPDX-License-Identifier: Apache-2.0
//! The content of a screen at one moment: rows of flows, hosts, protocols and ports with their
//! rates.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;

use turboflow_record::FlowBatch;

use crate::applications::ApplicationId;
use crate::bins::{AVERAGE_BINS, BIN_NS, Measured, UNSETTLED_BINS, Window};
use crate::filter::FlowFilter;
use crate::traffic::{FLOWS_MAX, FlowKey, HOSTS_MAX, PORTS_MAX, Traffic};

/// The row of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowRow {
    /// The flow's key.
    pub key: FlowKey,
    /// Its rates and totals.
    pub measured: Measured,
    /// Time of the first packet since the flow entered the table, in nanoseconds since 1970.
    pub first_ns: u64,
    /// Time of its last packet, in nanoseconds since 1970.
    pub last_ns: u64,
    /// Its application.
    pub application: ApplicationId,
}

/// The row of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRow {
    /// The host's address.
    pub address: IpAddr,
    /// Traffic that it sent.
    pub sent: Measured,
    /// Traffic that it received.
    pub received: Measured,
    /// Number of known flows from or to it.
    pub flows: u64,
}

impl HostRow {
    /// The sum of both directions.
    #[must_use]
    pub fn both(&self) -> Measured {
        self.sent.plus(self.received)
    }
}

/// The row of a protocol, or of one of its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareRow {
    /// IP protocol number.
    pub protocol: u8,
    /// The port; `None` in the row of a protocol.
    pub port: Option<u16>,
    /// Its rates and totals.
    pub measured: Measured,
}

/// The row of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationRow {
    /// Its name.
    pub name: Arc<str>,
    /// Its rates and totals.
    pub measured: Measured,
    /// Number of known flows of this application.
    pub flows: u64,
}

/// The content of a screen at one moment.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    /// The known flows.
    pub flows: Vec<FlowRow>,
    /// The known hosts.
    pub hosts: Vec<HostRow>,
    /// The protocols seen.
    pub protocols: Vec<ShareRow>,
    /// Ports of the protocols.
    pub ports: Vec<ShareRow>,
    /// The applications seen; empty if records have no application.
    pub applications: Vec<ApplicationRow>,
    /// Names of applications by [`ApplicationId`].
    pub names: Vec<Arc<str>>,
    /// The sum of all flows, including those evicted from a table.
    pub all: Measured,
    /// The end of the last bin shown, in nanoseconds since 1970.
    pub end_ns: u64,
    /// The evictions from full tables.
    pub left: Vec<Left>,
    /// Records that count only in the sum of all flows, because updating rows could not keep up.
    pub skipped_records: u64,
    /// Whether no more records will arrive: the end of a capture.
    pub is_final: bool,
}

/// The entries evicted from a full table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// The kind of entries: `flows`.
    pub what: &'static str,
    /// Limit on entries.
    pub limit: usize,
    /// Number of entries evicted.
    pub entries: u64,
}

impl Traffic {
    /// The bins to show when metering has reached `clock_ns`; `None` means that it has ended.
    #[must_use]
    pub fn window(&self, clock_ns: Option<u64>, interval: u64) -> Window {
        let behind = |clock_ns: u64| (clock_ns / BIN_NS).saturating_sub(UNSETTLED_BINS - 1);
        let (end, end_ns) = match clock_ns {
            Some(clock_ns) => (behind(clock_ns), behind(clock_ns) * BIN_NS),
            None => (self.newest_ns / BIN_NS + 1, self.newest_ns),
        };
        // At the start of a run, rates are averages over the time seen so far.
        let seen = end.saturating_sub(self.first_bin.unwrap_or(end)).max(1);
        Window {
            end,
            end_ns,
            interval: interval.min(seen),
            average: AVERAGE_BINS.min(seen),
            is_final: clock_ns.is_none(),
        }
    }

    /// The content of a screen for those bins.
    #[must_use]
    pub fn picture(&self, window: Window) -> Picture {
        let flows = self.flows.iter().map(|(key, flow)| FlowRow {
            key: *key,
            measured: flow.bins.measured(window),
            first_ns: flow.first_ns.unwrap_or_default(),
            last_ns: flow.last_ns,
            application: flow.application,
        });
        let flows: Vec<FlowRow> = flows.collect();
        let mut flows_of: HashMap<IpAddr, u64> = HashMap::new();
        flows
            .iter()
            .for_each(|flow| count(&mut flows_of, &flow.key));
        let hosts = self.hosts.iter().map(|(address, host)| HostRow {
            address: *address,
            sent: host.sent.measured(window),
            received: host.received.measured(window),
            flows: flows_of.get(address).copied().unwrap_or_default(),
        });
        let protocols = self.protocols.iter().map(|(protocol, bins)| ShareRow {
            protocol: *protocol,
            port: None,
            measured: bins.measured(window),
        });
        let ports = self.ports.iter().map(|((protocol, port), bins)| ShareRow {
            protocol: *protocol,
            port: Some(*port),
            measured: bins.measured(window),
        });
        let of = self.applications.bins().iter();
        let of = of.map(|bins| bins.measured(window)).collect();
        let applications = match self.has_applications() {
            true => application_rows(self.applications.names(), of, &flows),
            false => Vec::new(),
        };
        let left = [
            ("flows", FLOWS_MAX, self.flows.left),
            ("hosts", HOSTS_MAX, self.hosts.left),
            ("ports", PORTS_MAX, self.ports.left),
        ];
        let left = left.into_iter().filter(|(_, _, entries)| *entries > 0);
        Picture {
            hosts: hosts.collect(),
            protocols: protocols.collect(),
            ports: ports.collect(),
            applications,
            names: self.applications.names().to_vec(),
            all: self.all.measured(window),
            end_ns: window.end_ns,
            left: left
                .map(|(what, limit, entries)| Left {
                    what,
                    limit,
                    entries,
                })
                .collect(),
            skipped_records: self.skipped_records,
            is_final: window.is_final,
            flows,
        }
    }
}

/// Counts a flow for both of its hosts, but only once if a host talks to itself.
fn count(flows_of: &mut HashMap<IpAddr, u64>, key: &FlowKey) {
    *flows_of.entry(key.source).or_default() += 1;
    if key.destination != key.source {
        *flows_of.entry(key.destination).or_default() += 1;
    }
}

impl Picture {
    /// The flows that pass the filter, and sums over these flows only.
    #[must_use]
    pub fn filtered(&self, filter: &FlowFilter) -> Self {
        let batch: FlowBatch = filter.batch(&self.flows, &self.names);
        let passing = self.flows.iter().enumerate();
        let passing = passing.filter(|(row, _)| filter.passes(&batch, *row));
        let flows: Vec<FlowRow> = passing.map(|(_, flow)| *flow).collect();
        let (mut hosts, mut flows_of) = (HashMap::new(), HashMap::new());
        let (mut protocols, mut ports) = (HashMap::new(), HashMap::new());
        let mut all = Measured::default();
        let mut applications = vec![Measured::default(); self.names.len()];
        for FlowRow {
            key,
            measured,
            application,
            ..
        } in &flows
        {
            all = all.plus(*measured);
            let of = &mut applications[application.index()];
            *of = of.plus(*measured);
            count(&mut flows_of, key);
            let (sent, _) = hosts.entry(key.source).or_insert_with(none);
            *sent = sent.plus(*measured);
            let (_, received) = hosts.entry(key.destination).or_insert_with(none);
            *received = received.plus(*measured);
            add(&mut protocols, key.protocol, *measured);
            add(&mut ports, key.port(), *measured);
        }
        let hosts = hosts
            .into_iter()
            .map(|(address, (sent, received))| HostRow {
                address,
                sent,
                received,
                flows: flows_of[&address],
            });
        let share = |protocol, port, measured| ShareRow {
            protocol,
            port,
            measured,
        };
        Self {
            hosts: hosts.collect(),
            protocols: protocols
                .into_iter()
                .map(|(protocol, measured)| share(protocol, None, measured))
                .collect(),
            ports: ports
                .into_iter()
                .map(|((protocol, port), measured)| share(protocol, Some(port), measured))
                .collect(),
            applications: match self.applications.is_empty() {
                true => Vec::new(),
                false => application_rows(&self.names, applications, &flows),
            },
            names: self.names.clone(),
            all,
            flows,
            end_ns: self.end_ns,
            left: self.left.clone(),
            skipped_records: self.skipped_records,
            is_final: self.is_final,
        }
    }
}

/// The applications that have traffic. `measured` has one entry for each name.
fn application_rows(
    names: &[Arc<str>],
    measured: Vec<Measured>,
    flows: &[FlowRow],
) -> Vec<ApplicationRow> {
    let mut flows_of = vec![0; names.len()];
    for flow in flows {
        flows_of[flow.application.index()] += 1;
    }
    let rows = names.iter().zip(measured).zip(flows_of);
    let rows = rows.map(|((name, measured), flows)| ApplicationRow {
        name: Arc::clone(name),
        measured,
        flows,
    });
    rows.filter(|row| row.measured.total.packets > 0).collect()
}

fn none() -> (Measured, Measured) {
    (Measured::default(), Measured::default())
}

fn add<K: Eq + Hash>(sums: &mut HashMap<K, Measured>, key: K, measured: Measured) {
    let known = sums.entry(key).or_default();
    *known = known.plus(measured);
}
