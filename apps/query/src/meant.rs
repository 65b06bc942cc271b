// SPDX-License-Identifier: Apache-2.0
//! Names that other tools use for fields, and their names here.

/// Another tool's name, and ours. If there are several of ours, the first one that is known in the
/// given context is meant.
const NAMES: &[(&str, &str)] = &[
    ("addr", "host"),
    ("address", "host"),
    ("bpp", "bytes_per_packet"),
    ("da", "dst_addr"),
    ("daddr", "dst_addr"),
    ("date", "time:1d"),
    ("day", "time:1d"),
    ("destination", "dst_addr"),
    ("dip", "dst_addr"),
    ("dport", "dst_port"),
    ("dscp", "tos"),
    ("dst", "dst_addr"),
    ("dst_address", "dst_addr"),
    ("dst_ip", "dst_addr"),
    ("dstaddr", "dst_addr"),
    ("dstip", "dst_addr"),
    ("dstport", "dst_port"),
    ("dur", "duration"),
    ("flags", "tcp_flags"),
    ("flows", "records"),
    ("hour", "time:1h"),
    ("ip", "host"),
    ("ip", "src_addr"),
    ("ip_addr", "host"),
    ("ipv4", "ip"),
    ("minute", "time:1m"),
    ("octets", "bytes"),
    ("pkts", "packets"),
    ("pr", "protocol"),
    ("proto", "protocol"),
    ("reason", "end_reason"),
    ("sa", "src_addr"),
    ("saddr", "src_addr"),
    ("second", "time:1s"),
    ("service", "dst_port"),
    ("sip", "src_addr"),
    ("source", "src_addr"),
    ("sport", "src_port"),
    ("src", "src_addr"),
    ("src_address", "src_addr"),
    ("src_ip", "src_addr"),
    ("srcaddr", "src_addr"),
    ("srcip", "src_addr"),
    ("srcport", "src_port"),
    ("tcpflags", "tcp_flags"),
];

/// The field that a name stands for: one of `names`, or one of the further `words` that are valid
/// there.
pub(crate) fn of(name: &str, names: &[String], words: &[&str]) -> Option<&'static str> {
    let is_known = |ours: &str| {
        let field = ours.split(':').next().unwrap_or(ours);
        let is_bucket = field.len() < ours.len();
        let is_name = names.iter().any(|known| known == field);
        words.contains(&field) || is_name && !is_bucket
    };
    let mut meant = NAMES
        .iter()
        .filter(|(other, _)| other.eq_ignore_ascii_case(name));
    meant
        .find(|(_, ours)| is_known(ours))
        .map(|(_, ours)| *ours)
}
