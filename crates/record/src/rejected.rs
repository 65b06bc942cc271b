// SPDX-License-Identifier: Apache-2.0
//! Why a frame is no packet: one name for each reason, one class for each reason.

/// The three kinds of frames that are in no flow, and the one that is not yet in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RejectClass {
    /// The packet is waiting for its first fragment and comes back from `Parser::release`.
    Held,
    /// The frame says it is IP, but its IP header cannot be one or was not wholly captured.
    Malformed,
    /// The frame carries no IP header that TurboFlow knows the way to.
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
        /// Why a frame is in no flow: what a parser, here or in an engine elsewhere, gave in place of a packet.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Rejected {
            $($(#[$doc])* $variant,)*
        }

        impl Rejected {
            /// Every reason, in the order of their indices.
            pub const ALL: [Self; Self::COUNT] = [$(Self::$variant),*];

            /// How many reasons there are: the length of an array of counters.
            pub const COUNT: usize = [$(stringify!($variant)),*].len();

            /// The name in counters, `snake_case`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What kind of rejection this is.
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
    /// What follows an MPLS stack is neither IPv4 nor IPv6: a pseudowire, a control channel.
    MplsNotIp "mpls_not_ip" NonIp;
    /// An address family that is not IP behind a BSD null/loopback header.
    OtherAddressFamily "other_address_family" NonIp;
    /// A cooked capture of something whose protocol field is no Ethernet type.
    OtherCookedProtocol "other_cooked_protocol" NonIp;
    /// An Ethernet type that TurboFlow does not look behind.
    OtherEtherType "other_ether_type" NonIp;
    /// A PPP protocol that is not IP: LCP, IPCP, compressed headers, ...
    OtherPppProtocol "other_ppp_protocol" NonIp;
    /// PPPoE discovery (0x8863).
    PppoeDiscovery "pppoe_discovery" NonIp;
    /// What the Ethernet type calls IPv6 has another version in its first nibble. Counted as the
    /// reference tools do: their IPv6 reader declines such a frame, their IPv4 reader does not.
    NotIpv6 "not_ipv6" NonIp;
    /// A raw IP frame whose first nibble is neither 4 nor 6.
    RawNotIp "raw_not_ip" NonIp;
    /// Slow protocols: LACP, OAM (0x8809).
    SlowProtocol "slow_protocol" NonIp;
    /// More link-layer headers than a parser follows.
    TagDepthExceeded "tag_depth_exceeded" NonIp;
    /// The IPv4 header length field is below 5 words.
    HeaderLengthTooSmall "header_length_too_small" Malformed;
    /// Less than the IPv4 header, options included, was captured.
    Ipv4HeaderNotCaptured "ipv4_header_not_captured" Malformed;
    /// Less than the 40 bytes of an IPv6 header were captured.
    Ipv6HeaderNotCaptured "ipv6_header_not_captured" Malformed;
    /// The IPv4 total length is below the header length, and not 0.
    TotalLengthTooSmall "total_length_too_small" Malformed;
    /// The version nibble contradicts what announced an IPv4 header.
    VersionMismatch "version_mismatch" Malformed;
    /// Too little was captured to read the link-layer headers: nothing says that it is IP.
    LinkHeaderNotCaptured "link_header_not_captured" NonIp;
    /// No rejection: the fragment waits for its first one, see `Parser::release`.
    Held "held" Held;
}

impl Rejected {
    /// The reason's place in [`Rejected::ALL`].
    #[inline(always)]
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}
