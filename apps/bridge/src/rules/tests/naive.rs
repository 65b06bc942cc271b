// SPDX-License-Identifier: Apache-2.0
//! A naive evaluation of rules for flows about which everything is known. It compares texts and
//! takes no shortcuts.

use std::net::IpAddr;

use turboflow_inspect::Confidence;

use super::{names, tuple};
use crate::{Action, Facts};

/// A rule as written in the file.
#[derive(Clone, Debug)]
pub(super) struct Written {
    pub(super) action: Action,
    pub(super) when: Vec<Asked>,
    pub(super) except: Vec<Asked>,
}

/// A condition as written in the file.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) key: &'static str,
    pub(super) values: Vec<&'static str>,
}

/// The conditions, with the values that are tried.
pub(super) const KEYS: [(&str, &[&str]); 8] = [
    (
        "application",
        &[
            "Unknown",
            "DNS",
            "BitTorrent",
            "TLS",
            "NetFlix",
            "TLS.NetFlix",
            "TLS.DNS",
        ],
    ),
    (
        "category",
        &["Unspecified", "Web", "Download", "Network", "Video"],
    ),
    (
        "server_name",
        &["*.example.com", "example.com", "a.example.com", "b.net"],
    ),
    ("protocol", &["tcp", "udp", "icmp", "sctp"]),
    ("port", &["443", "400-450", "53", "1-65535"]),
    (
        "src",
        &[
            "10.0.0.0/8",
            "10.1.0.0/16",
            "10.1.2.3",
            "0.0.0.0/0",
            "2001:db8::/32",
            "::/0",
        ],
    ),
    (
        "dst",
        &[
            "10.0.0.0/8",
            "10.2.0.1",
            "192.0.2.0/24",
            "2001:db8::/33",
            "2001:db9::1",
        ],
    ),
    ("risk", &["3", "63"]),
];

pub(super) const APPLICATIONS: [u32; 7] = [0, 5, 37, 91, 133, 91 << 16 | 133, 91 << 16 | 5];
pub(super) const CATEGORIES: [u8; 5] = [0, 5, 7, 14, 26];
pub(super) const CONFIDENCES: [Confidence; 4] = [
    Confidence::Port,
    Confidence::Partial,
    Confidence::Payload,
    Confidence::Rule,
];
pub(super) const SERVERS: [Option<&str>; 4] = [
    None,
    Some("a.example.com"),
    Some("Example.com"),
    Some("b.net."),
];
pub(super) const RISKS: [u64; 4] = [0, 1 << 3, 1 << 63, 1 << 3 | 1 << 63];
pub(super) const PAIRS: [(&str, &str); 4] = [
    ("10.1.2.3", "192.0.2.1"),
    ("10.2.0.1", "10.1.2.3"),
    ("192.0.2.9", "10.2.0.1"),
    ("2001:db8::1", "2001:db9::1"),
];
pub(super) const PORTS: [(u16, u16); 3] = [(50_000, 443), (53, 50_000), (420, 7)];
pub(super) const PROTOCOLS: [u8; 4] = [6, 17, 1, 132];

/// The rules as a file.
pub(super) fn text(rules: &[Written], confidence: &str) -> String {
    let list = |asked: &Asked| {
        let is_number = asked.key == "risk";
        let value = |value: &&str| match is_number {
            true => (*value).to_owned(),
            false => format!("\"{value}\""),
        };
        let values: Vec<_> = asked.values.iter().map(value).collect();
        format!("{} = [{}]", asked.key, values.join(", "))
    };
    let mut text = format!("min_confidence = \"{confidence}\"\n");
    for (place, rule) in rules.iter().enumerate() {
        let lines: Vec<_> = rule.when.iter().map(list).collect();
        text += &format!(
            "[[rule]]\nname = \"r{place}\"\naction = \"{}\"\n{}\n",
            rule.action.name(),
            lines.join("\n")
        );
        if !rule.except.is_empty() {
            let except: Vec<_> = rule.except.iter().map(list).collect();
            text += &format!("except = {{ {} }}\n", except.join(", "));
        }
    }
    text
}

/// The position of the rule that matches a flow about which everything is known.
pub(super) fn matching(
    rules: &[Written],
    confidence: Confidence,
    facts: &Facts<'_>,
) -> Option<usize> {
    let all = |asked: &[Asked], is_doubtful: bool| {
        asked.iter().all(|asked| answers(asked, is_doubtful, facts))
    };
    rules.iter().position(|rule| {
        let found = facts.application.unwrap_or_default();
        let is_doubtful = found.confidence < confidence;
        let drops = rule.action == Action::Drop;
        all(&rule.when, is_doubtful && drops)
            && (rule.except.is_empty() || !all(&rule.except, is_doubtful && !drops))
    })
}

/// Whether the flow matches one of the values.
fn answers(asked: &Asked, is_doubtful: bool, facts: &Facts<'_>) -> bool {
    let found = facts.application.unwrap_or_default();
    let own: Vec<String> = match asked.key {
        "application" if is_doubtful && found.number != 0 => Vec::new(),
        "application" => called(found.number),
        "category" if is_doubtful => Vec::new(),
        "category" => {
            let names = names().categories;
            let name = names
                .into_iter()
                .find(|(number, _)| *number == found.category);
            name.map(|(_, name)| name).into_iter().collect()
        }
        "server_name" => match facts.server_name {
            None => Vec::new(),
            Some(name) => patterns(&name.to_lowercase()),
        },
        "risk" => {
            let bits = (0..64).filter(|bit| facts.risk & 1 << bit != 0);
            bits.map(|bit: u32| bit.to_string()).collect()
        }
        "protocol" => {
            let name = match facts.tuple.protocol() {
                1 => "icmp",
                6 => "tcp",
                17 => "udp",
                _ => "sctp",
            };
            vec![name.to_owned()]
        }
        key => return asked.values.iter().any(|value| fits(key, value, facts)),
    };
    asked
        .values
        .iter()
        .any(|value| own.iter().any(|own| own == value))
}

/// All names and numbers of an application.
fn called(number: u32) -> Vec<String> {
    let name = |number: u32| {
        let names = names().applications;
        let found = names.into_iter().find(|(its, ..)| *its == number);
        found.unwrap().1
    };
    let (carrier, own) = (number >> 16, number & 0xffff);
    match carrier {
        0 => vec![name(own)],
        _ => vec![
            name(carrier),
            name(own),
            format!("{}.{}", name(carrier), name(own)),
        ],
    }
}

/// All patterns that match a server name.
fn patterns(name: &str) -> Vec<String> {
    let labels: Vec<&str> = name.trim_end_matches('.').split('.').collect();
    let below = (1..labels.len()).map(|from| format!("*.{}", labels[from..].join(".")));
    below.chain([labels.join(".")]).collect()
}

/// Whether a flow's addresses or ports match a value.
fn fits(key: &str, value: &str, facts: &Facts<'_>) -> bool {
    match key {
        "port" => {
            let mut ends = value.split('-').map(|end| end.parse::<u16>().unwrap());
            let first = ends.next().unwrap();
            let range = first..=ends.next().unwrap_or(first);
            let ports = [facts.tuple.source_port(), facts.tuple.destination_port()];
            facts.tuple.protocol() != 1 && ports.iter().any(|port| range.contains(port))
        }
        "src" => digits(&facts.tuple.source().to_string()).starts_with(&prefix(value)),
        _ => digits(&facts.tuple.destination().to_string()).starts_with(&prefix(value)),
    }
}

/// The family and the binary digits of a network's prefix.
fn prefix(network: &str) -> String {
    let (address, length) = network.split_once('/').unwrap_or((network, "200"));
    let length: usize = length.parse().unwrap();
    digits(address).chars().take(1 + length).collect()
}

/// The family and the binary digits of an address.
fn digits(address: &str) -> String {
    match address.parse().unwrap() {
        IpAddr::V4(address) => format!("4{:032b}", u32::from(address)),
        IpAddr::V6(address) => format!("6{:0128b}", u128::from(address)),
    }
}

#[test]
fn the_plain_code_knows_prefixes_and_names() {
    assert!(digits("10.1.2.3").starts_with(&prefix("10.0.0.0/8")));
    assert!(!digits("11.1.2.3").starts_with(&prefix("10.0.0.0/8")));
    assert!(!digits("::").starts_with(&prefix("0.0.0.0/0")));
    assert_eq!(called(91 << 16 | 133), ["TLS", "NetFlix", "TLS.NetFlix"]);
    assert_eq!(patterns("a.b.c."), ["*.b.c", "*.c", "a.b.c"]);
    let flow = Facts {
        tuple: tuple("10.1.2.3", "10.2.0.1", (420, 7), 6),
        ..super::fresh()
    };
    assert!(fits("port", "400-450", &flow) && fits("port", "7", &flow));
    assert!(!fits("port", "8", &flow));
}
