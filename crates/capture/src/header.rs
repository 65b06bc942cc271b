// SPDX-License-Identifier: Apache-2.0
//! Selects the walker for a file by its first bytes.

use std::io::{self, Read};

use turboflow_packet::Frame;

use crate::detect;
use crate::error::{Damage, OpenError};
use crate::format::{ByteOrder, Container};
use crate::pcap::{self, PcapWalker};
use crate::pcapng::{self, PcapngWalker};
use crate::walk::{Counters, Walk};

/// Bytes needed to read the header of either format.
pub(crate) const HEADER_BYTES: usize = pcap::FILE_HEADER_BYTES;
const _: () = assert!(HEADER_BYTES == pcapng::SECTION_START_BYTES);

/// Walks over the packets of a file in either format.
pub(crate) enum Walker {
    Pcap(PcapWalker),
    Pcapng(PcapngWalker),
}

impl Walker {
    #[inline]
    pub(crate) fn walk<'a>(
        &mut self,
        data: &'a [u8],
        limit: usize,
        frames: &mut Vec<Frame<'a>>,
        counters: &mut Counters,
    ) -> Walk {
        match self {
            Self::Pcap(walker) => walker.walk(data, limit, frames, counters),
            Self::Pcapng(walker) => walker.walk(data, limit, frames, counters),
        }
    }

    /// Sends scouts through `data`, ahead of the walk.
    pub(crate) fn scout(&self, data: &[u8]) {
        match self {
            Self::Pcap(walker) => walker.scout(data),
            Self::Pcapng(walker) => walker.scout(data),
        }
    }

    pub(crate) fn started_before_bytes(&self) -> u64 {
        match self {
            Self::Pcap(_) => 0,
            Self::Pcapng(walker) => walker.started_before_bytes(),
        }
    }
}

/// Recognises the format and reads the file header.
pub(crate) fn header(name: &str, start: &[u8]) -> Result<(Walker, Container), OpenError> {
    if start.is_empty() {
        return Err(OpenError::Empty {
            name: name.to_owned(),
        });
    }
    let magic = start.first_chunk::<4>().copied().unwrap_or_default();
    let truncated = |container| OpenError::TruncatedHeader {
        name: name.to_owned(),
        container,
        needed_bytes: pcap::FILE_HEADER_BYTES,
        available_bytes: start.len(),
    };
    if magic == pcapng::MAGIC {
        let Some(header) = start.first_chunk::<{ pcapng::SECTION_START_BYTES }>() else {
            return Err(truncated("pcapng"));
        };
        return pcapng_header(name, header);
    }
    let Some(byte_order) = pcap::byte_order_of(magic) else {
        return Err(not_a_capture(name, start));
    };
    let Some(header) = start.first_chunk::<{ pcap::FILE_HEADER_BYTES }>() else {
        return Err(truncated("pcap"));
    };
    let (walker, container) = PcapWalker::new(name, header, byte_order)?;
    Ok((Walker::Pcap(walker), container))
}

fn pcapng_header(
    name: &str,
    header: &[u8; pcapng::SECTION_START_BYTES],
) -> Result<(Walker, Container), OpenError> {
    let mark = [header[8], header[9], header[10], header[11]];
    let byte_order = pcapng::section_byte_order(mark).map_err(|_| not_a_capture(name, header))?;
    let version = match byte_order {
        ByteOrder::Big => pcapng::check_version::<true>(header),
        ByteOrder::Little => pcapng::check_version::<false>(header),
    };
    if let Err(Damage::UnsupportedVersion { major, minor }) = version {
        let name = name.to_owned();
        return Err(OpenError::UnsupportedVersion {
            name,
            container: "pcapng",
            major,
            minor,
        });
    }
    let walker = Walker::Pcapng(PcapngWalker::new(byte_order));
    Ok((walker, Container::Pcapng { byte_order }))
}

#[cold]
fn not_a_capture(name: &str, start: &[u8]) -> OpenError {
    OpenError::NotACapture {
        name: name.to_owned(),
        first_bytes: detect::show(start),
        hint: detect::hint_for(start),
    }
}

#[cold]
pub(crate) fn open_error(name: &str, source: io::Error) -> OpenError {
    let name = name.to_owned();
    match source.kind() {
        io::ErrorKind::NotFound => OpenError::NotFound { name },
        io::ErrorKind::PermissionDenied => OpenError::PermissionDenied { name },
        _ => OpenError::Io { name, source },
    }
}

#[cold]
pub(crate) fn fill_error(name: String, damage: Damage) -> OpenError {
    match damage {
        Damage::Compressed {
            compression,
            source,
        } => OpenError::Compressed {
            name,
            compression,
            source,
        },
        Damage::Io { source } => OpenError::Io { name, source },
        damage => OpenError::Io {
            name,
            source: io::Error::other(damage),
        },
    }
}

/// Reads the bytes that identify the format; fewer if the input ends before.
pub(crate) fn first_bytes(reader: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut first = Vec::with_capacity(detect::MAGIC_BYTES);
    loop {
        let missing = detect::MAGIC_BYTES - first.len();
        match reader.take(missing as u64).read_to_end(&mut first) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
            Ok(_) => return Ok(first),
        }
    }
}
