// SPDX-License-Identifier: Apache-2.0
//! Networks: addresses with a common prefix.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;

/// A network: the addresses with a common prefix of `length` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(IpNet);

impl Network {
    /// Parses `ADDRESS/LENGTH`, or an address as a network of one address. The address may have
    /// bits set after the prefix.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        // Uses the parser of the standard library: `IpNet` reads 010.0.0.1 as 10.0.0.1, while other
        // programs read it as 8.0.0.1.
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length.parse::<u8>().ok()?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        match length {
            Some(length) => IpNet::new(address, length).ok().map(Self),
            None => Some(Self(address.into())),
        }
    }

    /// Whether the address is in the network.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        self.0.contains(&address)
    }

    /// The address as written.
    #[must_use]
    pub fn address(self) -> IpAddr {
        self.0.addr()
    }

    /// Its first address, which is that of the network.
    #[must_use]
    pub fn first(self) -> IpAddr {
        self.0.network()
    }

    /// Its last address.
    #[must_use]
    pub fn last(self) -> IpAddr {
        self.0.broadcast()
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.prefix_len() == self.0.max_prefix_len() {
            true => write!(f, "{}", self.0.addr()),
            false => write!(f, "{}", self.0.trunc()),
        }
    }
}

/// The address with all but its first `length` bits cleared.
#[must_use]
pub fn masked(address: IpAddr, length: u8) -> IpAddr {
    IpNet::new(address, length).map_or(address, |network| network.network())
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
        for text in [
            "10.0.0.0/33",
            "10.0.0/8",
            "010.0.0.0/8",
            "x",
            "::/129",
            "1.2.3.4/",
        ] {
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
