// SPDX-License-Identifier: Apache-2.0
//! Community ID, version 1: a text that Zeek, Suricata and other tools give to a flow, so that
//! their records can be joined. It does not depend on which direction of the flow was seen first.
//!
//! ```text
//! "1:" base64(SHA-1(
//!     seed (2) | address (4 or 16) | address | protocol (1) | 0 (1) | port (2) | port
//! ))
//! ```
//!
//! The seed is 0. The smaller end comes first. If the specification defines no ports for a
//! protocol, the message has none, even if the protocol has ports.
//!
//! # Source
//! The specification is `github.com/corelight/community-id-spec`. Its mapping for ICMP is that of
//! Zeek, taken from `github.com/corelight/pycommunityid`.

use std::net::IpAddr;

use crate::sha1::{self, DIGEST_BYTES};

/// Bytes of a Community ID: the version and 28 base64 characters.
pub const COMMUNITY_ID_BYTES: usize = 2 + 4 * DIGEST_BYTES.div_ceil(3);

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;
const SCTP: u8 = 132;

/// Pairs of ICMP and ICMPv6 types of which one is the answer to the other.
const ICMP_PAIRS: [(u8, u8); 5] = [(0, 8), (9, 10), (13, 14), (15, 16), (17, 18)];
const ICMPV6_PAIRS: [(u8, u8); 6] = [
    (128, 129),
    (130, 131),
    (133, 134),
    (135, 136),
    (139, 140),
    (144, 145),
];

/// A flow as the specification sees it.
#[derive(Clone, Copy, Debug)]
pub struct CommunityFlow {
    /// Source and destination address, of one family.
    pub addresses: [IpAddr; 2],
    /// Protocol number.
    pub protocol: u8,
    /// Source and destination port.
    pub ports: [u16; 2],
    /// Type and code of its first ICMP message.
    pub icmp: Option<[u8; 2]>,
}

impl CommunityFlow {
    /// The Community ID. `None` for ICMP if the type is not known.
    #[must_use]
    pub fn id(&self) -> Option<String> {
        let [mut source, mut destination] = self.addresses;
        let (ports, is_one_way) = self.ports_and_way()?;
        let [source_port, destination_port] = ports.unwrap_or_default();
        let is_in_order = (source, source_port) <= (destination, destination_port);
        let mut ports = ports;
        if !is_one_way && !is_in_order {
            std::mem::swap(&mut source, &mut destination);
            ports = ports.map(|[source, destination]| [destination, source]);
        }
        let mut message = vec![0, 0];
        for address in [source, destination] {
            match address {
                IpAddr::V4(address) => message.extend_from_slice(&address.octets()),
                IpAddr::V6(address) => message.extend_from_slice(&address.octets()),
            }
        }
        message.extend_from_slice(&[self.protocol, 0]);
        for port in ports.into_iter().flatten() {
            message.extend_from_slice(&port.to_be_bytes());
        }
        let mut id = String::with_capacity(COMMUNITY_ID_BYTES);
        id.push_str("1:");
        push_base64(&mut id, &sha1::of_short(&message));
        Some(id)
    }

    /// The ports, if the protocol has any, and whether the flow has only one direction. For ICMP,
    /// the type of a message and the type of its answer replace the ports, or type and code if
    /// there is no answer.
    fn ports_and_way(&self) -> Option<(Option<[u16; 2]>, bool)> {
        let pairs = match self.protocol {
            TCP | UDP | SCTP => return Some((Some(self.ports), false)),
            ICMP => &ICMP_PAIRS[..],
            ICMPV6 => &ICMPV6_PAIRS[..],
            _ => return Some((None, false)),
        };
        let [its_type, code] = self.icmp?;
        let answer = pairs.iter().find_map(|(one, other)| match its_type {
            its if its == *one => Some(*other),
            its if its == *other => Some(*one),
            _ => None,
        });
        let ports = [its_type, answer.unwrap_or(code)].map(u16::from);
        Some((Some(ports), answer.is_none()))
    }
}

/// Appends octets in base64 with padding (RFC 4648, section 4).
fn push_base64(to: &mut String, octets: &[u8]) {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for group in octets.chunks(3) {
        let octet = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = octet(0) << 16 | octet(1) << 8 | octet(2);
        for index in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * index) & 63) as usize];
            let is_there = index <= group.len();
            to.push(if is_there { char::from(letter) } else { '=' });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn gives_the_ids_of_the_reference_implementation() {
        let vectors = include_str!("../tests/community_id/vectors.csv");
        let rows = vectors
            .lines()
            .filter(|line| !line.starts_with('#'))
            .skip(1);
        let mut checked = 0;
        for row in rows {
            let cells: Vec<&str> = row.split(',').collect();
            let [protocol, source, destination, first, second, id] = cells[..] else {
                panic!("{row}");
            };
            let ports = [first, second].map(|port| port.parse().unwrap_or(0));
            let flow = CommunityFlow {
                addresses: [source, destination].map(|address| address.parse().unwrap()),
                protocol: protocol.parse().unwrap(),
                ports,
                icmp: Some(ports.map(|port| port as u8)),
            };
            assert_eq!(flow.id().as_deref(), Some(id), "{row}");
            assert_eq!(id.len(), COMMUNITY_ID_BYTES);
            checked += 1;
        }
        assert_eq!(checked, 144);
    }

    #[test]
    fn base64_is_padded() {
        let text = |octets: &[u8]| {
            let mut text = String::new();
            push_base64(&mut text, octets);
            text
        };
        // RFC 4648, section 10.
        for (octets, expected) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v")] {
            assert_eq!(text(octets.as_bytes()), expected);
        }
    }

    proptest! {
        #[test]
        fn both_directions_have_one_id(
            addresses: [u32; 2],
            ports: [u16; 2],
            protocol in prop_oneof![Just(TCP), Just(UDP), Just(SCTP), any::<u8>()],
        ) {
            let flow = CommunityFlow {
                addresses: addresses.map(|bits| IpAddr::from(bits.to_be_bytes())),
                protocol,
                ports,
                icmp: None,
            };
            let mut other = flow;
            other.addresses.reverse();
            other.ports.reverse();
            prop_assert_eq!(flow.id(), other.id());
            prop_assert_eq!(flow.id().is_none(), [ICMP, ICMPV6].contains(&protocol));
        }
    }
}
