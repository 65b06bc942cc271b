// SPDX-License-Identifier: Apache-2.0
//! The 5-tuple as machine words, in the byte order of the wire.
//!
//! ```text
//! IPv4 (2 words)                          IPv6 (5 words)
//! w0  source addr (4) | dest. addr (4)    w0..w1  source address (16)
//! w1  ports (4) proto family 0 0          w2..w3  destination address (16)
//!                                         w4      ports (4) proto family 0 0
//! ```
//!
//! Words are little-endian loads of the wire bytes, so a parser copies 8 bytes at a time and swaps
//! none. The family byte (4 or 6) is never zero. So no key is all zeros, and zeroed memory can mean
//! "empty slot". Two 64-bit integers for IPv4 are the paper's choice (TurboFlow, section 5.2).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The IP version of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// IPv4.
    V4 = 4,
    /// IPv6.
    V6 = 6,
}

/// Words of an IPv4 5-tuple.
pub const WORDS_V4: usize = 2;
/// Words of an IPv6 5-tuple.
pub const WORDS_V6: usize = 5;

/// The 5-tuple of a packet: addresses, ports and protocol of either family.
///
/// Only the first [`FiveTuple::words`] words are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FiveTuple {
    words: [u64; WORDS_V6],
    family: Family,
}

/// Position of the VLAN in the last word of a 5-tuple. The programs in the kernel use it too.
const VLAN_SHIFT: u32 = 48;

/// The last word of a 5-tuple. `ports` are the four bytes of both ports in wire order.
#[inline(always)]
#[must_use]
pub const fn transport_word(ports: [u8; 4], protocol: u8, family: Family) -> u64 {
    u32::from_le_bytes(ports) as u64 | (protocol as u64) << 32 | (family as u64) << 40
}

impl FiveTuple {
    /// Builds an IPv4 tuple from the wire bytes of both addresses and both ports.
    #[inline(always)]
    #[must_use]
    pub const fn v4(addresses: [u8; 8], ports: [u8; 4], protocol: u8) -> Self {
        let last = transport_word(ports, protocol, Family::V4);
        Self {
            words: [u64::from_le_bytes(addresses), last, 0, 0, 0],
            family: Family::V4,
        }
    }

    /// Builds an IPv6 tuple from the wire bytes of both addresses and both ports.
    #[inline(always)]
    #[must_use]
    pub fn v6(source: [u8; 16], destination: [u8; 16], ports: [u8; 4], protocol: u8) -> Self {
        let (s0, s1) = halves(source);
        let (d0, d1) = halves(destination);
        let last = transport_word(ports, protocol, Family::V6);
        Self {
            words: [s0, s1, d0, d1, last],
            family: Family::V6,
        }
    }

    /// Builds a tuple from its words: those of [`FiveTuple::words`], followed by zeros. `None` if
    /// the last word has no valid family.
    #[must_use]
    pub fn of_words(words: [u64; WORDS_V6]) -> Option<Self> {
        let family = |word: u64| word >> 40 & 0xff;
        let family = match (family(words[1]), family(words[WORDS_V6 - 1])) {
            (_, 6) => Family::V6,
            (4, _) if words[2..] == [0; 3] => Family::V4,
            _ => return None,
        };
        Some(Self { words, family })
    }

    /// Builds a tuple from two addresses of one family and ports in host order.
    ///
    /// # Panics
    /// If the two addresses are of different families.
    #[must_use]
    pub fn new(
        source: IpAddr,
        destination: IpAddr,
        source_port: u16,
        destination_port: u16,
        protocol: u8,
    ) -> Self {
        let (s, d) = (source_port.to_be_bytes(), destination_port.to_be_bytes());
        let ports = [s[0], s[1], d[0], d[1]];
        match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let mut addresses = [0; 8];
                addresses[..4].copy_from_slice(&source.octets());
                addresses[4..].copy_from_slice(&destination.octets());
                Self::v4(addresses, ports, protocol)
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                Self::v6(source.octets(), destination.octets(), ports, protocol)
            }
            _ => panic!("a 5-tuple has two addresses of one family"),
        }
    }

    /// The IP version.
    #[inline(always)]
    #[must_use]
    pub const fn family(&self) -> Family {
        self.family
    }

    /// All five words. Those that the family does not use are zero.
    #[inline(always)]
    #[must_use]
    pub const fn raw_words(&self) -> &[u64; WORDS_V6] {
        &self.words
    }

    /// The words that identify the flow: two for IPv4, five for IPv6.
    #[inline(always)]
    #[must_use]
    pub fn words(&self) -> &[u64] {
        match self.family {
            Family::V4 => &self.words[..WORDS_V4],
            Family::V6 => &self.words,
        }
    }

    /// The word with ports, protocol and family.
    #[inline(always)]
    #[must_use]
    pub const fn transport(&self) -> u64 {
        match self.family {
            Family::V4 => self.words[1],
            Family::V6 => self.words[4],
        }
    }

    /// The source address.
    #[must_use]
    pub fn source(&self) -> IpAddr {
        match self.family {
            Family::V4 => v4_address(self.words[0] as u32),
            Family::V6 => v6_address(self.words[0], self.words[1]),
        }
    }

    /// The destination address.
    #[must_use]
    pub fn destination(&self) -> IpAddr {
        match self.family {
            Family::V4 => v4_address((self.words[0] >> 32) as u32),
            Family::V6 => v6_address(self.words[2], self.words[3]),
        }
    }

    /// The source port in host order.
    #[must_use]
    pub const fn source_port(&self) -> u16 {
        (self.transport() as u16).swap_bytes()
    }

    /// The destination port in host order.
    #[must_use]
    pub const fn destination_port(&self) -> u16 {
        ((self.transport() >> 16) as u16).swap_bytes()
    }

    /// The IP protocol number: that of the first header that is not an IPv6 extension header.
    #[inline(always)]
    #[must_use]
    pub const fn protocol(&self) -> u8 {
        (self.transport() >> 32) as u8
    }

    /// The 5-tuple in a VLAN. It is a different flow than the 5-tuple outside of that VLAN. `vlan`
    /// has the 12 bits of the outermost tag; 0 means none.
    #[must_use]
    pub const fn in_vlan(mut self, vlan: u16) -> Self {
        let last = match self.family {
            Family::V4 => WORDS_V4 - 1,
            Family::V6 => WORDS_V6 - 1,
        };
        self.words[last] = self.words[last] & !(0xffff << VLAN_SHIFT) | (vlan as u64) << VLAN_SHIFT;
        self
    }

    /// The VLAN that was set by [`FiveTuple::in_vlan`]; 0 means none.
    #[must_use]
    pub const fn vlan(&self) -> u16 {
        (self.transport() >> VLAN_SHIFT) as u16
    }

    /// The 5-tuple of the reverse direction: addresses and ports exchanged.
    #[must_use]
    pub fn reversed(&self) -> Self {
        let transport = self.transport();
        let ports = (transport as u32).rotate_left(16);
        let last = transport & !0xffff_ffff | u64::from(ports);
        let w = self.words;
        let words = match self.family {
            Family::V4 => [w[0].rotate_left(32), last, 0, 0, 0],
            Family::V6 => [w[2], w[3], w[0], w[1], last],
        };
        Self {
            words,
            family: self.family,
        }
    }
}

fn halves(address: [u8; 16]) -> (u64, u64) {
    let word = u128::from_le_bytes(address);
    (word as u64, (word >> 64) as u64)
}

fn v4_address(wire: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(wire.to_le_bytes()))
}

fn v6_address(low: u64, high: u64) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from(
        (u128::from(low) | u128::from(high) << 64).to_le_bytes(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_its_parts() {
        for (source, destination) in [("10.1.2.3", "192.0.2.9"), ("2001:db8::1", "fe80::2:3")] {
            let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
            let tuple = FiveTuple::new(source, destination, 0x1234, 53, 17);
            assert_eq!(tuple.source(), source);
            assert_eq!(tuple.destination(), destination);
            assert_eq!(tuple.source_port(), 0x1234);
            assert_eq!(tuple.destination_port(), 53);
            assert_eq!(tuple.protocol(), 17);
            let back = FiveTuple::new(destination, source, 53, 0x1234, 17);
            assert_eq!(tuple.reversed(), back);
            assert_ne!(*tuple.words().last().unwrap(), 0);
            let tagged = tuple.in_vlan(7).in_vlan(0xfff);
            assert_eq!((tagged.vlan(), tuple.vlan()), (0xfff, 0));
            assert_eq!((tagged.protocol(), tagged.destination_port()), (17, 53));
            assert_eq!(tagged.reversed(), back.in_vlan(0xfff));
            assert_eq!(FiveTuple::of_words(*tagged.raw_words()), Some(tagged));
            assert!(tagged != tuple && tagged.in_vlan(0) == tuple);
        }
    }
}
