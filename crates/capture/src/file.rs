// SPDX-License-Identifier: Apache-2.0
//! Opens a capture file and reads its frames.

use std::fs::{File, Metadata};
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use turboflow_packet::{Frame, LinkType};

use crate::batch::Batch;
use crate::detect;
use crate::error::{Damage, OpenError, ReadError};
use crate::format::{Compression, Format};
use crate::gzip::Members;
use crate::header::{HEADER_BYTES, Walker, fill_error, first_bytes, header, open_error};
use crate::mapped::Mapped;
use crate::scouts::Scouts;
use crate::source::{Filled, Memory, Source, Stream};
use crate::walk::{Counters, Stop};

/// Plain files up to this size are read completely. That is cheaper than a mapping, and no other
/// program can truncate them during the walk.
const READ_WHOLE_BYTES: u64 = 1 << 20;
/// The most frames in a batch.
const BATCH_LIMIT: usize = 1 << 16;
/// Size of one read of a compressed file.
const COMPRESSED_PIECE_BYTES: usize = 256 << 10;

/// A capture file, read from front to back.
pub struct CaptureFile {
    name: String,
    source: Source,
    walker: Walker,
    format: Format,
    counters: Counters,
    scouts: Scouts,
    /// Position in the uncompressed content.
    offset_bytes: u64,
    /// Bytes of the source's window that the last batch borrows.
    lent_bytes: usize,
    /// Bytes read from a compressed file.
    compressed_bytes: Option<Arc<AtomicU64>>,
    total_bytes: Option<u64>,
    /// What is needed to open the file again, while no frame has been delivered.
    reopen: Option<OpenedFile>,
    /// Whether the file must be opened again before reading.
    is_closed: bool,
    at_end: bool,
    frames: Vec<Frame<'static>>,
}

/// Where reading got to.
enum Reached {
    /// The input has ended.
    End,
    /// A complete packet is available.
    Packet,
    /// A pipe that is silent for now.
    Silence,
}

/// Path and properties of a file when it was first opened.
struct OpenedFile {
    path: PathBuf,
    identity: Option<(u64, u64)>,
    bytes: u64,
}

impl OpenedFile {
    /// Whether this is still the same file, which may have grown.
    fn is_same_file(&self, before: &Self) -> bool {
        self.identity == before.identity && self.bytes >= before.bytes
    }
}

/// Identifies a file whatever its name is.
#[cfg(unix)]
fn identity(metadata: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(_metadata: &Metadata) -> Option<(u64, u64)> {
    None
}

impl std::fmt::Debug for CaptureFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CaptureFile")
            .field("name", &self.name)
            .field("format", &self.format)
            .field("offset_bytes", &self.offset_bytes)
            .field("counters", &self.counters())
            .finish_non_exhaustive()
    }
}

impl CaptureFile {
    /// Opens a capture; `-` is standard input.
    ///
    /// Plain files on disk are mapped into memory; small ones are read. No other program may
    /// truncate a mapped file while it is read. Usually that ends in [`Damage::Shrank`], but it can
    /// end in a SIGBUS. Files that only grow, such as those written by `tcpdump -w`, are safe. They
    /// are read up to their length at the time of opening.
    ///
    /// # Errors
    /// If the file cannot be read or is not a supported capture.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        if path.as_os_str() == "-" {
            return Self::from_reader("standard input".to_owned(), Box::new(io::stdin()));
        }
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| open_error(&name, error))?;
        let metadata = file.metadata().map_err(|error| open_error(&name, error))?;
        if metadata.is_dir() {
            return Err(OpenError::Directory { name });
        }
        // Pipes have no length, and files in /proc report 0.
        if !metadata.is_file() || metadata.len() == 0 {
            return Self::from_reader(name, Box::new(file));
        }
        let reopen = OpenedFile {
            path: path.to_owned(),
            identity: identity(&metadata),
            bytes: metadata.len(),
        };
        let opened = Self::open_regular(name, file, metadata.len())?;
        Ok(Self {
            reopen: Some(reopen),
            ..opened
        })
    }

    fn open_regular(name: String, mut file: File, bytes: u64) -> Result<Self, OpenError> {
        let total_bytes = Some(bytes);
        let first = first_bytes(&mut file).map_err(|error| open_error(&name, error))?;
        if detect::compression_of(&first) != Compression::None {
            return Self::from_stream(name, first, Box::new(file), total_bytes);
        }
        file.rewind().map_err(|error| open_error(&name, error))?;
        let source = if bytes <= READ_WHOLE_BYTES {
            let mut all = Vec::with_capacity(bytes as usize + 1);
            file.read_to_end(&mut all)
                .map_err(|error| open_error(&name, error))?;
            Source::Memory(Memory::new(all))
        } else {
            match file.try_clone().and_then(Mapped::new) {
                Ok(mapped) => Source::Mapped(mapped),
                // Some file systems do not support mappings.
                Err(_) => Source::Stream(Stream::new(Box::new(file), Compression::None)),
            }
        };
        Self::start(name, source, Compression::None, None, total_bytes)
    }

    /// Reads a capture from any reader. `name` is its name in messages. If the reader gives up
    /// waiting ([`io::ErrorKind::WouldBlock`]), the next batch is empty.
    ///
    /// # Errors
    /// If it cannot be read or is not a supported capture.
    pub fn from_reader(name: String, reader: Box<dyn Read + Send>) -> Result<Self, OpenError> {
        Self::from_stream(name, Vec::new(), reader, None)
    }

    /// Reads a capture from memory.
    ///
    /// # Errors
    /// If it is not a supported capture.
    pub fn from_bytes(name: String, bytes: Vec<u8>) -> Result<Self, OpenError> {
        let total_bytes = Some(bytes.len() as u64);
        if detect::compression_of(&bytes) != Compression::None {
            let reader = Box::new(io::Cursor::new(bytes));
            return Self::from_stream(name, Vec::new(), reader, total_bytes);
        }
        let source = Source::Memory(Memory::new(bytes));
        Self::start(name, source, Compression::None, None, total_bytes)
    }

    /// Reads a stream whose `first` bytes were already read. If that is empty, they are read now.
    fn from_stream(
        name: String,
        mut first: Vec<u8>,
        mut reader: Box<dyn Read + Send>,
        total_bytes: Option<u64>,
    ) -> Result<Self, OpenError> {
        if first.is_empty() {
            first = first_bytes(&mut reader).map_err(|error| open_error(&name, error))?;
        }
        let compression = detect::compression_of(&first);
        let whole = io::Cursor::new(first).chain(reader);
        if compression == Compression::None {
            let source = Source::Stream(Stream::new(Box::new(whole), compression));
            return Self::start(name, source, compression, None, total_bytes);
        }
        let bytes_read = Arc::new(AtomicU64::new(0));
        let counting = Counting {
            reader: whole,
            bytes_read: Arc::clone(&bytes_read),
        };
        let buffered = BufReader::with_capacity(COMPRESSED_PIECE_BYTES, counting);
        let reader: Box<dyn Read + Send> = if compression == Compression::Gzip {
            Box::new(Members::new(buffered))
        } else {
            let decoder = zstd::stream::read::Decoder::with_buffer(buffered);
            Box::new(decoder.map_err(|error| open_error(&name, error))?)
        };
        let source = Source::Stream(Stream::new(reader, compression));
        Self::start(name, source, compression, Some(bytes_read), total_bytes)
    }

    /// Reads the file header.
    fn start(
        name: String,
        mut source: Source,
        compression: Compression,
        compressed_bytes: Option<Arc<AtomicU64>>,
        total_bytes: Option<u64>,
    ) -> Result<Self, OpenError> {
        while source.window().len() < HEADER_BYTES {
            match source.fill(HEADER_BYTES) {
                Ok(Filled::Longer | Filled::NotYet) => {}
                Ok(Filled::Ended) => break,
                Err(damage) => return Err(fill_error(name, damage)),
            }
        }
        let (walker, container) = header(&name, source.window())?;
        // The pcapng walker reads section headers itself.
        let offset_bytes = match walker {
            Walker::Pcap(_) => HEADER_BYTES,
            Walker::Pcapng(_) => 0,
        };
        source.consume(offset_bytes);
        Ok(Self {
            name,
            source,
            walker,
            format: Format {
                container,
                compression,
            },
            counters: Counters::default(),
            scouts: Scouts::default(),
            offset_bytes: offset_bytes as u64,
            lent_bytes: 0,
            compressed_bytes,
            total_bytes,
            reopen: None,
            is_closed: false,
            at_end: false,
            frames: Vec::new(),
        })
    }

    /// Closes a regular file and frees its read buffers until its first batch is requested, so that
    /// thousands of waiting files need only their names. If the name belongs to a different file by
    /// then, that file is not read.
    pub fn close_until_read(&mut self) {
        if self.reopen.is_some() && !self.at_end {
            self.source = Source::Memory(Memory::new(Vec::new()));
            self.is_closed = true;
        }
    }

    fn open_again(&mut self) -> Result<(), ReadError> {
        let Some(before) = self.reopen.take().filter(|_| self.is_closed) else {
            return Ok(());
        };
        self.is_closed = false;
        let damage = match Self::open(&before.path) {
            Ok(mut file) => {
                let now = file.reopen.take();
                if now.is_some_and(|now| now.is_same_file(&before)) {
                    *self = file;
                    return Ok(());
                }
                Damage::Replaced
            }
            Err(error) => Damage::OpenedAgain {
                source: Box::new(error),
            },
        };
        self.at_end = true;
        Err(self.read_error(damage))
    }

    /// The next frames: up to `limit`, which is clamped to 1 to 65,536. `None` at the end.
    ///
    /// The batch reuses its storage, so that a loop with a constant limit allocates once. Packets
    /// from a pipe are delivered as they arrive, without waiting for a full batch. A batch is empty
    /// only if a reader gave up waiting ([`CaptureFile::from_reader`]).
    ///
    /// # Errors
    /// Once, after the last complete packet, if the file is damaged or truncated. After that,
    /// `None` is returned.
    pub fn next_batch(&mut self, limit: usize) -> Result<Option<Batch<'_>>, ReadError> {
        if self.reopen.is_some() {
            self.open_again()?;
        }
        self.source.consume(std::mem::take(&mut self.lent_bytes));
        if self.at_end {
            return Ok(None);
        }
        match self.reach_packet() {
            Ok(Reached::Packet) => {}
            Ok(Reached::Silence) => return Ok(Some(Batch::take(&mut self.frames, 1))),
            Ok(Reached::End) => {
                self.at_end = true;
                return Ok(None);
            }
            Err(damage) => {
                self.at_end = true;
                return Err(self.read_error(damage));
            }
        }
        let window = self.source.window();
        let limit = self
            .scouts
            .before_walk(limit, window, |region| self.walker.scout(region))
            .clamp(1, BATCH_LIMIT);
        let mut batch = Batch::take(&mut self.frames, limit);
        let walk = self
            .walker
            .walk(window, limit, batch.frames_mut(), &mut self.counters);
        // The next call finds again the reason why the walk stopped.
        self.scouts.after_walk(walk.consumed, batch.frames().len());
        self.lent_bytes = walk.consumed;
        self.offset_bytes += walk.consumed as u64;
        Ok(Some(batch))
    }

    /// Advances to the next complete packet, if there is one.
    fn reach_packet(&mut self) -> Result<Reached, Damage> {
        loop {
            let window = self.source.window();
            let walk = self
                .walker
                .walk(window, 0, &mut Vec::new(), &mut self.counters);
            self.source.consume(walk.consumed);
            self.offset_bytes += walk.consumed as u64;
            match walk.stop {
                Stop::Full => return Ok(Reached::Packet),
                Stop::Damaged(damage) => return Err(damage),
                Stop::NeedMore { at_least, cut } => {
                    match self.source.fill(at_least)? {
                        Filled::Longer => continue,
                        Filled::NotYet => return Ok(Reached::Silence),
                        Filled::Ended => {}
                    }
                    let Some(cut) = cut else {
                        return Ok(Reached::End);
                    };
                    return Err(Damage::Truncated {
                        part: cut.part,
                        needed_bytes: cut.needed_bytes,
                        available_bytes: cut.available_bytes,
                    });
                }
            }
        }
    }

    #[cold]
    fn read_error(&self, damage: Damage) -> ReadError {
        ReadError {
            name: self.name.clone(),
            offset_bytes: self.offset_bytes - self.walker.started_before_bytes(),
            packet: self.counters.packets + self.counters.packets_unknown_link_type + 1,
            damage,
        }
    }

    /// The name of the file in messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The detected format.
    #[must_use]
    pub const fn format(&self) -> Format {
        self.format
    }

    /// The link type of all frames. `None` for pcapng, where each interface has its own.
    #[must_use]
    pub const fn link_type(&self) -> Option<LinkType> {
        match &self.walker {
            Walker::Pcap(walker) => Some(walker.link_type()),
            Walker::Pcapng(_) => None,
        }
    }

    /// Packets delivered and not delivered so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let source_dropped = match &self.walker {
            Walker::Pcap(_) => 0,
            Walker::Pcapng(walker) => walker.source_dropped(),
        };
        Counters {
            source_dropped,
            ..self.counters
        }
    }

    /// How many bytes of the file were read, before decompression.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.compressed_bytes
            .as_ref()
            .map_or(self.offset_bytes, |bytes_read| {
                bytes_read.load(Ordering::Relaxed)
            })
    }

    /// Size of the file in bytes when it was opened; `None` for a pipe.
    #[must_use]
    pub const fn bytes_total(&self) -> Option<u64> {
        self.total_bytes
    }
}

/// Counts the bytes read through it.
struct Counting<R> {
    reader: R,
    bytes_read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.reader.read(buffer)?;
        self.bytes_read.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(bytes)
    }
}
