// SPDX-License-Identifier: Apache-2.0
//! Reads a BPF ring buffer in place, in the kernel's layout for user space
//! (`kernel/bpf/ringbuf.c`):
//!
//! ```text
//!  a page, ours to write    a page of the kernel's      data                                the same data again
//! +----------------------+ +------------------------+ +----------------------------------+ +-------------------+
//! | consumer position    | | producer position      | | length, flags | place | item ... | | so none is cut    |
//! +----------------------+ +------------------------+ +----------------------------------+ +-------------------+
//! ```
//!
//! Positions count bytes and never decrease; the offset in the data is the position modulo the
//! size.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use libbpf_rs::{MapCore, MapHandle};
use memmap2::{MmapOptions, MmapRaw};

/// Set in an item's length while a program writes the item.
const BUSY: u32 = 1 << 31;
/// Set if the program reserved the item and discarded it.
const DISCARDED: u32 = 1 << 30;
/// Length and flags, and the item's offset in pages, which only the kernel uses.
const HEADER_BYTES: usize = 8;
/// Space is returned to the programs in steps of this many bytes: rarely, because programs read
/// that cache line.
const GIVE_BACK_BYTES: usize = 64 << 10;

/// The reading side of a ring. A ring has only one.
pub(crate) struct Ring {
    consumer: MmapRaw,
    /// The producer's page, followed by the data twice.
    produced: MmapRaw,
    page_bytes: usize,
    size_bytes: usize,
    read_to: usize,
}

impl Ring {
    /// Maps a ring buffer (`BPF_MAP_TYPE_RINGBUF`) that has no other reader.
    pub(crate) fn map(map: &MapHandle) -> io::Result<Self> {
        let fd = map.as_fd().as_raw_fd();
        let (page_bytes, size_bytes) = (rustix::param::page_size(), map.max_entries() as usize);
        let consumer = MmapOptions::new()
            .len(page_bytes)
            .no_probe_handle()
            .map_raw(fd)?;
        let produced = MmapOptions::new()
            .offset(page_bytes as u64)
            .len(page_bytes + 2 * size_bytes)
            .no_probe_handle()
            .map_raw_read_only(fd)?;
        let mut ring = Self {
            consumer,
            produced,
            page_bytes,
            size_bytes,
            read_to: 0,
        };
        ring.read_to = ring.consumer().load(Ordering::Relaxed);
        Ok(ring)
    }

    /// Passes at most `at_most` items to `take`, in the order of reservation; returns how many
    /// there were. Each item begins at a multiple of 8 bytes. Stops before an item that is still
    /// being written: later items have to wait.
    #[inline]
    pub(crate) fn read(&mut self, at_most: usize, mut take: impl FnMut(&[u8])) -> usize {
        let end = self.end();
        let (mut count, mut given_back_to) = (0, self.read_to);
        while count < at_most && is_before(self.read_to, end) {
            let at = self.read_to & (self.size_bytes - 1);
            // Acquire: the item was written before the flag was cleared.
            let header = self.header(at).load(Ordering::Acquire);
            if header & BUSY != 0 {
                break;
            }
            let length_bytes = (header & !DISCARDED) as usize;
            if header & DISCARDED == 0 {
                take(self.bytes(at, length_bytes));
                count += 1;
            }
            let next = self.read_to.wrapping_add(HEADER_BYTES + length_bytes);
            self.read_to = next.next_multiple_of(8);
            if self.read_to.wrapping_sub(given_back_to) >= GIVE_BACK_BYTES {
                given_back_to = self.read_to;
                self.give_back();
            }
        }
        if self.read_to != given_back_to {
            self.give_back();
        }
        count
    }

    /// The position of the next item to be written.
    pub(crate) fn end(&self) -> usize {
        self.position(&self.produced).load(Ordering::Acquire)
    }

    /// Whether everything before this [`Ring::end`] has been read.
    pub(crate) const fn is_read_to(&self, end: usize) -> bool {
        !is_before(self.read_to, end)
    }

    /// Returns everything read to the kernel. Release: the reads are complete.
    fn give_back(&self) {
        self.consumer().store(self.read_to, Ordering::Release);
    }

    fn consumer(&self) -> &AtomicUsize {
        self.position(&self.consumer)
    }

    /// The position at the start of a page.
    fn position<'a>(&'a self, page: &'a MmapRaw) -> &'a AtomicUsize {
        // SAFETY: a page is mapped there for the lifetime of `self`, and begins with a position of
        // pointer size, which both sides read and write atomically.
        unsafe { &*page.as_ptr().cast::<AtomicUsize>() }
    }

    /// Length and flags of the item at an offset in the data.
    fn header(&self, at: usize) -> &AtomicU32 {
        debug_assert!(at < self.size_bytes && at.is_multiple_of(8));
        // SAFETY: `at` is an offset in the data and a multiple of 8. A header of 8 bytes is there,
        // because the caller found the producer's position after it. The kernel writes it
        // atomically.
        unsafe { &*self.address(at).cast::<AtomicU32>() }
    }

    /// The bytes of a complete item that was not returned yet.
    fn bytes(&self, at: usize, length_bytes: usize) -> &[u8] {
        assert!(length_bytes + HEADER_BYTES <= self.size_bytes);
        // SAFETY: the data is mapped twice, so an item that starts in the first half is contiguous.
        // Its header was read with acquire and says that the item is complete. The kernel writes
        // there again only when the consumer position has passed it, which `read` stores after the
        // borrower of this slice has returned.
        unsafe { std::slice::from_raw_parts(self.address(at + HEADER_BYTES), length_bytes) }
    }

    /// An address in the data: in the first half, or up to a header's length after it.
    fn address(&self, at: usize) -> *const u8 {
        // SAFETY: two times `size_bytes` are mapped after the producer's page.
        unsafe { self.produced.as_ptr().add(self.page_bytes + at) }
    }
}

/// Whether a position is before another; they differ by less than half of their range.
const fn is_before(position: usize, other: usize) -> bool {
    (other.wrapping_sub(position) as isize) > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_go_round() {
        assert!(is_before(0, 1) && !is_before(1, 1) && !is_before(2, 1));
        assert!(is_before(usize::MAX, 0) && !is_before(0, usize::MAX));
    }
}
