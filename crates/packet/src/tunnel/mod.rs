// SPDX-License-Identifier: Apache-2.0
//! From an outer IP header to the inner one.
//!
//! Nothing here rejects a packet: what cannot be entered stays a packet of the outer flow.

mod gre;
mod set;
mod udp;

pub use set::{Tunnel, TunnelSet, UnknownTunnel};

pub(crate) use udp::may_be_tunnel as may_be_udp_tunnel;

use crate::ip::IpHeader;
use crate::link::{LinkFields, Network, Version};
use crate::transport::protocol;

/// Tunnels inside tunnels that are entered; the flow is that of the deepest header reached.
pub const MAX_TUNNEL_DEPTH: usize = 8;

/// What the tunnels entered say, for the inputs that ask for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TunnelFields {
    pub(crate) vni: Option<u32>,
    pub(crate) teid: Option<u32>,
    pub(crate) gre_key: Option<u32>,
}

/// The inner header and what announced it.
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

    /// Whatever an Ethernet header at `offset` leads to.
    fn behind_ethernet(bytes: &[u8], offset: usize) -> Option<Self> {
        let mut link = LinkFields::default();
        let network = link.ethernet(bytes, offset).ok()?;
        Some(Self {
            ether_type: link.ether_type,
            ..Self::new(network)
        })
    }

    /// Whatever an Ethernet type leads to.
    fn behind_ether_type(bytes: &[u8], offset: usize, announced: u16) -> Option<Self> {
        let mut link = LinkFields::default();
        let network = link.by_ether_type(bytes, offset, announced).ok()?;
        Some(Self {
            ether_type: link.ether_type,
            ..Self::new(network)
        })
    }

    /// Whatever PPP, with or without address and control bytes, leads to.
    fn behind_ppp(bytes: &[u8], offset: usize) -> Option<Self> {
        let framed = bytes.get(offset..)?.starts_with(&[0xff, 0x03]);
        let start = if framed { offset + 2 } else { offset };
        LinkFields::default().ppp(bytes, start).ok().map(Self::new)
    }
}

/// The header inside `outer`, where it carries a tunnel of `entered`.
///
/// `bytes` end where the outer datagram ends. A fragmented outer datagram is entered in its first
/// fragment only.
pub(crate) fn enter(bytes: &[u8], outer: &IpHeader, entered: TunnelSet) -> Option<Inner> {
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
        protocol::GRE if entered.contains(Tunnel::Gre) => gre::enter(bytes, offset),
        protocol::UDP => udp::enter(bytes, offset, entered),
        _ => None,
    }
}
