// SPDX-License-Identifier: Apache-2.0
//! A frame as a capture source delivers it.

use crate::LinkType;

/// One captured frame, borrowed from its source.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The captured bytes, from the link-layer header on.
    pub bytes: &'a [u8],
    /// Length on the wire, in bytes, even where less was captured.
    pub wire_length_bytes: u32,
    /// Capture time, nanoseconds since 1970, no more than [`LAST_TIME_NS`](crate::LAST_TIME_NS).
    pub timestamp_ns: u64,
    /// Index of the interface in its source (0 in a classic pcap file).
    pub interface: u32,
    /// How the first bytes are to be read.
    pub link_type: LinkType,
}
