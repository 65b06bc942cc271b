// SPDX-License-Identifier: Apache-2.0
//! Link-layer header types as capture files number them (the "LINKTYPE_" registry).

/// The link-layer header types that TurboFlow reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkType {
    /// BSD loopback: 4 bytes of address family in the byte order of the capturing host (0), or in
    /// network order (OpenBSD's, 108). Both are read by trying which order makes sense.
    Null,
    /// Ethernet II and 802.3 (1).
    Ethernet,
    /// PPP, with or without HDLC-like framing (9, 50).
    Ppp,
    /// Raw IP, version in the first nibble (12, 14, 101).
    Raw,
    /// Raw IPv4 (228).
    RawIpv4,
    /// Raw IPv6 (229).
    RawIpv6,
    /// Linux cooked capture v1 (113).
    LinuxCooked,
    /// Linux cooked capture v2 (276).
    LinuxCooked2,
}

impl LinkType {
    /// The address families that mean IPv6 in a header of BSD loopback: of Linux, Windows, NetBSD
    /// and OpenBSD, FreeBSD, macOS. IPv4 is 2 with all of them.
    pub const NULL_IPV6_FAMILIES: [u32; 5] = [10, 23, 24, 28, 30];

    /// The type behind a file's link-type number, or `None` where TurboFlow does not read it.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<Self> {
        // The upper bits of a classic pcap header's field hold the frame check sequence length.
        match number & 0xffff {
            0 | 108 => Some(Self::Null),
            1 => Some(Self::Ethernet),
            9 | 50 => Some(Self::Ppp),
            12 | 14 | 101 => Some(Self::Raw),
            113 => Some(Self::LinuxCooked),
            228 => Some(Self::RawIpv4),
            229 => Some(Self::RawIpv6),
            276 => Some(Self::LinuxCooked2),
            _ => None,
        }
    }
}
