// SPDX-License-Identifier: Apache-2.0
//! The wire format of microflow records, as a switch, an FPGA or another host sends them, in
//! Ethernet frames, UDP datagrams, over TCP and TLS, or in files.
//!
//! A message is a header and a body. All numbers are in network byte order. A file is a sequence of
//! messages without gaps. A frame or datagram holds one message; bytes after its length are
//! padding.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |        Magic (0x7466)         |  Version (1)  |     Kind      |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |               Length in bytes, header included                |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                           Layout id                           |
//! |                                                               |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                           Engine id                           |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                           Sequence                            |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                       Watermark (time)                        |
//! |                                                               |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                             Body ...
//! ```
//!
//! - *Kind*: 1 IPv4 records, 2 IPv6 records, 3 records of either family (any key but the 5-tuple),
//!   4 counters, 5 final counters: the engine's last message.
//! - *Layout id*: identifies the record layout ([`layout_id`]). Sender and receiver derive it from
//!   the definition. The receiver rejects records with another id.
//! - *Engine id*: chosen by the operator, unique for each engine of a run.
//! - *Sequence*: how many records this engine sent before this message, modulo 2^32. A jump shows
//!   how many records were lost.
//! - *Watermark*: the records of all packets before this time have been sent, this message
//!   included. In nanoseconds since 1970; 0 means none.
//!
//! A record is its base, S words of further features, and its key; S comes from the definition.
//!
//! ```text
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                         Packets (64)                          |
//! |                          Bytes (64)                           |
//! |               Time of the first packet, ns (64)               |
//! |               Time of the last packet, ns (64)                |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                      Smallest IP length                       |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                       Largest IP length                       |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |       TCP flags, ORed         | Smallest TTL  |  Largest TTL  |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |      TOS      |     Marks     |           Zero (16)           |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |          Words of further features (S times 64) ...           |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |    Source address (32 or 128), destination address (as wide)  |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |          Source port          |       Destination port        |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |   Protocol    |                   Zero (24)                   |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! [`describe_layout`] tells which words a definition has and which feature is in which word. Sums,
//! counts and bins are stored unchanged. *First*, *last* and list values are stored plus one, with
//! 0 for absent. *Min* is the value itself. *Max* is the complement of (value + 1). For both, all
//! bits set means absent.
//!
//! A key other than the 5-tuple is sent as its words, 64 bits each. *Marks* are those of
//! [`Marks`](turboflow_merge::Marks).
//!
//! A body of counters is a list of entries in any order. Counters that are left out are 0. Counters
//! are totals since the engine started.
//!
//! ```text
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |            Counter            |    Bytes of the reason (R)    |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                          Value (64)                           |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |  Reason: R bytes of a name, then zeros up to a multiple of 4  |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! *Counter* is a number from the table in `counters.rs`. Two are not counters. The value of 66 is
//! the number of counter messages that the engine sent before this one: it tells a receiver that
//! starts late that it missed some. That of 67 is the time when the engine started, in nanoseconds
//! since 1970: a receiver that was listening by then has lost the records before the first one that
//! arrived; one that began later has not. *Reason* is empty except for rejected frames; it is then
//! the reason's name in the ledger ([`Rejected::name`](turboflow_record::Rejected::name)).

mod columns;
mod counters;
mod decoder;
mod encoder;
mod layout_id;
mod received_numbers;
mod record;
mod told;

pub use columns::WordColumns;
pub use decoder::{Decoded, Decoder, WireError};
pub use encoder::Encoder;
pub use layout_id::{describe_layout, layout_id};
pub use told::{MessageSums, SenderCounters, number, sums};

/// The first two bytes of every message.
pub const MAGIC: u16 = 0x7466;
/// The version of the wire format.
pub const VERSION: u8 = 1;
/// Size of the header, in bytes.
pub const HEADER_BYTES: usize = 32;
/// The longest message that is accepted, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 1 << 20;
/// The EtherType of messages in Ethernet frames: the first that IEEE 802 reserves for local
/// experiments.
pub const ETHER_TYPE: u16 = 0x88b5;

/// The content of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    RecordsV4 = 1,
    RecordsV6 = 2,
    RecordsWide = 3,
    Counters = 4,
    End = 5,
}

impl Kind {
    const fn of(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::RecordsV4,
            2 => Self::RecordsV6,
            3 => Self::RecordsWide,
            4 => Self::Counters,
            5 => Self::End,
            _ => return None,
        })
    }
}

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) length_bytes: u32,
    pub(crate) layout_id: u64,
    pub(crate) engine_id: u32,
    pub(crate) sequence: u32,
    pub(crate) watermark_ns: u64,
}

impl Header {
    pub(crate) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..2].copy_from_slice(&MAGIC.to_be_bytes());
        (bytes[2], bytes[3]) = (VERSION, self.kind as u8);
        bytes[4..8].copy_from_slice(&self.length_bytes.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.layout_id.to_be_bytes());
        bytes[16..20].copy_from_slice(&self.engine_id.to_be_bytes());
        bytes[20..24].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[24..32].copy_from_slice(&self.watermark_ns.to_be_bytes());
        bytes
    }

    pub(crate) fn of(message: &[u8]) -> Result<Self, WireError> {
        let Some((bytes, _)) = message.split_first_chunk::<HEADER_BYTES>() else {
            return Err(WireError::Truncated {
                needed: HEADER_BYTES,
                available: message.len(),
            });
        };
        let magic = u16_at(bytes, 0);
        if magic != MAGIC {
            return Err(WireError::Magic { found: magic });
        }
        if bytes[2] != VERSION {
            return Err(WireError::Version { found: bytes[2] });
        }
        let kind = Kind::of(bytes[3]).ok_or(WireError::Kind { found: bytes[3] })?;
        let length_bytes = u32_at(bytes, 4);
        if !(HEADER_BYTES..=MAX_MESSAGE_BYTES).contains(&(length_bytes as usize)) {
            return Err(WireError::Length {
                found: length_bytes,
            });
        }
        Ok(Self {
            kind,
            length_bytes,
            layout_id: u64_at(bytes, 8),
            engine_id: u32_at(bytes, 16),
            sequence: u32_at(bytes, 20),
            watermark_ns: u64_at(bytes, 24),
        })
    }
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) << 32 | u64::from(u32_at(bytes, at + 4))
}

/// The length of the first message of a stream, in bytes. `None` if too little of it has arrived.
///
/// # Errors
/// If the stream does not begin with a message.
pub fn message_bytes(stream: &[u8]) -> Result<Option<usize>, WireError> {
    if stream.len() < HEADER_BYTES {
        return Ok(None);
    }
    Header::of(stream).map(|header| Some(header.length_bytes as usize))
}

/// Whether `bytes` begins like a message.
#[must_use]
pub fn is_message(bytes: &[u8]) -> bool {
    bytes.len() >= 2 && u16_at(bytes, 0) == MAGIC
}

/// How many records the engine sent before a message, modulo 2^32.
///
/// # Errors
/// As [`message_bytes`].
pub fn sequence_of(message: &[u8]) -> Result<u32, WireError> {
    Header::of(message).map(|header| header.sequence)
}

/// The id of the engine that sent a message.
///
/// # Errors
/// As [`message_bytes`].
pub fn engine_id_of(message: &[u8]) -> Result<u32, WireError> {
    Header::of(message).map(|header| header.engine_id)
}
