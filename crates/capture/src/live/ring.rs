// SPDX-License-Identifier: Apache-2.0
//! The ring: memory that the kernel fills block by block.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use super::InterfaceError;
use super::block::{BLOCK_STATUS_AT, BlockHeader};
use super::socket::PacketSocket;

/// How long the kernel keeps a block that is not full, at most about twice this: its timer looks
/// whether the block has changed since it looked last.
pub(crate) const RETIRE_MS: u32 = 20;

/// The smallest ring: four blocks that hold a frame of any Ethernet interface, not of 64 KiB.
const LOW_BYTES: usize = 64 << 10;
/// The largest: the kernel counts in 32 bits.
const HIGH_BYTES: usize = 2 << 30;
/// Blocks are this large unless the ring is small. Every [`RETIRE_MS`] takes a block however few
/// packets came, so a reader that stalls for seconds needs many of them: 256 in the default ring.
const BLOCK_BYTES: usize = 256 << 10;
/// A ring has at least so many blocks: one that fills, one that is read, and some between.
const LEAST_BLOCKS: usize = 4;
/// Only a unit that the kernel checks: frames of TPACKET_V3 are as long as their packets.
const FRAME_BYTES: usize = 2048;

/// The size of a ring: a power of two of bytes a block, and so many blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSize {
    block_bytes: usize,
    blocks: usize,
}

impl RingSize {
    /// The ring that fits into `size_bytes` best.
    ///
    /// # Errors
    /// Where that is too little or too much.
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

    /// All of its bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.block_bytes * self.blocks
    }
}

impl Default for RingSize {
    /// 64 MiB: half a second of a link of 1 Gb/s.
    fn default() -> Self {
        Self {
            block_bytes: BLOCK_BYTES,
            blocks: (64 << 20) / BLOCK_BYTES,
        }
    }
}

/// A ring in the memory of this process and of the kernel.
pub(crate) struct Ring {
    memory: NonNull<u8>,
    size: RingSize,
    /// The block that the kernel hands over next.
    next: usize,
    /// Whether the block before `next` is lent to this program.
    lent: bool,
}

// SAFETY: the mapping belongs to the ring alone, and is reached only through `&self` for reading a
// status and through `&mut self` for everything else; no thread is special to it.
unsafe impl Send for Ring {}

impl Ring {
    /// Asks for a ring and maps it.
    pub(crate) fn new(socket: &PacketSocket, size: RingSize) -> io::Result<Self> {
        let request = libc::tpacket_req3 {
            tp_block_size: size.block_bytes as u32,
            tp_block_nr: size.blocks as u32,
            tp_frame_size: FRAME_BYTES as u32,
            tp_frame_nr: (size.bytes() / FRAME_BYTES) as u32,
            tp_retire_blk_tov: RETIRE_MS,
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

    /// Where a block begins.
    fn block(&self, index: usize) -> NonNull<u8> {
        debug_assert!(index < self.size.blocks);
        // SAFETY: blocks lie one behind the other in the mapping, and there is one of this index.
        unsafe { self.memory.add(index * self.size.block_bytes) }
    }

    /// Who has a block: the kernel and this program pass it to one another through this word.
    fn status(&self, index: usize) -> &AtomicU32 {
        let status = self.block(index).as_ptr().wrapping_add(BLOCK_STATUS_AT);
        // SAFETY: the word lies in the mapping, which lives as long as `self`, at a multiple of
        // four, and both sides access it as a whole.
        unsafe { AtomicU32::from_ptr(status.cast()) }
    }

    fn is_ours(&self, index: usize) -> bool {
        // Acquire: what the kernel wrote into the block before is then seen.
        self.status(index).load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// The header of the next block, if the kernel has handed it over.
    pub(crate) fn peek(&self) -> Option<BlockHeader> {
        if !self.is_ours(self.next) {
            return None;
        }
        let start = self.block(self.next).as_ptr();
        // SAFETY: the block lies in the mapping and is this program's until it is given back,
        // which takes `&mut self`; nobody writes to it meanwhile.
        let bytes = unsafe { std::slice::from_raw_parts(start, self.size.block_bytes) };
        Some(BlockHeader::read(bytes))
    }

    /// The next block, if the kernel has handed it over. The one before goes back.
    pub(crate) fn take(&mut self) -> Option<&mut [u8]> {
        self.give_back();
        if !self.is_ours(self.next) {
            return None;
        }
        let start = self.block(self.next).as_ptr();
        self.lent = true;
        self.next = (self.next + 1) % self.size.blocks;
        // SAFETY: the block lies in the mapping and is this program's until it is given back,
        // which takes `&mut self` and so ends this borrow.
        Some(unsafe { std::slice::from_raw_parts_mut(start, self.size.block_bytes) })
    }

    /// Gives the lent block back to the kernel.
    pub(crate) fn give_back(&mut self) {
        if std::mem::take(&mut self.lent) {
            let index = (self.next + self.size.blocks - 1) % self.size.blocks;
            // Release: whatever was done with the block is over before the kernel sees this.
            self.status(index)
                .store(libc::TP_STATUS_KERNEL, Ordering::Release);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is this ring's, and nothing borrows from it any more.
        let _ = unsafe { libc::munmap(self.memory.as_ptr().cast(), self.size.bytes()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_become_blocks_that_the_kernel_takes() {
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
