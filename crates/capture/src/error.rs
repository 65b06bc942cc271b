// SPDX-License-Identifier: Apache-2.0
//! What can be wrong with a capture file, in words that name the place and the mend.

use std::io;

use crate::Compression;

/// Why a capture could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file is compressed, and decompression fails at its start.
    #[error(
        "{name} looks like {compression} but does not decompress: {source}; try `{compression} -t \
        {name}`"
    )]
    Compressed {
        /// The file.
        name: String,
        /// The compression its first bytes announce.
        compression: Compression,
        /// What the decompressor says.
        source: io::Error,
    },
    /// The path is a directory.
    #[error("{name} is a directory: name a capture file in it")]
    Directory {
        /// The path.
        name: String,
    },
    /// The file has no bytes at all.
    #[error("{name} is empty: nothing was captured, or whatever should have written it failed")]
    Empty {
        /// The file.
        name: String,
    },
    /// Reading failed.
    #[error("{name} could not be read: {source}")]
    Io {
        /// The file.
        name: String,
        /// What the operating system or the decompressor says.
        source: io::Error,
    },
    /// The first bytes are not those of a pcap or pcapng file.
    #[error(
        "{name} is not a pcap or pcapng file (it starts with {first_bytes}){}",
        hint.map(|hint| format!(": {hint}")).unwrap_or_default()
    )]
    NotACapture {
        /// The file.
        name: String,
        /// The first bytes, in hexadecimal and, where printable, as text.
        first_bytes: String,
        /// What it looks like and what to do about it, where known.
        hint: Option<&'static str>,
    },
    /// There is no such file.
    #[error("{name} does not exist: check the path")]
    NotFound {
        /// The path.
        name: String,
    },
    /// The file may not be read.
    #[error("{name} may not be read: permission denied, try as its owner or change its mode")]
    PermissionDenied {
        /// The path.
        name: String,
    },
    /// The file ends inside its header.
    #[error(
        "{name} ends inside its {container} header: {available_bytes} of {needed_bytes} bytes are \
        there, no packet was captured or the file was cut"
    )]
    TruncatedHeader {
        /// The file.
        name: String,
        /// `pcap` or `pcapng`.
        container: &'static str,
        /// Bytes of the header.
        needed_bytes: usize,
        /// Bytes that are there.
        available_bytes: usize,
    },
    /// A classic pcap file with a link type that TurboFlow does not read.
    #[error(
        "{name} has link type {number} ({link_type}), which turboflow does not read: it reads \
        Ethernet, Linux cooked v1 and v2, BSD loopback, raw IP and PPP"
    )]
    UnsupportedLinkType {
        /// The file.
        name: String,
        /// The number in the file's header.
        number: u32,
        /// The registry's name for it.
        link_type: &'static str,
    },
    /// A version of the format that is not known.
    #[error(
        "{name} is {container} of version {major}.{minor}, which is not known: it may be damaged, \
         otherwise convert it with `editcap IN OUT`"
    )]
    UnsupportedVersion {
        /// The file.
        name: String,
        /// `pcap` or `pcapng`.
        container: &'static str,
        /// Major version in the file.
        major: u16,
        /// Minor version in the file.
        minor: u16,
    },
}

/// Where and why reading a capture stopped early. Every complete packet before the place was
/// delivered; the file is at its end afterwards.
#[derive(Debug, thiserror::Error)]
#[error("{name}: packet {packet} at byte {offset_bytes}: {damage}")]
pub struct ReadError {
    /// The file.
    pub name: String,
    /// Where the bad record starts, in bytes from the start of the file (of its uncompressed
    /// content).
    pub offset_bytes: u64,
    /// Number of the packet that could not be read, counted from 1 as Wireshark does.
    pub packet: u64,
    /// What is wrong.
    #[source]
    pub damage: Damage,
}

/// What is wrong with a capture at some place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// A pcapng block's length cannot be right.
    #[error(
        "block of type {block_type:#010x} with a length of {length_bytes} bytes ({rule}): the \
        file is damaged here, packets before were read, the rest cannot be"
    )]
    BlockLength {
        /// The block's type.
        block_type: u32,
        /// Its length field.
        length_bytes: u32,
        /// What a right length would be.
        rule: &'static str,
    },
    /// The two length fields of a pcapng block differ.
    #[error(
        "block length is {first_bytes} bytes at its start but {last_bytes} at its end: the file \
        is damaged here, packets before were read, the rest cannot be"
    )]
    BlockLengthMismatch {
        /// The length at the block's start.
        first_bytes: u32,
        /// The length at the block's end.
        last_bytes: u32,
    },
    /// The byte-order mark of a pcapng section is neither order's.
    #[error(
        "section header with byte-order mark {magic:#010x} instead of 0x1a2b3c4d: the file is \
        damaged here"
    )]
    ByteOrderMark {
        /// The four bytes, read as little-endian.
        magic: u32,
    },
    /// Decompression failed.
    #[error(
        "{compression} data is damaged or ends early ({source}): the file was cut or is still \
        being written, packets before were read"
    )]
    Compressed {
        /// The compression.
        compression: Compression,
        /// What the decompressor says.
        source: io::Error,
    },
    /// Reading failed.
    #[error("reading failed: {source}")]
    Io {
        /// What the operating system says.
        source: io::Error,
    },
    /// The file could not be opened a second time, when its turn came.
    #[error("when its turn came, it could not be opened again: {source}")]
    OpenedAgain {
        /// Why.
        source: Box<OpenError>,
    },
    /// When its turn came, another file had its name, or it had become shorter.
    #[error(
        "when its turn came, it was no longer the file that was there at the start, and nothing of it was \
        read: give files that are rotated away names of their own"
    )]
    Replaced,
    /// A packet is said to be longer than its block.
    #[error(
        "captured length of {captured_bytes} bytes in a block with room for {room_bytes}: the \
        file is damaged here, packets before were read, the rest cannot be"
    )]
    PacketBeyondBlock {
        /// The captured length.
        captured_bytes: u32,
        /// What the block can hold.
        room_bytes: usize,
    },
    /// A captured length beyond any that is sane.
    #[error(
        "captured length of {captured_bytes} bytes where at most {limit_bytes} make sense: the \
        file is damaged here, packets before were read, the rest cannot be"
    )]
    PacketTooLong {
        /// The captured length.
        captured_bytes: u32,
        /// The longest that is believed: 262,144 bytes, or the file's snap length if that is
        /// larger, at most 128 MiB; that in any case for interfaces of pcapng that are not read.
        limit_bytes: u32,
    },
    /// The mapped file became shorter while it was read.
    #[error(
        "the file became shorter while it was read: give a rotated file a new name instead of \
        truncating it"
    )]
    Shrank,
    /// More interfaces in a section than any capture has.
    #[error(
        "more than {limit} interfaces in one section: the file is damaged, packets before were read"
    )]
    TooManyInterfaces {
        /// The limit.
        limit: usize,
    },
    /// The file ends inside a record.
    #[error(
        "the file ends inside the {part}: {available_bytes} of {needed_bytes} bytes are there, it \
        was cut or is still being written, packets before were read"
    )]
    Truncated {
        /// What is cut.
        part: &'static str,
        /// Bytes that belong to it.
        needed_bytes: u64,
        /// Bytes of it that are there.
        available_bytes: u64,
    },
    /// A packet of an interface that the section did not describe.
    #[error(
        "interface {interface} in a section that describes {interfaces}: the file is damaged or \
        was joined wrongly, join pcapng files with `mergecap`"
    )]
    UnknownInterface {
        /// The packet's interface.
        interface: u32,
        /// How many interfaces the section has described so far.
        interfaces: usize,
    },
    /// A later section of a version that is not known.
    #[error("section of pcapng version {major}.{minor}, which is not known: it may be damaged")]
    UnsupportedVersion {
        /// Major version.
        major: u16,
        /// Minor version.
        minor: u16,
    },
}
