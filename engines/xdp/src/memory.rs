// SPDX-License-Identifier: Apache-2.0
//! Memory of a map, shared by the program and user space.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use libbpf_rs::{MapCore, MapHandle};
use memmap2::{MmapOptions, MmapRaw};

/// An array map, as words that both sides may write at any time.
///
/// Reading it needs no system call and no copy: emptying 131,072 rows takes about as long as
/// reading their memory.
pub(crate) struct SharedMemory {
    memory: MmapRaw,
    words: usize,
}

impl SharedMemory {
    /// Maps a whole array map of type `BPF_F_MMAPABLE`.
    pub(crate) fn map(map: &MapHandle) -> io::Result<Self> {
        // The kernel rounds elements up to words, and the map up to pages.
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
        // SAFETY: the mapping begins at a page, has `words` words, lives as long as `self`, and
        // cannot shrink, because the size of a map is fixed. The kernel writes whole words, and all
        // reads here are atomic words.
        unsafe { std::slice::from_raw_parts(words, self.words) }
    }

    /// Passes every row of one half of the tables in use to `take`, and empties it; returns how
    /// many there were. `in_use` has an entry per table, whose halves are adjacent. `row_words` is
    /// the distance between rows.
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
            // The packets of the row: 0 in an empty one.
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
