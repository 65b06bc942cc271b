// SPDX-License-Identifier: Apache-2.0
//! A capture file mapped into memory.
//!
//! A mapped file that another program truncates makes the reader die of SIGBUS when it touches a
//! page that is gone. Three things keep that away: small files are read, not mapped (`file.rs`);
//! the walk goes window by window, and the kernel is asked to map each window's pages before
//! anything touches them, which reports a truncated file as an error instead of a signal; and no
//! other page is touched. What is left is a file that shrinks below a window while that window is
//! walked, some milliseconds. Whoever truncates captures in place can pipe them in (`-`).

mod pages;

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use memmap2::{Advice, Mmap};

use crate::error::Damage;
use pages::Pages;

/// How many bytes are made present, and later given back, at once. Large enough to make the two
/// system calls cheap, small enough to stay in a last-level cache.
const WINDOW_BYTES: usize = 4 << 20;
/// Files from this length on have a thread that makes windows present ahead of the walk.
const LONG_BYTES: usize = 8 * WINDOW_BYTES;

/// A mapped file and how far it was walked.
pub(crate) struct Mapped {
    map: Arc<Mmap>,
    pages: Pages,
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

    /// Makes the next window present and gives back what lies behind.
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
        // Pages may have been made present some time ago.
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
    fn a_file_that_shrinks_is_damage_and_no_signal() {
        // Without a thread that is ahead, and with one.
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
    fn a_file_that_shrinks_behind_the_walk_was_read_whole() {
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
