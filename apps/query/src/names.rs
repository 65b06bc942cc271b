// SPDX-License-Identifier: Apache-2.0
//! Names of numbers: protocols, TCP flags, end reasons.

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

/// Letters of the TCP flags from bit 0 on: FIN, SYN, RST, PSH, ACK, URG, ECE, CWR, and the NS bit.
const FLAGS: [char; 9] = ['F', 'S', 'R', 'P', 'A', 'U', 'E', 'C', 'N'];

pub(crate) fn protocol_number(name: &str) -> Option<u64> {
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

/// `SA` for 0x12; `.` for 0; bits without a letter are appended as a number.
pub(crate) fn flags_text(flags: u64) -> String {
    let letters = FLAGS
        .iter()
        .enumerate()
        .filter(|(bit, _)| flags >> bit & 1 == 1);
    let mut text: String = letters.map(|(_, letter)| letter).collect();
    let others = flags >> FLAGS.len() << FLAGS.len();
    if others != 0 {
        text.push_str(&format!("+{others:#x}"));
    }
    if text.is_empty() {
        ".".to_owned()
    } else {
        text
    }
}

/// Parses letters of flags, in any order and case.
pub(crate) fn flags_number(text: &str) -> Option<u64> {
    let bit = |letter: char| {
        FLAGS
            .iter()
            .position(|&flag| flag == letter.to_ascii_uppercase())
    };
    text.chars()
        .try_fold(0, |flags, letter| Some(flags | 1 << bit(letter)?))
}

pub(crate) fn end_reason_number(name: &str) -> Option<u64> {
    EndReason::ALL
        .into_iter()
        .find(|reason| reason.name() == name)
        .map(|reason| reason as u64)
}

pub(crate) fn end_reason_name(number: u64) -> Option<&'static str> {
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
        for flags in [0x02, 0x12, 0x1ff] {
            assert_eq!(flags_number(&flags_text(flags)), Some(flags));
        }
        assert_eq!(flags_text(0x12), "SA");
        assert_eq!(flags_text(0), ".");
        assert_eq!(flags_text(0x802), "S+0x800");
        assert_eq!(end_reason_number("idle_timeout"), Some(1));
        assert_eq!(end_reason_name(5), Some("lack_of_resources"));
    }
}
