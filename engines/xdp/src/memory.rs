// SPDX-License-Identifier: Apache-2.0
//! Memory of a map that the program and user space share.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use libbpf_rs::{MapCore, MapHandle};
use memmap2::{MmapOptions, MmapRaw};

/// An array map, as words that either side may write at any time.
///
/// Reading it costs no system call and no copy: emptying 131,072 rows takes about as long as reading their memory.
pub(crate) struct SharedMemory {
    memory: MmapRaw,
    words: usize,
}

impl SharedMemory {
    /// Maps all of an array of `BPF_F_MMAPABLE`.
    pub(crate) fn map(map: &MapHandle) -> io::Result<Self> {
        // The kernel rounds elements up to words, and pages up.
        let words = (map.value_size() as usize).div_ceil(8) * map.max_entries() as usize;
        let fd = map.as_fd().as_raw_fd();
        let memory = MmapOptions::new()
            .len(words * 8)
            .no_probe_handle()
            .map_raw(fd)?;
        Ok(Self { memory, words })
    }

    pub(crate) fn words(&self) -> &[AtomicU64] {
        let words = self.memory.as_ptr().cast::<AtomicU64>();
        // SAFETY: the mapping begins at a page, has `words` words, lives as long as `self`, and cannot shrink: a map's size
        // is fixed. Whatever the kernel writes meanwhile is a word of its own, and all reading is by atomic words.
        unsafe { std::slice::from_raw_parts(words, self.words) }
    }

    /// Shows every row of one half of the tables that are in use, and empties it; how many there were. Of `in_use`, there is one for
    /// each table, whose halves lie side by side, and `row_words` lie from one row to the next.
    pub(crate) fn take_rows(
        &self,
        half: u64,
        in_use: &[bool],
        row_words: usize,
        mut take: impl FnMut(&[AtomicU64]),
    ) -> u64 {
        let half_words = self.words().len() / in_use.len() / 2;
        let halves = self.words().chunks_exact(half_words);
        let halves = halves.skip(half as usize).step_by(2).zip(in_use);
        let halves = halves.filter(|(_, is_used)| **is_used);
        let mut taken = 0;
        for row in halves.flat_map(|(rows, _)| rows.chunks_exact(row_words)) {
            // Its packets: none in an empty row.
            if row[0].load(Ordering::Relaxed) == 0 {
                continue;
            }
            take(row);
            row[0].store(0, Ordering::Relaxed);
            taken += 1;
        }
        taken
    }
}
