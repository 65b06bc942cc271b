// SPDX-License-Identifier: Apache-2.0
//! The bytes of a capture: in memory, mapped, or read into a buffer. Each source provides a window
//! of contiguous bytes from the reader's position on.

use std::io::{self, Read};

use crate::error::Damage;
use crate::format::Compression;
use crate::mapped::Mapped;

/// What a source could add to its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    /// Nothing: the input has ended.
    Ended,
    /// Bytes.
    Longer,
    /// Nothing for now: a pipe is silent, and its reader does not wait for it.
    NotYet,
}

impl Filled {
    const fn of(is_longer: bool) -> Self {
        if is_longer { Self::Longer } else { Self::Ended }
    }
}

/// The uncompressed bytes of a capture.
pub(crate) enum Source {
    Mapped(Mapped),
    Memory(Memory),
    Stream(Stream),
}

impl Source {
    /// The available bytes from the reader's position on.
    #[inline]
    pub(crate) fn window(&self) -> &[u8] {
        match self {
            Self::Mapped(mapped) => mapped.window(),
            Self::Memory(memory) => &memory.bytes[memory.at..],
            Self::Stream(stream) => &stream.buffer[stream.start..stream.end],
        }
    }

    /// Advances the reader's position.
    #[inline]
    pub(crate) fn consume(&mut self, bytes: usize) {
        match self {
            Self::Mapped(mapped) => mapped.consume(bytes),
            Self::Memory(memory) => memory.at += bytes,
            Self::Stream(stream) => stream.start += bytes,
        }
    }

    /// Extends the window to at least `at_least` bytes, unless the input ends or a pipe falls
    /// silent first.
    pub(crate) fn fill(&mut self, at_least: usize) -> Result<Filled, Damage> {
        match self {
            Self::Mapped(mapped) => mapped.fill(at_least).map(Filled::of),
            Self::Memory(_) => Ok(Filled::Ended),
            Self::Stream(stream) => stream.fill(at_least),
        }
    }
}

/// A whole capture in memory.
pub(crate) struct Memory {
    bytes: Vec<u8>,
    at: usize,
}

impl Memory {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, at: 0 }
    }
}

/// Size of the buffer. It grows only for a longer block, and only as far as its bytes arrive.
const BUFFER_BYTES: usize = 1 << 20;
/// Size of one read from a decompressor. If its input is damaged, it withholds the output of the
/// failing call, so that calls should be small.
const DECOMPRESSED_PIECE_BYTES: usize = 16 << 10;

/// A capture that is read piece by piece.
pub(crate) struct Stream {
    reader: Box<dyn Read + Send>,
    compression: Compression,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// An error that is reported after the bytes before it were delivered.
    failed: Option<io::Error>,
}

impl Stream {
    pub(crate) fn new(reader: Box<dyn Read + Send>, compression: Compression) -> Self {
        let buffer = vec![0; BUFFER_BYTES];
        Self {
            reader,
            compression,
            buffer,
            start: 0,
            end: 0,
            failed: None,
        }
    }

    fn fill(&mut self, at_least: usize) -> Result<Filled, Damage> {
        if let Some(error) = self.failed.take() {
            return Err(self.damage(error));
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let before = self.end;
        loop {
            if self.end == self.buffer.len() {
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
            match self.read_once() {
                Ok(0) => break,
                Ok(bytes) => self.end += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let is_longer = self.end > before;
                    return Ok(if is_longer {
                        Filled::Longer
                    } else {
                        Filled::NotYet
                    });
                }
                Err(error) if self.end == before => return Err(self.damage(error)),
                Err(error) => {
                    self.failed = Some(error);
                    break;
                }
            }
            // Bytes from a pipe are passed on at once; decompressed pieces are collected.
            let is_enough = self.compression == Compression::None || self.end == self.buffer.len();
            if is_enough && self.end >= at_least {
                break;
            }
        }
        Ok(Filled::of(self.end > before))
    }

    fn read_once(&mut self) -> io::Result<usize> {
        let free = &mut self.buffer[self.end..];
        let piece_bytes = match self.compression {
            Compression::None => free.len(),
            Compression::Gzip | Compression::Zstd => free.len().min(DECOMPRESSED_PIECE_BYTES),
        };
        self.reader.read(&mut free[..piece_bytes])
    }

    #[cold]
    fn damage(&self, source: io::Error) -> Damage {
        match self.compression {
            Compression::None => Damage::Io { source },
            compression => Damage::Compressed {
                compression,
                source,
            },
        }
    }
}
