// SPDX-License-Identifier: Apache-2.0
//! pcapng files.
//!
//! ```text
//!  every block: type (4) | length (4) | body | padding to 4 | length again (4)
//! ```

mod blocks;
mod clock;
mod packet;

use turboflow_packet::Frame;

use self::blocks::{
    BLOCK_HEADER_BYTES, BLOCK_TRAILER_BYTES, ENHANCED_PACKET, INTERFACE_DESCRIPTION,
    INTERFACE_STATISTICS, Interface, PACKET, SECTION_HEADER, SIMPLE_PACKET, block_length, body_of,
    whole_block,
};
pub(crate) use self::blocks::{SECTION_START_BYTES, check_version, section_byte_order};
use self::packet::Packet;
use crate::error::Damage;
use crate::format::ByteOrder;
use crate::scouts::{self, Records};
use crate::walk::{Counters, Cut, Stop, Walk, prefetch_ahead, u32_at};

/// The first bytes of every section header, equal in both byte orders.
pub(crate) const MAGIC: [u8; 4] = SECTION_HEADER.to_be_bytes();

/// A section with more interfaces is damaged. The obsolete Packet Block cannot number more.
const INTERFACES_LIMIT: usize = 1 << 16;
/// The longest block, other than packets, that is read completely (Wireshark's limit). Blocks that
/// are skipped may be longer.
const BLOCK_LIMIT_BYTES: u32 = 16 << 20;
/// Size of a block without a body: type and both lengths.
const EMPTY_BLOCK_BYTES: usize = BLOCK_HEADER_BYTES + BLOCK_TRAILER_BYTES;

fn header_cut(available: usize) -> Stop {
    Stop::incomplete("block header", EMPTY_BLOCK_BYTES, available)
}

/// The blocks of a section, for scouts.
struct PacketBlocks<const BIG: bool>;

impl<const BIG: bool> Records for PacketBlocks<BIG> {
    const ALIGNED_BYTES: usize = 4;

    #[inline(always)]
    fn after(&self, data: &[u8], at: usize) -> Option<usize> {
        let header = data.get(at..)?.first_chunk::<BLOCK_HEADER_BYTES>()?;
        let length_bytes = u32_at::<BIG>(header, 4);
        let is_length = length_bytes as usize >= EMPTY_BLOCK_BYTES
            && length_bytes <= BLOCK_LIMIT_BYTES
            && length_bytes.is_multiple_of(4);
        is_length.then(|| at + length_bytes as usize)
    }

    #[inline(always)]
    fn seems_to_start(&self, data: &[u8], at: usize) -> bool {
        let header = data
            .get(at..)
            .and_then(|rest| rest.first_chunk::<BLOCK_HEADER_BYTES>());
        header.is_some_and(|header| u32_at::<BIG>(header, 0) == ENHANCED_PACKET)
            && self.after(data, at).is_some()
    }
}

/// Walks over the packets of a pcapng file.
#[derive(Debug)]
pub(crate) struct PcapngWalker {
    byte_order: ByteOrder,
    /// The interfaces of the current section.
    interfaces: Vec<Interface>,
    /// Number of the section's first interface within the file.
    first_interface: u32,
    /// Packets lost in earlier sections.
    dropped_before: u64,
    /// Time of the previous packet, for packets without one.
    last_timestamp_ns: u64,
    skip: Option<Skip>,
}

/// A block that is being skipped, whose end has not been reached.
#[derive(Clone, Copy, Debug)]
struct Skip {
    length_bytes: u32,
    /// Remaining bytes of the block, including its trailer.
    remaining_bytes: u32,
}

/// The result of reading one block.
enum Step {
    /// The next section has the other byte order.
    OtherByteOrder,
    /// The block was read completely; its length in bytes.
    Read(usize),
    /// Bytes consumed before the walk had to stop, and the reason.
    Stopped(usize, Stop),
}

impl PcapngWalker {
    /// A walker at the first section header of a file, which the walk reads again.
    pub(crate) fn new(byte_order: ByteOrder) -> Self {
        Self {
            byte_order,
            interfaces: Vec::new(),
            first_interface: 0,
            dropped_before: 0,
            last_timestamp_ns: 0,
            skip: None,
        }
    }

    /// Packets lost by the capturing side, according to the blocks read so far.
    pub(crate) fn source_dropped(&self) -> u64 {
        self.interfaces
            .iter()
            .fold(self.dropped_before, |sum, interface| {
                sum.saturating_add(
                    interface
                        .dropped_in_all
                        .max(interface.dropped_between_packets),
                )
            })
    }

    /// The distance from the start of the current block to the position of the walk.
    pub(crate) fn started_before_bytes(&self) -> u64 {
        self.skip.map_or(0, |skip| {
            u64::from(skip.length_bytes - skip.remaining_bytes)
        })
    }

    /// Appends frames until there are `limit`. With a limit of 0, walks to the next complete packet
    /// that can be delivered and stops before it.
    pub(crate) fn walk<'a>(
        &mut self,
        data: &'a [u8],
        limit: usize,
        frames: &mut Vec<Frame<'a>>,
        counters: &mut Counters,
    ) -> Walk {
        let mut at = 0;
        loop {
            let rest = &data[at..];
            let (consumed, stop) = match self.byte_order {
                ByteOrder::Big => self.walk_section::<true>(rest, limit, frames, counters),
                ByteOrder::Little => self.walk_section::<false>(rest, limit, frames, counters),
            };
            at += consumed;
            if let Some(stop) = stop {
                return Walk { consumed: at, stop };
            }
        }
    }

    /// Sends scouts through `data`, ahead of the walk.
    pub(crate) fn scout(&self, data: &[u8]) {
        if self.skip.is_none() {
            match self.byte_order {
                ByteOrder::Big => scouts::go_ahead(&PacketBlocks::<true>, data),
                ByteOrder::Little => scouts::go_ahead(&PacketBlocks::<false>, data),
            }
        }
    }

    /// Walks over blocks of one byte order. Without a reason to stop, the other byte order follows.
    fn walk_section<'a, const BIG: bool>(
        &mut self,
        data: &'a [u8],
        limit: usize,
        frames: &mut Vec<Frame<'a>>,
        counters: &mut Counters,
    ) -> (usize, Option<Stop>) {
        let first = frames.len();
        let mut at = match self.finish_skip::<BIG>(data) {
            Ok(bytes) => bytes,
            Err((bytes, stop)) => return (bytes, Some(stop)),
        };
        let mut bytes_on_wire = 0;
        let stop = loop {
            let rest = &data[at..];
            if rest.len() < EMPTY_BLOCK_BYTES {
                break Some(header_cut(rest.len()));
            }
            prefetch_ahead(rest, u32_at::<BIG>(rest, 4) as usize);
            let block_type = u32_at::<BIG>(rest, 0);
            let packet = match block_type {
                ENHANCED_PACKET => packet::enhanced::<BIG>(&self.interfaces, rest),
                PACKET => packet::obsolete::<BIG>(&self.interfaces, rest),
                SIMPLE_PACKET => packet::simple::<BIG>(&self.interfaces, rest),
                _ => match self.other_block::<BIG>(block_type, rest) {
                    Step::OtherByteOrder => break None,
                    Step::Read(bytes) => {
                        at += bytes;
                        continue;
                    }
                    Step::Stopped(bytes, stop) => {
                        at += bytes;
                        break Some(stop);
                    }
                },
            };
            let packet = match packet {
                Ok(packet) => packet,
                Err(stop) => break Some(stop),
            };
            let Some(link_type) = packet.link_type else {
                self.count_unread(&packet, counters);
                at += packet.block_bytes;
                continue;
            };
            if frames.len() >= limit {
                break Some(Stop::Full);
            }
            let timestamp_ns = packet.timestamp_ns;
            let timestamp_ns = timestamp_ns.unwrap_or_else(|| self.time_before(frames, counters));
            if packet.dropped != 0 {
                self.count_drops(&packet);
            }
            counters.packets_time_clamped += u64::from(packet.is_time_clamped);
            bytes_on_wire += u64::from(packet.wire_length_bytes);
            frames.push(Frame {
                bytes: packet.bytes,
                wire_length_bytes: packet.wire_length_bytes,
                timestamp_ns,
                interface: self.first_interface.wrapping_add(packet.interface),
                link_type,
            });
            at += packet.block_bytes;
        };
        counters.bytes += bytes_on_wire;
        counters.packets += (frames.len() - first) as u64;
        self.keep_last_time(frames);
        (at, stop)
    }

    /// Keeps the time of the last packet, for packets without one in the next walk.
    fn keep_last_time(&mut self, frames: &[Frame<'_>]) {
        if let Some(frame) = frames.last() {
            self.last_timestamp_ns = frame.timestamp_ns;
        }
    }

    /// Skips the rest of a block whose end the previous walk did not reach. Returns how many bytes
    /// it skipped and, if the end is still not reached, why the walk stops.
    fn finish_skip<const BIG: bool>(&mut self, data: &[u8]) -> Result<usize, (usize, Stop)> {
        match self.skip_rest::<BIG>(data) {
            Step::Read(bytes) => Ok(bytes),
            Step::Stopped(bytes, stop) => Err((bytes, stop)),
            Step::OtherByteOrder => unreachable!("a skipped block is not a section header"),
        }
    }

    #[cold]
    #[inline(never)]
    fn count_unread(&mut self, packet: &Packet<'_>, counters: &mut Counters) {
        counters.packets_unknown_link_type += 1;
        counters.bytes_unknown_link_type += u64::from(packet.wire_length_bytes);
        self.count_drops(packet);
    }

    #[cold]
    #[inline(never)]
    fn count_drops(&mut self, packet: &Packet<'_>) {
        let interface = &mut self.interfaces[packet.interface as usize];
        interface.dropped_between_packets = interface
            .dropped_between_packets
            .saturating_add(packet.dropped);
    }

    /// The time for a packet without one: that of the previous packet.
    #[cold]
    #[inline(never)]
    fn time_before(&self, frames: &[Frame<'_>], counters: &mut Counters) -> u64 {
        counters.packets_without_time += 1;
        frames
            .last()
            .map_or(self.last_timestamp_ns, |frame| frame.timestamp_ns)
    }

    /// Reads a block that is not a packet.
    #[cold]
    #[inline(never)]
    fn other_block<const BIG: bool>(&mut self, block_type: u32, rest: &[u8]) -> Step {
        let read = match block_type {
            SECTION_HEADER => match section_byte_order([rest[8], rest[9], rest[10], rest[11]]) {
                Ok(byte_order) if byte_order != self.byte_order => {
                    self.byte_order = byte_order;
                    return Step::OtherByteOrder;
                }
                Ok(_) => self.section::<BIG>(rest),
                Err(damage) => Err(Stop::Damaged(damage)),
            },
            INTERFACE_DESCRIPTION => self.describe_interface::<BIG>(rest),
            INTERFACE_STATISTICS => self.statistics::<BIG>(rest),
            _ => match block_length::<BIG>(block_type, rest, 12, u32::MAX) {
                Ok(length_bytes) => {
                    self.skip = Some(Skip {
                        length_bytes,
                        remaining_bytes: length_bytes,
                    });
                    return self.skip_rest::<BIG>(rest);
                }
                Err(stop) => Err(stop),
            },
        };
        match read {
            Ok(bytes) => Step::Read(bytes),
            Err(stop) => Step::Stopped(0, stop),
        }
    }

    fn section<const BIG: bool>(&mut self, rest: &[u8]) -> Result<usize, Stop> {
        if rest.len() < SECTION_START_BYTES {
            return Err(Stop::incomplete(
                "section header",
                SECTION_START_BYTES,
                rest.len(),
            ));
        }
        check_version::<BIG>(rest).map_err(Stop::Damaged)?;
        let block = whole_block::<BIG>(rest, 28, BLOCK_LIMIT_BYTES, "section header")?;
        self.dropped_before = self.source_dropped();
        self.first_interface = self
            .first_interface
            .saturating_add(self.interfaces.len() as u32);
        self.interfaces.clear();
        Ok(block.len())
    }

    fn describe_interface<const BIG: bool>(&mut self, rest: &[u8]) -> Result<usize, Stop> {
        let block = whole_block::<BIG>(rest, 20, BLOCK_LIMIT_BYTES, "interface description")?;
        if self.interfaces.len() == INTERFACES_LIMIT {
            return Err(Stop::Damaged(Damage::TooManyInterfaces {
                limit: INTERFACES_LIMIT,
            }));
        }
        self.interfaces
            .push(blocks::interface::<BIG>(body_of(block)));
        Ok(block.len())
    }

    fn statistics<const BIG: bool>(&mut self, rest: &[u8]) -> Result<usize, Stop> {
        let block = whole_block::<BIG>(rest, 24, BLOCK_LIMIT_BYTES, "interface statistics")?;
        let body = body_of(block);
        let interface = self.interfaces.get_mut(u32_at::<BIG>(body, 0) as usize);
        let dropped = blocks::statistics_drops::<BIG>(&body[12..]);
        if let (Some(interface), Some(dropped)) = (interface, dropped) {
            interface.dropped_in_all = interface.dropped_in_all.max(dropped);
        }
        Ok(block.len())
    }

    /// Skips the part of a block of no interest that is in `data`.
    fn skip_rest<const BIG: bool>(&mut self, data: &[u8]) -> Step {
        let Some(skip) = &mut self.skip else {
            return Step::Read(0);
        };
        let body_bytes = skip.remaining_bytes as usize - BLOCK_TRAILER_BYTES;
        let passed = data.len().min(body_bytes);
        skip.remaining_bytes -= passed as u32;
        let rest = &data[passed..];
        if rest.len() < BLOCK_TRAILER_BYTES {
            let seen_bytes = skip.length_bytes - skip.remaining_bytes;
            let cut = Cut {
                part: "block",
                needed_bytes: u64::from(skip.length_bytes),
                available_bytes: u64::from(seen_bytes) + rest.len() as u64,
            };
            let stop = Stop::NeedMore {
                at_least: rest.len() + 1,
                cut: Some(cut),
            };
            return Step::Stopped(passed, stop);
        }
        let (first_bytes, last_bytes) = (skip.length_bytes, u32_at::<BIG>(rest, 0));
        if last_bytes != first_bytes {
            let damage = Damage::BlockLengthMismatch {
                first_bytes,
                last_bytes,
            };
            return Step::Stopped(passed, Stop::Damaged(damage));
        }
        self.skip = None;
        Step::Read(passed + BLOCK_TRAILER_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::{InterfaceOptions, PcapngWriter};
    use turboflow_packet::LinkType;

    /// Scouts go from block to block as the walk does, and recognise the start of every packet.
    #[test]
    fn blocks_follow_each_other_as_in_the_walk() {
        fn check<const BIG: bool>(order: ByteOrder) {
            let mut writer = PcapngWriter::new(Vec::new(), order).unwrap();
            writer
                .add_interface(LinkType::Ethernet, InterfaceOptions::default())
                .unwrap();
            for number in 0..50_u32 {
                let frame = vec![0x45; 60 + 37 * number as usize];
                writer.write(0, u64::from(number), &frame, 2_000).unwrap();
            }
            let data = writer.finish().unwrap();
            let (mut at, mut packets) = (0, 0);
            while at < data.len() {
                packets += u32::from(PacketBlocks::<BIG>.seems_to_start(&data, at));
                at = PacketBlocks::<BIG>.after(&data, at).unwrap();
            }
            assert_eq!((at, packets), (data.len(), 50));
            PcapngWalker::new(order).scout(&data);
        }
        check::<false>(ByteOrder::Little);
        check::<true>(ByteOrder::Big);
    }
}
