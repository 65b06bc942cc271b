// SPDX-License-Identifier: Apache-2.0
//! Offloads: whether the kernel or the card merges received packets before the capture, or segments
//! sent packets after it.

use std::ffi::CStr;

use super::socket::PacketSocket;

/// A setting by which one captured packet may be several on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// The kernel merges received packets.
    GenericReceive,
    /// The kernel segments sent packets after the capture.
    GenericSegmentation,
    /// The card merges received packets.
    LargeReceive,
    /// The card segments sent TCP packets.
    TcpSegmentation,
}

/// `ETHTOOL_GGRO`, `ETHTOOL_GGSO`, `ETHTOOL_GFLAGS` and `ETHTOOL_GTSO` of
/// `include/uapi/linux/ethtool.h`, with the relevant bit of the answer.
const QUERIES: [(Offload, u32, u32); 4] = [
    (Offload::GenericReceive, 0x2b, 1),
    (Offload::GenericSegmentation, 0x23, 1),
    (Offload::LargeReceive, 0x25, 1 << 15),
    (Offload::TcpSegmentation, 0x1e, 1),
];

impl Offload {
    /// Its name in `ethtool -K`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::GenericReceive => "gro",
            Self::GenericSegmentation => "gso",
            Self::LargeReceive => "lro",
            Self::TcpSegmentation => "tso",
        }
    }

    /// Whether it affects received packets, rather than sent ones.
    #[must_use]
    pub const fn merges_received(self) -> bool {
        matches!(self, Self::GenericReceive | Self::LargeReceive)
    }
}

/// Whether the driver removes VLAN tags from received frames: `ETH_FLAG_RXVLAN` of
/// `ETHTOOL_GFLAGS`.
pub(crate) fn takes_tags_out(socket: &PacketSocket, name: &CStr) -> bool {
    const GFLAGS: u32 = 0x25;
    const RXVLAN: u32 = 1 << 8;
    let flags = socket.ethtool(name, GFLAGS);
    flags.is_ok_and(|flags| flags & RXVLAN != 0)
}

/// The active offloads. Those that an interface does not support count as off.
pub(crate) fn active(socket: &PacketSocket, name: &CStr) -> Vec<Offload> {
    let is_on = |&(_, command, bit): &(Offload, u32, u32)| {
        socket
            .ethtool(name, command)
            .is_ok_and(|value| value & bit != 0)
    };
    let on = QUERIES.iter().filter(|query| is_on(query));
    on.map(|(offload, _, _)| *offload).collect()
}
