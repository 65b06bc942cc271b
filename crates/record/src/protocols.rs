// SPDX-License-Identifier: Apache-2.0
//! Names of IP protocols.

/// IP protocol numbers (IANA) and their usual names; the first name of a number is the one shown.
pub const PROTOCOLS: &[(u64, &str)] = &[
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

/// The usual name of an IP protocol, for the common ones.
#[must_use]
pub fn protocol_name(number: u64) -> Option<&'static str> {
    let mut known = PROTOCOLS.iter();
    let found = known.find(|(known, _)| *known == number);
    found.map(|(_, name)| *name)
}
