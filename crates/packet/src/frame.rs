// SPDX-License-Identifier: Apache-2.0
//! A frame, as capture sources deliver it.

use crate::LinkType;

/// One captured frame, borrowed from its source.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The captured bytes, starting with the link-layer header.
    pub bytes: &'a [u8],
    /// Length on the wire, in bytes, even if less was captured.
    pub wire_length_bytes: u32,
    /// Capture time in nanoseconds since 1970, at most [`LAST_TIME_NS`](crate::LAST_TIME_NS).
    pub timestamp_ns: u64,
    /// Index of the interface within the source (0 in a classic pcap file).
    pub interface: u32,
    /// The link-layer header type.
    pub link_type: LinkType,
}
