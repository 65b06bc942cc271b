// SPDX-License-Identifier: Apache-2.0
//! INT-MD over TCP and UDP (P4.org, In-band Network Telemetry dataplane specification 2.1,
//! sections 5.7 and 5.8).
//!
//! ```text
//! |Type 4|NPT 2|R 2|Length 8| UDP port, protocol or DSCP 16 |   shim
//! |Ver 4|D|E|M|Reserved 12|HopML 5|RemainingHopCnt 8|          header
//! |Instruction bitmap 16| Domain specific id 16 |
//! |Domain specific instruction 16| flags 16     |
//! | the last hop's words | ... | the first hop's words |       stack
//! ```

use super::TelemetryFault;
use super::hops::{Hop, Hops};
use crate::bytes::{array_at, u16_at, u32_at};
use crate::transport::{self, protocol};

const SHIM_BYTES: usize = 4;
const HEADER_BYTES: usize = 12;
/// Types of INT that follow a shim: one type with a stack, and those without (section 5.6).
const INT_MD: u8 = 1;
const DESTINATION: u8 = 2;
const INT_MX: u8 = 3;
const VERSION: u8 = 2;
/// The largest hop count was reached, or the packet would have become too long.
const EXCEEDED: u8 = 0b0110;
/// The value of a word that a node could not fill in.
const INVALID: u32 = u32::MAX;

/// How a packet is marked as one with INT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// By its DSCP.
    Dscp,
    /// By its UDP destination port.
    Port,
}

/// What follows the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The payload; the transport header is the original.
    Payload,
    /// The payload of UDP, whose original destination port is this one.
    UdpPayload(u16),
    /// The original transport header, of this protocol.
    Transport(u8),
}

/// INT whose shim was read. The shim tells what follows the stack, even if the stack cannot be
/// read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stack {
    pub(super) next: Next,
    /// Its length in bytes, including the shim.
    pub(super) bytes: u32,
    pub(super) hops: Result<Hops, TelemetryFault>,
}

/// INT in a packet that is marked by its DSCP. In TCP it follows the options or precedes them.
/// `None` for protocols for which INT is not defined.
pub(super) fn behind_header(number: u8, transport: &[u8]) -> Result<Option<Stack>, TelemetryFault> {
    const TCP_BYTES: usize = 20;
    if !matches!(number, protocol::TCP | protocol::UDP) {
        return Ok(None);
    }
    let header = transport::header_bytes(number, transport).ok_or(TelemetryFault::Cut)?;
    let first = behind(transport, header as usize, Mark::Dscp);
    let is_read = matches!(first, Ok(stack) if stack.hops.is_ok());
    if is_read || number != protocol::TCP || header as usize <= TCP_BYTES {
        return first.map(Some);
    }
    match behind(transport, TCP_BYTES, Mark::Dscp) {
        Ok(before) if before.hops.is_ok() || first.is_err() => Ok(Some(before)),
        _ => first.map(Some),
    }
}

/// INT at an offset of `transport`, which ends where the captured packet ends. An error means that
/// there is no valid shim.
pub(super) fn behind(transport: &[u8], offset: usize, mark: Mark) -> Result<Stack, TelemetryFault> {
    let bytes = transport.get(offset..).ok_or(TelemetryFault::Cut)?;
    let shim: [u8; SHIM_BYTES] = array_at(bytes, 0).ok_or(TelemetryFault::Cut)?;
    let next = match (shim[0] >> 2 & 3, mark) {
        (0, Mark::Dscp) => Next::Payload,
        (1, Mark::Port) => Next::UdpPayload(u16::from_be_bytes([shim[2], shim[3]])),
        (2, Mark::Port) => Next::Transport(shim[3]),
        _ => return Err(TelemetryFault::NotTelemetry),
    };
    let end = SHIM_BYTES + usize::from(shim[1]) * 4;
    let is_short = end < SHIM_BYTES + HEADER_BYTES;
    let hops = match shim[0] >> 4 {
        INT_MD | INT_MX if is_short => return Err(TelemetryFault::BadLength),
        INT_MD => match bytes.get(SHIM_BYTES..end) {
            Some(bytes) => stack(bytes),
            None => Err(TelemetryFault::Cut),
        },
        INT_MX | DESTINATION => Err(TelemetryFault::NotTelemetry),
        _ => return Err(TelemetryFault::NotTelemetry),
    };
    Ok(Stack {
        next,
        bytes: end as u32,
        hops,
    })
}

/// The hops of an INT header and its stack.
fn stack(bytes: &[u8]) -> Result<Hops, TelemetryFault> {
    let [first, _, hop_words, _, bits @ .., _, _]: [u8; HEADER_BYTES] =
        array_at(bytes, 0).ok_or(TelemetryFault::Cut)?;
    if first >> 4 != VERSION {
        return Err(TelemetryFault::OtherVersion);
    }
    let instructions = Instructions(u16::from_be_bytes([bits[0], bits[1]]));
    let has_domain_words = bits[4..6] != [0; 2];
    let hop_words = usize::from(hop_words & 0x1f);
    let known_words = instructions.words();
    let stack = bytes.get(HEADER_BYTES..).unwrap_or(&[]);
    let fits = match has_domain_words {
        true => known_words <= hop_words,
        false => known_words == hop_words,
    };
    let mut hops = Hops::begun(first & EXCEEDED != 0);
    if stack.is_empty() {
        return Ok(hops);
    }
    // Words that only the source adds cannot be distinguished from those of a hop.
    if hop_words == 0 || !fits || stack.len() % (hop_words * 4) != 0 {
        return Err(TelemetryFault::BadLength);
    }
    for words in stack.rchunks_exact(hop_words * 4) {
        hops.add(&instructions.hop(words));
    }
    Ok(hops)
}

/// The instruction bitmap. Bit 0 is the most significant one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instructions(pub(super) u16);

const NODE: u32 = 0;
const INTERFACES: u32 = 1;
const LATENCY: u32 = 2;
const QUEUE: u32 = 3;
const INGRESS_TIME: u32 = 4;
const EGRESS_TIME: u32 = 5;
const LOGICAL_INTERFACES: u32 = 6;

impl Instructions {
    const fn has(self, bit: u32) -> bool {
        self.0 >> (15 - bit) & 1 == 1
    }

    /// How many words a hop adds for these instructions.
    pub(super) const fn words(self) -> usize {
        let double = self.has(INGRESS_TIME) as u32
            + self.has(EGRESS_TIME) as u32
            + self.has(LOGICAL_INTERFACES) as u32;
        (self.0.count_ones() + double) as usize
    }

    /// The values of a hop, from its words.
    pub(super) fn hop(self, words: &[u8]) -> Hop {
        let mut at = 0;
        let mut hop = Hop::default();
        for bit in (NODE..=LOGICAL_INTERFACES).filter(|&bit| self.has(bit)) {
            let word = u32_at(words, at).filter(|&word| word != INVALID);
            at += 4;
            match bit {
                NODE => hop.node = word.map(u64::from),
                INTERFACES => hop.egress_interface = word.map(|word| u64::from(word & 0xffff)),
                LATENCY => hop.latency_ns = word.map(u64::from),
                QUEUE => hop.queue_depth = word.map(|word| u64::from(word & 0xff_ffff)),
                INGRESS_TIME | EGRESS_TIME => at += 4,
                _ => {
                    let logical = u32_at(words, at).filter(|&word| word != INVALID);
                    at += 4;
                    // The physical port takes precedence, if it is known.
                    hop.egress_interface = hop.egress_interface.or(logical.map(u64::from));
                }
            }
        }
        hop
    }
}

/// The instruction bitmap at an offset.
pub(super) fn instructions_at(bytes: &[u8], offset: usize) -> Option<Instructions> {
    u16_at(bytes, offset).map(Instructions)
}
