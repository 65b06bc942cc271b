// SPDX-License-Identifier: Apache-2.0
//! Parses a block of the ring from its bytes.
//!
//! ```text
//!  block: version, offset_to_priv, status (8), packets (12), first packet (16), length, sequence,
//!         time at which it was opened (32), of the last packet (40)
//!  packet, all numbers in the machine's byte order:
//!   0 next offset   4 seconds    8 nanoseconds  12 captured  16 wire length  20 status
//!  24 mac offset   26 net offset 28 hash        32 vlan tag  36 vlan type    38 padding
//!  48 address: family 48, protocol 50, interface 52, hardware type 56, packet type 58
//! ```
//!
//! # Source
//! `include/uapi/linux/if_packet.h`: `tpacket_block_desc`, `tpacket_hdr_v1`, `tpacket3_hdr` and,
//! behind it at a multiple of 16, `sockaddr_ll`.

use turboflow_packet::{Frame, LinkType};

/// Offset of the word by which a block changes ownership.
pub(crate) const BLOCK_STATUS_AT: usize = 8;
const BLOCK_PACKETS_AT: usize = 12;
const BLOCK_FIRST_AT: usize = 16;
const BLOCK_OPENED_AT: usize = 32;

const SECONDS_AT: usize = 4;
const NANOSECONDS_AT: usize = 8;
const CAPTURED_AT: usize = 12;
const WIRE_LENGTH_AT: usize = 16;
const STATUS_AT: usize = 20;
const MAC_AT: usize = 24;
const VLAN_TAG_AT: usize = 32;
const VLAN_TYPE_AT: usize = 36;
const PACKET_TYPE_AT: usize = 58;
/// Header and address of a packet. The packet's bytes follow at some distance.
const PACKET_HEADER_BYTES: usize = 68;

/// The kernel merged the packet from several TCP segments (`TP_STATUS_GSO_TCP`).
const STATUS_MERGED: u32 = 1 << 8;
/// 802.1Q, for kernels that do not report the kind of tag.
const VLAN_TYPE_DEFAULT: u16 = 0x8100;
const VLAN_TAG_BYTES: usize = 4;
const MAC_ADDRESSES_BYTES: usize = 12;

const NS_PER_SECOND: u64 = 1_000_000_000;

/// The header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockHeader {
    pub(crate) packets: u32,
    first_at: u32,
    /// Time of the first packet, or of the opening of an empty block. The kernel calls the opening
    /// time `ts_first_pkt`, but on a quiet interface it opens a block long before a packet arrives.
    pub(crate) first_ns: u64,
}

impl BlockHeader {
    pub(crate) fn read(block: &[u8]) -> Self {
        let packets = u32_at(block, BLOCK_PACKETS_AT);
        let first_at = u32_at(block, BLOCK_FIRST_AT);
        let first = block
            .get(first_at as usize..)
            .filter(|first| packets > 0 && first.len() >= PACKET_HEADER_BYTES);
        Self {
            packets,
            first_at,
            first_ns: first.map_or_else(
                || time_at(block, BLOCK_OPENED_AT),
                |first| time_at(first, SECONDS_AT),
            ),
        }
    }
}

/// The format of an interface's packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameFormat {
    pub(crate) link_type: LinkType,
    pub(crate) interface: u32,
    /// Whether the interface is loopback, which shows every packet twice: when it is sent and when
    /// it is received. The first copy is skipped.
    pub(crate) is_loopback: bool,
}

/// The counts of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockCounts {
    /// Frames and their bytes on the wire.
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// Duplicates of loopback packets, which are skipped.
    pub(crate) copies: u64,
    /// Frames that the kernel had merged from several packets.
    pub(crate) merged: u64,
    /// The largest timestamp.
    pub(crate) last_ns: u64,
}

/// The frames of a block, with VLAN tags inserted where they were on the wire.
///
/// No content of the block causes a panic. A packet outside of its block ends the walk; then this
/// count is lower than the kernel's.
pub(crate) fn frames<'a>(
    block: &'a mut [u8],
    format: FrameFormat,
    into: &mut Vec<Frame<'a>>,
) -> BlockCounts {
    let header = BlockHeader::read(block);
    let mut counts = BlockCounts::default();
    let Some(mut rest) = block.get_mut(header.first_at as usize..) else {
        return counts;
    };
    for _ in 0..header.packets {
        if rest.len() < PACKET_HEADER_BYTES {
            break;
        }
        // The offset is 0 in the last packet, which may fill the rest of the block.
        let next = match u32_at(rest, 0) as usize {
            0 => rest.len(),
            next => next.min(rest.len()),
        };
        let (packet, behind) = rest.split_at_mut(next);
        rest = behind;
        if packet.len() < PACKET_HEADER_BYTES {
            break;
        }
        if format.is_loopback && packet[PACKET_TYPE_AT] == libc::PACKET_OUTGOING {
            counts.copies += 1;
            continue;
        }
        counts.merged += u64::from(u32_at(packet, STATUS_AT) & STATUS_MERGED != 0);
        let Some(frame) = frame(packet, format) else {
            break;
        };
        counts.packets += 1;
        counts.bytes += u64::from(frame.wire_length_bytes);
        counts.last_ns = counts.last_ns.max(frame.timestamp_ns);
        into.push(frame);
    }
    counts
}

fn frame(packet: &mut [u8], format: FrameFormat) -> Option<Frame<'_>> {
    let timestamp_ns = time_at(packet, SECONDS_AT);
    let mut start = usize::from(u16_at(packet, MAC_AT));
    let mut captured_bytes = u32_at(packet, CAPTURED_AT) as usize;
    let mut wire_length_bytes = u32_at(packet, WIRE_LENGTH_AT);
    let end = start.checked_add(captured_bytes)?;
    if start < PACKET_HEADER_BYTES || end > packet.len() {
        return None;
    }
    if let Some(tag) = vlan_tag(packet)
        && format.link_type == LinkType::Ethernet
        && captured_bytes >= MAC_ADDRESSES_BYTES
        && start - PACKET_HEADER_BYTES >= VLAN_TAG_BYTES
    {
        let untagged = start;
        start -= VLAN_TAG_BYTES;
        packet.copy_within(untagged..untagged + MAC_ADDRESSES_BYTES, start);
        let at = start + MAC_ADDRESSES_BYTES;
        packet[at..at + VLAN_TAG_BYTES].copy_from_slice(&tag);
        captured_bytes += VLAN_TAG_BYTES;
        wire_length_bytes += VLAN_TAG_BYTES as u32;
    }
    Some(Frame {
        bytes: &packet[start..start + captured_bytes],
        wire_length_bytes,
        timestamp_ns,
        interface: format.interface,
        link_type: format.link_type,
    })
}

/// The tag that the kernel or the card removed from the frame, as it was on the wire.
fn vlan_tag(packet: &[u8]) -> Option<[u8; VLAN_TAG_BYTES]> {
    let status = u32_at(packet, STATUS_AT);
    if status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let kind = if status & libc::TP_STATUS_VLAN_TPID_VALID == 0 {
        VLAN_TYPE_DEFAULT
    } else {
        u16_at(packet, VLAN_TYPE_AT)
    };
    let [high, low] = kind.to_be_bytes();
    let tag = u32_at(packet, VLAN_TAG_AT) as u16;
    let [tag_high, tag_low] = tag.to_be_bytes();
    Some([high, low, tag_high, tag_low])
}

fn time_at(bytes: &[u8], at: usize) -> u64 {
    let seconds = u64::from(u32_at(bytes, at));
    let nanoseconds = u64::from(u32_at(bytes, at + NANOSECONDS_AT - SECONDS_AT));
    seconds * NS_PER_SECOND + nanoseconds
}

#[inline(always)]
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[inline(always)]
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

#[cfg(test)]
mod tests {
    use super::*;

    // The offsets match the kernel's structures.
    const _: () = {
        use std::mem::offset_of;
        assert!(offset_of!(libc::tpacket3_hdr, tp_sec) == SECONDS_AT);
        assert!(offset_of!(libc::tpacket3_hdr, tp_nsec) == NANOSECONDS_AT);
        assert!(offset_of!(libc::tpacket3_hdr, tp_snaplen) == CAPTURED_AT);
        assert!(offset_of!(libc::tpacket3_hdr, tp_len) == WIRE_LENGTH_AT);
        assert!(offset_of!(libc::tpacket3_hdr, tp_status) == STATUS_AT);
        assert!(offset_of!(libc::tpacket3_hdr, tp_mac) == MAC_AT);
        assert!(size_of::<libc::tpacket3_hdr>() == 48);
        assert!(48 + offset_of!(libc::sockaddr_ll, sll_pkttype) == PACKET_TYPE_AT);
        assert!(48 + size_of::<libc::sockaddr_ll>() == PACKET_HEADER_BYTES);
    };

    const FORMAT: FrameFormat = FrameFormat {
        link_type: LinkType::Ethernet,
        interface: 7,
        is_loopback: false,
    };

    struct Packet<'a> {
        bytes: &'a [u8],
        status: u32,
        tag: (u16, u16),
        kind: u8,
    }

    impl<'a> Packet<'a> {
        fn plain(bytes: &'a [u8]) -> Self {
            Self {
                bytes,
                status: 0,
                tag: (0, 0),
                kind: 0,
            }
        }
    }

    /// A block in the kernel's format.
    fn block(packets: &[Packet<'_>]) -> Vec<u8> {
        const MAC: usize = 82;
        let mut block = vec![0; 48];
        put(&mut block, BLOCK_STATUS_AT, 1);
        put(&mut block, BLOCK_PACKETS_AT, packets.len() as u32);
        put(&mut block, BLOCK_FIRST_AT, 48);
        for (index, packet) in packets.iter().enumerate() {
            let start = block.len();
            let length = (MAC + packet.bytes.len()).next_multiple_of(16);
            block.resize(start + length, 0);
            let entry = &mut block[start..];
            let is_last = index + 1 == packets.len();
            put(entry, 0, if is_last { 0 } else { length as u32 });
            put(entry, SECONDS_AT, 100 + index as u32);
            put(entry, NANOSECONDS_AT, 5);
            put(entry, CAPTURED_AT, packet.bytes.len() as u32);
            put(entry, WIRE_LENGTH_AT, 1_000);
            put(entry, STATUS_AT, packet.status);
            entry[MAC_AT..MAC_AT + 2].copy_from_slice(&(MAC as u16).to_ne_bytes());
            put(entry, VLAN_TAG_AT, u32::from(packet.tag.1));
            entry[VLAN_TYPE_AT..VLAN_TYPE_AT + 2].copy_from_slice(&packet.tag.0.to_ne_bytes());
            entry[PACKET_TYPE_AT] = packet.kind;
            entry[MAC..MAC + packet.bytes.len()].copy_from_slice(packet.bytes);
        }
        block
    }

    fn put(bytes: &mut [u8], at: usize, value: u32) {
        bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }

    #[test]
    fn frames_are_in_order_with_nanoseconds_and_wire_length() {
        let mut block = block(&[Packet::plain(&[1; 60]), Packet::plain(&[2; 61])]);
        let mut found = Vec::new();
        let counts = frames(&mut block, FORMAT, &mut found);
        assert_eq!(found[0].bytes, [1; 60]);
        assert_eq!(found[1].bytes, [2; 61]);
        assert_eq!(found[1].timestamp_ns, 101_000_000_005);
        assert_eq!((found[1].wire_length_bytes, found[1].interface), (1_000, 7));
        assert_eq!((counts.packets, counts.bytes), (2, 2_000));
        assert_eq!(counts.last_ns, 101_000_000_005);
    }

    #[test]
    fn the_time_of_a_block_is_that_of_its_first_packet() {
        let mut block = block(&[Packet::plain(&[1; 60]), Packet::plain(&[2; 61])]);
        // A quiet interface: the kernel opened the block long before the packet.
        put(&mut block, BLOCK_OPENED_AT, 50);
        let first_ns = |block: &[u8]| BlockHeader::read(block).first_ns;
        assert_eq!(first_ns(&block), 100_000_000_005);
        // No packet, or one that is outside of the block.
        for (at, value) in [(BLOCK_PACKETS_AT, 0), (BLOCK_FIRST_AT, u32::MAX)] {
            let mut other = block.clone();
            put(&mut other, at, value);
            assert_eq!(first_ns(&other), 50_000_000_000);
        }
        let last_bytes = (block.len() - PACKET_HEADER_BYTES + 1) as u32;
        put(&mut block, BLOCK_FIRST_AT, last_bytes);
        assert_eq!(first_ns(&block), 50_000_000_000);
    }

    #[test]
    fn vlan_tags_are_inserted_after_the_addresses() {
        let bytes: Vec<u8> = (0..20).collect();
        let both = libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID;
        for (status, tag, expected) in [
            (both, (0x88a8, 0xa00a), [0x88, 0xa8, 0xa0, 0x0a]),
            (libc::TP_STATUS_VLAN_VALID, (0, 30), [0x81, 0, 0, 30]),
        ] {
            let packet = Packet {
                status,
                tag,
                ..Packet::plain(&bytes)
            };
            let mut block = block(&[packet]);
            let mut found = Vec::new();
            let _ = frames(&mut block, FORMAT, &mut found);
            let on_the_wire = [&bytes[..12], &expected, &bytes[12..]].concat();
            assert_eq!(found[0].bytes, on_the_wire);
            assert_eq!(found[0].wire_length_bytes, 1_004);
        }
    }

    #[test]
    fn loopback_shows_a_packet_once() {
        let leaving = Packet {
            kind: libc::PACKET_OUTGOING,
            ..Packet::plain(&[1; 60])
        };
        let mut block = block(&[leaving, Packet::plain(&[2; 60])]);
        let mut found = Vec::new();
        let loopback = FrameFormat {
            is_loopback: true,
            ..FORMAT
        };
        let counts = frames(&mut block, loopback, &mut found);
        assert_eq!((counts.packets, counts.copies), (1, 1));
        assert_eq!(found[0].bytes, [2; 60]);
    }

    #[test]
    fn never_panics_on_any_block() {
        let whole = block(&[Packet::plain(&[1; 60]), Packet::plain(&[2; 60])]);
        for at in 8..whole.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = value;
                let mut found = Vec::new();
                let _ = frames(&mut damaged, FORMAT, &mut found);
            }
        }
    }
}
