// SPDX-License-Identifier: Apache-2.0
//! The three kinds of pcapng packet blocks.
//!
//! ```text
//!  enhanced: interface (4) | time: high (4) low (4) | captured (4) | on wire (4) | bytes | options
//!  obsolete: interface (2) drops (2) | time: high (4) low (4) | captured (4) | on wire (4) | ...
//!  simple:   on wire (4) | bytes
//! ```

use turboflow_packet::LinkType;

use super::blocks::{
    BLOCK_HEADER_BYTES, BLOCK_TRAILER_BYTES, ENHANCED_PACKET, Interface, PACKET, SIMPLE_PACKET,
    block_length, packet_drops,
};
use crate::error::Damage;
use crate::walk::{Stop, u16_at, u32_at};

/// The longest packet block: 128 MiB captured and some options.
const PACKET_BLOCK_LIMIT_BYTES: u32 = 129 << 20;
/// Where the bytes start in an enhanced or obsolete block.
const BYTES_AT: usize = 28;
/// Where the bytes start in a simple block.
const SIMPLE_BYTES_AT: usize = 12;
/// The drop count of the obsolete block if it is unknown.
const DROPS_UNKNOWN: u16 = 0xffff;

/// The fields of a packet block.
pub(super) struct Packet<'a> {
    /// The interface's index within the section.
    pub(super) interface: u32,
    /// The interface's link type, if TurboFlow can parse it.
    pub(super) link_type: Option<LinkType>,
    pub(super) timestamp_ns: Option<u64>,
    /// Whether the time in the file was out of range and `timestamp_ns` is the nearest valid time.
    pub(super) is_time_clamped: bool,
    pub(super) wire_length_bytes: u32,
    pub(super) bytes: &'a [u8],
    /// Packets lost since the previous packet.
    pub(super) dropped: u64,
    pub(super) block_bytes: usize,
}

/// Reads an Enhanced Packet Block.
#[inline(always)]
pub(super) fn enhanced<'a, const BIG: bool>(
    interfaces: &[Interface],
    rest: &'a [u8],
) -> Result<Packet<'a>, Stop> {
    let Some(header) = rest.first_chunk::<BYTES_AT>() else {
        return Err(Stop::incomplete("packet block", BYTES_AT, rest.len()));
    };
    let number = u32_at::<BIG>(header, 8);
    let mut packet = timed::<BIG>(interfaces, number, ENHANCED_PACKET, header, rest)?;
    let options_at = BYTES_AT + packet.bytes.len().next_multiple_of(4);
    if options_at + BLOCK_TRAILER_BYTES < packet.block_bytes {
        let options = &rest[options_at..packet.block_bytes - BLOCK_TRAILER_BYTES];
        packet.dropped = packet_drops::<BIG>(options);
    }
    Ok(packet)
}

/// Reads an obsolete Packet Block.
#[cold]
#[inline(never)]
pub(super) fn obsolete<'a, const BIG: bool>(
    interfaces: &[Interface],
    rest: &'a [u8],
) -> Result<Packet<'a>, Stop> {
    let Some(header) = rest.first_chunk::<BYTES_AT>() else {
        return Err(Stop::incomplete("packet block", BYTES_AT, rest.len()));
    };
    let number = u32::from(u16_at::<BIG>(header, 8));
    let mut packet = timed::<BIG>(interfaces, number, PACKET, header, rest)?;
    let dropped = u16_at::<BIG>(header, 10);
    packet.dropped = if dropped == DROPS_UNKNOWN {
        0
    } else {
        u64::from(dropped)
    };
    Ok(packet)
}

/// Reads the fields that enhanced and obsolete blocks have in common.
#[inline(always)]
fn timed<'a, const BIG: bool>(
    interfaces: &[Interface],
    number: u32,
    block_type: u32,
    header: &[u8; BYTES_AT],
    rest: &'a [u8],
) -> Result<Packet<'a>, Stop> {
    let block_bytes = block_length::<BIG>(block_type, rest, 32, PACKET_BLOCK_LIMIT_BYTES)? as usize;
    let Some(interface) = interfaces.get(number as usize) else {
        return Err(unknown_interface(number, interfaces.len()));
    };
    let captured_bytes = u32_at::<BIG>(header, 20);
    if captured_bytes > interface.captured_limit_bytes {
        return Err(too_long(captured_bytes, interface.captured_limit_bytes));
    }
    let room_bytes = block_bytes - BYTES_AT - BLOCK_TRAILER_BYTES;
    if captured_bytes as usize > room_bytes {
        return Err(beyond_block(captured_bytes, room_bytes));
    }
    let Some(block) = rest.get(..block_bytes) else {
        return Err(Stop::incomplete("packet block", block_bytes, rest.len()));
    };
    check_trailer::<BIG>(block)?;
    let ticks = u64::from(u32_at::<BIG>(header, 12)) << 32 | u64::from(u32_at::<BIG>(header, 16));
    let (timestamp_ns, is_time_clamped) = interface.clock.nanoseconds(ticks);
    Ok(Packet {
        interface: number,
        link_type: interface.link_type,
        timestamp_ns: Some(timestamp_ns),
        is_time_clamped,
        wire_length_bytes: u32_at::<BIG>(header, 24),
        bytes: &block[BYTES_AT..BYTES_AT + captured_bytes as usize],
        dropped: 0,
        block_bytes,
    })
}

/// Reads a Simple Packet Block, which belongs to the section's first interface.
#[cold]
#[inline(never)]
pub(super) fn simple<'a, const BIG: bool>(
    interfaces: &[Interface],
    rest: &'a [u8],
) -> Result<Packet<'a>, Stop> {
    let block_bytes =
        block_length::<BIG>(SIMPLE_PACKET, rest, 16, PACKET_BLOCK_LIMIT_BYTES)? as usize;
    let Some(interface) = interfaces.first() else {
        return Err(unknown_interface(0, 0));
    };
    let wire_length_bytes = u32_at::<BIG>(rest, BLOCK_HEADER_BYTES);
    let room_bytes = block_bytes - SIMPLE_BYTES_AT - BLOCK_TRAILER_BYTES;
    // The block has no captured length. It is the wire length, limited by the interface's snap
    // length.
    let captured_bytes = match interface.snap_length_bytes {
        0 => wire_length_bytes,
        snap_length_bytes => wire_length_bytes.min(snap_length_bytes),
    };
    if captured_bytes > interface.captured_limit_bytes {
        return Err(too_long(captured_bytes, interface.captured_limit_bytes));
    }
    if captured_bytes as usize > room_bytes {
        return Err(beyond_block(captured_bytes, room_bytes));
    }
    let Some(block) = rest.get(..block_bytes) else {
        return Err(Stop::incomplete("packet block", block_bytes, rest.len()));
    };
    check_trailer::<BIG>(block)?;
    Ok(Packet {
        interface: 0,
        link_type: interface.link_type,
        timestamp_ns: None,
        is_time_clamped: false,
        wire_length_bytes,
        bytes: &block[SIMPLE_BYTES_AT..SIMPLE_BYTES_AT + captured_bytes as usize],
        dropped: 0,
        block_bytes,
    })
}

/// Checks that both length fields of a complete block are equal.
#[inline(always)]
fn check_trailer<const BIG: bool>(block: &[u8]) -> Result<(), Stop> {
    let last_bytes = u32_at::<BIG>(block, block.len() - BLOCK_TRAILER_BYTES);
    if last_bytes as usize == block.len() {
        Ok(())
    } else {
        Err(mismatch(block.len(), last_bytes))
    }
}

#[cold]
#[inline(never)]
pub(super) fn mismatch(length_bytes: usize, last_bytes: u32) -> Stop {
    let first_bytes = u32::try_from(length_bytes).expect("a block's length came from 32 bits");
    Stop::Damaged(Damage::BlockLengthMismatch {
        first_bytes,
        last_bytes,
    })
}

#[cold]
#[inline(never)]
fn unknown_interface(interface: u32, interfaces: usize) -> Stop {
    Stop::Damaged(Damage::UnknownInterface {
        interface,
        interfaces,
    })
}

#[cold]
#[inline(never)]
fn too_long(captured_bytes: u32, limit_bytes: u32) -> Stop {
    Stop::Damaged(Damage::PacketTooLong {
        captured_bytes,
        limit_bytes,
    })
}

#[cold]
#[inline(never)]
fn beyond_block(captured_bytes: u32, room_bytes: usize) -> Stop {
    Stop::Damaged(Damage::PacketBeyondBlock {
        captured_bytes,
        room_bytes,
    })
}
