// SPDX-License-Identifier: Apache-2.0
//! Errors of capture files. Messages say where the fault is and what to do.

use std::io;

use crate::Compression;

/// Why a capture could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file is compressed, but decompression fails at its start.
    #[error(
        "{name} looks like {compression} but does not decompress: {source}; try `{compression} -t \
        {name}`"
    )]
    Compressed {
        /// The file.
        name: String,
        /// The compression that its first bytes indicate.
        compression: Compression,
        /// The decompressor's error.
        source: io::Error,
    },
    /// The path is a directory.
    #[error("{name} is a directory: name a capture file in it")]
    Directory {
        /// The path.
        name: String,
    },
    /// The file is empty.
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
        /// The error of the operating system or the decompressor.
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
        /// The first bytes, in hexadecimal and, if printable, as text.
        first_bytes: String,
        /// What the file seems to be and what to do, if known.
        hint: Option<&'static str>,
    },
    /// There is no such file.
    #[error("{name} does not exist: check the path")]
    NotFound {
        /// The path.
        name: String,
    },
    /// Permission denied.
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
        /// Size of the header.
        needed_bytes: usize,
        /// Bytes present.
        available_bytes: usize,
    },
    /// A classic pcap file with a link type that TurboFlow cannot parse.
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
    /// An unknown version of the format.
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

/// Where and why reading stopped early. All complete packets before that place were delivered.
/// After this error, the file counts as read to its end.
#[derive(Debug, thiserror::Error)]
#[error("{name}: packet {packet} at byte {offset_bytes}: {damage}")]
pub struct ReadError {
    /// The file.
    pub name: String,
    /// Start of the bad record, in bytes from the start of the file or, if compressed, of its
    /// content.
    pub offset_bytes: u64,
    /// Number of the packet that could not be read, from 1, as in Wireshark.
    pub packet: u64,
    /// What is wrong.
    #[source]
    pub damage: Damage,
}

/// Damage at some place in a capture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// Another capture file begins where a packet is expected.
    #[error(
        "another capture file begins here, as after `cat`: packets before were read. Give each \
        file by its own name, or join them with `mergecap`"
    )]
    AnotherFile,
    /// The length of a pcapng block is invalid.
    #[error(
        "block of type {block_type:#010x} with a length of {length_bytes} bytes ({rule}): the \
        file is damaged here, packets before were read, the rest cannot be"
    )]
    BlockLength {
        /// The block's type.
        block_type: u32,
        /// Its length field.
        length_bytes: u32,
        /// The rule that the length breaks.
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
    /// The byte-order mark of a pcapng section is invalid in either byte order.
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
        /// The decompressor's error.
        source: io::Error,
    },
    /// Reading failed.
    #[error("reading failed: {source}")]
    Io {
        /// The operating system's error.
        source: io::Error,
    },
    /// The file could not be opened again when its turn came.
    #[error("when its turn came, it could not be opened again: {source}")]
    OpenedAgain {
        /// The reason.
        source: Box<OpenError>,
    },
    /// When its turn came, the name belonged to another file, or the file had become shorter.
    #[error(
        "when its turn came, it was no longer the file that was there at the start, and nothing of it was \
        read: give files that are rotated away names of their own"
    )]
    Replaced,
    /// The captured length exceeds the block.
    #[error(
        "captured length of {captured_bytes} bytes in a block with room for {room_bytes}: the \
        file is damaged here, packets before were read, the rest cannot be"
    )]
    PacketBeyondBlock {
        /// The captured length.
        captured_bytes: u32,
        /// The captured length that fits in the block.
        room_bytes: usize,
    },
    /// The captured length exceeds any plausible one.
    #[error(
        "captured length of {captured_bytes} bytes where at most {limit_bytes} make sense: the \
        file is damaged here, packets before were read, the rest cannot be"
    )]
    PacketTooLong {
        /// The captured length.
        captured_bytes: u32,
        /// The largest accepted length: 262,144 bytes, or the file's snap length if that is larger,
        /// up to 128 MiB. Always 128 MiB on pcapng interfaces that TurboFlow cannot parse.
        limit_bytes: u32,
    },
    /// The mapped file became shorter while it was read.
    #[error(
        "the file became shorter while it was read: give a rotated file a new name instead of \
        truncating it"
    )]
    Shrank,
    /// More interfaces in one section than any capture has.
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
        /// The truncated part.
        part: &'static str,
        /// Size of the part.
        needed_bytes: u64,
        /// Bytes of it that are present.
        available_bytes: u64,
    },
    /// A packet of an interface that its section does not describe.
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
    /// A later section has an unknown version.
    #[error("section of pcapng version {major}.{minor}, which is not known: it may be damaged")]
    UnsupportedVersion {
        /// Major version.
        major: u16,
        /// Minor version.
        minor: u16,
    },
}
