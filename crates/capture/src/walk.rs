// SPDX-License-Identifier: Apache-2.0
//! What the walkers of both formats share: they turn contiguous bytes into frames and say why they
//! stopped.

use crate::error::Damage;

/// What a capture has delivered so far, in packets and in bytes on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets delivered as frames.
    pub packets: u64,
    /// Bytes of those packets on the wire.
    pub bytes: u64,
    /// Packets of pcapng interfaces with a link type that TurboFlow does not read: counted, not
    /// delivered.
    pub packets_unknown_link_type: u64,
    /// Bytes of those packets on the wire.
    pub bytes_unknown_link_type: u64,
    /// Delivered packets for which the file holds no time (pcapng Simple Packet Blocks). They carry
    /// the time of the packet before them.
    pub packets_without_time: u64,
    /// Packets that the capturing side says it lost, from pcapng Interface Statistics Blocks or,
    /// where those are missing, from the drop counts of single packets.
    pub source_dropped: u64,
}

/// What happens when input ends inside a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// What is incomplete.
    pub(crate) part: &'static str,
    /// Bytes that belong to it.
    pub(crate) needed_bytes: u64,
    /// Bytes of it that are there.
    pub(crate) available_bytes: u64,
}

/// Why a walk stopped.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A complete packet is next, but the batch is full.
    Full,
    /// The next record is not complete: at least this many bytes from the walk's position are
    /// needed. `cut` is `None` where input may end here.
    NeedMore { at_least: usize, cut: Option<Cut> },
    /// The next record makes no sense.
    Damaged(Damage),
}

impl Stop {
    /// A record of which only `available` of `needed` bytes are there.
    #[cold]
    #[inline(never)]
    pub(crate) fn incomplete(part: &'static str, needed: usize, available: usize) -> Self {
        let cut = Cut {
            part,
            needed_bytes: needed as u64,
            available_bytes: available as u64,
        };
        Self::NeedMore {
            at_least: needed,
            cut: (available > 0).then_some(cut),
        }
    }
}

/// How far a walk came.
#[derive(Debug)]
pub(crate) struct Walk {
    /// Bytes of complete records, from the start of the walk.
    pub(crate) consumed: usize,
    pub(crate) stop: Stop,
}

/// The first four bytes as a number of the given byte order.
#[inline(always)]
pub(crate) fn u32_at<const BIG: bool>(bytes: &[u8], at: usize) -> u32 {
    let field = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    if BIG {
        u32::from_be_bytes(field)
    } else {
        u32::from_le_bytes(field)
    }
}

/// The first two bytes as a number of the given byte order.
#[inline(always)]
pub(crate) fn u16_at<const BIG: bool>(bytes: &[u8], at: usize) -> u16 {
    let field = [bytes[at], bytes[at + 1]];
    if BIG {
        u16::from_be_bytes(field)
    } else {
        u16::from_le_bytes(field)
    }
}

/// How far ahead of the walk bytes are fetched.
const PREFETCH_BYTES: usize = 4096;
/// Records from this length on are skipped over by the fetching, too.
const LONG_RECORD_BYTES: usize = 256;

/// Fetches bytes that the walk comes to some records later. Where a record starts is only known
/// from the one before, so without this the walk waits for memory at every record: 16 ns for one of
/// 76 bytes instead of 7 (2026-11-21, see `examples/walk_speed.rs`). Short records lie close
/// enough that every line ahead is wanted; for long ones the guess is that more of the same length
/// follow.
#[inline(always)]
pub(crate) fn prefetch_ahead(data: &[u8], record_bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let is_long = record_bytes >= LONG_RECORD_BYTES;
        let distance = if is_long {
            record_bytes.wrapping_mul(4)
        } else {
            PREFETCH_BYTES
        };
        for line in [0, 64] {
            let ahead = data
                .as_ptr()
                .wrapping_add(distance.wrapping_add(line))
                .cast();
            // SAFETY: a prefetch changes nothing that the program can see and faults at no address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(ahead) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (data, record_bytes);
}

/// A captured length above this is damage, whatever the header says: libpcap's limit for the
/// largest link type.
pub(crate) const CAPTURED_CEILING_BYTES: u32 = 128 << 20;
/// Every file may hold packets up to this length, even where its header's snap length is smaller
/// (real files do).
const CAPTURED_FLOOR_BYTES: u32 = 262_144;

/// The longest captured length to believe in a file with this snap length (0 = unlimited).
pub(crate) fn captured_limit_bytes(snap_length_bytes: u32) -> u32 {
    snap_length_bytes.clamp(CAPTURED_FLOOR_BYTES, CAPTURED_CEILING_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_follows_the_snap_length_between_floor_and_ceiling() {
        assert_eq!(captured_limit_bytes(0), 262_144);
        assert_eq!(captured_limit_bytes(96), 262_144);
        assert_eq!(captured_limit_bytes(1_000_000), 1_000_000);
        assert_eq!(captured_limit_bytes(u32::MAX), 128 << 20);
    }
}
