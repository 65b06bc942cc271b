// SPDX-License-Identifier: Apache-2.0
//! Frames: headers with correct lengths and checksums, a payload of zeros, and a buffer of
//! consecutive frames.

use turboflow_packet::{Frame, LinkType};
use turboflow_record::{Family, TCP_ACK};

use super::flows::{Endpoints, PREFIX_V6};

/// Protocol number of TCP.
pub(crate) const TCP: u8 = 6;
/// Protocol number of UDP.
pub(crate) const UDP: u8 = 17;

/// Room for the longest headers: Ethernet with tag, IPv6 and TCP (78 bytes), in whole words.
const HEADERS_BYTES_MAX: usize = 80;

/// Frames in one block of memory, with their times and lengths.
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
    /// An empty buffer with memory for that many frames of that many captured bytes. It grows if
    /// needed.
    #[must_use]
    pub fn with_capacity(frames: usize, captured_bytes: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(frames * captured_bytes + HEADERS_BYTES_MAX),
            places: Vec::with_capacity(frames),
        }
    }

    /// Number of frames.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are no frames.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The captured bytes of all frames, concatenated.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Removes all frames, and keeps the allocation.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
    }

    /// Frame `index`, in order of time.
    ///
    /// # Panics
    /// If there is no such frame.
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

    /// Appends a frame whose bytes are written by `append`.
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

    /// Appends a frame. Returns its length on the wire and its captured length, in bytes.
    #[inline(always)]
    pub(crate) fn push(&mut self, headers: &Headers, shape: &Shape) -> (u32, u32) {
        let start = self.bytes.len();
        // Headers are written in place. Copying them would stall until their stores complete.
        self.bytes.extend_from_slice(&[0; HEADERS_BYTES_MAX]);
        let room = self.bytes.last_chunk_mut().expect("it was just appended");
        let headers_bytes = headers.encode(room, shape);
        let wire_bytes = shape.frame_bytes.max(headers_bytes);
        let captured_bytes = wire_bytes.min(shape.snap_bytes);
        let end = start + captured_bytes as usize;
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

/// The properties of a packet that do not depend on its flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Requested length of the frame, in bytes.
    pub(crate) frame_bytes: u32,
    pub(crate) snap_bytes: u32,
    pub(crate) timestamp_ns: u64,
    /// Number of the packet. Its IP identification and TCP sequence number are made from it.
    pub(crate) number: u64,
}

/// The header fields that depend on the flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headers {
    pub(crate) ends: Endpoints,
    pub(crate) family: Family,
    pub(crate) protocol: u8,
    pub(crate) vlan: Option<u16>,
    pub(crate) ttl: u8,
    pub(crate) tcp_flags: u16,
}

/// The Internet checksum of a sum of words: folded and inverted (RFC 1071).
#[inline(always)]
pub(crate) fn checksum(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    !(sum as u16)
}

/// The sum of the 16-bit words in the IPv6 prefixes of both addresses.
const PREFIXES_SUM: u64 = 2 * (0x2001 + 0x0db8);

/// Space for headers, filled with zeros.
type Room = [u8; HEADERS_BYTES_MAX];

/// Writes bytes at an offset.
#[inline(always)]
fn put<const N: usize>(room: &mut Room, at: usize, bytes: [u8; N]) {
    room[at..at + N].copy_from_slice(&bytes);
}

impl Headers {
    /// Writes all headers, and returns their length in bytes.
    ///
    /// Everything is inlined, so that each branch has constant header offsets.
    #[inline(always)]
    fn encode(&self, room: &mut Room, shape: &Shape) -> u32 {
        const LOCAL_ADDRESSES: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
        put(room, 0, LOCAL_ADDRESSES);
        match self.vlan {
            None => self.encode_ip(room, 14, shape),
            Some(vlan) => {
                put(room, 12, (0x8100_0000 | u32::from(vlan)).to_be_bytes());
                self.encode_ip(room, 18, shape)
            }
        }
    }

    #[inline(always)]
    fn encode_ip(&self, room: &mut Room, at: usize, shape: &Shape) -> u32 {
        let transport_bytes = if self.protocol == TCP { 20 } else { 8 };
        let segment_bytes = |ip_header_bytes: u32| {
            let headers_bytes = at as u32 + ip_header_bytes;
            let segment_bytes = shape.frame_bytes.saturating_sub(headers_bytes);
            segment_bytes.max(transport_bytes) as u16
        };
        match self.family {
            Family::V4 => {
                let segment_bytes = segment_bytes(20);
                self.encode_v4(room, at, segment_bytes + 20, shape.number as u16);
                self.encode_transport(room, at + 20, segment_bytes, 0, shape.number);
                at as u32 + 20 + transport_bytes
            }
            Family::V6 => {
                let segment_bytes = segment_bytes(40);
                self.encode_v6(room, at, segment_bytes);
                self.encode_transport(room, at + 40, segment_bytes, PREFIXES_SUM, shape.number);
                at as u32 + 40 + transport_bytes
            }
        }
    }

    /// Writes the IPv4 header and the ethertype before it. `at` is the offset of the ethertype.
    #[inline(always)]
    fn encode_v4(&self, room: &mut Room, at: usize, ip_bytes: u16, identification: u16) {
        const TYPE_VERSION: u32 = 0x0800_4500;
        const DO_NOT_FRAGMENT: u64 = 0x4000;
        let ends = &self.ends;
        let time_and_protocol = u64::from(self.ttl) << 8 | u64::from(self.protocol);
        let sum = 0x4500
            + u64::from(ip_bytes)
            + u64::from(identification)
            + DO_NOT_FRAGMENT
            + time_and_protocol
            + u64::from(ends.source)
            + u64::from(ends.destination);
        let first = u64::from(ip_bytes) << 48
            | u64::from(identification) << 32
            | DO_NOT_FRAGMENT << 16
            | time_and_protocol;
        put(room, at - 2, TYPE_VERSION.to_be_bytes());
        put(room, at + 2, first.to_be_bytes());
        put(room, at + 10, checksum(sum).to_be_bytes());
        let addresses = u64::from(ends.source) << 32 | u64::from(ends.destination);
        put(room, at + 12, addresses.to_be_bytes());
    }

    /// Writes the IPv6 header and the ethertype before it. `at` is the offset of the ethertype.
    #[inline(always)]
    fn encode_v6(&self, room: &mut Room, at: usize, payload_bytes: u16) {
        const TYPE_VERSION: u64 = 0x86dd_6000 << 32;
        let first = TYPE_VERSION | u64::from(payload_bytes);
        put(room, at - 2, first.to_be_bytes());
        put(room, at + 6, [self.protocol, self.ttl]);
        put(room, at + 8, PREFIX_V6);
        put(room, at + 20, self.ends.source.to_be_bytes());
        put(room, at + 24, PREFIX_V6);
        put(room, at + 36, self.ends.destination.to_be_bytes());
    }

    /// `prefixes_sum` is the checksum contribution of the addresses, without their last 32 bits.
    #[inline(always)]
    fn encode_transport(
        &self,
        room: &mut Room,
        at: usize,
        segment_bytes: u16,
        prefixes_sum: u64,
        number: u64,
    ) {
        let ends = &self.ends;
        let ports = u32::from(ends.source_port) << 16 | u32::from(ends.destination_port);
        // The sum of 16-bit halves. Carries are folded in at the end.
        let sum = prefixes_sum
            + u64::from(ends.source)
            + u64::from(ends.destination)
            + u64::from(self.protocol)
            + u64::from(segment_bytes)
            + u64::from(ports);
        if self.protocol == TCP {
            self.encode_tcp(room, at, sum, ports, number as u32);
        } else {
            encode_udp(room, at, sum, ports, segment_bytes);
        }
    }

    #[inline(always)]
    fn encode_tcp(&self, room: &mut Room, at: usize, sum: u64, ports: u32, sequence: u32) {
        const WINDOW: u32 = 0xfaf0;
        let acknowledgement = if self.tcp_flags & TCP_ACK == 0 {
            0
        } else {
            !sequence
        };
        let offset_flags_window = 0x5000_0000 | u32::from(self.tcp_flags) << 16 | WINDOW;
        let sum =
            sum + u64::from(sequence) + u64::from(acknowledgement) + u64::from(offset_flags_window);
        let ports_and_sequence = u64::from(ports) << 32 | u64::from(sequence);
        let rest = u64::from(acknowledgement) << 32 | u64::from(offset_flags_window);
        put(room, at, ports_and_sequence.to_be_bytes());
        put(room, at + 8, rest.to_be_bytes());
        put(room, at + 16, checksum(sum).to_be_bytes());
    }
}

#[inline(always)]
fn encode_udp(room: &mut Room, at: usize, sum: u64, ports: u32, segment_bytes: u16) {
    // A checksum of 0 would mean that there is none (RFC 768).
    let checksum = match checksum(sum + u64::from(segment_bytes)) {
        0 => 0xffff,
        sum => sum,
    };
    let header = u64::from(ports) << 32 | u64::from(segment_bytes) << 16 | u64::from(checksum);
    put(room, at, header.to_be_bytes());
}
