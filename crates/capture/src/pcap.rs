// SPDX-License-Identifier: Apache-2.0
//! Classic pcap files.
//!
//! ```text
//!  file:    magic (4) | major (2) minor (2) | time zone (4) | accuracy (4)
//!           | snap length (4) | link type (4)
//!  packet:  seconds (4) | fraction (4) | captured length (4) | length on the wire (4) | bytes
//! ```

use turboflow_packet::{Frame, LinkType};

use crate::error::{Damage, OpenError};
use crate::format::{ByteOrder, Container};
use crate::link_names::link_type_name;
use crate::pcapng;
use crate::scouts::{self, Records};
use crate::walk::{Counters, Stop, Walk, captured_limit_bytes, prefetch_ahead, u16_at, u32_at};

/// Bytes before the first packet.
pub(crate) const FILE_HEADER_BYTES: usize = 24;
/// Bytes before every packet.
const PACKET_HEADER_BYTES: usize = 16;
/// Bytes before every packet in Kuznetzov's modified format, which adds interface index, protocol
/// and packet type.
const MODIFIED_PACKET_HEADER_BYTES: usize = 24;

const MAGIC_MICROSECONDS: u32 = 0xa1b2_c3d4;
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const MAGIC_MODIFIED: u32 = 0xa1b2_cd34;

/// The order of the two length fields (libpcap's `sf-pcap.c`): versions before 2.3 wrote the wire
/// length first, version 2.3 used both orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LengthOrder {
    CapturedFirst,
    SmallerIsCaptured,
    WireFirst,
}

/// Walks over the packets of a classic pcap file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PcapWalker {
    byte_order: ByteOrder,
    modified: bool,
    nanoseconds_per_fraction: u64,
    link_type: LinkType,
    length_order: LengthOrder,
    captured_limit_bytes: u32,
}

/// The byte order of a file that starts with these bytes; `None` if it is not a pcap file.
pub(crate) fn byte_order_of(magic: [u8; 4]) -> Option<ByteOrder> {
    let known = [MAGIC_MICROSECONDS, MAGIC_NANOSECONDS, MAGIC_MODIFIED];
    if known.contains(&u32::from_le_bytes(magic)) {
        Some(ByteOrder::Little)
    } else if known.contains(&u32::from_be_bytes(magic)) {
        Some(ByteOrder::Big)
    } else {
        None
    }
}

impl PcapWalker {
    pub(crate) const fn link_type(&self) -> LinkType {
        self.link_type
    }

    /// Reads the file header, which must be complete and start with a known magic number.
    pub(crate) fn new(
        name: &str,
        header: &[u8],
        byte_order: ByteOrder,
    ) -> Result<(Self, Container), OpenError> {
        match byte_order {
            ByteOrder::Big => Self::parse::<true>(name, header, byte_order),
            ByteOrder::Little => Self::parse::<false>(name, header, byte_order),
        }
    }

    fn parse<const BIG: bool>(
        name: &str,
        header: &[u8],
        byte_order: ByteOrder,
    ) -> Result<(Self, Container), OpenError> {
        let magic = u32_at::<BIG>(header, 0);
        let (major, minor) = (u16_at::<BIG>(header, 4), u16_at::<BIG>(header, 6));
        let snap_length_bytes = u32_at::<BIG>(header, 16);
        let number = u32_at::<BIG>(header, 20);
        // libpcap accepts 2.0 to 2.4, and 543.0, which one old kernel wrote.
        let length_order = match (major, minor) {
            (2, 0..=2) | (543, 0) => LengthOrder::WireFirst,
            (2, 3) => LengthOrder::SmallerIsCaptured,
            (2, _) => LengthOrder::CapturedFirst,
            _ => {
                let name = name.to_owned();
                return Err(OpenError::UnsupportedVersion {
                    name,
                    container: "pcap",
                    major,
                    minor,
                });
            }
        };
        let Some(link_type) = LinkType::from_number(number) else {
            return Err(OpenError::UnsupportedLinkType {
                name: name.to_owned(),
                number: number & 0xffff,
                link_type: link_type_name(number & 0xffff),
            });
        };
        let nanoseconds = magic == MAGIC_NANOSECONDS;
        let walker = Self {
            byte_order,
            modified: magic == MAGIC_MODIFIED,
            nanoseconds_per_fraction: if nanoseconds { 1 } else { 1_000 },
            link_type,
            length_order,
            captured_limit_bytes: captured_limit_bytes(snap_length_bytes),
        };
        Ok((
            walker,
            Container::Pcap {
                byte_order,
                nanoseconds,
                link_type,
                snap_length_bytes,
            },
        ))
    }

    /// Appends frames until there are `limit`. With a limit of 0, only checks whether a complete
    /// packet is next.
    pub(crate) fn walk<'a>(
        &self,
        data: &'a [u8],
        limit: usize,
        frames: &mut Vec<Frame<'a>>,
        counters: &mut Counters,
    ) -> Walk {
        const PLAIN: usize = PACKET_HEADER_BYTES;
        const MODIFIED: usize = MODIFIED_PACKET_HEADER_BYTES;
        match (self.byte_order, self.modified) {
            (ByteOrder::Little, false) => {
                self.walk_as::<false, PLAIN>(data, limit, frames, counters)
            }
            (ByteOrder::Big, false) => self.walk_as::<true, PLAIN>(data, limit, frames, counters),
            (ByteOrder::Little, true) => {
                self.walk_as::<false, MODIFIED>(data, limit, frames, counters)
            }
            (ByteOrder::Big, true) => self.walk_as::<true, MODIFIED>(data, limit, frames, counters),
        }
    }

    /// Sends scouts through `data`, ahead of the walk.
    pub(crate) fn scout(&self, data: &[u8]) {
        const PLAIN: usize = PACKET_HEADER_BYTES;
        const MODIFIED: usize = MODIFIED_PACKET_HEADER_BYTES;
        match (self.byte_order, self.modified) {
            (ByteOrder::Little, false) => self.scout_as::<false, PLAIN>(data),
            (ByteOrder::Big, false) => self.scout_as::<true, PLAIN>(data),
            (ByteOrder::Little, true) => self.scout_as::<false, MODIFIED>(data),
            (ByteOrder::Big, true) => self.scout_as::<true, MODIFIED>(data),
        }
    }

    fn scout_as<const BIG: bool, const HEADER_BYTES: usize>(&self, data: &[u8]) {
        if let Some(header) = data.first_chunk::<HEADER_BYTES>() {
            let records = PcapRecords::<BIG, HEADER_BYTES> {
                walker: self,
                seconds: u32_at::<BIG>(header, 0),
            };
            scouts::go_ahead(&records, data);
        }
    }

    fn walk_as<'a, const BIG: bool, const HEADER_BYTES: usize>(
        &self,
        data: &'a [u8],
        limit: usize,
        frames: &mut Vec<Frame<'a>>,
        counters: &mut Counters,
    ) -> Walk {
        let (mut at, mut bytes_on_wire) = (0, 0);
        let first = frames.len();
        let stop = loop {
            let rest = &data[at..];
            let Some((header, body)) = rest.split_first_chunk::<HEADER_BYTES>() else {
                break Stop::incomplete("packet header", HEADER_BYTES, rest.len());
            };
            let (captured, wire_length_bytes) = self.lengths::<BIG>(header);
            prefetch_ahead(rest, HEADER_BYTES + captured as usize);
            if captured > self.captured_limit_bytes {
                break self.too_long(captured, header);
            }
            if captured == 0 && is_file_header(header) {
                break Stop::Damaged(Damage::AnotherFile);
            }
            let Some(bytes) = body.get(..captured as usize) else {
                break Stop::incomplete("packet", HEADER_BYTES + captured as usize, rest.len());
            };
            if frames.len() >= limit {
                break Stop::Full;
            }
            // No overflow: both factors are below 2^32.
            let timestamp_ns = u64::from(u32_at::<BIG>(header, 0)) * 1_000_000_000
                + u64::from(u32_at::<BIG>(header, 4)) * self.nanoseconds_per_fraction;
            let link_type = self.link_type;
            frames.push(Frame {
                bytes,
                wire_length_bytes,
                timestamp_ns,
                interface: 0,
                link_type,
            });
            bytes_on_wire += u64::from(wire_length_bytes);
            at += HEADER_BYTES + captured as usize;
        };
        counters.packets += (frames.len() - first) as u64;
        counters.bytes += bytes_on_wire;
        Walk { consumed: at, stop }
    }

    /// Captured length and wire length.
    #[inline(always)]
    fn lengths<const BIG: bool>(&self, header: &[u8]) -> (u32, u32) {
        let (first, second) = (u32_at::<BIG>(header, 8), u32_at::<BIG>(header, 12));
        match self.length_order {
            LengthOrder::CapturedFirst => (first, second),
            LengthOrder::SmallerIsCaptured => (first.min(second), first.max(second)),
            LengthOrder::WireFirst => (second, first),
        }
    }

    #[cold]
    #[inline(never)]
    fn too_long(&self, captured_bytes: u32, header: &[u8]) -> Stop {
        if is_file_header(header) {
            return Stop::Damaged(Damage::AnotherFile);
        }
        let limit_bytes = self.captured_limit_bytes;
        Stop::Damaged(Damage::PacketTooLong {
            captured_bytes,
            limit_bytes,
        })
    }
}

/// The records of a file, for scouts.
struct PcapRecords<'a, const BIG: bool, const HEADER_BYTES: usize> {
    walker: &'a PcapWalker,
    /// Time of a nearby record, in seconds since 1970: other records are close to it.
    seconds: u32,
}

impl<const BIG: bool, const HEADER_BYTES: usize> Records for PcapRecords<'_, BIG, HEADER_BYTES> {
    const ALIGNED_BYTES: usize = 1;

    #[inline(always)]
    fn after(&self, data: &[u8], at: usize) -> Option<usize> {
        let header = data.get(at..)?.first_chunk::<HEADER_BYTES>()?;
        let (captured, _) = self.walker.lengths::<BIG>(header);
        let is_length = captured <= self.walker.captured_limit_bytes;
        is_length.then(|| at + HEADER_BYTES + captured as usize)
    }

    #[inline(always)]
    fn seems_to_start(&self, data: &[u8], at: usize) -> bool {
        /// About 18 hours.
        const NEAR_S: u32 = 1 << 16;
        let Some(header) = data
            .get(at..)
            .and_then(|rest| rest.first_chunk::<HEADER_BYTES>())
        else {
            return false;
        };
        let (captured, on_wire) = self.walker.lengths::<BIG>(header);
        u32_at::<BIG>(header, 0).abs_diff(self.seconds) < NEAR_S
            && captured <= self.walker.captured_limit_bytes
            && captured <= on_wire
            && u64::from(u32_at::<BIG>(header, 4)) * self.walker.nanoseconds_per_fraction
                < 1_000_000_000
    }
}

/// Whether the bytes where a packet is expected are the header of a capture file. A pcap file
/// header has its time zone and accuracy, which are 0, where a packet header has its lengths.
#[cold]
#[inline(never)]
fn is_file_header(header: &[u8]) -> bool {
    let magic = [header[0], header[1], header[2], header[3]];
    let mark = [header[8], header[9], header[10], header[11]];
    let is_pcap = byte_order_of(magic).is_some() && header[8..16].iter().all(|byte| *byte == 0);
    is_pcap || magic == pcapng::MAGIC && pcapng::section_byte_order(mark).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::PcapWriter;

    /// Scouts go from record to record as the walk does, and recognise the start of every record.
    #[test]
    fn records_follow_each_other_as_in_the_walk() {
        let mut writer = PcapWriter::new(Vec::new(), LinkType::Ethernet).unwrap();
        for number in 0..50_u32 {
            let frame = vec![0x45; 60 + 37 * number as usize];
            let time_ns = 1_700_000_000_000_000_000 + u64::from(number);
            writer.write(time_ns, &frame, 2_000).unwrap();
        }
        let file = writer.finish().unwrap();
        let order = byte_order_of(*file.first_chunk().unwrap()).unwrap();
        let (walker, _) = PcapWalker::new("test", &file[..FILE_HEADER_BYTES], order).unwrap();
        let data = &file[FILE_HEADER_BYTES..];
        let records = PcapRecords::<false, PACKET_HEADER_BYTES> {
            walker: &walker,
            seconds: 1_700_000_000,
        };
        let (mut at, mut count) = (0, 0);
        while at < data.len() {
            assert!(records.seems_to_start(data, at), "{at}");
            at = records.after(data, at).unwrap();
            count += 1;
        }
        assert_eq!((at, count), (data.len(), 50));
        walker.scout(data);
    }

    #[test]
    fn scouts_of_any_bytes_end() {
        let header = [
            &MAGIC_NANOSECONDS.to_be_bytes()[..],
            &[
                0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0, 0, 1,
            ],
        ]
        .concat();
        let (walker, _) = PcapWalker::new("test", &header, ByteOrder::Big).unwrap();
        let mut seed = 1_u32;
        let mut data = vec![0; 300_000];
        for byte in &mut data {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *byte = if seed >> 30 == 0 {
                (seed >> 16) as u8
            } else {
                0
            };
        }
        for length in [0, 1, 15, 16, 40, 5_000, data.len()] {
            walker.scout(&data[..length]);
        }
    }
}
