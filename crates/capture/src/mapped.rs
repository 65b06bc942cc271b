// SPDX-License-Identifier: Apache-2.0
//! A capture file mapped into memory.
//!
//! A mapped file that another program truncates makes the reader die of SIGBUS when it touches a
//! page that is gone. Three things keep that away: small files are read, not mapped (`file.rs`);
//! the walk goes window by window, and the kernel is asked to map each window's pages before
//! anything touches them, which reports a truncated file as an error instead of a signal; and no
//! other page is touched. What is left is a file that shrinks below a window while that window is
//! walked, some milliseconds. Whoever truncates captures in place can pipe them in (`-`).

use std::fs::File;
use std::io;

use memmap2::{Advice, Mmap};

use crate::error::Damage;

/// How many bytes are made present, and later given back, at once. Large enough to make the two
/// system calls cheap, small enough to stay in a last-level cache.
const WINDOW_BYTES: usize = 4 << 20;

/// A mapped file and how far it was walked.
pub(crate) struct Mapped {
    map: Mmap,
    file: File,
    /// The reader's position.
    at: usize,
    /// End of the bytes that are present.
    present: usize,
    /// End of the file, as far as is known.
    length: usize,
    /// Start of what was not given back yet.
    kept_from: usize,
    shrank: bool,
}

impl Mapped {
    /// Maps a regular file.
    pub(crate) fn new(file: File) -> io::Result<Self> {
        // SAFETY: the mapping is private and read-only, so this program cannot change it. Another
        // program can: bytes that change under the reader are as good as any other hostile input
        // (every length is checked on the value that is then used), and for truncation see the top
        // of this file.
        let map = unsafe { Mmap::map(&file)? };
        // Only advice: a kernel that does not take it reads all the same.
        let _ = map.advise(Advice::Sequential);
        let length = map.len();
        Ok(Self {
            map,
            file,
            at: 0,
            present: 0,
            length,
            kept_from: 0,
            shrank: false,
        })
    }

    #[inline]
    pub(crate) fn window(&self) -> &[u8] {
        &self.map[self.at..self.present]
    }

    #[inline]
    pub(crate) fn consume(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Makes the next window present and gives back what lies behind.
    pub(crate) fn fill(&mut self, at_least: usize) -> Result<bool, Damage> {
        let before = self.present;
        let wanted = self
            .at
            .saturating_add(at_least)
            .max(before.saturating_add(WINDOW_BYTES));
        let end = wanted.min(self.length);
        if let Err(error) = self.make_present(before, end) {
            let length = self.file.metadata().map_or(0, |metadata| metadata.len());
            if length >= self.length as u64 {
                return Err(Damage::Io { source: error });
            }
            self.shrank = true;
            self.length = usize::try_from(length).unwrap_or(before).max(before);
            if self.make_present(before, self.length.min(end)).is_err() {
                return Err(Damage::Shrank);
            }
        }
        self.present = end.min(self.length);
        self.give_back();
        if self.present == before && self.shrank {
            return Err(Damage::Shrank);
        }
        Ok(self.present > before)
    }

    #[cfg(target_os = "linux")]
    fn make_present(&self, from: usize, to: usize) -> io::Result<()> {
        /// The kernel (before 5.14) does not know the advice.
        const EINVAL: i32 = 22;
        if from == to {
            return Ok(());
        }
        match self.map.advise_range(Advice::PopulateRead, from, to - from) {
            Err(error) if error.raw_os_error() != Some(EINVAL) => Err(error),
            _ => Ok(()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn make_present(&self, _from: usize, _to: usize) -> io::Result<()> {
        Ok(())
    }

    /// Lets go of pages that were walked, so that a file larger than memory can be read without
    /// counting against this program.
    #[cfg(target_os = "linux")]
    fn give_back(&mut self) {
        let walked = self.at / WINDOW_BYTES * WINDOW_BYTES;
        if walked > self.kept_from {
            // SAFETY: no frame borrows from the mapping, as this method takes `self` mutably, and a
            // page given back is read from the file again if it is touched.
            let _ = unsafe {
                self.map.unchecked_advise_range(
                    memmap2::UncheckedAdvice::DontNeed,
                    self.kept_from,
                    walked - self.kept_from,
                )
            };
            self.kept_from = walked;
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn give_back(&mut self) {}
}
