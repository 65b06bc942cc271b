// SPDX-License-Identifier: Apache-2.0
//! Why a frame yields no packet: one name and one class per reason.

/// The classes of frames that are not, or not yet, part of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RejectClass {
    /// The fragment waits for its first fragment; `Parser::release` returns it later.
    Held,
    /// The frame claims to be IP, but its IP header is invalid or was not captured completely.
    Malformed,
    /// The parser found no IP header in the frame.
    NonIp,
}

impl RejectClass {
    /// The name in counters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Malformed => "malformed",
            Self::NonIp => "non_ip",
        }
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident $name:literal $class:ident;)*) => {
        /// Why a parser, ours or that of a remote engine, returned no packet for a frame.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Rejected {
            $($(#[$doc])* $variant,)*
        }

        impl Rejected {
            /// Every reason, in index order.
            pub const ALL: [Self; Self::COUNT] = [$(Self::$variant),*];

            /// The number of reasons: the length of an array of counters.
            pub const COUNT: usize = [$(stringify!($variant)),*].len();

            /// The name in counters, `snake_case`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The class of the reason.
            #[must_use]
            pub const fn class(self) -> RejectClass {
                match self { $(Self::$variant => RejectClass::$class,)* }
            }
        }
    };
}

reasons! {
    /// ARP (0x0806) or RARP (0x8035).
    Arp "arp" NonIp;
    /// Ethernet loopback test (0x9000).
    EthernetLoopback "ethernet_loopback" NonIp;
    /// Port authentication, EAPOL (0x888e).
    Eapol "eapol" NonIp;
    /// An 802.2 LLC frame that carries no IP: spanning tree, CDP, IS-IS, IPX, ...
    Llc "llc" NonIp;
    /// Link layer discovery (0x88cc).
    Lldp "lldp" NonIp;
    /// The payload of an MPLS stack is neither IPv4 nor IPv6: a pseudowire, a control channel.
    MplsNotIp "mpls_not_ip" NonIp;
    /// A BSD null/loopback header with an address family other than IP.
    OtherAddressFamily "other_address_family" NonIp;
    /// A Linux cooked capture whose protocol field is not an Ethernet type.
    OtherCookedProtocol "other_cooked_protocol" NonIp;
    /// An Ethernet type that TurboFlow does not parse.
    OtherEtherType "other_ether_type" NonIp;
    /// A PPP protocol that is not IP: LCP, IPCP, compressed headers, ...
    OtherPppProtocol "other_ppp_protocol" NonIp;
    /// PPPoE discovery (0x8863).
    PppoeDiscovery "pppoe_discovery" NonIp;
    /// The Ethernet type says IPv6, but the version nibble does not. Counted as the reference tools
    /// do: their IPv6 reader rejects such a frame, their IPv4 reader does not.
    NotIpv6 "not_ipv6" NonIp;
    /// A raw IP frame whose first nibble is neither 4 nor 6.
    RawNotIp "raw_not_ip" NonIp;
    /// Slow protocols: LACP, OAM (0x8809).
    SlowProtocol "slow_protocol" NonIp;
    /// More link-layer headers than the parser follows.
    TagDepthExceeded "tag_depth_exceeded" NonIp;
    /// The IPv4 header length field is below 5 words.
    HeaderLengthTooSmall "header_length_too_small" Malformed;
    /// The IPv4 header, options included, was not captured completely.
    Ipv4HeaderNotCaptured "ipv4_header_not_captured" Malformed;
    /// The 40-byte IPv6 header was not captured completely.
    Ipv6HeaderNotCaptured "ipv6_header_not_captured" Malformed;
    /// The IPv4 total length is below the header length, and not 0.
    TotalLengthTooSmall "total_length_too_small" Malformed;
    /// The header before announced IPv4, but the version nibble is different.
    VersionMismatch "version_mismatch" Malformed;
    /// The link-layer headers were not captured completely, so that nothing shows that the frame is
    /// IP.
    LinkHeaderNotCaptured "link_header_not_captured" NonIp;
    /// Not a rejection: the fragment waits for its first fragment (see `Parser::release`).
    Held "held" Held;
}

impl Rejected {
    /// The index in [`Rejected::ALL`].
    #[inline(always)]
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}
