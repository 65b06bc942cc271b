// SPDX-License-Identifier: Apache-2.0
//! Common parts of the walkers of both formats, which turn contiguous bytes into frames.

use crate::error::Damage;

/// Packets of a capture so far, with their bytes on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets delivered as frames.
    pub packets: u64,
    /// Bytes of delivered packets.
    pub bytes: u64,
    /// Packets of pcapng interfaces with a link type that TurboFlow cannot parse. They are counted,
    /// but not delivered.
    pub packets_unknown_link_type: u64,
    /// Bytes of these packets.
    pub bytes_unknown_link_type: u64,
    /// Delivered packets without a time in the file (pcapng Simple Packet Blocks). They carry the
    /// time of the previous packet.
    pub packets_without_time: u64,
    /// Delivered packets whose time in the file is before 1970 or after 2554. They carry 1970 or
    /// the last valid time.
    pub packets_time_clamped: u64,
    /// Packets lost by the capturing side, from pcapng Interface Statistics Blocks or, without
    /// these, from the drop counts of packets.
    pub source_dropped: u64,
}

/// A record that is incomplete at the end of the input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// The incomplete part.
    pub(crate) part: &'static str,
    /// Size of the part.
    pub(crate) needed_bytes: u64,
    /// Bytes of it that are present.
    pub(crate) available_bytes: u64,
}

/// Why a walk stopped.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A complete packet follows, but the batch is full.
    Full,
    /// The next record is incomplete: at least `at_least` bytes from the walk's position are
    /// needed. `cut` is `None` if the input may end here.
    NeedMore { at_least: usize, cut: Option<Cut> },
    /// The next record is invalid.
    Damaged(Damage),
}

impl Stop {
    /// A record of which only `available` of `needed` bytes are present.
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

/// How far a walk got, and why it stopped.
#[derive(Debug)]
pub(crate) struct Walk {
    /// Size of the complete records that were walked, in bytes.
    pub(crate) consumed: usize,
    pub(crate) stop: Stop,
}

/// The four bytes at `at` as a number in the given byte order.
#[inline(always)]
pub(crate) fn u32_at<const BIG: bool>(bytes: &[u8], at: usize) -> u32 {
    let field = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    if BIG {
        u32::from_be_bytes(field)
    } else {
        u32::from_le_bytes(field)
    }
}

/// The two bytes at `at` as a number in the given byte order.
#[inline(always)]
pub(crate) fn u16_at<const BIG: bool>(bytes: &[u8], at: usize) -> u16 {
    let field = [bytes[at], bytes[at + 1]];
    if BIG {
        u16::from_be_bytes(field)
    } else {
        u16::from_le_bytes(field)
    }
}

/// How far ahead of the walk bytes are prefetched.
const PREFETCH_BYTES: usize = 4096;
/// From this length on, prefetching also skips whole records.
const LONG_RECORD_BYTES: usize = 256;

/// Prefetches bytes that the walk reaches some records later. The start of a record is only known
/// from the previous one, so that without prefetching the walk waits for memory at every record: 16
/// ns for one of 76 bytes instead of 7 (2026-11-21, see `examples/walk_speed.rs`). Short records
/// need every cache line ahead. For long ones the guess is that more of this length follow.
#[inline(always)]
pub(crate) fn prefetch_ahead(data: &[u8], record_bytes: usize) {
    let is_long = record_bytes >= LONG_RECORD_BYTES;
    let distance = if is_long {
        record_bytes.wrapping_mul(4)
    } else {
        PREFETCH_BYTES
    };
    for line in [0, 64] {
        prefetch_line(data, distance.wrapping_add(line));
    }
}

/// Prefetches the cache line that is `at` bytes from the start of `data`, also beyond its end.
#[inline(always)]
pub(crate) fn prefetch_line(data: &[u8], at: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch has no visible effect and faults at no address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(data.as_ptr().wrapping_add(at).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (data, at);
}

/// A captured length above this is damage, whatever the header says. It is libpcap's limit for the
/// largest link type.
pub(crate) const CAPTURED_CEILING_BYTES: u32 = 128 << 20;
/// Every file may contain packets up to this length, even if its snap length is smaller, which
/// happens in real files.
const CAPTURED_FLOOR_BYTES: u32 = 262_144;

/// The largest captured length to accept in a file with this snap length (0 = unlimited).
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
