// SPDX-License-Identifier: Apache-2.0
//! NetFlow v5: fixed records of 48 octets, IPv4 only, 32-bit counters.
//!
//! Flows that are not IPv4 are counted as not exportable. A flow whose counters exceed 32 bits is
//! split into several records, whose counters add up to those of the flow.

use std::net::{IpAddr, Ipv4Addr};

use turboflow_record::{Column, ColumnElement, FlowBatch, Value};

use super::uptime::{Fit, Uptime, latest_ms, sent_ms};
use super::{DataRecords, Encode, Protocol, Unexportable, Unit, WireOptions};

/// Octets of a record.
const RECORD_BYTES: usize = 48;
/// Maximum number of records in a message: Cisco's limit, which readers rely on.
const MAX_RECORDS: usize = 30;
/// Maximum number of records into which a flow is split: enough for 4 TiB of octets.
const MAX_PARTS: u64 = 1_024;
const NS_PER_MS: u64 = 1_000_000;

/// The index of the column for each v5 field.
#[derive(Clone, Copy, Debug)]
struct Columns {
    source: usize,
    destination: usize,
    packets: usize,
    octets: usize,
    start: usize,
    end: usize,
    source_port: Option<usize>,
    destination_port: Option<usize>,
    protocol: Option<usize>,
    tcp_flags: Option<usize>,
    tos: Option<usize>,
    ingress: Option<usize>,
    egress: Option<usize>,
}

/// The information elements for each v5 field; the first one that has a column is used.
const SOURCE: &[u16] = &[8];
const DESTINATION: &[u16] = &[12];
const PACKETS: &[u16] = &[2];
const OCTETS: &[u16] = &[1];
const START: &[u16] = &[152, 154, 156];
const END: &[u16] = &[153, 155, 157];
const OTHERS: [u16; 7] = [7, 11, 4, 6, 5, 10, 14];

/// Turns batches into bodies of records.
pub(super) struct Encoder {
    columns: Columns,
    /// The interface of records that have no interface column: see [`WireOptions::interface`].
    interface: u32,
    max_records: u32,
    data: DataRecords,
    uptime: Uptime,
    unexportable: Unexportable,
}

/// Whether v5 has a field for the column.
pub(super) fn has(column: &ColumnElement) -> bool {
    let known = [SOURCE, DESTINATION, PACKETS, OCTETS, START, END, &OTHERS];
    column.v4.enterprise.is_none() && known.iter().any(|ids| ids.contains(&column.v4.id))
}

impl Encoder {
    pub(super) fn new(schema: &[Column], options: &WireOptions) -> Result<Self, String> {
        if schema
            .iter()
            .any(|column| column.name.starts_with("reverse_"))
        {
            return Err(
                "it has no fields for the other direction of a biflow; use IPFIX, or \
                 leave biflows out"
                    .to_owned(),
            );
        }
        let room = options.message_bytes - Protocol::Netflow5.header_bytes();
        Ok(Self {
            columns: Columns::find(&options.elements)?,
            interface: options.interface.unwrap_or(0),
            max_records: (room / RECORD_BYTES).min(MAX_RECORDS) as u32,
            data: DataRecords::default(),
            uptime: Uptime::default(),
            unexportable: Unexportable::default(),
        })
    }

    fn row(&mut self, batch: &FlowBatch, row: usize, emit: &mut dyn FnMut(Unit)) {
        let columns = self.columns;
        let of = |column: usize| match batch.value(row, column) {
            Value::Unsigned(number) => number,
            _ => 0,
        };
        let address = |column: usize| match batch.value(row, column) {
            Value::Address(IpAddr::V4(address)) => Some(address),
            _ => None,
        };
        let (source, destination) = (address(columns.source), address(columns.destination));
        let (Some(source), Some(destination)) = (source, destination) else {
            self.unexportable.not_ipv4 += 1;
            return;
        };
        let (packets, octets) = (of(columns.packets), of(columns.octets));
        let (start_ms, end_ms) = (of(columns.start) / NS_PER_MS, of(columns.end) / NS_PER_MS);
        let parts = octets.div_ceil(u64::from(u32::MAX)).max(1);
        let parts = parts.max(packets.div_ceil(u64::from(u32::MAX)));
        if parts > packets.clamp(1, MAX_PARTS) {
            self.unexportable.out_of_range += 1;
            return;
        }
        let before = self.uptime;
        let (least_ms, most_ms) = (start_ms.min(end_ms), end_ms.max(start_ms));
        let fit = self.uptime.fit(least_ms, most_ms);
        if fit == Fit::Never {
            self.unexportable.out_of_range += 1;
            return;
        }
        if fit == Fit::Moved {
            let after = std::mem::replace(&mut self.uptime, before);
            self.flush(emit);
            self.uptime = after;
        }
        let optional = |column: Option<usize>| column.map_or(0, of);
        let interfaces = match (columns.ingress, columns.egress) {
            (None, None) => [u64::from(self.interface), 0],
            columns => [optional(columns.0), optional(columns.1)],
        };
        for part in 0..parts {
            let flow = Record {
                addresses: [source, destination],
                // An interface index that does not fit in 16 bits is exported as unknown (0).
                interfaces: interfaces.map(|index| u16::try_from(index).unwrap_or(0)),
                packets: share(packets, part, parts),
                octets: share(octets, part, parts),
                times_ms: [start_ms, end_ms].map(|ms| (ms - self.uptime.boot_ms()) as u32),
                ports: [columns.source_port, columns.destination_port]
                    .map(|column| optional(column) as u16),
                tcp_flags: optional(columns.tcp_flags) as u8,
                protocol: optional(columns.protocol) as u8,
                tos: optional(columns.tos) as u8,
            };
            flow.write(&mut self.data.bytes);
            self.data.records += 1;
            self.data.latest_ms = self.data.latest_ms.max(latest_ms(most_ms));
            if part + 1 == parts {
                self.data.flows += 1;
                self.data.packets = self.data.packets.wrapping_add(packets);
                self.data.octets = self.data.octets.wrapping_add(octets);
            }
            if self.data.records == self.max_records {
                self.flush(emit);
            }
        }
    }
}

impl Encode for Encoder {
    fn encode(&mut self, batch: &FlowBatch, emit: &mut dyn FnMut(Unit)) {
        for row in 0..batch.rows() {
            self.row(batch, row, emit);
        }
    }

    fn flush(&mut self, emit: &mut dyn FnMut(Unit)) {
        if self.data.records > 0 {
            let mut data = std::mem::take(&mut self.data);
            data.boot_ms = self.uptime.boot_ms();
            emit(Unit::Data(data));
        }
    }

    fn unexportable(&self) -> Unexportable {
        self.unexportable
    }
}

impl Columns {
    fn find(elements: &[ColumnElement]) -> Result<Self, String> {
        let optional = |ids: &[u16]| {
            elements
                .iter()
                .position(|column| column.v4.enterprise.is_none() && ids.contains(&column.v4.id))
        };
        let needed = |ids: &[u16], what: &str| {
            optional(ids).ok_or_else(|| {
                format!("its records need {what}, which the definition does not have; use IPFIX")
            })
        };
        Ok(Self {
            source: needed(SOURCE, "the source address as a key field")?,
            destination: needed(DESTINATION, "the destination address as a key field")?,
            packets: needed(PACKETS, "a count of packets")?,
            octets: needed(OCTETS, "a sum of ip_length")?,
            start: needed(START, "a min of timestamp")?,
            end: needed(END, "a max of timestamp")?,
            source_port: optional(&[7]),
            destination_port: optional(&[11]),
            protocol: optional(&[4]),
            tcp_flags: optional(&[6]),
            tos: optional(&[5]),
            ingress: optional(&[10]),
            egress: optional(&[14]),
        })
    }
}

/// The share of part number `part` if `whole` is divided into `parts` almost equal parts.
fn share(whole: u64, part: u64, parts: u64) -> u32 {
    let up_to = |part: u64| u128::from(whole) * u128::from(part) / u128::from(parts);
    (up_to(part + 1) - up_to(part)) as u32
}

struct Record {
    addresses: [Ipv4Addr; 2],
    interfaces: [u16; 2],
    packets: u32,
    octets: u32,
    times_ms: [u32; 2],
    ports: [u16; 2],
    tcp_flags: u8,
    protocol: u8,
    tos: u8,
}

impl Record {
    /// Appends the record. Unknown fields (next hop, AS numbers, masks) are 0, as from any probe
    /// that is not a router.
    ///
    /// ```text
    ///  0 source address    4 destination address   8 next hop        12 in  14 out
    /// 16 packets          20 octets               24 first          28 last
    /// 32 source port  34 destination port  36 0  37 TCP flags  38 protocol  39 type of service
    /// 40 source AS    42 destination AS    44 source mask  45 destination mask  46 0
    /// ```
    fn write(&self, out: &mut Vec<u8>) {
        out.reserve(RECORD_BYTES);
        for address in self.addresses {
            out.extend_from_slice(&address.octets());
        }
        out.extend_from_slice(&[0; 4]);
        for interface in self.interfaces {
            out.extend_from_slice(&interface.to_be_bytes());
        }
        for number in [
            self.packets,
            self.octets,
            self.times_ms[0],
            self.times_ms[1],
        ] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        for port in self.ports {
            out.extend_from_slice(&port.to_be_bytes());
        }
        out.extend_from_slice(&[0, self.tcp_flags, self.protocol, self.tos]);
        out.extend_from_slice(&[0; 8]);
    }
}

/// The header of a message (24 octets). Its sequence number is the number of records sent before
/// this message, and is filled in when the message is sent.
///
/// ```text
///  0 version 5   2 count      4 uptime, ms   8 seconds since 1970   12 nanoseconds
/// 16 sequence                20 engine type  21 engine id           22 sampling
/// ```
pub(super) fn header(data: &DataRecords, domain: u32, now_ms: u64) -> [u8; 24] {
    let sent_ms = sent_ms(now_ms, data.latest_ms);
    let uptime_ms = sent_ms.saturating_sub(data.boot_ms) as u32;
    let seconds = (sent_ms / 1_000) as u32;
    let nanoseconds = (sent_ms % 1_000 * NS_PER_MS) as u32;
    let mut header = [0; 24];
    header[..2].copy_from_slice(&5u16.to_be_bytes());
    header[2..4].copy_from_slice(&(data.records as u16).to_be_bytes());
    let words = [uptime_ms, seconds, nanoseconds];
    for (place, word) in header[4..16].chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    // Collectors tell exporters at one address apart by type and id: 8 bits would often collide.
    header[20..22].copy_from_slice(&(domain as u16).to_be_bytes());
    // Sampling mode 0 and interval 1: some readers multiply by the interval.
    header[23] = 1;
    header
}
