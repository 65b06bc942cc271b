// SPDX-License-Identifier: Apache-2.0
//! Splits a stream into messages.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use turboflow_engine::wire::{HEADER_BYTES, MAX_MESSAGE_BYTES, WireError, message_bytes};

/// Bytes read at a time. A longer message, of at most [`MAX_MESSAGE_BYTES`], makes the buffer
/// larger.
const BUFFER_BYTES: usize = 1 << 16;

/// Why the next message cannot be read.
#[derive(Debug)]
pub(crate) enum Unreadable {
    Read(io::Error),
    Wrong(WireError),
    /// The stream ends without the sender's last message.
    NoEnd,
    /// There are too many records without a watermark.
    NoWatermark,
    /// There are records that were read before.
    Repeated,
    /// There are records of a second engine.
    Senders,
    /// The sums do not fit in 64 bits.
    TooMany,
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

impl From<WireError> for Unreadable {
    fn from(error: WireError) -> Self {
        Self::Wrong(error)
    }
}

/// A stream of messages.
pub(crate) struct Messages<R> {
    path: PathBuf,
    stream: R,
    buffer: Vec<u8>,
    /// The unread part of the buffer.
    unread: std::ops::Range<usize>,
    /// Offset of the unread part in the stream.
    offset: u64,
}

impl<R: Read> Messages<R> {
    pub(crate) fn new(path: PathBuf, stream: R) -> Self {
        Self {
            path,
            stream,
            buffer: vec![0; BUFFER_BYTES],
            unread: 0..0,
            offset: 0,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    /// The next message; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, Unreadable> {
        let mut needed = HEADER_BYTES;
        loop {
            if self.unread.len() >= needed {
                let said = message_bytes(&self.buffer[self.unread.clone()])?;
                needed = said.unwrap_or(needed);
            }
            if self.unread.len() >= needed {
                let start = self.unread.start;
                self.unread.start += needed;
                self.offset += needed as u64;
                return Ok(Some(&self.buffer[start..start + needed]));
            }
            if self.buffer.len() < needed {
                self.buffer.resize(needed.min(MAX_MESSAGE_BYTES), 0);
            }
            if self.fill()? == 0 {
                return match self.unread.len() {
                    0 => Ok(None),
                    available => Err(WireError::Truncated { needed, available }.into()),
                };
            }
        }
    }

    /// Reads more of the stream. Returns the number of bytes.
    fn fill(&mut self) -> io::Result<usize> {
        if self.unread.end == self.buffer.len() || self.unread.is_empty() {
            self.buffer.copy_within(self.unread.clone(), 0);
            self.unread = 0..self.unread.len();
        }
        loop {
            match self.stream.read(&mut self.buffer[self.unread.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => {
                    let count = read?;
                    self.unread.end += count;
                    return Ok(count);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use turboflow_engine::EngineCounters;
    use turboflow_engine::wire::Encoder;
    use turboflow_merge::Layout;
    use turboflow_record::Definition;

    use super::*;

    /// Returns a few bytes per read.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(to.len());
            let (now, later) = self.0.split_at(count);
            to[..count].copy_from_slice(now);
            self.0 = later;
            Ok(count)
        }
    }

    fn stream() -> Vec<u8> {
        let layout = Layout::compile(&Definition::default(), false).expect("it compiles");
        let mut encoder = Encoder::new(&layout, 1, 1_400);
        let mut stream = Vec::new();
        for packets_received in 0..100 {
            let counters = EngineCounters {
                packets_received,
                ..EngineCounters::default()
            };
            encoder.counters(&counters, 1, false, |message| stream.extend(message));
        }
        stream
    }

    #[test]
    fn messages_are_found_however_reads_split_them() {
        let stream = stream();
        for piece in [1, 31, 33, 4_096] {
            let mut messages = Messages::new(PathBuf::new(), Slow(&stream, piece));
            let mut count = 0;
            while messages.next().expect("all are whole").is_some() {
                count += 1;
            }
            assert_eq!((count, messages.offset()), (100, stream.len() as u64));
        }
    }

    #[test]
    fn a_stream_that_ends_within_a_message_is_an_error() {
        let stream = stream();
        let mut messages = Messages::new(PathBuf::new(), &stream[..stream.len() - 1]);
        let error = loop {
            match messages.next() {
                Ok(Some(_)) => {}
                Ok(None) => panic!("the last message is cut"),
                Err(Unreadable::Wrong(error)) => break error,
                Err(other) => panic!("{other:?}"),
            }
        };
        assert!(matches!(error, WireError::Truncated { .. }), "{error}");
        assert!(Messages::new(PathBuf::new(), &b"pcap"[..]).next().is_err());
    }
}
