// SPDX-License-Identifier: Apache-2.0
//! Flow records on the wire: IPFIX (RFC 7011), NetFlow v9 (RFC 3954) and NetFlow v5.
//!
//! There are two halves, neither of which reads a clock or opens a socket. An [`Encode`] turns
//! batches of columns into [`Unit`]s: templates, and bodies of data records. A [`Session`] turns
//! units into messages. It adds the export time and, when a message is sent, the sequence number,
//! so that messages that were never sent leave no gap. It repeats templates at intervals, and
//! reports to collectors what was sent and what was lost.

mod applications;
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
mod template_ids;
mod uptime;

use std::fmt;
use std::sync::Arc;

use turboflow_record::{ApplicationNames, Column, ColumnElement, FlowBatch, TimeUnit};

use crate::{ExportError, Unexportable};

pub(crate) use file::writer as file_writer;
pub(crate) use options::{DEFINITION_ELEMENTS, DOMAIN_NAMES};
pub use session::{Message, Refresh, Session, SessionCounters};

/// A wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// RFC 7011.
    Ipfix,
    /// NetFlow v5: 48 octets per record, IPv4 only.
    Netflow5,
    /// RFC 3954.
    Netflow9,
}

impl Protocol {
    /// The name of the protocol.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ipfix => "IPFIX",
            Self::Netflow5 => "NetFlow v5",
            Self::Netflow9 => "NetFlow v9",
        }
    }

    /// Octets of a message header.
    pub(crate) const fn header_bytes(self) -> usize {
        match self {
            Self::Ipfix => 16,
            Self::Netflow9 => 20,
            Self::Netflow5 => 24,
        }
    }

    /// Offset of the sequence number in the header.
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

/// The smallest maximum message length, in octets: RFC 7011, section 10.3.3, requires it if the
/// path MTU is unknown.
pub const MIN_MESSAGE_BYTES: usize = 512;

/// Default maximum message length over UDP, in octets. With IPv6 and UDP headers, it leaves about
/// 50 octets of an MTU of 1500 for tunnels.
pub const DATAGRAM_BYTES: usize = 1400;

/// Maximum message length over TCP and in files, in octets; nothing is fragmented there.
pub const STREAM_MESSAGE_BYTES: usize = 16 << 10;

/// How records are encoded for the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireOptions {
    /// The information elements of the columns, from
    /// [`Definition::elements`](turboflow_record::Definition::elements).
    pub elements: Vec<ColumnElement>,
    /// Observation domain (NetFlow v9: source id; v5: the low two octets become engine type and
    /// engine id).
    pub domain: u32,
    /// Maximum length of a message in octets.
    pub message_bytes: usize,
    /// Whether options are sent: sampling, statistics, and type information for our own elements.
    pub has_options: bool,
    /// The names of applications, if records contain applications: they determine the numbers and
    /// the categories that are sent.
    pub applications: Option<Arc<ApplicationNames>>,
    /// The index of the interface on which all packets were observed, if there is exactly one. It
    /// is sent as `ingressInterface` if the records have no such column; `egressInterface` is then
    /// 0, unknown. Some collectors drop records without these two elements.
    pub interface: Option<u32>,
}

impl Default for WireOptions {
    fn default() -> Self {
        Self {
            elements: Vec::new(),
            domain: 1,
            message_bytes: DATAGRAM_BYTES,
            has_options: true,
            applications: None,
            interface: None,
        }
    }
}

/// A part of a message, without its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A template record; it precedes the first data that needs it.
    Template(Vec<u8>),
    /// An options record that names an application; it precedes the first data that needs it.
    Name(Vec<u8>),
    /// Data records.
    Data(DataRecords),
    /// All records of packets before this time, in nanoseconds since 1970, have been passed on.
    /// Messages of flow records do not convey this; those of microflow records do.
    Complete(u64),
}

/// Sets of data records (in NetFlow v5: plain records), and their totals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataRecords {
    /// The octets after the message header.
    pub bytes: Vec<u8>,
    /// Number of data records, as the protocol counts them.
    pub records: u32,
    /// Number of flow records that end here: less than `records` if NetFlow v5 splits a flow
    /// record.
    pub flows: u32,
    /// Packets of the flows.
    pub packets: u64,
    /// Octets of the flows.
    pub octets: u64,
    /// Origin of NetFlow's uptime, in milliseconds since 1970.
    pub boot_ms: u64,
    /// The latest time in the records, in milliseconds since 1970; 0 if they have none.
    pub latest_ms: u64,
}

/// Encodes batches as units.
pub trait Encode: Send {
    /// Encodes the records of `batch`. A body that is not full is kept for the next batch.
    fn encode(&mut self, batch: &FlowBatch, emit: &mut dyn FnMut(Unit));
    /// Emits the body that was kept, even if it is not full.
    fn flush(&mut self, emit: &mut dyn FnMut(Unit));
    /// Counts of the records that could not be encoded so far.
    fn unexportable(&self) -> Unexportable;
}

/// The encoder of `protocol` for records with the columns of a schema.
///
/// # Errors
/// [`ExportError::Encode`] if the format cannot hold such records at all. The reason names the
/// column that is missing or not supported.
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

/// The columns that `protocol` cannot carry: NetFlow has no enterprise elements, no lists and no
/// texts, and the fields of v5 are fixed.
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

/// The time unit of an element that is a flow's start or end time.
const fn time_unit_of(id: u16) -> Option<TimeUnit> {
    match id {
        152 | 153 => Some(TimeUnit::Milliseconds),
        154 | 155 => Some(TimeUnit::Microseconds),
        156 | 157 => Some(TimeUnit::Nanoseconds),
        _ => None,
    }
}
