// SPDX-License-Identifier: Apache-2.0
//! Frames: headers with right lengths and checksums before a payload of zeros, and the buffer
//! that holds them one after the other.

use turboflow_packet::{Frame, LinkType};
use turboflow_record::{Family, TCP_ACK};

use super::flows::{Endpoints, PREFIX_V6};

/// Protocol number of TCP.
pub(crate) const TCP: u8 = 6;
/// Protocol number of UDP.
pub(crate) const UDP: u8 = 17;

/// Room for the longest headers, Ethernet with tag, IPv6 and TCP (78 bytes), in whole words.
const HEADERS_BYTES_MAX: usize = 80;

/// Frames in one piece of memory, with their times and lengths.
#[derive(Clone, Debug, Default)]
pub struct FrameBuffer {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    timestamp_ns: u64,
    end: usize,
    wire_length_bytes: u32,
    link_type: LinkType,
}

impl FrameBuffer {
    /// An empty buffer with memory for so many frames of so many captured bytes each; it grows
    /// where they turn out longer.
    #[must_use]
    pub fn with_capacity(frames: usize, captured_bytes: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(frames * captured_bytes + HEADERS_BYTES_MAX),
            places: Vec::with_capacity(frames),
        }
    }

    /// How many frames it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The captured bytes of all frames, one after the other.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Removes all frames and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
    }

    /// Frame `index`, in order of time.
    ///
    /// # Panics
    /// When there is no such frame.
    #[inline(always)]
    #[must_use]
    pub fn frame(&self, index: usize) -> Frame<'_> {
        let place = &self.places[index];
        let start = if index == 0 {
            0
        } else {
            self.places[index - 1].end
        };
        Frame {
            bytes: &self.bytes[start..place.end],
            wire_length_bytes: place.wire_length_bytes,
            timestamp_ns: place.timestamp_ns,
            interface: 0,
            link_type: place.link_type,
        }
    }

    /// The frames, in order of time.
    #[inline(always)]
    pub fn frames(&self) -> impl ExactSizeIterator<Item = Frame<'_>> {
        (0..self.len()).map(|index| self.frame(index))
    }

    /// Appends a copy of a frame.
    pub fn push_frame(&mut self, frame: &Frame<'_>) {
        self.push_with(frame.timestamp_ns, frame.wire_length_bytes, |bytes| {
            bytes.extend_from_slice(frame.bytes);
        });
        if let Some(place) = self.places.last_mut() {
            place.link_type = frame.link_type;
        }
    }

    /// Appends a frame whose bytes `append` appends.
    pub(crate) fn push_with(
        &mut self,
        timestamp_ns: u64,
        wire_length_bytes: u32,
        append: impl FnOnce(&mut Vec<u8>),
    ) {
        append(&mut self.bytes);
        self.places.push(Place {
            timestamp_ns,
            end: self.bytes.len(),
            wire_length_bytes,
            link_type: LinkType::Ethernet,
        });
    }

    /// Appends a frame; returns its length on the wire and how much of it was captured, in bytes.
    #[inline(always)]
    pub(crate) fn push(&mut self, headers: &Headers, shape: &Shape) -> (u32, u32) {
        let (bytes, headers_bytes) = headers.encode(shape.frame_bytes, shape.number);
        let wire_bytes = shape.frame_bytes.max(headers_bytes);
        let captured_bytes = wire_bytes.min(shape.snap_bytes);
        let end = self.bytes.len() + captured_bytes as usize;
        // A copy of constant length is a few vector moves; what exceeds the frame is cut off.
        self.bytes.extend_from_slice(&bytes);
        self.bytes.resize(end, 0);
        let timestamp_ns = shape.timestamp_ns;
        self.places.push(Place {
            timestamp_ns,
            end,
            wire_length_bytes: wire_bytes,
            link_type: LinkType::Ethernet,
        });
        (wire_bytes, captured_bytes)
    }
}

/// What is a packet's own, beside its flow's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Length asked for, in bytes.
    pub(crate) frame_bytes: u32,
    pub(crate) snap_bytes: u32,
    pub(crate) timestamp_ns: u64,
    /// Number of the packet: its IP identification and TCP sequence number.
    pub(crate) number: u64,
}

/// What the headers of a packet say of its flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headers {
    pub(crate) ends: Endpoints,
    pub(crate) family: Family,
    pub(crate) protocol: u8,
    pub(crate) vlan: Option<u16>,
    pub(crate) ttl: u8,
    pub(crate) tcp_flags: u16,
}

/// The one's complement sum of the words given (RFC 1071), folded and inverted.
#[inline(always)]
fn checksum(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    !(sum as u16)
}

/// Bytes of the IPv6 prefix of both addresses as a sum of 16-bit words.
const PREFIXES_SUM: u64 = 2 * (0x2001 + 0x0db8);

impl Headers {
    /// All headers, followed by zeros, and how many bytes they take.
    #[inline(always)]
    fn encode(&self, frame_bytes: u32, number: u64) -> ([u8; HEADERS_BYTES_MAX], u32) {
        let mut bytes = [0; HEADERS_BYTES_MAX];
        let ip = self.encode_ethernet(&mut bytes);
        let transport_bytes = if self.protocol == TCP { 20 } else { 8 };
        let (ip_header_bytes, prefixes_sum) = match self.family {
            Family::V4 => (20, 0),
            Family::V6 => (40, PREFIXES_SUM),
        };
        let headers_bytes = ip as u32 + ip_header_bytes + transport_bytes;
        let ip_bytes = frame_bytes.max(headers_bytes) - ip as u32;
        let segment_bytes = (ip_bytes - ip_header_bytes) as u16;
        match self.family {
            Family::V4 => self.encode_v4(&mut bytes, ip, ip_bytes as u16, number as u16),
            Family::V6 => self.encode_v6(&mut bytes, ip, segment_bytes),
        }
        let pseudo_sum = u64::from(self.ends.source)
            + u64::from(self.ends.destination)
            + prefixes_sum
            + u64::from(self.protocol)
            + u64::from(segment_bytes);
        let transport = ip + ip_header_bytes as usize;
        if self.protocol == TCP {
            self.encode_tcp(&mut bytes, transport, pseudo_sum, number as u32);
        } else {
            self.encode_udp(&mut bytes, transport, pseudo_sum, segment_bytes);
        }
        (bytes, headers_bytes)
    }

    /// Returns where the IP header begins.
    #[inline(always)]
    fn encode_ethernet(&self, bytes: &mut [u8; HEADERS_BYTES_MAX]) -> usize {
        const LOCAL_ADDRESSES: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
        bytes[..12].copy_from_slice(&LOCAL_ADDRESSES);
        let ether_type = match self.family {
            Family::V4 => [0x08, 0x00],
            Family::V6 => [0x86, 0xdd],
        };
        match self.vlan {
            None => {
                bytes[12..14].copy_from_slice(&ether_type);
                14
            }
            Some(vlan) => {
                bytes[12..14].copy_from_slice(&[0x81, 0x00]);
                bytes[14..16].copy_from_slice(&vlan.to_be_bytes());
                bytes[16..18].copy_from_slice(&ether_type);
                18
            }
        }
    }

    #[inline(always)]
    fn encode_v4(&self, bytes: &mut [u8], at: usize, ip_bytes: u16, identification: u16) {
        const DO_NOT_FRAGMENT: u16 = 0x4000;
        let [length0, length1] = ip_bytes.to_be_bytes();
        let [id0, id1] = identification.to_be_bytes();
        let sum = 0x4500
            + u64::from(ip_bytes)
            + u64::from(identification)
            + u64::from(DO_NOT_FRAGMENT)
            + u64::from(u16::from_be_bytes([self.ttl, self.protocol]))
            + u64::from(self.ends.source)
            + u64::from(self.ends.destination);
        let [sum0, sum1] = checksum(sum).to_be_bytes();
        let header = &mut bytes[at..at + 20];
        header[..8].copy_from_slice(&[0x45, 0, length0, length1, id0, id1, 0x40, 0]);
        header[8..12].copy_from_slice(&[self.ttl, self.protocol, sum0, sum1]);
        header[12..16].copy_from_slice(&self.ends.source.to_be_bytes());
        header[16..20].copy_from_slice(&self.ends.destination.to_be_bytes());
    }

    #[inline(always)]
    fn encode_v6(&self, bytes: &mut [u8], at: usize, payload_bytes: u16) {
        let [length0, length1] = payload_bytes.to_be_bytes();
        let header = &mut bytes[at..at + 40];
        header[..8].copy_from_slice(&[0x60, 0, 0, 0, length0, length1, self.protocol, self.ttl]);
        header[8..20].copy_from_slice(&PREFIX_V6);
        header[20..24].copy_from_slice(&self.ends.source.to_be_bytes());
        header[24..36].copy_from_slice(&PREFIX_V6);
        header[36..40].copy_from_slice(&self.ends.destination.to_be_bytes());
    }

    #[inline(always)]
    fn encode_tcp(&self, bytes: &mut [u8], at: usize, pseudo_sum: u64, sequence: u32) {
        const WINDOW: u16 = 0xfaf0;
        let acknowledgement = if self.tcp_flags & TCP_ACK == 0 {
            0
        } else {
            !sequence
        };
        let offset_and_flags = 0x5000 | self.tcp_flags;
        let sum = pseudo_sum
            + u64::from(self.ends.source_port)
            + u64::from(self.ends.destination_port)
            + u64::from(sequence)
            + u64::from(acknowledgement)
            + u64::from(offset_and_flags)
            + u64::from(WINDOW);
        let header = &mut bytes[at..at + 20];
        header[..2].copy_from_slice(&self.ends.source_port.to_be_bytes());
        header[2..4].copy_from_slice(&self.ends.destination_port.to_be_bytes());
        header[4..8].copy_from_slice(&sequence.to_be_bytes());
        header[8..12].copy_from_slice(&acknowledgement.to_be_bytes());
        header[12..14].copy_from_slice(&offset_and_flags.to_be_bytes());
        header[14..16].copy_from_slice(&WINDOW.to_be_bytes());
        header[16..18].copy_from_slice(&checksum(sum).to_be_bytes());
    }

    #[inline(always)]
    fn encode_udp(&self, bytes: &mut [u8], at: usize, pseudo_sum: u64, segment_bytes: u16) {
        let sum = pseudo_sum
            + u64::from(self.ends.source_port)
            + u64::from(self.ends.destination_port)
            + u64::from(segment_bytes);
        // A checksum of 0 would mean that there is none (RFC 768).
        let checksum = match checksum(sum) {
            0 => 0xffff,
            sum => sum,
        };
        let header = &mut bytes[at..at + 8];
        header[..2].copy_from_slice(&self.ends.source_port.to_be_bytes());
        header[2..4].copy_from_slice(&self.ends.destination_port.to_be_bytes());
        header[4..6].copy_from_slice(&segment_bytes.to_be_bytes());
        header[6..8].copy_from_slice(&checksum.to_be_bytes());
    }
}
