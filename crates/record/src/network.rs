// SPDX-License-Identifier: Apache-2.0
//! Networks: addresses with a common prefix.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network: the addresses with a common prefix of `length` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    length: u8,
}

impl Network {
    /// Parses `ADDRESS/LENGTH`, or an address as a network of one address. The address may have
    /// bits behind the prefix.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length.parse::<u8>().ok()?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let length = length.unwrap_or(bits);
        (length <= bits).then_some(Self { address, length })
    }

    /// Whether the address is in the network.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && masked(address, self.length) == masked(self.address, self.length)
    }

    /// The address as written.
    #[must_use]
    pub const fn address(self) -> IpAddr {
        self.address
    }

    /// Its first address: that of the network.
    #[must_use]
    pub fn first(self) -> IpAddr {
        masked(self.address, self.length)
    }

    /// Its last address.
    #[must_use]
    pub fn last(self) -> IpAddr {
        match self.first() {
            IpAddr::V4(first) => {
                let behind = u32::MAX.checked_shr(self.length.into()).unwrap_or(0);
                Ipv4Addr::from_bits(first.to_bits() | behind).into()
            }
            IpAddr::V6(first) => {
                let behind = u128::MAX.checked_shr(self.length.into()).unwrap_or(0);
                Ipv6Addr::from_bits(first.to_bits() | behind).into()
            }
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.first();
        match self.length == if first.is_ipv4() { 32 } else { 128 } {
            true => write!(f, "{first}"),
            false => write!(f, "{first}/{}", self.length),
        }
    }
}

/// The address with all but its first `length` bits cleared.
#[must_use]
pub fn masked(address: IpAddr, length: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX
                .checked_shl(32 - u32::from(length.min(32)))
                .unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX
                .checked_shl(128 - u32::from(length.min(128)))
                .unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(text: &str) -> Network {
        Network::parse(text).unwrap()
    }

    #[test]
    fn networks_hold_their_addresses() {
        let holds = |text: &str, address: &str| net(text).contains(address.parse().unwrap());
        assert!(holds("10.0.0.0/8", "10.255.0.1"));
        assert!(!holds("10.0.0.0/8", "11.0.0.1"));
        assert!(holds("0.0.0.0/0", "11.0.0.1"));
        assert!(!holds("0.0.0.0/0", "::1"));
        assert!(holds("2001:db8::/32", "2001:db8:ffff::"));
        assert!(holds("::1", "::1"));
        for text in ["10.0.0.0/33", "10.0.0/8", "x", "::/129", "1.2.3.4/"] {
            assert_eq!(Network::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_network_reaches_from_its_first_to_its_last_address() {
        for (text, first, last, shown) in [
            ("10.1.2.3/8", "10.0.0.0", "10.255.255.255", "10.0.0.0/8"),
            ("10.1.2.3", "10.1.2.3", "10.1.2.3", "10.1.2.3"),
            ("0.0.0.0/0", "0.0.0.0", "255.255.255.255", "0.0.0.0/0"),
            (
                "2001:db8::7/127",
                "2001:db8::6",
                "2001:db8::7",
                "2001:db8::6/127",
            ),
            ("::1/128", "::1", "::1", "::1"),
        ] {
            let network = net(text);
            assert_eq!(network.first().to_string(), first);
            assert_eq!(network.last().to_string(), last);
            assert_eq!(network.to_string(), shown);
        }
        assert_eq!(net("::/0").last(), IpAddr::from([0xff; 16]));
    }
}
