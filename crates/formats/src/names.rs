// SPDX-License-Identifier: Apache-2.0
//! Names of numbers, which texts may have in their place: protocols and end reasons.

use turboflow_record::EndReason;

/// IP protocol numbers (IANA) and their usual names; the first name of a number is the one shown.
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

/// The number of an IP protocol, by its usual name in any case.
#[must_use]
pub fn protocol_number(name: &str) -> Option<u64> {
    let known = PROTOCOLS
        .iter()
        .find(|(_, known)| known.eq_ignore_ascii_case(name));
    known.map(|(number, _)| *number)
}

/// The usual name of an IP protocol, for the common ones.
#[must_use]
pub fn protocol_name(number: u64) -> Option<&'static str> {
    PROTOCOLS
        .iter()
        .find(|(known, _)| *known == number)
        .map(|(_, name)| *name)
}

/// The number of an end reason.
#[must_use]
pub fn end_reason_number(name: &str) -> Option<u64> {
    EndReason::ALL
        .into_iter()
        .find(|reason| reason.name() == name)
        .map(|reason| reason as u64)
}

/// The name of an end reason.
#[must_use]
pub fn end_reason_name(number: u64) -> Option<&'static str> {
    EndReason::ALL
        .into_iter()
        .find(|&reason| reason as u64 == number)
        .map(EndReason::name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for (number, name) in PROTOCOLS {
            assert_eq!(protocol_number(name), Some(*number));
        }
        assert_eq!(protocol_name(58), Some("icmpv6"));
        assert_eq!(end_reason_number("idle_timeout"), Some(1));
        assert_eq!(end_reason_name(5), Some("lack_of_resources"));
    }
}
