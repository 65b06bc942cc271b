// SPDX-License-Identifier: Apache-2.0
//! The language of `--where`: expressions, the records that they select, and errors.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use turboflow_query::Filter;

use crate::show::{SECOND, START, batch, schema};

/// Ten minutes after the first record began.
const NOW: u64 = START + 600 * SECOND;

/// The indexes of the records that pass.
fn passing(text: &str) -> Vec<usize> {
    let filter = Filter::parse_at(text, &schema(), Some(NOW));
    let filter = filter.unwrap_or_else(|error| panic!("{error}"));
    let batch = batch();
    let rows = (0..batch.rows())
        .filter(|&row| filter.passes(&batch, row))
        .collect::<Vec<_>>();
    assert_eq!(filter.apply(&batch, &schema()).rows(), rows.len());
    rows
}

#[track_caller]
fn select(cases: &[(&str, &[usize])]) {
    for (text, expected) in cases {
        assert_eq!(passing(text), *expected, "{text}");
    }
}

#[test]
fn fields_are_compared() {
    select(&[
        ("bytes > 1k", &[0, 1]),
        ("bytes > 1kB", &[0, 1]),
        ("dst_port < 65536 and bytes >= 1KiB", &[0, 1]),
        ("bytes>=5000 and bytes<5.001k", &[0]),
        ("protocol == udp", &[2, 3]),
        ("src_addr in 10.0.0.0/8", &[0, 1, 2, 5]),
        ("src_addr in (10.0.0.2, 2001:db8::/32)", &[1, 4]),
        ("dst_port in (80, 443)", &[0, 1, 5]),
        ("dst_port == https", &[0, 1]),
        ("dst_port in (http, https)", &[0, 1, 5]),
        ("src_addr == 2001:db8::1", &[4]),
        ("src_addr != 10.0.0.1", &[1, 2, 3, 4]),
        ("dst_port != 443 && ! port 53", &[4, 5]),
        ("duration > 4s", &[0, 5]),
        ("duration == 1m", &[5]),
        ("duration == 0", &[2, 3]),
        ("first_ns == 1700000400000000000", &[4]),
        ("tcp_flags has S", &[0, 1, 5]),
        ("tcp_flags has SR", &[5]),
        ("tcp_flags == S", &[1]),
        ("tcp_flags == 0x1b", &[0]),
        ("end_reason == idle_timeout", &[1, 2, 3]),
        ("end_reason == 5", &[]),
        ("vlan == none", &[2, 3, 5]),
        ("vlan != none", &[0, 1, 4]),
        ("vlan == 0", &[4]),
        ("not vlan == 7", &[2, 3, 4, 5]),
        ("mean_length >= 100", &[0, 1, 4]),
        ("sizes has 5000", &[0]),
        ("source_mac == 02:42:AC:11:00:02", &[0, 1, 4]),
        ("first_ns >= 2023-11-14T22:20:00Z", &[4, 5]),
        ("\"bytes\" == '80' or (bytes == 120)", &[2, 5]),
        (
            "protocol == tcp and bytes > 100 or protocol == udp and bytes < 100",
            &[0, 1, 2, 5],
        ),
        (
            "(tcp and bytes > 100) or (udp and bytes < 100)",
            &[0, 1, 2, 5],
        ),
        ("tcp and bytes > 100 or udp", &[0, 1, 2, 3, 5]),
    ]);
}

#[test]
fn words_of_capture_filters_mean_what_they_mean_there() {
    select(&[
        ("udp", &[2, 3]),
        ("not tcp", &[2, 3, 4]),
        ("tcp or icmpv6", &[0, 1, 4, 5]),
        ("ip", &[0, 1, 2, 3, 5]),
        ("ip6", &[4]),
        ("proto tcp", &[0, 1, 5]),
        ("proto 17", &[2, 3]),
        ("ip proto udp", &[2, 3]),
        ("proto in (udp, icmpv6)", &[2, 3, 4]),
        ("proto != tcp", &[2, 3, 4]),
        ("host 10.0.1.1", &[2, 3]),
        ("host == 10.0.1.1", &[2, 3]),
        ("host != 10.0.1.1", &[0, 1, 4, 5]),
        ("src host 10.0.1.1", &[2]),
        ("dst host 10.0.1.1", &[3]),
        ("src 10.0.1.1", &[2]),
        ("dst 10.0.1.0/24", &[3]),
        ("src or dst host 10.0.1.1", &[2, 3]),
        ("src and dst net 2001:db8::/32", &[4]),
        ("host 10.0.0.1 or 10.0.0.2", &[0, 1, 5]),
        ("host in (10.0.0.2, 10.0.1.1)", &[1, 2, 3]),
        ("host (10.0.0.2 or 10.0.1.1)", &[1, 2, 3]),
        ("net 10.0.0.0/24", &[0, 1, 5]),
        ("net in (10.0.1.0/24, 2001:db8::/32)", &[2, 3, 4]),
        ("src net 192.0.2.0/24", &[3]),
        ("net ::/0", &[4]),
        ("port 53", &[2, 3]),
        ("src port 53", &[3]),
        ("dst port 443", &[0, 1]),
        ("dst port https", &[0, 1]),
        ("dst port > 1023", &[3]),
        ("port in (80,443)", &[0, 1, 5]),
        ("port (80 or 443)", &[0, 1, 5]),
        ("port 80 or 443", &[0, 1, 5]),
        ("dst port 80 or 443", &[0, 1, 5]),
        ("src port 80 or 443", &[]),
        ("dst port domain", &[2]),
        ("port != 443", &[2, 3, 4, 5]),
        ("port != (53, 443)", &[4, 5]),
        ("not port (53 or 443)", &[4, 5]),
        // Capture-filter ports match only protocols that have ports.
        ("port 0-65535", &[0, 1, 2, 3, 5]),
        ("ip6 port >= 0", &[]),
        ("not port 53", &[0, 1, 4, 5]),
        ("tcp port 443", &[0, 1]),
        ("udp port 443", &[]),
        ("tcp dst port 80 or 443", &[0, 1, 5]),
        ("udp dst port 53 or 443", &[2]),
        ("tcp and dst port 443 and src host 10.0.0.2", &[1]),
        ("ip6 net 2001:db8::/64", &[4]),
        ("(tcp port 443 or udp) and not src 10.0.0.1", &[1, 2, 3]),
    ]);
}

#[test]
fn ranges_ratios_and_times_from_now() {
    select(&[
        ("dst port 80-443", &[0, 1, 5]),
        ("portrange 50-60", &[2, 3]),
        ("tcp portrange 440..450", &[0, 1]),
        ("dst_port in 80-443", &[0, 1, 5]),
        ("dst_port in 80 - 443", &[0, 1, 5]),
        ("dst_port in (53, 400-500)", &[0, 1, 2]),
        ("dst port http-https", &[0, 1, 5]),
        ("src_addr in 10.0.0.1-10.0.0.2", &[0, 1, 5]),
        ("host 10.0.0.2-10.0.1.1", &[1, 2, 3]),
        ("bytes in 100..400", &[3, 4, 5]),
        ("duration in 1s-5s", &[0, 1, 4]),
        (
            "first_ns in 2023-11-14T22:13:30Z..2023-11-14T22:14:00Z",
            &[1, 2, 3],
        ),
        ("bytes/packets > 100", &[0, 1, 3]),
        ("bytes / packets > 100", &[0, 1, 3]),
        ("bytes/packets == 60", &[5]),
        ("bytes_per_packet > 100", &[0, 1, 3]),
        // Records without duration have no rate.
        ("bps > 1000", &[0, 1, 4]),
        ("bps == 8k", &[0]),
        ("pps >= 2", &[0, 1]),
        ("bytes/duration < 5", &[5]),
        ("pps == none", &[2, 3]),
        ("first_ns >= -200s", &[4, 5]),
        ("first_ns < now-9m", &[0, 1, 2, 3]),
        ("last_ns > -2h and first_ns < -595s", &[0]),
        ("first_ns in -10m..-580s", &[0, 1, 2, 3]),
        ("first_ns > now", &[]),
    ]);
}

/// Expression, start and length of the mark, and words in the reason.
const ERRORS: [(&str, (usize, usize), &str); 85] = [
    ("port != 80 and 443", (15, 3), "write port != (A, B)"),
    (
        "src port < 80 or 443",
        (17, 3),
        "does not repeat the operator",
    ),
    (
        "net != 10.0.0.0/8 and 192.168.0.0/16",
        (22, 14),
        "write net != (A, B)",
    ),
    (
        "port 80 or port 443 and bytes > 1",
        (20, 3),
        "from left to right",
    ),
    (
        "bytes > 1 || udp && bytes < 9",
        (17, 2),
        "write (A or B) and C",
    ),
    (
        "bytes > 1 and (packets > 1 or tcp and udp)",
        (34, 3),
        "from left to right",
    ),
    ("src_adr == 10.0.0.1", (0, 7), "did you mean src_addr?"),
    ("bytes > 1M and", (14, 1), "expected a condition"),
    ("bytes >", (7, 1), "expected a value"),
    ("bytes ~ 1", (6, 1), "expected =="),
    ("bytes > many", (8, 4), "is not a number"),
    ("packets > 1kB", (10, 3), "is not a number"),
    ("packets > 1.5", (10, 3), "is not a whole number"),
    ("packets > 99999999999T", (10, 12), "is not a number"),
    ("port 65536", (5, 5), "more than 65535"),
    ("protocol == 256", (12, 3), "more than 255"),
    ("(bytes > 1", (10, 1), "expected \")\""),
    ("bytes > 1 2", (10, 1), "expected \"and\""),
    ("bytes > 1 kB", (10, 2), "without a space: write 1kB"),
    ("packets > 1 kB", (12, 2), "without a space: write 1k"),
    ("bytes > 1 m", (10, 1), "expected \"and\""),
    ("dst_port != 80 443", (15, 3), "expected \"and\""),
    (
        "src_addr == 10.0.0.0/8",
        (12, 10),
        "write \"in 10.0.0.0/8\"",
    ),
    (
        "src_addr in 10.0.0.0/33",
        (12, 11),
        "is not an address or a network",
    ),
    ("host 10.0.0.0/8", (5, 10), "write \"net\""),
    ("host www.example.com", (5, 15), "is not an IP address"),
    ("port htttp", (5, 5), "or a service such as https"),
    ("protocol == xyz", (12, 3), "tcp, udp"),
    ("proto xyz", (6, 3), "tcp, udp"),
    ("dst_port in (80, )", (17, 1), "expected a value"),
    ("port in (80, 443", (16, 1), "expected \",\" or \")\""),
    ("sizes > 1", (8, 1), "has NUMBER"),
    ("bytes > 1 and \"open", (14, 5), "never closed"),
    ("", (0, 1), "expected a condition"),
    ("duration > 5parsecs", (11, 8), "a duration such as"),
    ("first_ns > yesterday", (11, 9), "a time such as"),
    ("duration > 2", (11, 1), "write 2s, or 2ns"),
    ("duration in (1s, 2.5)", (17, 3), "write 2.5s"),
    ("src", (3, 1), "expected host, net, port"),
    ("dst http", (4, 4), "expected host, net, port"),
    ("tcp src", (7, 1), "expected host, net, port"),
    ("src port", (8, 1), "expected a value"),
    ("net 10.0.0.0 mask 255.0.0.0", (13, 4), "net 10.0.0.0/8"),
    ("port 443-80", (5, 6), "ends before it begins"),
    ("port 80-many", (8, 4), "or a service such as https"),
    ("bytes/packts > 1", (0, 12), "did you mean packets?"),
    (
        "src_addr/packets > 1",
        (0, 16),
        "only numbers can be divided",
    ),
    ("bytes / > 1", (0, 7), "is not a ratio"),
    ("tcp[13] & 2 != 0", (3, 1), "tcp_flags has S"),
    ("ether host 02:42:ac:11:00:02", (0, 5), "MAC addresses"),
    ("less 100", (0, 4), "bytes <= N"),
    ("443", (0, 3), "write port 443"),
    ("bytes > 1 or 443", (13, 3), "write or bytes > 443"),
    ("dst_port == 80 or 443", (18, 3), "or dst_port in (A, 443)"),
    (
        "dst_port != 80 and 443",
        (19, 3),
        "write and dst_port != 443",
    ),
    ("tcp and 443", (8, 3), "write port 443"),
    ("port in [80,443]", (8, 1), "write (80, 443)"),
    ("port [80, 443]", (5, 1), "write (80, 443)"),
    ("src_addr in [10.0.0.1]", (12, 1), "write (10.0.0.1)"),
    ("port 80,443", (7, 1), "write port in (80, 443)"),
    (
        "tcp and (dst port 80, 81,443)",
        (20, 1),
        "write dst port in (80, 81, 443)",
    ),
    ("dst_port == 80,443", (14, 1), "write dst_port in (80, 443)"),
    (
        "host 10.0.0.1,10.0.0.2",
        (13, 1),
        "write host in (10.0.0.1, 10.0.0.2)",
    ),
    ("port 80 443", (8, 3), "write port in (80, 443)"),
    (
        "src_addr == 10.0.0.1 10.0.0.2",
        (21, 8),
        "write src_addr in (10.0.0.1, 10.0.0.2)",
    ),
    ("host 10.0.0.1 or 443", (17, 3), "for a port write port 443"),
    ("192.0.2.0/24", (0, 12), "did you mean net 192.0.2.0/24?"),
    ("tcp and 192.0.2.1", (8, 9), "did you mean host 192.0.2.1?"),
    ("2001:db8::1", (0, 11), "did you mean host 2001:db8::1?"),
    ("dns", (0, 3), "did you mean port dns?"),
    ("tcp and http", (8, 4), "did you mean port http?"),
    ("domain", (0, 6), "did you mean port domain?"),
    ("src_ip == 10.0.0.1", (0, 6), "did you mean src_addr?"),
    ("dst_ip == 10.0.0.1", (0, 6), "did you mean dst_addr?"),
    ("dip == 10.0.0.1", (0, 3), "did you mean dst_addr?"),
    ("sport == 80", (0, 5), "did you mean src_port?"),
    ("dport == 80", (0, 5), "did you mean dst_port?"),
    ("addr 10.0.0.1", (0, 4), "did you mean host?"),
    ("flags has S", (0, 5), "did you mean tcp_flags?"),
    ("bpp > 3", (0, 3), "did you mean bytes_per_packet?"),
    ("ipv4", (0, 4), "did you mean ip?"),
    ("DPORT == 80", (0, 5), "did you mean dst_port?"),
    ("octets > 1", (0, 6), "did you mean bytes?"),
    ("Bites > 1", (0, 5), "did you mean bytes?"),
    ("minute == 1", (0, 6), "unknown field \"minute\": known are"),
];

#[test]
fn errors_point_at_the_invalid_word() {
    for (text, (column, length), expected) in ERRORS {
        let message = Filter::parse(text, &schema()).unwrap_err().to_string();
        let mark = message.lines().last().unwrap();
        let expected_mark = format!("  {}{}", " ".repeat(column), "^".repeat(length));
        assert_eq!(mark, expected_mark, "{message}");
        assert!(message.contains(expected), "{message}");
    }
    let without_clock = Filter::parse("first_ns > -1h", &schema()).unwrap_err();
    let message = without_clock.to_string();
    assert!(message.contains("now is not defined"), "{message}");
    assert!(Filter::parse(&"(".repeat(100_000), &schema()).is_err());
    assert!(Filter::parse(&"not ".repeat(100_000), &schema()).is_err());
    assert!(Filter::parse(&(["tcp"; 100_000].join(" or ")), &schema()).is_ok());
    assert!(Filter::parse(&format!("port {}", ["1"; 100_000].join(" or ")), &schema()).is_ok());
}

/// Expressions that are valid but easily misunderstood.
#[test]
fn words_of_two_meanings_are_explained() {
    let notes = |text: &str| Filter::parse(text, &schema()).unwrap().notes().join("; ");
    for text in ["ipv6", "tcp or IPV6", "proto ipv6", "protocol == ipv6"] {
        assert_eq!(
            notes(text),
            "ipv6 is the protocol 41 (IPv6 in IPv4); ip6 is traffic over IPv6",
            "{text}"
        );
    }
    for text in ["ip6", "icmpv6", "port 80 or 443", "port 80 and port 443"] {
        assert_eq!(notes(text), "", "{text}");
    }
    // As in capture filters: records between the two ports.
    select(&[
        ("port 443 and 40000", &[0]),
        ("port 80 and 443", &[]),
        ("src port 40000 and dst port 443", &[0]),
    ]);
    assert_eq!(
        notes("tcp and dst port 80 and 443"),
        "\"and 443\" means \"and dst port 443\", as in capture filters; for records with either \
         value write \"or 443\""
    );
    assert!(notes("src 10.0.0.1 && 10.0.0.2").contains("\"and src 10.0.0.2\""));
}

/// Fields that have these names remain fields.
#[test]
fn a_column_has_precedence_over_a_word() {
    let mut columns = schema();
    columns[11].name = "port".to_owned();
    let filter = Filter::parse("port == 7", &columns).unwrap();
    let batch = batch();
    let rows = (0..batch.rows()).filter(|&row| filter.passes(&batch, row));
    assert_eq!(rows.collect::<Vec<_>>(), [0, 1]);
}
