// SPDX-License-Identifier: Apache-2.0
//! Sums of flow records by flow, host, protocol and port, each with its bins.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

use turboflow_record::{Column, ColumnKind, FlowBatch, Value, ValueData};

use crate::applications::{ApplicationId, Applications};
use crate::bins::{BIN_NS, Bins, Sums};
use crate::bounded::{Bounded, Ranked};
use crate::sink::Skipped;

/// Maximum number of known flows: 50 MB, because hash tables have power-of-two sizes.
pub const FLOWS_MAX: usize = 1 << 16;
/// Maximum number of known hosts: 43 MB.
pub const HOSTS_MAX: usize = 1 << 15;
/// Maximum number of known ports of protocols: 11 MB.
pub const PORTS_MAX: usize = 1 << 14;

/// The key of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowKey {
    /// The sender's address.
    pub source: IpAddr,
    /// The receiver's address.
    pub destination: IpAddr,
    /// The sender's port, or 0.
    pub source_port: u16,
    /// The receiver's port, or 0.
    pub destination_port: u16,
    /// IP protocol number.
    pub protocol: u8,
}

impl FlowKey {
    /// The protocol and the smaller port, which is usually the server's.
    #[must_use]
    pub fn port(&self) -> (u8, u16) {
        (self.protocol, self.source_port.min(self.destination_port))
    }
}

impl Default for FlowKey {
    fn default() -> Self {
        let unspecified = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        Self {
            source: unspecified,
            destination: unspecified,
            source_port: 0,
            destination_port: 0,
            protocol: 0,
        }
    }
}

/// The state of a flow since it entered the table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flow {
    pub(crate) bins: Bins,
    pub(crate) first_ns: Option<u64>,
    pub(crate) last_ns: u64,
    pub(crate) application: ApplicationId,
}

/// The state of a host since it entered the table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Host {
    pub(crate) sent: Bins,
    pub(crate) received: Bins,
}

impl Ranked for Bins {
    fn recent_bytes(&self, newest: u64) -> u64 {
        self.before(newest + 1, crate::bins::AVERAGE_BINS).bytes
    }

    fn total(&self) -> Sums {
        self.total()
    }
}

impl Ranked for Flow {
    fn recent_bytes(&self, newest: u64) -> u64 {
        self.bins.recent_bytes(newest)
    }

    fn total(&self) -> Sums {
        self.bins.total()
    }
}

impl Ranked for Host {
    fn recent_bytes(&self, newest: u64) -> u64 {
        self.sent.recent_bytes(newest) + self.received.recent_bytes(newest)
    }

    fn total(&self) -> Sums {
        self.sent.total().plus(self.received.total())
    }
}

/// Everything known about the traffic, in bounded memory.
#[derive(Debug)]
pub struct Traffic {
    columns: Columns,
    pub(crate) flows: Bounded<FlowKey, Flow>,
    pub(crate) hosts: Bounded<IpAddr, Host>,
    pub(crate) ports: Bounded<(u8, u16), Bins>,
    pub(crate) protocols: HashMap<u8, Bins>,
    pub(crate) applications: Applications,
    pub(crate) all: Bins,
    /// The first bin of the run, or the first one after the clock was set back.
    pub(crate) first_bin: Option<u64>,
    pub(crate) newest_ns: u64,
    /// Records that count only in `all`.
    pub(crate) skipped_records: u64,
}

impl Traffic {
    /// An empty [`Traffic`]. `schema` is that of the default definition, with or without
    /// applications.
    ///
    /// # Panics
    /// If a column of the default definition is missing.
    #[must_use]
    pub fn new(schema: &[Column]) -> Self {
        Self::with_limits(schema, FLOWS_MAX, HOSTS_MAX, PORTS_MAX)
    }

    /// Like [`Traffic::new`], with other limits on flows, hosts and ports.
    ///
    /// # Panics
    /// Like [`Traffic::new`], and if a limit is less than 4.
    #[must_use]
    pub fn with_limits(schema: &[Column], flows: usize, hosts: usize, ports: usize) -> Self {
        Self {
            columns: Columns::new(schema),
            flows: Bounded::new(flows),
            hosts: Bounded::new(hosts),
            ports: Bounded::new(ports),
            protocols: HashMap::new(),
            applications: Applications::new(),
            all: Bins::default(),
            first_bin: None,
            newest_ns: 0,
            skipped_records: 0,
        }
    }

    /// Adds the traffic of a batch of records.
    pub fn add(&mut self, batch: &FlowBatch) {
        let columns = self.columns.of(batch);
        for row in 0..batch.rows() {
            let application = self
                .columns
                .application
                .map(|column| batch.value(row, column));
            let application = match application {
                Some(Value::Text(name)) => self.applications.id(name),
                _ => ApplicationId::default(),
            };
            let key = FlowKey {
                source: columns.source[row],
                destination: columns.destination[row],
                source_port: columns.source_port[row] as u16,
                destination_port: columns.destination_port[row] as u16,
                protocol: columns.protocol[row] as u8,
            };
            let sums = Sums {
                bytes: columns.bytes[row],
                packets: columns.packets[row],
            };
            let (first_ns, last_ns) = (columns.first_ns[row], columns.last_ns[row]);
            self.record(&key, sums, first_ns, last_ns, application);
        }
    }

    /// Whether records have an application.
    #[must_use]
    pub const fn has_applications(&self) -> bool {
        self.columns.application.is_some()
    }

    pub(crate) const fn columns(&self) -> Columns {
        self.columns
    }

    /// Adds records that arrived too fast to update rows.
    pub(crate) fn skip(&mut self, skipped: &Skipped) {
        self.skipped_records += skipped.records;
        for (bin, sums) in &skipped.bins {
            self.all.add(*bin, *sums);
        }
    }

    fn record(
        &mut self,
        key: &FlowKey,
        sums: Sums,
        first_ns: u64,
        last_ns: u64,
        application: ApplicationId,
    ) {
        let bin = last_ns / BIN_NS;
        let before = self.all.newest();
        self.all.add(bin, sums);
        let newest = self.all.newest();
        if newest < before {
            self.first_bin = None;
            self.newest_ns = 0;
        }
        self.newest_ns = self.newest_ns.max(last_ns);
        self.first_bin = Some(self.first_bin.map_or(bin, |first| first.min(bin)));
        let flow = self.flows.entry(*key, newest);
        flow.bins.add(bin, sums);
        self.applications.add(flow.application, bin, sums);
        // A record without an application adds no information.
        if application.is_known() && application != flow.application {
            self.applications
                .move_flow(&flow.bins, flow.application, application);
            flow.application = application;
        }
        flow.first_ns = Some(flow.first_ns.map_or(first_ns, |known| known.min(first_ns)));
        flow.last_ns = flow.last_ns.max(last_ns);
        self.hosts.entry(key.source, newest).sent.add(bin, sums);
        self.hosts
            .entry(key.destination, newest)
            .received
            .add(bin, sums);
        self.ports.entry(key.port(), newest).add(bin, sums);
        self.protocols
            .entry(key.protocol)
            .or_default()
            .add(bin, sums);
    }
}

/// Indexes of the columns that are used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns {
    always: [usize; 9],
    application: Option<usize>,
}

const NAMES: [&str; 9] = [
    "src_addr", "dst_addr", "src_port", "dst_port", "protocol", "packets", "bytes", "first_ns",
    "last_ns",
];

/// The columns of a batch.
struct Slices<'a> {
    source: &'a [IpAddr],
    destination: &'a [IpAddr],
    source_port: &'a [u64],
    destination_port: &'a [u64],
    protocol: &'a [u64],
    packets: &'a [u64],
    bytes: &'a [u64],
    first_ns: &'a [u64],
    last_ns: &'a [u64],
}

impl Columns {
    fn new(schema: &[Column]) -> Self {
        let at = |name: &str| schema.iter().position(|column| column.name == name);
        let application = at("application");
        Self {
            always: NAMES.map(|name| {
                at(name).unwrap_or_else(|| panic!("the default definition has a column {name}"))
            }),
            application: application.filter(|at| schema[*at].kind == ColumnKind::Text),
        }
    }

    /// Adds a batch to the records that were skipped.
    pub(crate) fn sum(&self, batch: &FlowBatch, skipped: &mut Skipped) {
        let columns = self.of(batch);
        skipped.records += batch.rows() as u64;
        for row in 0..batch.rows() {
            let sums = Sums {
                bytes: columns.bytes[row],
                packets: columns.packets[row],
            };
            let known = skipped
                .bins
                .entry(columns.last_ns[row] / BIN_NS)
                .or_default();
            *known = known.plus(sums);
        }
    }

    fn of<'a>(&self, batch: &'a FlowBatch) -> Slices<'a> {
        let addresses = |index: usize| match &batch.column(self.always[index]).data {
            ValueData::Address(addresses) => &addresses[..],
            other => panic!("{} are addresses, not {other:?}", NAMES[index]),
        };
        let numbers = |index: usize| match &batch.column(self.always[index]).data {
            ValueData::Unsigned(numbers) => &numbers[..],
            other => panic!("{} are numbers, not {other:?}", NAMES[index]),
        };
        Slices {
            source: addresses(0),
            destination: addresses(1),
            source_port: numbers(2),
            destination_port: numbers(3),
            protocol: numbers(4),
            packets: numbers(5),
            bytes: numbers(6),
            first_ns: numbers(7),
            last_ns: numbers(8),
        }
    }
}
