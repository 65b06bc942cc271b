// SPDX-License-Identifier: Apache-2.0
//! GRE, version 0 (RFC 2784, RFC 2890) and 1 (RFC 2637, section 4.1).
//!
//! ```text
//! |C|R|K|S|s|Recur|A|Flags|Ver|  protocol type  |
//! | checksum and reserved, if C                 |
//! | key, if K                                   |
//! | sequence number, if S                       |
//! | acknowledgement number, if A (version 1)    |
//! ```

use super::Inner;
use crate::Rejected;
use crate::bytes::{array_at, u8_at, u16_at, u32_at};
use crate::link::{LinkLimits, by_nibble, ether_type};

const CHECKSUM: u16 = 0x8000;
const ROUTING: u16 = 0x4000;
const KEY: u16 = 0x2000;
const SEQUENCE: u16 = 0x1000;
const ACKNOWLEDGEMENT: u16 = 0x0080;

const ERSPAN_2: u16 = 0x88be;
const ERSPAN_3: u16 = 0x22eb;

/// The header inside the GRE header at `offset`.
pub(super) fn enter(bytes: &[u8], offset: usize, limits: LinkLimits) -> Option<Inner> {
    let flags = u16_at(bytes, offset)?;
    let announced = u16_at(bytes, offset + 2)?;
    match flags & 7 {
        0 => version_0(bytes, offset, flags, announced, limits),
        1 if announced == ether_type::PPP => version_1(bytes, offset, flags, limits),
        _ => None,
    }
}

fn version_0(
    bytes: &[u8],
    offset: usize,
    flags: u16,
    announced: u16,
    limits: LinkLimits,
) -> Option<Inner> {
    // Source routes (RFC 1701) are not parsed: RFC 2784 withdrew them.
    if flags & ROUTING != 0 {
        return None;
    }
    let mut behind = offset + 4;
    if flags & CHECKSUM != 0 {
        behind += 4;
    }
    let mut gre_key = None;
    if flags & KEY != 0 {
        gre_key = Some(u32_at(bytes, behind)?);
        behind += 4;
    }
    if flags & SEQUENCE != 0 {
        behind += 4;
    }
    let mut inner = match announced {
        ether_type::TRANSPARENT_ETHERNET => Inner::behind_ethernet(bytes, behind, limits)?,
        ERSPAN_2 => Inner::behind_ethernet(bytes, erspan_2_frame(bytes, behind, flags)?, limits)?,
        ERSPAN_3 => erspan_3(bytes, behind, limits)?,
        ether_type::PPP => Inner::behind_ppp(bytes, behind, limits)?,
        // A value below 1536 is not an EtherType (RFC 2784, section 2.4).
        ..ether_type::MIN_TYPE => return None,
        _ => Inner::behind_ether_type(bytes, behind, announced, limits)?,
    };
    inner.fields.gre_key = gre_key;
    Some(inner)
}

/// PPTP. The halves of the key are payload length and call id. There is a payload only if S is set.
fn version_1(bytes: &[u8], offset: usize, flags: u16, limits: LinkLimits) -> Option<Inner> {
    if flags & (CHECKSUM | ROUTING | KEY | SEQUENCE) != KEY | SEQUENCE {
        return None;
    }
    let acknowledgement = if flags & ACKNOWLEDGEMENT != 0 { 4 } else { 0 };
    let mut inner = Inner::behind_ppp(bytes, offset + 12 + acknowledgement, limits)?;
    inner.fields.gre_key = Some(u32_at(bytes, offset + 4)?);
    Some(inner)
}

/// The offset of the mirrored frame. Type I has no ERSPAN header (and no sequence number); type II
/// has 8 bytes and version 1.
fn erspan_2_frame(bytes: &[u8], offset: usize, flags: u16) -> Option<usize> {
    let version = u8_at(bytes, offset)? >> 4;
    match (flags & SEQUENCE != 0, version) {
        (false, _) => Some(offset),
        (true, 1) => Some(offset + 8),
        _ => None,
    }
}

/// Type III has 12 bytes, version 2, and 8 more if its O bit is set. Its frame type tells whether
/// an Ethernet frame or an IP packet was mirrored (draft-foschiano-erspan, section 4.3).
fn erspan_3(bytes: &[u8], offset: usize, limits: LinkLimits) -> Option<Inner> {
    const ETHERNET: u8 = 0;
    const IP: u8 = 2;
    let version = u8_at(bytes, offset)? >> 4;
    let [kind, last]: [u8; 2] = array_at(bytes, offset + 10)?;
    let platform_bytes = if last & 1 == 1 { 8 } else { 0 };
    let mirrored = offset + 12 + platform_bytes;
    match (version, kind >> 2 & 0x1f) {
        (2, ETHERNET) => Inner::behind_ethernet(bytes, mirrored, limits),
        (2, IP) => by_nibble(bytes, mirrored, Rejected::RawNotIp)
            .ok()
            .map(Inner::new),
        _ => None,
    }
}
