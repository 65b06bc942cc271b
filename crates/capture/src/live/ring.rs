// SPDX-License-Identifier: Apache-2.0
//! The ring: shared memory that the kernel fills block by block.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use super::InterfaceError;
use super::block::{BLOCK_STATUS_AT, BlockHeader};
use super::socket::PacketSocket;

/// After this time, or at most about twice as long, the kernel hands over a block that is not full.
/// Its timer checks whether the block has changed since the last check.
pub(crate) const RETIRE_MS: u32 = 20;

/// The smallest ring, in bytes: each of its four blocks can hold a frame of any Ethernet interface,
/// but not a frame of 64 KiB.
const LOW_BYTES: usize = 64 << 10;
/// The largest ring, in bytes: the kernel's sizes have 32 bits.
const HIGH_BYTES: usize = 2 << 30;
/// Block size, unless the ring is small. Every [`RETIRE_MS`] uses up a block, however few packets
/// arrived. A reader that stalls for seconds needs many blocks: the default ring has 256.
const BLOCK_BYTES: usize = 256 << 10;
/// The fewest blocks: one to fill, one to read, and some between.
const LEAST_BLOCKS: usize = 4;
/// Only used in a check by the kernel: frames of TPACKET_V3 are as long as their packets.
const FRAME_BYTES: usize = 2048;

/// The size of a ring. Blocks have a power-of-two size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSize {
    block_bytes: usize,
    blocks: usize,
}

impl RingSize {
    /// The ring size nearest to `size_bytes` that does not exceed it.
    ///
    /// # Errors
    /// If the size is out of range.
    pub fn new(size_bytes: u64) -> Result<Self, InterfaceError> {
        let size = usize::try_from(size_bytes).unwrap_or(usize::MAX);
        if !(LOW_BYTES..=HIGH_BYTES).contains(&size) {
            return Err(InterfaceError::RingSize {
                size_bytes,
                low_bytes: LOW_BYTES,
                high_bytes: HIGH_BYTES,
            });
        }
        let largest = (size / LEAST_BLOCKS).min(BLOCK_BYTES);
        let block_bytes = 1 << largest.ilog2();
        Ok(Self {
            block_bytes,
            blocks: size / block_bytes,
        })
    }

    /// The total size in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.block_bytes * self.blocks
    }
}

impl Default for RingSize {
    /// 64 MiB: half a second at 1 Gb/s.
    fn default() -> Self {
        Self {
            block_bytes: BLOCK_BYTES,
            blocks: (64 << 20) / BLOCK_BYTES,
        }
    }
}

/// A ring, in memory shared with the kernel.
pub(crate) struct Ring {
    memory: NonNull<u8>,
    size: RingSize,
    /// The block that the kernel hands over next.
    next: usize,
    /// Whether the block before `next` is in use by this program.
    lent: bool,
}

// SAFETY: the mapping is owned by the ring. It is accessed only through `&self` for reading a
// status, and through `&mut self` for everything else. It does not depend on a thread.
unsafe impl Send for Ring {}

impl Ring {
    /// Requests a ring and maps it. The kernel hands over a block that is not full when its first
    /// packet is `latency_ms` old, or [`RETIRE_MS`] by default.
    pub(crate) fn new(
        socket: &PacketSocket,
        size: RingSize,
        latency_ms: Option<u32>,
    ) -> io::Result<Self> {
        let request = libc::tpacket_req3 {
            tp_block_size: size.block_bytes as u32,
            tp_block_nr: size.blocks as u32,
            tp_frame_size: FRAME_BYTES as u32,
            tp_frame_nr: (size.bytes() / FRAME_BYTES) as u32,
            tp_retire_blk_tov: latency_ms.unwrap_or(RETIRE_MS),
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        socket.set(libc::PACKET_RX_RING, request)?;
        let memory = socket.map(size.bytes())?;
        Ok(Self {
            memory,
            size,
            next: 0,
            lent: false,
        })
    }

    pub(crate) const fn size(&self) -> RingSize {
        self.size
    }

    /// The start of a block.
    fn block(&self, index: usize) -> NonNull<u8> {
        debug_assert!(index < self.size.blocks);
        // SAFETY: blocks are contiguous in the mapping, and `index` is below their number.
        unsafe { self.memory.add(index * self.size.block_bytes) }
    }

    /// The word that says who owns a block, through which kernel and program hand it over.
    fn status(&self, index: usize) -> &AtomicU32 {
        let status = self.block(index).as_ptr().wrapping_add(BLOCK_STATUS_AT);
        // SAFETY: the word is in the mapping, which lives as long as `self`, and aligned to four
        // bytes. Both sides access it atomically.
        unsafe { AtomicU32::from_ptr(status.cast()) }
    }

    fn is_ours(&self, index: usize) -> bool {
        // Acquire: makes what the kernel wrote into the block visible.
        self.status(index).load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// The header of the next block, if the kernel has handed it over.
    pub(crate) fn peek(&self) -> Option<BlockHeader> {
        if !self.is_ours(self.next) {
            return None;
        }
        let start = self.block(self.next).as_ptr();
        // SAFETY: the block is in the mapping and belongs to this program until it is returned,
        // which takes `&mut self`. Until then, nothing writes to it.
        let bytes = unsafe { std::slice::from_raw_parts(start, self.size.block_bytes) };
        Some(BlockHeader::read(bytes))
    }

    /// The next block, if the kernel has handed it over. The previous one is returned.
    pub(crate) fn take(&mut self) -> Option<&mut [u8]> {
        self.give_back();
        if !self.is_ours(self.next) {
            return None;
        }
        let start = self.block(self.next).as_ptr();
        self.lent = true;
        self.next = (self.next + 1) % self.size.blocks;
        // SAFETY: the block is in the mapping and belongs to this program until it is returned,
        // which takes `&mut self` and so ends this borrow.
        Some(unsafe { std::slice::from_raw_parts_mut(start, self.size.block_bytes) })
    }

    /// Returns the block in use to the kernel.
    pub(crate) fn give_back(&mut self) {
        if std::mem::take(&mut self.lent) {
            let index = (self.next + self.size.blocks - 1) % self.size.blocks;
            // Release: all accesses to the block happen before the kernel sees this.
            self.status(index)
                .store(libc::TP_STATUS_KERNEL, Ordering::Release);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this ring, and nothing borrows from it.
        let _ = unsafe { libc::munmap(self.memory.as_ptr().cast(), self.size.bytes()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_become_blocks_that_the_kernel_accepts() {
        for (asked, block_bytes, blocks) in [
            (64 << 10, 16 << 10, 4),
            (100_000, 16 << 10, 6),
            (1 << 20, 256 << 10, 4),
            (64 << 20, 256 << 10, 256),
        ] {
            let size = RingSize::new(asked).unwrap();
            assert_eq!((size.block_bytes, size.blocks), (block_bytes, blocks));
            assert!(size.bytes() as u64 <= asked);
        }
        assert_eq!(RingSize::new(64 << 20).unwrap(), RingSize::default());
        for wrong in [0, (64 << 10) - 1, (2 << 30) + 1, u64::MAX] {
            assert!(RingSize::new(wrong).is_err(), "{wrong}");
        }
    }
}
