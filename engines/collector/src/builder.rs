// SPDX-License-Identifier: Apache-2.0
//! Messages of exporters, built for tests and measurements.

#![allow(dead_code, reason = "tests and benchmarks use different parts")]

/// Fields of a usual template, with their lengths: addresses, ports, protocol, flags, packets,
/// octets, start and end in milliseconds.
pub(crate) const USUAL: &[(u16, u16)] = &[
    (8, 4),
    (12, 4),
    (7, 2),
    (11, 2),
    (4, 1),
    (6, 1),
    (2, 8),
    (1, 8),
    (152, 8),
    (153, 8),
];

/// A flow record for [`USUAL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usual {
    pub(crate) source: u32,
    pub(crate) port: u16,
    pub(crate) flags: u8,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) start_ms: u64,
    pub(crate) end_ms: u64,
}

impl Usual {
    pub(crate) fn octets(&self) -> Vec<u8> {
        let mut octets = self.source.to_be_bytes().to_vec();
        octets.extend([10, 0, 0, 9]);
        octets.extend(self.port.to_be_bytes());
        octets.extend(80u16.to_be_bytes());
        octets.extend([6, self.flags]);
        for number in [self.packets, self.bytes, self.start_ms, self.end_ms] {
            octets.extend(number.to_be_bytes());
        }
        octets
    }
}

/// A set with its header.
pub(crate) fn set(id: u16, content: &[u8]) -> Vec<u8> {
    let mut set = id.to_be_bytes().to_vec();
    set.extend((content.len() as u16 + 4).to_be_bytes());
    set.extend(content);
    set
}

/// A template record.
pub(crate) fn template(id: u16, fields: &[(u16, u16)]) -> Vec<u8> {
    let mut record = id.to_be_bytes().to_vec();
    record.extend((fields.len() as u16).to_be_bytes());
    record.extend(specifiers(fields));
    record
}

/// An options template record of IPFIX whose first field is its only scope field.
pub(crate) fn options_template(id: u16, fields: &[(u16, u16)]) -> Vec<u8> {
    let mut record = id.to_be_bytes().to_vec();
    record.extend((fields.len() as u16).to_be_bytes());
    record.extend([0, 1]);
    record.extend(specifiers(fields));
    record
}

/// Field specifiers. Numbers from 0x8000 on get the enterprise number of reverse elements.
fn specifiers(fields: &[(u16, u16)]) -> Vec<u8> {
    let mut octets = Vec::new();
    for (id, length) in fields {
        octets.extend(id.to_be_bytes());
        octets.extend(length.to_be_bytes());
        if id & 0x8000 != 0 {
            octets.extend(29_305u32.to_be_bytes());
        }
    }
    octets
}

/// An IPFIX message.
pub(crate) fn ipfix(domain: u32, sequence: u32, export_s: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    let sets = sets.concat();
    let mut message = 10u16.to_be_bytes().to_vec();
    message.extend((sets.len() as u16 + 16).to_be_bytes());
    for word in [export_s, sequence, domain] {
        message.extend(word.to_be_bytes());
    }
    message.extend(sets);
    message
}

/// A NetFlow v9 message.
pub(crate) fn netflow9(
    source: u32,
    sequence: u32,
    export_s: u32,
    uptime_ms: u32,
    sets: &[Vec<u8>],
) -> Vec<u8> {
    let mut message = vec![0, 9, 0, 1];
    for word in [uptime_ms, export_s, sequence, source] {
        message.extend(word.to_be_bytes());
    }
    message.extend(sets.concat());
    message
}

/// A NetFlow v5 message with records of one flow each: packets, octets, first and last uptime.
pub(crate) fn netflow5(
    sequence: u32,
    export_s: u32,
    uptime_ms: u32,
    sampling: u16,
    flows: &[[u32; 4]],
) -> Vec<u8> {
    let mut message = vec![0, 5];
    message.extend((flows.len() as u16).to_be_bytes());
    for word in [uptime_ms, export_s, 0, sequence] {
        message.extend(word.to_be_bytes());
    }
    message.extend([0, 0]);
    message.extend(sampling.to_be_bytes());
    for (at, flow) in flows.iter().enumerate() {
        let mut record = [0; 48];
        record[..4].copy_from_slice(&(0x0a00_0001 + at as u32).to_be_bytes());
        record[4..8].copy_from_slice(&[10, 0, 0, 9]);
        for (place, number) in record[16..32].chunks_exact_mut(4).zip(flow) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        record[33] = 99;
        record[35] = 53;
        record[38] = 17;
        message.extend(record);
    }
    message
}

/// A datagram of sFlow from 192.0.2.1.
pub(crate) fn sflow(sequence: u32, samples: &[Vec<u8>]) -> Vec<u8> {
    let mut datagram = words(&[5, 1, 0xc000_0201, 0, sequence, 5_000, samples.len() as u32]);
    datagram.extend(samples.concat());
    datagram
}

/// The values by which flow samples of sFlow differ in tests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowSample {
    pub(crate) sequence: u32,
    pub(crate) one_of: u32,
    pub(crate) dropped: u32,
    pub(crate) is_expanded: bool,
}

impl FlowSample {
    /// The sample of one packet with these descriptions, received on interface 7 and sent on 9.
    pub(crate) fn octets(&self, described: &[Vec<u8>]) -> Vec<u8> {
        let Self {
            sequence,
            one_of,
            dropped,
            ..
        } = *self;
        let head = match self.is_expanded {
            true => words(&[sequence, 0, 7, one_of, 1_000, dropped, 0, 7, 0, 9]),
            false => words(&[sequence, 7, one_of, 1_000, dropped, 7, 9]),
        };
        let count = words(&[described.len() as u32]);
        let format = if self.is_expanded { 3 } else { 1 };
        of_format(format, &[head, count, described.concat()].concat())
    }
}

/// A structure of sFlow: its format, its length and itself.
pub(crate) fn of_format(format: u32, body: &[u8]) -> Vec<u8> {
    [words(&[format, body.len() as u32]), body.to_vec()].concat()
}

/// The first bytes of an Ethernet frame, as sFlow describes a packet.
pub(crate) fn first_bytes(frame: &[u8], wire_length_bytes: u32) -> Vec<u8> {
    let mut body = words(&[1, wire_length_bytes, 4, frame.len() as u32]);
    body.extend(frame);
    body.resize(body.len().next_multiple_of(4), 0);
    of_format(1, &body)
}

/// Numbers of 32 bits in network order.
pub(crate) fn words(numbers: &[u32]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_be_bytes())
        .collect()
}
