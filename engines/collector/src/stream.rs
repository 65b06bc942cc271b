// SPDX-License-Identifier: Apache-2.0
//! Messages in a byte stream: IPFIX over TCP (RFC 7011, section 10.4), files of IPFIX (RFC 5655) or
//! of consecutive NetFlow messages, and microflow records in the wire form.

use std::io::{self, Read};
use std::path::Path;

use thiserror::Error;
use turboflow_engine::{MicroflowBatch, wire};
use turboflow_merge::Layout;

use crate::bytes::two;
use crate::decoder::Message;
use crate::engine::{MessageSource, Polled, TakeMessage};
use crate::exporters::Sender;
use crate::header::{IPFIX_HEADER_BYTES, V5_RECORD_BYTES};
use crate::microflows::Refused;

/// The longest message.
pub const MAX_MESSAGE_BYTES: usize = 1 << 16;
/// Bytes read at a time.
const BUFFER_BYTES: usize = 1 << 18;
/// Messages taken at a time.
const MOST_AT_ONCE: usize = 64;

/// Why messages cannot be read.
#[derive(Debug, Error)]
pub enum StreamError {
    /// The stream cannot be read.
    #[error("cannot read {name}: {source}")]
    Read {
        /// The stream.
        name: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A message of a file was refused.
    #[error("{name}, at byte {offset}: {source}")]
    Refused {
        /// The stream.
        name: String,
        /// Where the message begins.
        offset: u64,
        /// Why.
        source: Refused,
    },
    /// No message begins where one should.
    #[error("{name}, at byte {offset}: no IPFIX message or NetFlow v5 message begins here")]
    NoMessage {
        /// The stream.
        name: String,
        /// Where.
        offset: u64,
    },
    /// It ends within a message.
    #[error(
        "{name}, at byte {offset}: the input ends within a message: its writer did not complete it"
    )]
    Cut {
        /// The stream.
        name: String,
        /// Where the message begins.
        offset: u64,
    },
}

/// A buffer of received bytes, from which whole messages are taken.
#[derive(Debug)]
pub struct MessageStream {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset of `start` in the stream.
    offset: u64,
}

/// The next message of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextMessage<'a> {
    /// A message.
    Whole(&'a [u8]),
    /// More bytes are needed.
    More,
    /// No message begins here.
    Broken,
}

impl Default for MessageStream {
    fn default() -> Self {
        Self {
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            offset: 0,
        }
    }
}

impl MessageStream {
    /// Reads more bytes. Returns their number; 0 at the end.
    ///
    /// # Errors
    /// The errors of the reader, including [`io::ErrorKind::WouldBlock`].
    pub fn fill(&mut self, reader: &mut (impl Read + ?Sized)) -> io::Result<usize> {
        if self.buffer.len() - self.end < MAX_MESSAGE_BYTES {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        loop {
            match reader.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => {
                    let count = read?;
                    self.end += count;
                    return Ok(count);
                }
            }
        }
    }

    /// Takes the next message.
    pub fn message(&mut self) -> NextMessage<'_> {
        let needed = match self.peek() {
            NextMessage::Whole(bytes) => bytes.len(),
            NextMessage::More => return NextMessage::More,
            NextMessage::Broken => return NextMessage::Broken,
        };
        let start = self.start;
        self.start += needed;
        self.offset += needed as u64;
        NextMessage::Whole(&self.buffer[start..start + needed])
    }

    /// The next message, which stays in the stream.
    #[must_use]
    pub fn peek(&self) -> NextMessage<'_> {
        let unread = &self.buffer[self.start..self.end];
        let needed = match wire::is_message(unread) {
            true => match wire::message_bytes(unread) {
                Ok(Some(needed)) if needed <= MAX_MESSAGE_BYTES => Some(needed),
                Ok(None) => return NextMessage::More,
                Ok(Some(_)) | Err(_) => return NextMessage::Broken,
            },
            false => message_bytes(unread),
        };
        let Some(needed) = needed else {
            return match unread.len() < IPFIX_HEADER_BYTES {
                true => NextMessage::More,
                false => NextMessage::Broken,
            };
        };
        unread
            .get(..needed)
            .map_or(NextMessage::More, NextMessage::Whole)
    }

    /// Whether bytes of a message are left.
    #[must_use]
    pub const fn is_within_message(&self) -> bool {
        self.start < self.end
    }

    /// Where the next message begins.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }
}

/// The length of the message that begins here. NetFlow v9 messages do not contain their length.
fn message_bytes(unread: &[u8]) -> Option<usize> {
    let (version, second) = (two(unread, 0)?, usize::from(two(unread, 2)?));
    match version {
        10 if second >= IPFIX_HEADER_BYTES => Some(second),
        5 if second <= 1_000 => Some(24 + second * V5_RECORD_BYTES),
        _ => None,
    }
}

/// A file of messages.
pub struct FileSource {
    name: String,
    file: Box<dyn Read + Send>,
    stream: MessageStream,
    session: u64,
}

impl FileSource {
    /// A file or pipe. `session` distinguishes it from other files of the run.
    #[must_use]
    pub fn new(path: &Path, file: Box<dyn Read + Send>, session: u64) -> Self {
        Self {
            name: path.display().to_string(),
            file,
            stream: MessageStream::default(),
            session,
        }
    }

    /// Reads the first message, which shows whether this is such a file, and leaves it in the
    /// stream. A pipe that has nothing to read yet passes.
    ///
    /// # Errors
    /// The file cannot be read, does not begin with a message, ends within its first one, or holds
    /// microflow records of another layout than `layout`.
    pub fn begin(&mut self, layout: &Layout) -> Result<(), StreamError> {
        let (name, offset) = (self.name.clone(), self.stream.offset());
        loop {
            match self.stream.peek() {
                NextMessage::Whole(bytes) if wire::is_message(bytes) => {
                    let mut records = MicroflowBatch::default();
                    let decoded = wire::Decoder::new(layout).decode(bytes, &mut records);
                    return decoded.map(drop).map_err(|wrong| StreamError::Refused {
                        name,
                        offset,
                        source: wrong.into(),
                    });
                }
                NextMessage::Whole(_) => return Ok(()),
                NextMessage::Broken => return Err(StreamError::NoMessage { name, offset }),
                NextMessage::More => {}
            }
            match self.stream.fill(&mut *self.file) {
                Ok(0) if self.stream.is_within_message() => {
                    return Err(StreamError::Cut { name, offset });
                }
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(source) => return Err(StreamError::Read { name, source }),
            }
        }
    }
}

impl MessageSource for FileSource {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn poll(
        &mut self,
        take: &mut TakeMessage<'_>,
        _ended: &mut Vec<Sender>,
    ) -> Result<Polled, StreamError> {
        let mut polled = Polled::default();
        for _ in 0..MOST_AT_ONCE {
            let offset = self.stream.offset();
            match self.stream.message() {
                NextMessage::Whole(bytes) => {
                    polled.had_any = true;
                    let taken = take(&Message {
                        from: Sender {
                            address: None,
                            session: self.session,
                        },
                        is_datagram: false,
                        received_ns: None,
                        bytes,
                    });
                    if let Err(source) = taken {
                        let name = self.name.clone();
                        return Err(StreamError::Refused {
                            name,
                            offset,
                            source,
                        });
                    }
                }
                NextMessage::Broken => {
                    let name = self.name.clone();
                    return Err(StreamError::NoMessage { name, offset });
                }
                NextMessage::More => match self.stream.fill(&mut *self.file) {
                    Ok(0) if self.stream.is_within_message() => {
                        let name = self.name.clone();
                        return Err(StreamError::Cut { name, offset });
                    }
                    Ok(0) => {
                        polled.is_over = true;
                        return Ok(polled);
                    }
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(polled),
                    Err(source) => {
                        let name = self.name.clone();
                        return Err(StreamError::Read { name, source });
                    }
                },
            }
        }
        Ok(polled)
    }
}
