// SPDX-License-Identifier: Apache-2.0
//! IOAM trace options in IPv6 (RFC 9486, section 4; RFC 9197, section 4.4).
//!
//! ```text
//! |Option type 8|Length 8|Reserved 8|IOAM type 8|
//! |Namespace 16|NodeLen 5|Flags 4|RemainingLen 7|
//! |Trace type 24|Reserved 8|
//! | room left, if pre-allocated | the last node's words | ... | the first node's words |
//! ```

use turboflow_record::Family;

use super::TelemetryFault;
use super::hops::{Hop, Hops};
use crate::MAX_EXTENSION_HEADERS;
use crate::bytes::{array_at, u8_at, u32_at};
use crate::ip::{IPV6_HEADER_BYTES, IpHeader, extension};

/// The numbers of the option: one for data that routers may change, one for data that they may not.
const OPTIONS: [u8; 2] = [0x31, 0x11];
const PRE_ALLOCATED: u8 = 0;
const INCREMENTAL: u8 = 1;
const TRACE_HEADER_BYTES: usize = 8;
/// A node had no room for its words.
const OVERFLOW: u8 = 0b100;
const NOT_POPULATED: u32 = u32::MAX;
/// The most nodes of a trace: every node has at least one word, and the option has 255 bytes.
const MAX_NODES: usize = 64;

/// The hops of the first trace option of an IPv6 packet; `None` if there is no such option.
pub(super) fn read(bytes: &[u8], ip: &IpHeader) -> Result<Option<Hops>, TelemetryFault> {
    let mut at = ip.offset + IPV6_HEADER_BYTES;
    if ip.family != Family::V6 || ip.transport <= at {
        return Ok(None);
    }
    let bytes = &bytes[..ip.end];
    let mut header = u8_at(bytes, ip.offset + 6).unwrap_or(0);
    for _ in 0..MAX_EXTENSION_HEADERS {
        let Some([next, length]) = array_at(bytes, at).filter(|_| at < ip.transport) else {
            break;
        };
        let length = match header {
            extension::AUTHENTICATION => (usize::from(length) + 2) * 4,
            extension::FRAGMENT => 8,
            _ => (usize::from(length) + 1) * 8,
        };
        if matches!(header, extension::HOP_BY_HOP | extension::DESTINATION)
            && let Some(option) = trace_option(bytes, at + 2, at + length)
        {
            return option.and_then(trace).map(Some);
        }
        (header, at) = (next, at + length);
    }
    Ok(None)
}

/// The first IOAM option with a trace between two offsets, without its type and length fields.
fn trace_option(bytes: &[u8], mut at: usize, end: usize) -> Option<Result<&[u8], TelemetryFault>> {
    // At most 2,046 bytes of options, of at least one byte each.
    while at < end {
        let kind = u8_at(bytes, at)?;
        if kind == 0 {
            at += 1;
            continue;
        }
        let behind = at + 2 + usize::from(u8_at(bytes, at + 1)?);
        let is_trace = matches!(u8_at(bytes, at + 3), Some(PRE_ALLOCATED | INCREMENTAL));
        if OPTIONS.contains(&kind) && is_trace {
            return Some(match behind <= end {
                true => bytes.get(at + 2..behind).ok_or(TelemetryFault::Cut),
                false => Err(TelemetryFault::BadLength),
            });
        }
        at = behind;
    }
    None
}

/// The hops of a trace. `option` starts at its reserved byte.
fn trace(option: &[u8]) -> Result<Hops, TelemetryFault> {
    let bad = TelemetryFault::BadLength;
    let ioam_type = u8_at(option, 1).ok_or(bad)?;
    let [_, _, lengths, remaining, kind @ .., _]: [u8; TRACE_HEADER_BYTES] =
        array_at(option, 2).ok_or(bad)?;
    let trace_type = TraceType(u32::from_be_bytes([0, kind[0], kind[1], kind[2]]));
    let node_words = usize::from(lengths >> 3);
    if node_words != trace_type.words() {
        return Err(bad);
    }
    let data = option.get(2 + TRACE_HEADER_BYTES..).unwrap_or(&[]);
    let free = match ioam_type {
        PRE_ALLOCATED => usize::from(remaining & 0x7f) * 4,
        _ => 0,
    };
    let filled = data.get(free..).ok_or(bad)?;
    let mut hops = Hops::begun(lengths & OVERFLOW != 0);
    // The last node comes first, and nodes may differ in length.
    let (mut starts, mut nodes, mut at) = ([0_usize; MAX_NODES], 0, 0);
    while at < filled.len() {
        *starts.get_mut(nodes).ok_or(bad)? = at;
        nodes += 1;
        let mut words = node_words;
        if trace_type.has(SNAPSHOT) {
            words += 1 + usize::from(u8_at(filled, at + node_words * 4).ok_or(bad)?);
        }
        at += words * 4;
        if words == 0 || at > filled.len() {
            return Err(bad);
        }
    }
    for &start in starts[..nodes].iter().rev() {
        hops.add(&trace_type.hop(&filled[start..]));
    }
    Ok(hops)
}

/// The trace type. Bit 0 is the most significant one of 24.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TraceType(u32);

const NODE: u32 = 0;
const INTERFACES: u32 = 1;
const TRANSIT_DELAY: u32 = 4;
const QUEUE_DEPTH: u32 = 6;
const WIDE_NODE: u32 = 8;
const WIDE_INTERFACES: u32 = 9;
const WIDE_DATA: u32 = 10;
const SNAPSHOT: u32 = 22;
/// The last bit that adds words of a fixed length.
const LAST_FIXED: u32 = 21;

impl TraceType {
    const fn has(self, bit: u32) -> bool {
        self.0 >> (23 - bit) & 1 == 1
    }

    /// How many words a node adds, without its opaque state snapshot.
    const fn words(self) -> usize {
        let wide = self.has(WIDE_NODE) as u32
            + self.has(WIDE_INTERFACES) as u32
            + self.has(WIDE_DATA) as u32;
        let fixed = self.0 >> (23 - LAST_FIXED);
        (fixed.count_ones() + wide) as usize
    }

    /// The values of a node, from its words.
    fn hop(self, words: &[u8]) -> Hop {
        let mut at = 0;
        let mut hop = Hop::default();
        for bit in (NODE..=WIDE_INTERFACES).filter(|&bit| self.has(bit)) {
            let word = u32_at(words, at).filter(|&word| word != NOT_POPULATED);
            at += 4;
            match bit {
                NODE => hop.node = word.map(|word| u64::from(word & 0xff_ffff)),
                INTERFACES => {
                    let egress = word.map(|word| u64::from(word & 0xffff));
                    hop.egress_interface = egress.filter(|&egress| egress != 0xffff);
                }
                // The topmost bit means that the delay does not fit into 31 bits.
                TRANSIT_DELAY => {
                    hop.latency_ns = word.filter(|word| word >> 31 == 0).map(u64::from);
                }
                QUEUE_DEPTH => hop.queue_depth = word.map(u64::from),
                WIDE_NODE => {
                    let low = u32_at(words, at).map(u64::from);
                    let high = u32_at(words, at - 4).map(u64::from);
                    at += 4;
                    let both = high.zip(low).map(|(high, low)| high << 32 | low);
                    let known = both.filter(|&both| both != u64::MAX);
                    hop.node = known.map(|both| both & 0xff_ffff_ffff_ffff);
                }
                WIDE_INTERFACES => {
                    let egress = u32_at(words, at).filter(|&word| word != NOT_POPULATED);
                    hop.egress_interface = egress.map(u64::from);
                }
                _ => {}
            }
        }
        hop
    }
}
