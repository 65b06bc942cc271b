// SPDX-License-Identifier: Apache-2.0
//! Names of IP protocols.

/// IP protocol numbers (IANA) and their usual names. If a number has several names, the first is
/// shown.
const PROTOCOLS: &[(u64, &str)] = &[
    (0, "hopopt"),
    (1, "icmp"),
    (2, "igmp"),
    (4, "ipip"),
    (6, "tcp"),
    (17, "udp"),
    (33, "dccp"),
    (41, "ipv6"),
    (46, "rsvp"),
    (47, "gre"),
    (50, "esp"),
    (51, "ah"),
    (58, "icmpv6"),
    (58, "icmp6"),
    (88, "eigrp"),
    (89, "ospf"),
    (103, "pim"),
    (112, "vrrp"),
    (115, "l2tp"),
    (132, "sctp"),
    (136, "udplite"),
    (137, "mpls"),
];

/// The number of an IP protocol, from its usual name in upper or lower case.
#[must_use]
pub fn protocol_number(name: &str) -> Option<u64> {
    let known = PROTOCOLS
        .iter()
        .find(|(_, known)| known.eq_ignore_ascii_case(name));
    known.map(|(number, _)| *number)
}

/// The usual name of a common IP protocol; `None` for all others.
#[must_use]
pub fn protocol_name(number: u64) -> Option<&'static str> {
    PROTOCOLS
        .iter()
        .find(|(known, _)| *known == number)
        .map(|(_, name)| *name)
}

/// The names of the common IP protocols.
pub fn protocol_names() -> impl Iterator<Item = &'static str> {
    PROTOCOLS.iter().map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for (number, name) in PROTOCOLS {
            assert_eq!(protocol_number(name), Some(*number));
        }
        assert_eq!(protocol_number("UDP"), Some(17));
        assert_eq!(protocol_name(58), Some("icmpv6"));
        assert!(protocol_names().all(|name| protocol_number(name).is_some()));
    }
}
