// SPDX-License-Identifier: Apache-2.0
//! A capture file mapped into memory.
//!
//! If another program truncates a mapped file, the reader receives SIGBUS when it touches a missing
//! page. Three measures prevent this. Small files are read instead of mapped (`file.rs`). The walk
//! goes window by window, and asks the kernel to populate the pages of a window before it touches
//! them; for a truncated file this returns an error instead of a signal. No other page is touched.
//! What remains is a file that shrinks below a window during the milliseconds of its walk. Captures
//! that are truncated in place can be read through a pipe (`-`).

mod pages;

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use memmap2::{Advice, Mmap};

use crate::error::Damage;
use pages::Pages;

/// How many bytes are populated, and later released, at once. Large enough to make the two system
/// calls cheap, small enough for a last-level cache.
const WINDOW_BYTES: usize = 4 << 20;
/// Files of at least this length have a thread that populates windows ahead of the walk.
const LONG_BYTES: usize = 8 * WINDOW_BYTES;

/// A mapped file and the position of the walk.
pub(crate) struct Mapped {
    map: Arc<Mmap>,
    pages: Pages,
    file: File,
    /// Position of the walk.
    at: usize,
    /// End of the populated bytes.
    present: usize,
    /// Length of the file, as far as is known.
    length: usize,
    /// Start of the bytes that were not released yet.
    kept_from: usize,
    shrank: bool,
}

impl Mapped {
    /// Maps a regular file.
    pub(crate) fn new(file: File) -> io::Result<Self> {
        // SAFETY: the mapping is private and read-only, so that this program cannot change it.
        // Another program can. Bytes that change during the walk are no worse than other hostile
        // input, since every length is checked on the value that is then used. For truncation, see
        // the top of this file.
        let map = unsafe { Mmap::map(&file)? };
        // Only advice: reading works without it.
        let _ = map.advise(Advice::Sequential);
        let length = map.len();
        let map = Arc::new(map);
        let pages = Pages::new(&map, length >= LONG_BYTES);
        Ok(Self {
            map,
            pages,
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

    /// Populates the next window and releases what was walked.
    pub(crate) fn fill(&mut self, at_least: usize) -> Result<bool, Damage> {
        let before = self.present;
        let wanted = self
            .at
            .saturating_add(at_least)
            .max(before.saturating_add(WINDOW_BYTES));
        let end = wanted.min(self.length);
        if let Err(error) = self.make_present(before..end) {
            let length = self.file.metadata().map_or(0, |metadata| metadata.len());
            if length >= self.length as u64 {
                return Err(Damage::Io { source: error });
            }
            self.shrank = true;
            self.length = usize::try_from(length).unwrap_or(before).max(before);
            if self.make_present(before..self.length.min(end)).is_err() {
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

    fn make_present(&mut self, range: Range<usize>) -> io::Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let next = range.end..self.length.min(range.end + WINDOW_BYTES);
        let end = range.end as u64;
        self.pages.make_present(range, next)?;
        // The pages may have been populated a while ago.
        match self.file.metadata() {
            Ok(metadata) if metadata.len() < end => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    fn give_back(&mut self) {
        let walked = self.at / WINDOW_BYTES * WINDOW_BYTES;
        if walked > self.kept_from {
            self.pages.give_back(self.kept_from..walked);
            self.kept_from = walked;
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_shrinks_is_damaged_and_causes_no_signal() {
        // With and without a thread that populates pages ahead.
        for windows in [3, 20] {
            let file = tempfile();
            file.set_len((windows * WINDOW_BYTES) as u64).unwrap();
            let mut mapped = Mapped::new(file.try_clone().unwrap()).unwrap();
            for _ in 0..2 {
                assert!(mapped.fill(1).unwrap());
                mapped.consume(WINDOW_BYTES);
            }
            file.set_len(2 * WINDOW_BYTES as u64 + 5_000).unwrap();
            assert!(mapped.fill(1).unwrap());
            assert_eq!(mapped.window(), [0; 5_000]);
            mapped.consume(5_000);
            assert!(matches!(mapped.fill(1), Err(Damage::Shrank)));
        }
    }

    #[test]
    fn a_file_that_shrinks_behind_the_walk_is_read_completely() {
        let file = tempfile();
        file.set_len(2 * WINDOW_BYTES as u64).unwrap();
        let mut mapped = Mapped::new(file.try_clone().unwrap()).unwrap();
        while mapped.fill(1).unwrap() {
            mapped.consume(mapped.window().len());
        }
        file.set_len(10).unwrap();
        assert!(!mapped.fill(1).unwrap());
    }

    fn tempfile() -> File {
        let (process, thread) = (std::process::id(), std::thread::current().id());
        let path = std::env::temp_dir().join(format!("turboflow-mapped-{process}-{thread:?}"));
        let mut options = File::options();
        let file = options.read(true).write(true).create_new(true).open(&path);
        std::fs::remove_file(path).unwrap();
        file.unwrap()
    }
}
