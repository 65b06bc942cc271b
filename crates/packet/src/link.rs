// SPDX-License-Identifier: Apache-2.0
//! The link layer: finds the first IP header of a frame.

use crate::bytes::{array_at, u8_at, u16_at, u32_at};
use crate::mpls;
use crate::{LinkType, Rejected};

/// The most tags, label stack entries and other link-layer headers that are skipped in one frame.
///
/// Real stacks have a handful. The limit bounds the work on a frame that contains only tags.
pub const MAX_LINK_HEADERS: usize = 256;

/// EtherTypes (IEEE 802 numbers).
pub(crate) mod ether_type {
    pub(crate) const IPV4: u16 = 0x0800;
    pub(crate) const ARP: u16 = 0x0806;
    pub(crate) const TRANSPARENT_ETHERNET: u16 = 0x6558;
    pub(crate) const RARP: u16 = 0x8035;
    pub(crate) const VLAN: u16 = 0x8100;
    pub(crate) const IPV6: u16 = 0x86dd;
    pub(crate) const SLOW: u16 = 0x8809;
    pub(crate) const PPP: u16 = 0x880b;
    pub(crate) const MPLS: u16 = 0x8847;
    pub(crate) const MPLS_UPSTREAM: u16 = 0x8848;
    pub(crate) const PPPOE_DISCOVERY: u16 = 0x8863;
    pub(crate) const PPPOE_SESSION: u16 = 0x8864;
    pub(crate) const EAPOL: u16 = 0x888e;
    pub(crate) const SERVICE_VLAN: u16 = 0x88a8;
    pub(crate) const LLDP: u16 = 0x88cc;
    /// Cisco MetaData: a security group tag.
    pub(crate) const CISCO_METADATA: u16 = 0x8909;
    /// VN-Tag (802.1Qbh draft): the virtual interfaces of a fabric extender.
    pub(crate) const VN_TAG: u16 = 0x8926;
    /// TTag: a timestamp of Cisco's Nexus switches.
    pub(crate) const TTAG: u16 = 0x8988;
    pub(crate) const LOOPBACK: u16 = 0x9000;
    pub(crate) const OLD_SERVICE_VLAN: u16 = 0x9100;
    /// Arista's header, of timestamps.
    pub(crate) const ARISTA: u16 = 0xd28b;
    /// Largest value that is an 802.3 length.
    pub(crate) const MAX_LENGTH: u16 = 1500;
    /// Smallest value that is a type.
    pub(crate) const MIN_TYPE: u16 = 1536;
}

/// The network header that the link layer announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    /// Offset in the frame.
    pub(crate) offset: usize,
    /// The announced version.
    pub(crate) version: Version,
}

/// The IP version that the previous header announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    V4,
    V6,
}

/// How far link layers are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkLimits {
    /// End of the frame on the wire or, in a tunnel, of the outer packet.
    pub(crate) wire_end: u32,
    /// How many nested Ethernet pseudowires may be entered.
    pub(crate) pseudowires: usize,
}

/// Fields of link-layer headers, for the inputs that need them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkFields {
    /// Offset of the destination MAC address.
    pub(crate) destination_mac: Option<usize>,
    /// Offset of the source MAC address.
    pub(crate) source_mac: Option<usize>,
    /// The EtherType that announced the IP header, or the one that is not parsed.
    pub(crate) ether_type: Option<u16>,
    /// Number of VLAN tags.
    pub(crate) tags: u32,
    /// Tag control information of the two outermost tags.
    pub(crate) tag_control: [u16; 2],
    /// Label of the topmost label stack entry.
    pub(crate) mpls_label: Option<u32>,
}

pub(crate) type Found = Result<Network, Rejected>;

pub(crate) const CUT: Rejected = Rejected::LinkHeaderNotCaptured;

impl LinkFields {
    /// Finds the first IP header of a frame.
    pub(crate) fn walk(&mut self, bytes: &[u8], link_type: LinkType, limits: LinkLimits) -> Found {
        match link_type {
            LinkType::Ethernet => self.ethernet(bytes, 0, limits),
            LinkType::LinuxCooked => self.linux_cooked(bytes, limits),
            LinkType::LinuxCooked2 => self.linux_cooked_2(bytes, limits),
            LinkType::Null => self.null(bytes, limits),
            LinkType::Ppp => self.ppp_framed(bytes, limits),
            LinkType::Raw => by_nibble(bytes, 0, Rejected::RawNotIp),
            LinkType::RawIpv4 => Ok(Network {
                offset: 0,
                version: Version::V4,
            }),
            LinkType::RawIpv6 => Ok(Network {
                offset: 0,
                version: Version::V6,
            }),
        }
    }

    /// Parses an Ethernet header at `offset`.
    pub(crate) fn ethernet(&mut self, bytes: &[u8], offset: usize, limits: LinkLimits) -> Found {
        let announced = u16_at(bytes, offset + 12).ok_or(CUT)?;
        self.destination_mac = Some(offset);
        self.source_mac = Some(offset + 6);
        self.by_ether_type(bytes, offset + 14, announced, limits)
    }

    /// Parses the header at `offset` that an EtherType announced.
    pub(crate) fn by_ether_type(
        &mut self,
        bytes: &[u8],
        mut offset: usize,
        mut announced: u16,
        limits: LinkLimits,
    ) -> Found {
        for _ in 0..MAX_LINK_HEADERS {
            match announced {
                ether_type::IPV4 => return self.network(offset, announced, Version::V4),
                ether_type::IPV6 => return self.network(offset, announced, Version::V6),
                ether_type::VLAN | ether_type::SERVICE_VLAN | ether_type::OLD_SERVICE_VLAN => {
                    let tag = u32_at(bytes, offset).ok_or(CUT)?;
                    self.push_tag((tag >> 16) as u16);
                    announced = tag as u16;
                    offset += 4;
                }
                ether_type::MPLS | ether_type::MPLS_UPSTREAM => {
                    self.ether_type = Some(announced);
                    return self.mpls(bytes, offset, limits);
                }
                ether_type::PPPOE_SESSION => {
                    self.ether_type = Some(announced);
                    return self.ppp(bytes, offset + 6, limits);
                }
                ether_type::CISCO_METADATA
                | ether_type::VN_TAG
                | ether_type::TTAG
                | ether_type::ARISTA => {
                    let Some(header_bytes) = shim_bytes(bytes, offset, announced)? else {
                        return Err(self.unread(announced));
                    };
                    announced = u16_at(bytes, offset + header_bytes).ok_or(CUT)?;
                    offset += header_bytes + 2;
                }
                ..=ether_type::MAX_LENGTH => match snap(bytes, offset)? {
                    (behind, inner) if inner > ether_type::MAX_LENGTH => {
                        (offset, announced) = (behind, inner);
                    }
                    _ => return Err(Rejected::Llc),
                },
                _ => return Err(self.unread(announced)),
            }
        }
        Err(Rejected::TagDepthExceeded)
    }

    fn unread(&mut self, announced: u16) -> Rejected {
        self.ether_type = Some(announced);
        unknown_ether_type(announced)
    }

    fn network(&mut self, offset: usize, announced: u16, version: Version) -> Found {
        self.ether_type = Some(announced);
        Ok(Network { offset, version })
    }

    /// Tag control information of the outermost (0) or second (1) tag.
    pub(crate) fn tag(&self, index: usize) -> Option<u16> {
        let met = self.tags as usize > index;
        self.tag_control.get(index).copied().filter(|_| met)
    }

    fn push_tag(&mut self, control: u16) {
        if let Some(place) = self.tag_control.get_mut(self.tags as usize) {
            *place = control;
        }
        self.tags = self.tags.saturating_add(1);
    }

    /// A label stack (RFC 3032, section 2.1).
    fn mpls(&mut self, bytes: &[u8], mut offset: usize, limits: LinkLimits) -> Found {
        for _ in 0..MAX_LINK_HEADERS {
            let entry = u32_at(bytes, offset).ok_or(CUT)?;
            self.mpls_label.get_or_insert(entry >> 12);
            offset += 4;
            if entry & 0x100 != 0 {
                let label = entry >> 12;
                let (network, ether_type) = mpls::payload(bytes, offset, label, limits)?;
                self.ether_type = ether_type.or(self.ether_type);
                return Ok(network);
            }
        }
        Err(Rejected::TagDepthExceeded)
    }

    /// A PPP protocol field of one or two bytes (RFC 1661, sections 2 and 6.5).
    pub(crate) fn ppp(&mut self, bytes: &[u8], offset: usize, limits: LinkLimits) -> Found {
        let first = u8_at(bytes, offset).ok_or(CUT)?;
        let (protocol, behind) = if first & 1 == 1 {
            (u16::from(first), offset + 1)
        } else {
            (u16_at(bytes, offset).ok_or(CUT)?, offset + 2)
        };
        match protocol {
            0x0021 => Ok(Network {
                offset: behind,
                version: Version::V4,
            }),
            0x0057 => Ok(Network {
                offset: behind,
                version: Version::V6,
            }),
            0x0281 | 0x0283 => self.mpls(bytes, behind, limits),
            _ => Err(Rejected::OtherPppProtocol),
        }
    }

    /// PPP with or without the address and control bytes of HDLC-like framing (RFC 1662, section
    /// 3.1), or Cisco HDLC, whose address byte is 0x0f or 0x8f and whose protocol is an Ethernet
    /// type.
    fn ppp_framed(&mut self, bytes: &[u8], limits: LinkLimits) -> Found {
        match array_at(bytes, 0).ok_or(CUT)? {
            [0xff, 0x03] => self.ppp(bytes, 2, limits),
            [0x0f | 0x8f, 0x00] => {
                let announced = u16_at(bytes, 2).ok_or(CUT)?;
                self.by_cooked_type(bytes, 4, announced, limits)
            }
            _ => self.ppp(bytes, 0, limits),
        }
    }

    /// Linux cooked capture v1: packet type, ARPHRD type, address length, address (8), protocol.
    fn linux_cooked(&mut self, bytes: &[u8], limits: LinkLimits) -> Found {
        let header: [u8; 16] = array_at(bytes, 0).ok_or(CUT)?;
        if header[4..6] == [0, 6] {
            self.source_mac = Some(6);
        }
        let hardware = u16::from_be_bytes([header[2], header[3]]);
        let announced = u16::from_be_bytes([header[14], header[15]]);
        self.cooked(bytes, 16, hardware, announced, limits)
    }

    /// Linux cooked capture v2: protocol, reserved (2), interface (4), ARPHRD type, packet type
    /// (1), address length (1), address (8).
    fn linux_cooked_2(&mut self, bytes: &[u8], limits: LinkLimits) -> Found {
        let header: [u8; 20] = array_at(bytes, 0).ok_or(CUT)?;
        if header[11] == 6 {
            self.source_mac = Some(12);
        }
        let hardware = u16::from_be_bytes([header[8], header[9]]);
        let announced = u16::from_be_bytes([header[0], header[1]]);
        self.cooked(bytes, 20, hardware, announced, limits)
    }

    /// The protocol field is an EtherType, except for Frame Relay (770), 802.11 (801 to 803) and
    /// netlink (824).
    fn cooked(
        &mut self,
        bytes: &[u8],
        offset: usize,
        hardware: u16,
        announced: u16,
        limits: LinkLimits,
    ) -> Found {
        match hardware {
            770 | 801..=803 | 824 => Err(Rejected::OtherCookedProtocol),
            _ => self.by_cooked_type(bytes, offset, announced, limits),
        }
    }

    /// Values that would be lengths in Ethernet are numbers of Linux here; 4 is 802.2 LLC.
    fn by_cooked_type(
        &mut self,
        bytes: &[u8],
        offset: usize,
        announced: u16,
        limits: LinkLimits,
    ) -> Found {
        match announced {
            4 | ether_type::MIN_TYPE.. => self.by_ether_type(bytes, offset, announced, limits),
            _ => Err(Rejected::OtherCookedProtocol),
        }
    }

    /// BSD loopback: an address family in the byte order of the capturing host, or an EtherType in
    /// its last two bytes.
    fn null(&mut self, bytes: &[u8], limits: LinkLimits) -> Found {
        let header: [u8; 4] = array_at(bytes, 0).ok_or(CUT)?;
        let (little, big) = (u32::from_le_bytes(header), u32::from_be_bytes(header));
        let version = match little.min(big) {
            2 => Version::V4,
            family if LinkType::NULL_IPV6_FAMILIES.contains(&family) => Version::V6,
            _ => {
                let announced = u16::from_be_bytes([header[2], header[3]]);
                let read = (announced >= ether_type::MIN_TYPE)
                    .then(|| self.by_ether_type(bytes, 4, announced, limits));
                return match read {
                    Some(Ok(network)) => Ok(network),
                    _ => Err(Rejected::OtherAddressFamily),
                };
            }
        };
        Ok(Network { offset: 4, version })
    }
}

/// The number of bytes of a header between the EtherType that announced it and the next EtherType.
/// `None` if the format is unknown.
fn shim_bytes(bytes: &[u8], offset: usize, announced: u16) -> Result<Option<usize>, Rejected> {
    Ok(match announced {
        ether_type::VN_TAG => Some(4),
        // 48 bits of nanoseconds.
        ether_type::TTAG => Some(6),
        // Version, number of options, and options of four bytes.
        ether_type::CISCO_METADATA => match array_at(bytes, offset).ok_or(CUT)? {
            [1, options] if options > 0 => Some(2 + 4 * usize::from(options)),
            _ => None,
        },
        // Subtype 1 has a timestamp of 64 or 48 bits, in TAI (0) or UTC (1).
        ether_type::ARISTA => match array_at(bytes, offset).ok_or(CUT)? {
            [0, 1, 0 | 1, 0x10] => Some(12),
            [0, 1, 0 | 1, 0x20] => Some(10),
            _ => None,
        },
        _ => None,
    })
}

/// Offset and EtherType after an 802.2 LLC header: a SNAP header with an organisation code that is
/// followed by an EtherType (RFC 1042; 0x0000f8 is IEEE 802.1H's), or DSAP 6 (IPv4).
fn snap(bytes: &[u8], offset: usize) -> Result<(usize, u16), Rejected> {
    match array_at(bytes, offset).ok_or(CUT)? {
        [0xaa, 0xaa, 0x03] => match array_at(bytes, offset + 3).ok_or(CUT)? {
            [0x00, 0x00, 0x00 | 0xf8, high, low] => {
                Ok((offset + 8, u16::from_be_bytes([high, low])))
            }
            _ => Err(Rejected::Llc),
        },
        [0x06, 0x06, 0x03] => Ok((offset + 3, ether_type::IPV4)),
        _ => Err(Rejected::Llc),
    }
}

/// The IP version in the first nibble; `other` if it is neither 4 nor 6.
pub(crate) fn by_nibble(bytes: &[u8], offset: usize, other: Rejected) -> Found {
    match u8_at(bytes, offset).ok_or(CUT)? >> 4 {
        4 => Ok(Network {
            offset,
            version: Version::V4,
        }),
        6 => Ok(Network {
            offset,
            version: Version::V6,
        }),
        _ => Err(other),
    }
}

fn unknown_ether_type(announced: u16) -> Rejected {
    match announced {
        ether_type::ARP | ether_type::RARP => Rejected::Arp,
        ether_type::EAPOL => Rejected::Eapol,
        ether_type::LLDP => Rejected::Lldp,
        ether_type::LOOPBACK => Rejected::EthernetLoopback,
        ether_type::PPPOE_DISCOVERY => Rejected::PppoeDiscovery,
        ether_type::SLOW => Rejected::SlowProtocol,
        _ => Rejected::OtherEtherType,
    }
}
