// SPDX-License-Identifier: Apache-2.0
//! Fields and options of pcapng blocks other than packets.

use turboflow_packet::LinkType;

use super::clock::Clock;
use crate::error::Damage;
use crate::format::ByteOrder;
use crate::pcap;
use crate::walk::{CAPTURED_CEILING_BYTES, Stop, captured_limit_bytes, u16_at, u32_at};

pub(crate) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
pub(crate) const INTERFACE_DESCRIPTION: u32 = 1;
/// The obsolete Packet Block.
pub(crate) const PACKET: u32 = 2;
pub(crate) const SIMPLE_PACKET: u32 = 3;
pub(crate) const INTERFACE_STATISTICS: u32 = 5;
pub(crate) const ENHANCED_PACKET: u32 = 6;

const BYTE_ORDER_MARK: u32 = 0x1a2b_3c4d;

const OPTION_END: u16 = 0;
const EPB_DROPCOUNT: u16 = 4;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
const ISB_IFDROP: u16 = 5;
const ISB_OSDROP: u16 = 7;

/// Bytes of a block before its body: type and length.
pub(crate) const BLOCK_HEADER_BYTES: usize = 8;
/// The second length field.
pub(crate) const BLOCK_TRAILER_BYTES: usize = 4;
/// Bytes of a section header up to byte order and version.
pub(crate) const SECTION_START_BYTES: usize = 24;

/// An interface according to its description block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interface {
    /// `None` if TurboFlow cannot parse the type.
    pub(crate) link_type: Option<LinkType>,
    /// 0 = unlimited.
    pub(crate) snap_length_bytes: u32,
    pub(crate) captured_limit_bytes: u32,
    pub(crate) clock: Clock,
    /// Packets lost according to the last statistics block, which counts from the start of the
    /// capture.
    pub(crate) dropped_in_all: u64,
    /// Packets lost according to the drop counts of packets, each of which counts since the
    /// previous packet.
    pub(crate) dropped_between_packets: u64,
}

/// The byte order of a section, from the byte-order mark in its header.
pub(crate) fn section_byte_order(mark: [u8; 4]) -> Result<ByteOrder, Damage> {
    if u32::from_le_bytes(mark) == BYTE_ORDER_MARK {
        Ok(ByteOrder::Little)
    } else if u32::from_be_bytes(mark) == BYTE_ORDER_MARK {
        Ok(ByteOrder::Big)
    } else {
        Err(Damage::ByteOrderMark {
            magic: u32::from_le_bytes(mark),
        })
    }
}

/// Checks a section's version. Like Wireshark, accepts 1.0 and 1.2, which some writers use.
pub(crate) fn check_version<const BIG: bool>(start: &[u8]) -> Result<(), Damage> {
    match (u16_at::<BIG>(start, 12), u16_at::<BIG>(start, 14)) {
        (1, 0 | 2) => Ok(()),
        (major, minor) => Err(Damage::UnsupportedVersion { major, minor }),
    }
}

/// Reads the body of an Interface Description Block (at least 8 bytes).
pub(crate) fn interface<const BIG: bool>(body: &[u8]) -> Interface {
    let snap_length_bytes = u32_at::<BIG>(body, 4);
    let mut clock = Clock::DEFAULT;
    for_each_option::<BIG>(&body[8..], |code, value| match (code, value) {
        (IF_TSRESOL, [resolution, ..]) => clock.set_resolution(*resolution),
        (IF_TSOFFSET, value) if value.len() >= 8 => {
            clock.set_offset(u64_at::<BIG>(value, 0).cast_signed());
        }
        _ => {}
    });
    let link_type = LinkType::from_number(u32::from(u16_at::<BIG>(body, 0)));
    Interface {
        link_type,
        snap_length_bytes,
        // Packets that are skipped may have any length: USB transfers are longer than network
        // frames.
        captured_limit_bytes: match link_type {
            Some(_) => captured_limit_bytes(snap_length_bytes),
            None => CAPTURED_CEILING_BYTES,
        },
        clock,
        dropped_in_all: 0,
        dropped_between_packets: 0,
    }
}

/// The number of lost packets in the options of an Interface Statistics Block, if given.
pub(crate) fn statistics_drops<const BIG: bool>(options: &[u8]) -> Option<u64> {
    let mut dropped = None;
    for_each_option::<BIG>(options, |code, value| {
        if matches!(code, ISB_IFDROP | ISB_OSDROP) && value.len() >= 8 {
            let count = u64_at::<BIG>(value, 0);
            dropped = Some(dropped.unwrap_or(0_u64).saturating_add(count));
        }
    });
    dropped
}

/// The number of lost packets in the options of an Enhanced Packet Block.
#[cold]
#[inline(never)]
pub(crate) fn packet_drops<const BIG: bool>(options: &[u8]) -> u64 {
    let mut dropped = 0_u64;
    for_each_option::<BIG>(options, |code, value| {
        if code == EPB_DROPCOUNT && value.len() >= 8 {
            dropped = dropped.saturating_add(u64_at::<BIG>(value, 0));
        }
    });
    dropped
}

/// Calls `visit` for the options up to the end mark or the first that does not fit.
fn for_each_option<const BIG: bool>(mut options: &[u8], mut visit: impl FnMut(u16, &[u8])) {
    while options.len() >= 4 {
        let code = u16_at::<BIG>(options, 0);
        let length_bytes = usize::from(u16_at::<BIG>(options, 2));
        let Some(value) = options.get(4..4 + length_bytes) else {
            return;
        };
        if code == OPTION_END {
            return;
        }
        visit(code, value);
        let Some(next) = options.get(4 + length_bytes.next_multiple_of(4)..) else {
            return;
        };
        options = next;
    }
}

#[inline(always)]
fn u64_at<const BIG: bool>(bytes: &[u8], at: usize) -> u64 {
    let (first, second) = (u32_at::<BIG>(bytes, at), u32_at::<BIG>(bytes, at + 4));
    let (high, low) = if BIG {
        (first, second)
    } else {
        (second, first)
    };
    u64::from(high) << 32 | u64::from(low)
}

/// The length of a block, if it is valid.
#[inline(always)]
pub(crate) fn block_length<const BIG: bool>(
    block_type: u32,
    rest: &[u8],
    least_bytes: u32,
    limit_bytes: u32,
) -> Result<u32, Stop> {
    let length_bytes = u32_at::<BIG>(rest, 4);
    if length_bytes < least_bytes || !length_bytes.is_multiple_of(4) || length_bytes > limit_bytes {
        return Err(bad_length(block_type, length_bytes, least_bytes));
    }
    Ok(length_bytes)
}

#[cold]
#[inline(never)]
fn bad_length(block_type: u32, length_bytes: u32, least_bytes: u32) -> Stop {
    if pcap::byte_order_of(block_type.to_be_bytes()).is_some() {
        return Stop::Damaged(Damage::AnotherFile);
    }
    let rule = if length_bytes < least_bytes {
        "too short for its type"
    } else if !length_bytes.is_multiple_of(4) {
        "not a multiple of 4"
    } else {
        "longer than any such block"
    };
    Stop::Damaged(Damage::BlockLength {
        block_type,
        length_bytes,
        rule,
    })
}

/// The block at the start of `rest`, if it is complete and both of its lengths are equal.
pub(crate) fn whole_block<'a, const BIG: bool>(
    rest: &'a [u8],
    least_bytes: u32,
    limit_bytes: u32,
    part: &'static str,
) -> Result<&'a [u8], Stop> {
    let block_type = u32_at::<BIG>(rest, 0);
    let length_bytes = block_length::<BIG>(block_type, rest, least_bytes, limit_bytes)?;
    let Some(block) = rest.get(..length_bytes as usize) else {
        return Err(Stop::incomplete(part, length_bytes as usize, rest.len()));
    };
    let last_bytes = u32_at::<BIG>(block, block.len() - BLOCK_TRAILER_BYTES);
    if last_bytes != length_bytes {
        let damage = Damage::BlockLengthMismatch {
            first_bytes: length_bytes,
            last_bytes,
        };
        return Err(Stop::Damaged(damage));
    }
    Ok(block)
}

/// The body of a complete block.
pub(crate) fn body_of(block: &[u8]) -> &[u8] {
    &block[BLOCK_HEADER_BYTES..block.len() - BLOCK_TRAILER_BYTES]
}
