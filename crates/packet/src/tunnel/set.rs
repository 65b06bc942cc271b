// SPDX-License-Identifier: Apache-2.0
//! Sets of tunnels.

use std::fmt;
use std::str::FromStr;

/// A kind of tunnel that can be decapsulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Tunnel {
    /// IPv4 in IPv4 or IPv6: protocol 4 (RFC 2003, RFC 2473).
    Ipip,
    /// IPv6 in IPv4 or IPv6: protocol 41 (RFC 4213, RFC 2473).
    SixInFour,
    /// GRE with IP, MPLS, Ethernet (NVGRE too), ERSPAN or PPP (PPTP) inside (RFC 2784, 2890, 2637).
    Gre,
    /// VXLAN, UDP destination ports 4789 and 8472 (RFC 7348), and its extension VXLAN-GPE on 4790.
    Vxlan,
    /// GENEVE, UDP destination port 6081 (RFC 8926).
    Geneve,
    /// GTP-U version 1, UDP port 2152, user data messages (3GPP TS 29.281).
    GtpU,
    /// Teredo, UDP port 3544 (RFC 4380).
    Teredo,
    /// L2TP version 2 data messages, UDP port 1701 (RFC 2661).
    L2tp,
    /// Ethernet in MPLS, with or without control word (RFC 4448).
    Pseudowire,
}

impl Tunnel {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::Ipip,
        Self::SixInFour,
        Self::Gre,
        Self::Vxlan,
        Self::Geneve,
        Self::GtpU,
        Self::Teredo,
        Self::L2tp,
        Self::Pseudowire,
    ];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ipip => "ipip",
            Self::SixInFour => "6in4",
            Self::Gre => "gre",
            Self::Vxlan => "vxlan",
            Self::Geneve => "geneve",
            Self::GtpU => "gtp-u",
            Self::Teredo => "teredo",
            Self::L2tp => "l2tp",
            Self::Pseudowire => "pseudowire",
        }
    }
}

/// A set of [`Tunnel`]s; empty by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TunnelSet(u16);

impl TunnelSet {
    /// Every tunnel.
    pub const ALL: Self = Self((1 << Tunnel::ALL.len()) - 1);
    /// No tunnel.
    pub const EMPTY: Self = Self(0);
    /// The tunnels over UDP.
    pub(crate) const IN_UDP: Self = Self::EMPTY
        .with(Tunnel::Vxlan)
        .with(Tunnel::Geneve)
        .with(Tunnel::GtpU)
        .with(Tunnel::Teredo)
        .with(Tunnel::L2tp);

    /// This set and `tunnel`.
    #[must_use]
    pub const fn with(self, tunnel: Tunnel) -> Self {
        Self(self.0 | 1 << tunnel as u8)
    }

    /// Whether `tunnel` is in the set.
    #[inline]
    #[must_use]
    pub const fn contains(self, tunnel: Tunnel) -> bool {
        self.0 >> tunnel as u8 & 1 == 1
    }

    /// Whether no tunnel is in the set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the sets have a tunnel in common.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl FromIterator<Tunnel> for TunnelSet {
    fn from_iter<T: IntoIterator<Item = Tunnel>>(tunnels: T) -> Self {
        tunnels.into_iter().fold(Self::EMPTY, Self::with)
    }
}

impl fmt::Display for TunnelSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        let members = Tunnel::ALL
            .into_iter()
            .filter(|&tunnel| self.contains(tunnel));
        for (index, tunnel) in members.enumerate() {
            f.write_str(if index == 0 { "" } else { "," })?;
            f.write_str(tunnel.name())?;
        }
        Ok(())
    }
}

/// An unknown tunnel name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTunnel {
    name: String,
}

impl fmt::Display for UnknownTunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Tunnel::ALL.map(Tunnel::name).join(", ");
        write!(
            f,
            "unknown tunnel `{}`: expected all, none, or a list of {known}",
            self.name
        )
    }
}

impl std::error::Error for UnknownTunnel {}

impl FromStr for TunnelSet {
    type Err = UnknownTunnel;

    /// Parses `all`, `none`, or names separated by commas.
    fn from_str(list: &str) -> Result<Self, UnknownTunnel> {
        let mut set = Self::EMPTY;
        for name in list.split(',').map(str::trim) {
            match name {
                "all" => set = Self::ALL,
                "none" => {}
                _ => {
                    let known = Tunnel::ALL.into_iter().find(|tunnel| tunnel.name() == name);
                    set = set.with(known.ok_or_else(|| UnknownTunnel {
                        name: name.to_owned(),
                    })?);
                }
            }
        }
        Ok(set)
    }
}
