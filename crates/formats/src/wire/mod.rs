// SPDX-License-Identifier: Apache-2.0
//! Flow records on the wire: IPFIX (RFC 7011), NetFlow v9 (RFC 3954) and NetFlow v5.
//!
//! Two halves, neither of which reads a clock or opens a socket. An [`Encode`] turns batches of
//! columns into [`Unit`]s: templates, and bodies of data records. A [`Session`] turns units into
//! messages: it stamps time and sequence number, so that these say what was sent and not what was
//! encoded, sends templates again in time, and tells collectors what it sent and what it could not.

mod body;
mod field;
mod file;
mod ipfix;
mod netflow5;
mod netflow9;
mod options;
mod record;
mod session;
mod shape;
mod uptime;

use std::fmt;

use turboflow_record::{Column, ColumnElement, FlowBatch, TimeUnit};

use crate::ExportError;

pub(crate) use file::writer as file_writer;
pub use session::{Message, Refresh, Session, SessionCounters};

/// A wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// RFC 7011.
    Ipfix,
    /// NetFlow v5: 48 octets a record, IPv4 only.
    Netflow5,
    /// RFC 3954.
    Netflow9,
}

impl Protocol {
    /// What people call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ipfix => "IPFIX",
            Self::Netflow5 => "NetFlow v5",
            Self::Netflow9 => "NetFlow v9",
        }
    }

    /// Octets before the first set or record of a message.
    pub(crate) const fn header_bytes(self) -> usize {
        match self {
            Self::Ipfix => 16,
            Self::Netflow9 => 20,
            Self::Netflow5 => 24,
        }
    }

    /// Where in its header a message has its sequence number.
    const fn sequence_at(self) -> usize {
        match self {
            Self::Ipfix => 8,
            Self::Netflow9 => 12,
            Self::Netflow5 => 16,
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The smallest limit on a message that is taken: what RFC 7011, section 10.3.3, sends where the
/// path's MTU is not known.
pub const MIN_MESSAGE_BYTES: usize = 512;

/// The default limit of a message over UDP: with the headers of IPv6 and UDP it leaves a path
/// with an MTU of 1500 some 50 octets for tunnels.
pub const DATAGRAM_BYTES: usize = 1400;

/// The limit of a message over TCP and in files, where nothing is fragmented.
pub const STREAM_MESSAGE_BYTES: usize = 16 << 10;

/// How records are put on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireOptions {
    /// The information elements of the columns, from
    /// [`Definition::elements`](turboflow_record::Definition::elements).
    pub elements: Vec<ColumnElement>,
    /// Observation domain (NetFlow v9: source id; v5: its low octet is the engine id).
    pub domain: u32,
    /// Octets of a message at most.
    pub message_bytes: usize,
    /// Whether options go along: sampling, statistics, and what our own elements are.
    pub has_options: bool,
}

impl Default for WireOptions {
    fn default() -> Self {
        Self {
            elements: Vec::new(),
            domain: 1,
            message_bytes: DATAGRAM_BYTES,
            has_options: true,
        }
    }
}

/// A piece of a message that waits for its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A template record; it comes before the first data that needs it.
    Template(Vec<u8>),
    /// Data records.
    Data(DataRecords),
}

/// Sets of data records (NetFlow v5: records), and what they hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataRecords {
    /// What follows the header.
    pub bytes: Vec<u8>,
    /// Data records as the wire counts them.
    pub records: u32,
    /// Flow records that end in them: less than `records` where NetFlow v5 splits one.
    pub flows: u32,
    /// Packets of the flows.
    pub packets: u64,
    /// Octets of the flows.
    pub octets: u64,
    /// What NetFlow's uptime counts from, in ms since 1970.
    pub boot_ms: u64,
    /// The latest time in the records, in ms since 1970; 0 where they have none.
    pub latest_ms: u64,
}

/// Flow records that a wire format could not hold, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unexportable {
    /// IPv6 flows, or flows without an address, where the format knows IPv4 alone.
    pub not_ipv4: u64,
    /// A record longer than a message may be.
    pub too_large: u64,
    /// A flow of more than 47 days, or of more octets than its packets can be split for.
    pub out_of_range: u64,
    /// NetFlow v9 only: a combination of absent values that has no template any more.
    pub no_template: u64,
}

impl Unexportable {
    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.not_ipv4 + self.too_large + self.out_of_range + self.no_template
    }
}

/// Batches in, units out.
pub trait Encode: Send {
    /// Encodes the records of `batch`; a body that is not full may wait for the next batch.
    fn encode(&mut self, batch: &FlowBatch, emit: &mut dyn FnMut(Unit));
    /// Emits the body that waits.
    fn flush(&mut self, emit: &mut dyn FnMut(Unit));
    /// What could not be encoded so far.
    fn unexportable(&self) -> Unexportable;
}

/// The encoder of `protocol` for records of that schema.
///
/// # Errors
/// [`ExportError::Encode`] where the format cannot hold such records at all: the reason says
/// which column is missing or too much.
pub fn encoder(
    protocol: Protocol,
    schema: &[Column],
    options: &WireOptions,
    place: &str,
) -> Result<Box<dyn Encode>, ExportError> {
    let refused = |reason: String| ExportError::Encode {
        place: place.to_owned(),
        format: protocol.name(),
        reason,
    };
    if options.elements.len() != schema.len() {
        return Err(refused(
            "its columns have no information elements".to_owned(),
        ));
    }
    if options.message_bytes < MIN_MESSAGE_BYTES {
        return Err(refused(format!(
            "messages of {} bytes are too short: allow {MIN_MESSAGE_BYTES} or more",
            options.message_bytes
        )));
    }
    match protocol {
        Protocol::Ipfix | Protocol::Netflow9 => {
            let encoder = record::Encoder::new(protocol, schema, options).map_err(refused)?;
            Ok(Box::new(encoder))
        }
        Protocol::Netflow5 => {
            let encoder = netflow5::Encoder::new(schema, options).map_err(refused)?;
            Ok(Box::new(encoder))
        }
    }
}

/// The columns that `protocol` leaves out: NetFlow has no enterprise elements and no lists, and v5
/// has fixed fields.
#[must_use]
pub fn left_out<'a>(
    protocol: Protocol,
    schema: &'a [Column],
    elements: &[ColumnElement],
) -> Vec<&'a str> {
    let columns = schema.iter().zip(elements);
    let unknown = columns.filter(|(_, element)| match protocol {
        Protocol::Ipfix => false,
        Protocol::Netflow9 => !field::is_in_netflow9(element),
        Protocol::Netflow5 => !netflow5::has(element),
    });
    unknown.map(|(column, _)| column.name.as_str()).collect()
}

/// Whether a column of times is one in which collectors look for a flow's start or end.
const fn time_unit_of(id: u16) -> Option<TimeUnit> {
    match id {
        152 | 153 => Some(TimeUnit::Milliseconds),
        154 | 155 => Some(TimeUnit::Microseconds),
        156 | 157 => Some(TimeUnit::Nanoseconds),
        _ => None,
    }
}
