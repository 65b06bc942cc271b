// SPDX-License-Identifier: Apache-2.0
//! Link-layer header types, as capture files number them (the "LINKTYPE_" registry).

/// The link-layer header types that TurboFlow can parse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkType {
    /// BSD loopback: a 4-byte address family in the byte order of the capturing host (0), or in
    /// network order (OpenBSD, 108). The parser takes the order that gives a known family.
    Null,
    /// Ethernet II and 802.3 (1).
    Ethernet,
    /// PPP, with or without HDLC-like framing (9, 50).
    Ppp,
    /// Raw IP; the first nibble is the version (12, 14, 101).
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
    /// The values of AF_INET6 in BSD loopback headers: of Linux, Windows, NetBSD and OpenBSD,
    /// FreeBSD, macOS. AF_INET is 2 on all of them.
    pub const NULL_IPV6_FAMILIES: [u32; 5] = [10, 23, 24, 28, 30];

    /// The type with this number in a file; `None` if TurboFlow cannot parse it.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<Self> {
        // The upper bits of the field in a classic pcap header hold the frame check sequence
        // length.
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
