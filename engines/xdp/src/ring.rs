// SPDX-License-Identifier: Apache-2.0
//! A BPF ring buffer, read where it lies, as the kernel lays it out for user space (`kernel/bpf/ringbuf.c`):
//!
//! ```text
//!  a page, ours to write    a page of the kernel's      data                                the same data again
//! +----------------------+ +------------------------+ +----------------------------------+ +-------------------+
//! | consumer position    | | producer position      | | length, flags | place | item ... | | so none is cut    |
//! +----------------------+ +------------------------+ +----------------------------------+ +-------------------+
//! ```
//!
//! Positions count bytes and never go back; the place in the data is what is left of them under the ring's size.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use libbpf_rs::{MapCore, MapHandle};
use memmap2::{MmapOptions, MmapRaw};

/// Set in an item's length while a program still writes it.
const BUSY: u32 = 1 << 31;
/// Set where the program took room and did not want it.
const DISCARDED: u32 = 1 << 30;
/// Length and flags, and the item's place in pages, which is the kernel's own business.
const HEADER_BYTES: usize = 8;
/// Room is given back to the programs after so many bytes: seldom, for they look at the same cache line.
const GIVE_BACK_BYTES: usize = 64 << 10;

/// The reading side of a ring. There is one for each ring.
pub(crate) struct Ring {
    consumer: MmapRaw,
    /// The producer's page, and the data twice behind it.
    produced: MmapRaw,
    page_bytes: usize,
    size_bytes: usize,
    read_to: usize,
}

impl Ring {
    /// Maps a map of `BPF_MAP_TYPE_RINGBUF` that nobody else reads.
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

    /// Gives at most so many items to `take`, each of which begins at a multiple of 8 bytes, in the order in which room was taken for
    /// them; how many there were. Ends before an item that is being written: those behind it have to wait.
    #[inline]
    pub(crate) fn read(&mut self, at_most: usize, mut take: impl FnMut(&[u8])) -> usize {
        let end = self.end();
        let (mut count, mut given_back_to) = (0, self.read_to);
        while count < at_most && is_before(self.read_to, end) {
            let at = self.read_to & (self.size_bytes - 1);
            // Acquire: what was written before the flag was cleared is there.
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

    /// Where the next item will be written.
    pub(crate) fn end(&self) -> usize {
        self.position(&self.produced).load(Ordering::Acquire)
    }

    /// Whether everything before an [`Ring::end`] has been read.
    pub(crate) const fn is_read_to(&self, end: usize) -> bool {
        !is_before(self.read_to, end)
    }

    /// Everything before may be written again. Release: it has been read.
    fn give_back(&self) {
        self.consumer().store(self.read_to, Ordering::Release);
    }

    fn consumer(&self) -> &AtomicUsize {
        self.position(&self.consumer)
    }

    /// The position that a page begins with.
    fn position<'a>(&'a self, page: &'a MmapRaw) -> &'a AtomicUsize {
        // SAFETY: a page is mapped there, as long as `self` lives, which begins with a position as wide as a pointer, and either
        // side reads and writes it as a whole.
        unsafe { &*page.as_ptr().cast::<AtomicUsize>() }
    }

    /// Length and flags of the item at a place in the data.
    fn header(&self, at: usize) -> &AtomicU32 {
        debug_assert!(at < self.size_bytes && at.is_multiple_of(8));
        // SAFETY: `at` is a place in the data, a multiple of 8, and a header of 8 bytes is there, for the caller found the producer
        // behind it. The kernel writes it as a whole.
        unsafe { &*self.address(at).cast::<AtomicU32>() }
    }

    /// The bytes of an item that is written and not given back.
    fn bytes(&self, at: usize, length_bytes: usize) -> &[u8] {
        assert!(length_bytes + HEADER_BYTES <= self.size_bytes);
        // SAFETY: data is mapped twice, so that an item of less than the ring's size that begins in the first half lies there in one
        // piece. Its header said, with acquire, that nobody writes it any more; the kernel writes there again only once the consumer
        // position has passed it, which `read` stores after whoever got this slice has given it back.
        unsafe { std::slice::from_raw_parts(self.address(at + HEADER_BYTES), length_bytes) }
    }

    /// A place in the data: of the first half, or a header's length behind it.
    fn address(&self, at: usize) -> *const u8 {
        // SAFETY: behind the producer's page two times `size_bytes` are mapped.
        unsafe { self.produced.as_ptr().add(self.page_bytes + at) }
    }
}

/// Whether a position is before another; they are less than half of their range apart.
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
