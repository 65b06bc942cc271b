// SPDX-License-Identifier: Apache-2.0
//! Names for numbers: services, TCP flags, and the names that files use.

pub use turboflow_formats::{end_reason_name, protocol_name};
pub(crate) use turboflow_formats::{end_reason_number, protocol_number};

/// Ports and the names of their services, by IANA or in common use, for questions.
const SERVICES: &[(u64, &str)] = &[
    (20, "ftp-data"),
    (21, "ftp"),
    (22, "ssh"),
    (23, "telnet"),
    (25, "smtp"),
    (49, "tacacs"),
    (53, "domain"),
    (53, "dns"),
    (67, "bootps"),
    (67, "dhcp"),
    (68, "bootpc"),
    (69, "tftp"),
    (80, "http"),
    (88, "kerberos"),
    (110, "pop3"),
    (111, "sunrpc"),
    (119, "nntp"),
    (123, "ntp"),
    (135, "msrpc"),
    (137, "netbios-ns"),
    (138, "netbios-dgm"),
    (139, "netbios-ssn"),
    (143, "imap"),
    (161, "snmp"),
    (162, "snmptrap"),
    (179, "bgp"),
    (389, "ldap"),
    (443, "https"),
    (445, "microsoft-ds"),
    (445, "smb"),
    (465, "submissions"),
    (465, "smtps"),
    (500, "isakmp"),
    (502, "modbus"),
    (514, "syslog"),
    (515, "printer"),
    (520, "rip"),
    (546, "dhcpv6-client"),
    (547, "dhcpv6-server"),
    (554, "rtsp"),
    (587, "submission"),
    (631, "ipp"),
    (636, "ldaps"),
    (853, "domain-s"),
    (873, "rsync"),
    (989, "ftps-data"),
    (990, "ftps"),
    (993, "imaps"),
    (995, "pop3s"),
    (1080, "socks"),
    (1194, "openvpn"),
    (1433, "ms-sql-s"),
    (1521, "oracle"),
    (1701, "l2tp"),
    (1723, "pptp"),
    (1812, "radius"),
    (1813, "radius-acct"),
    (1883, "mqtt"),
    (2049, "nfs"),
    (2152, "gtp-user"),
    (3128, "squid"),
    (3306, "mysql"),
    (3389, "rdp"),
    (3389, "ms-wbt-server"),
    (4500, "ipsec-nat-t"),
    (4739, "ipfix"),
    (4789, "vxlan"),
    (5060, "sip"),
    (5061, "sips"),
    (5222, "xmpp-client"),
    (5353, "mdns"),
    (5432, "postgresql"),
    (5672, "amqp"),
    (5900, "vnc"),
    (6081, "geneve"),
    (6379, "redis"),
    (6443, "kubernetes"),
    (8080, "http-alt"),
    (8883, "secure-mqtt"),
    (9092, "kafka"),
    (9200, "elasticsearch"),
    (11211, "memcache"),
    (27017, "mongodb"),
    (51820, "wireguard"),
];

pub(crate) fn service_port(name: &str) -> Option<u64> {
    let is_it = |known: &str| known.eq_ignore_ascii_case(name);
    let known = SERVICES.iter().find(|(_, known)| is_it(known));
    known.map(|(port, _)| *port)
}

/// Letters of the TCP flags from bit 0 on: FIN, SYN, RST, PSH, ACK, URG, ECE, CWR, and the NS bit.
const FLAGS: [char; 9] = ['F', 'S', 'R', 'P', 'A', 'U', 'E', 'C', 'N'];

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for (port, name) in SERVICES {
            assert_eq!(service_port(name), Some(*port), "{name}");
            assert!(protocol_number(name).is_none() || *name == "l2tp", "{name}");
        }
        for flags in [0x02, 0x12, 0x1ff] {
            assert_eq!(flags_number(&flags_text(flags)), Some(flags));
        }
        assert_eq!(flags_text(0x12), "SA");
        assert_eq!(flags_text(0), ".");
        assert_eq!(flags_text(0x802), "S+0x800");
    }
}
