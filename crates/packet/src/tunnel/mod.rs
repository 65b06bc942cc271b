// SPDX-License-Identifier: Apache-2.0
//! Decapsulation: finds the inner IP header of an outer one.
//!
//! Decapsulation never rejects a packet: if it fails, the packet belongs to the outer flow.

mod gre;
mod set;
mod udp;

pub use set::{Tunnel, TunnelSet, UnknownTunnel};

pub(crate) use udp::may_be_tunnel as may_be_udp_tunnel;

use crate::ip::IpHeader;
use crate::link::{LinkFields, LinkLimits, Network, Version};
use crate::transport::protocol;

/// The most nested tunnels that are decapsulated. The flow is that of the deepest header reached.
pub const MAX_TUNNEL_DEPTH: usize = 8;

/// Fields of tunnel headers, for the inputs that need them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TunnelFields {
    pub(crate) vni: Option<u32>,
    pub(crate) teid: Option<u32>,
    pub(crate) gre_key: Option<u32>,
}

/// The inner header, and the fields of the headers before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inner {
    pub(crate) network: Network,
    pub(crate) ether_type: Option<u16>,
    pub(crate) fields: TunnelFields,
}

impl Inner {
    fn new(network: Network) -> Self {
        Self {
            network,
            ether_type: None,
            fields: TunnelFields::default(),
        }
    }

    /// The header inside the Ethernet frame at `offset`.
    fn behind_ethernet(bytes: &[u8], offset: usize, limits: LinkLimits) -> Option<Self> {
        let mut link = LinkFields::default();
        let network = link.ethernet(bytes, offset, limits).ok()?;
        Some(Self {
            ether_type: link.ether_type,
            ..Self::new(network)
        })
    }

    /// The header at `offset` that an EtherType announced.
    fn behind_ether_type(
        bytes: &[u8],
        offset: usize,
        announced: u16,
        limits: LinkLimits,
    ) -> Option<Self> {
        let mut link = LinkFields::default();
        let network = link.by_ether_type(bytes, offset, announced, limits).ok()?;
        Some(Self {
            ether_type: link.ether_type,
            ..Self::new(network)
        })
    }

    /// The header inside a PPP frame, with or without address and control bytes.
    fn behind_ppp(bytes: &[u8], offset: usize, limits: LinkLimits) -> Option<Self> {
        let framed = bytes.get(offset..)?.starts_with(&[0xff, 0x03]);
        let start = if framed { offset + 2 } else { offset };
        let network = LinkFields::default().ppp(bytes, start, limits);
        network.ok().map(Self::new)
    }
}

/// The header inside `outer`, if it carries one of the `entered` tunnels.
///
/// `bytes` end where the outer datagram ends. If the outer datagram is fragmented, only its first
/// fragment is decapsulated.
pub(crate) fn enter(
    bytes: &[u8],
    outer: &IpHeader,
    entered: TunnelSet,
    limits: LinkLimits,
) -> Option<Inner> {
    if outer.is_later_fragment() {
        return None;
    }
    let offset = outer.transport;
    match outer.protocol {
        protocol::IPV4 if entered.contains(Tunnel::Ipip) => Some(Inner::new(Network {
            offset,
            version: Version::V4,
        })),
        protocol::IPV6 if entered.contains(Tunnel::SixInFour) => Some(Inner::new(Network {
            offset,
            version: Version::V6,
        })),
        protocol::GRE if entered.contains(Tunnel::Gre) => gre::enter(bytes, offset, limits),
        protocol::UDP => udp::enter(bytes, offset, entered, limits),
        _ => None,
    }
}
