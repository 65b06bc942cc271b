// SPDX-License-Identifier: Apache-2.0
//! The format of a capture file.

use std::fmt;

use turboflow_packet::LinkType;

/// The compression of a capture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// gzip (RFC 1952), any number of members.
    Gzip,
    /// Not compressed.
    None,
    /// Zstandard (RFC 8878), any number of frames.
    Zstd,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip => "gzip",
            Self::None => "uncompressed",
            Self::Zstd => "zstd",
        })
    }
}

/// Byte order of a file's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// Most significant byte first.
    Big,
    /// Least significant byte first.
    Little,
}

impl fmt::Display for ByteOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Big => "big-endian",
            Self::Little => "little-endian",
        })
    }
}

/// The file format inside the compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// Classic pcap.
    Pcap {
        /// Byte order of the headers.
        byte_order: ByteOrder,
        /// Time resolution: nanoseconds (true) or microseconds.
        nanoseconds: bool,
        /// Link type of every packet.
        link_type: LinkType,
        /// The header's snap length, in bytes; 0 = unlimited.
        snap_length_bytes: u32,
    },
    /// pcapng; byte order, resolution and link types can change within the file.
    Pcapng {
        /// Byte order of the first section.
        byte_order: ByteOrder,
    },
}

/// The format of a capture file, detected from its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// The file format.
    pub container: Container,
    /// The compression around it.
    pub compression: Compression,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.container {
            Container::Pcap {
                byte_order,
                nanoseconds,
                link_type,
                ..
            } => {
                let unit = if nanoseconds {
                    "nanoseconds"
                } else {
                    "microseconds"
                };
                write!(
                    f,
                    "pcap, {unit}, {byte_order}, {link_type:?}, {}",
                    self.compression
                )
            }
            Container::Pcapng { byte_order } => {
                write!(f, "pcapng, {byte_order}, {}", self.compression)
            }
        }
    }
}
