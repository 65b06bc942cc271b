// SPDX-License-Identifier: Apache-2.0
//! INT telemetry reports (P4.org, Telemetry Report Format Specification 2.0, to which version 2.1
//! of INT refers).
//!
//! ```text
//! |Ver 4|hw 6|Sequence 22|                                   group
//! |Node id 32|
//! |RepType 4|InType 4|Report length 8|MD length 8|D|Q|F|I|R 4|   report
//! |RepMdBits 16|Domain 16|DSMdBits 16|DSMdstatus 16|          with RepType 1
//! | words of the node that reports | the packet, cut |
//! ```

use super::hops::Hop;
use super::int;
use super::{TelemetryFault, UDP_BYTES};
use crate::Frame;
use crate::bytes::{u8_at, u32_at};
use crate::ip::IpHeader;
use crate::link::{LinkFields, LinkLimits, Network, Version};
use crate::walk::Walk;

const GROUP_BYTES: usize = 8;
const VERSION: u8 = 2;
/// Report types.
const INNER_ONLY: u8 = 0;
const INT: u8 = 1;
/// A report with this length field extends to the end of its datagram.
const TO_THE_END: u8 = 0xff;

/// A report that was read.
pub(super) struct Report {
    /// What the reporting node adds, as the last hop.
    pub(super) hop: Option<Hop>,
    /// Whether the datagram has further reports.
    pub(super) has_more: bool,
}

/// Reads the first report of the datagram where the walk ends. The walk then ends at the packet
/// inside the report.
pub(super) fn read(frame: &Frame<'_>, walk: &mut Walk) -> Result<Report, TelemetryFault> {
    let cut = TelemetryFault::Cut;
    let bytes = &frame.bytes[..walk.ip.end];
    let group = walk.ip.transport + UDP_BYTES;
    let datagram_end = walk.ip.offset.saturating_add(walk.ip.length_bytes as usize);
    if u8_at(bytes, group).ok_or(cut)? >> 4 != VERSION {
        return Err(TelemetryFault::OtherVersion);
    }
    let node = u32_at(bytes, group + 4).ok_or(cut)?;
    let at = group + GROUP_BYTES;
    let [types, words, metadata_words, _] = u32_at(bytes, at).ok_or(cut)?.to_be_bytes();
    let (report_type, inner_type) = (types >> 4, types & 0xf);
    let end = match words {
        TO_THE_END => datagram_end,
        words => at + 4 + usize::from(words) * 4,
    };
    let (hop, inner) = match report_type {
        INNER_ONLY => (None, at + 4),
        INT => {
            let instructions = int::instructions_at(bytes, at + 4).ok_or(cut)?;
            let first = at + 12;
            let metadata_bytes = usize::from(metadata_words) * 4;
            // Bit 15, why a packet was dropped, follows those that are read.
            if instructions.words() * 4 > metadata_bytes || first + metadata_bytes > end {
                return Err(TelemetryFault::BadLength);
            }
            let words = bytes.get(first..first + metadata_bytes).ok_or(cut)?;
            let mut hop = instructions.hop(words);
            hop.node = Some(node.into());
            let writes = instructions.0 != 0;
            (writes.then_some(hop), first + metadata_bytes)
        }
        _ => return Err(TelemetryFault::NotTelemetry),
    };
    // A report may be cut with its datagram, because it holds only part of a packet anyway. The
    // packet's end on the wire does not depend on what was captured.
    let bytes = &bytes[..end.min(bytes.len())];
    let wire_end = end.min(datagram_end).min(frame.wire_length_bytes as usize) as u32;
    enter(walk, bytes, inner, inner_type, wire_end).ok_or(TelemetryFault::NoInnerPacket)?;
    Ok(Report {
        hop,
        has_more: end < datagram_end,
    })
}

/// Moves the end of the walk to the packet at `offset`, of which `bytes` has a part.
fn enter(
    walk: &mut Walk,
    bytes: &[u8],
    offset: usize,
    inner_type: u8,
    wire_end: u32,
) -> Option<()> {
    let mut link = LinkFields::default();
    let network = match inner_type {
        3 => {
            let limits = LinkLimits {
                wire_end,
                pseudowires: 0,
            };
            link.ethernet(bytes, offset, limits).ok()?
        }
        4 => Network {
            offset,
            version: Version::V4,
        },
        5 => Network {
            offset,
            version: Version::V6,
        },
        _ => return None,
    };
    let ip = IpHeader::parse(bytes, network, wire_end).ok()?;
    walk.enter_inner(ip, link.ether_type);
    Some(())
}
