// SPDX-License-Identifier: Apache-2.0
//! Reads the ground truth of captures (tshark's header fields, summed up) and lists the accepted
//! differences from TurboFlow. Tests of several crates share this file.
#![allow(dead_code, reason = "every test program uses another part")]

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Link-layer headers that tshark supports and TurboFlow does not. (TurboFlow parses Cisco HDLC in
/// files of link type PPP, but not with its own link type.)
pub(crate) const UNSUPPORTED_HEADERS: [&str; 6] = [
    "arcnet",
    "cfp",
    "ieee8021ah",
    "nsh",
    "pwethheuristic",
    "radiotap",
];
pub(crate) const UNSUPPORTED_LINK: &str = "chdlc";

/// In the first three, tshark stops before the transport header of one packet (invalid options, a
/// truncated SCTP header), but a parser that only reads headers continues. In the fourth, tshark
/// reports the addresses of an IPv4 header whose options were not captured. Both results are
/// correct (README of the captures). In the last two, tshark reads an IPv6 payload length of 0 as
/// no payload, although the payload is the rest of the frame (docs/semantics.md).
pub(crate) const EITHER: [&str; 6] = [
    "suricata__bug-7414",
    "zeek__ipv6-mobility-dst-opts",
    "suricata__sctp-pkt-too-small",
    "tcpdump__ip_printroute_asan",
    "tcpdump__ipv6_frag6_negative_len",
    "tcpdump__bigtcp-ipv6-vxlan-ipv4",
];

/// The file header is damaged, so that tshark does not open the file.
pub(crate) const UNREADABLE: [&str; 1] = ["cilium__shb-option-too-long"];

/// Fuzzed files with microsecond fields of 1e6 or more, for which tshark's times are meaningless.
pub(crate) const IMPOSSIBLE_TIMES: [&str; 6] = [
    "dhcp6_reconf_asan",
    "ntop__olsr-oobr-2",
    "ntop__pb_nhrp_1",
    "ntop__tcp_header_heapoverflow",
    "ntop__ipv6-mobility-header-oobr",
    "tcpflow_1.6.1__bug8",
];

pub(crate) type Key = (IpAddr, IpAddr, u8, u16, u16);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) packets: u64,
    pub(crate) ip_bytes: u64,
    pub(crate) frame_bytes: u64,
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
    pub(crate) tcp_flags: u16,
    pub(crate) min_ip_length: u32,
    pub(crate) max_ip_length: u32,
}

/// Parses a line of the ground truth: key, totals, link-layer stacks.
pub(crate) fn row(line: &str) -> (Key, Totals, String) {
    let fields: Vec<&str> = line.split(',').collect();
    let number = |index: usize| -> u64 {
        fields[index]
            .parse()
            .unwrap_or_else(|_| panic!("number in field {index} of {line}"))
    };
    let key = (
        fields[0].parse().unwrap(),
        fields[1].parse().unwrap(),
        number(2) as u8,
        number(3) as u16,
        number(4) as u16,
    );
    let signed = |index: usize| fields[index].parse::<i64>().unwrap() as u64;
    let totals = Totals {
        packets: number(5),
        ip_bytes: number(6),
        frame_bytes: number(7),
        first_ns: signed(8),
        last_ns: signed(9),
        tcp_flags: u16::from_str_radix(fields[10].trim_start_matches("0x"), 16).unwrap(),
        min_ip_length: number(11) as u32,
        max_ip_length: number(12) as u32,
    };
    (key, totals, fields[16].to_owned())
}

pub(crate) fn is_unsupported(stacks: &str) -> bool {
    stacks.split('|').any(|stack| {
        stack == UNSUPPORTED_LINK
            || stack
                .split(':')
                .any(|header| UNSUPPORTED_HEADERS.contains(&header))
    })
}

pub(crate) fn named(path: &Path, names: &[&str]) -> bool {
    let path = path.to_string_lossy();
    names.iter().any(|name| path.contains(name))
}

pub(crate) fn truth_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(truth_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "csv") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// A counter from a capture's JSON file; 0 if absent.
fn counter(json: &str, key: &str) -> u64 {
    let Some((_, rest)) = json.split_once(&format!("\"{key}\": ")) else {
        return 0;
    };
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    rest[..end].parse().unwrap()
}

/// Numbers of frames, non-IP frames and malformed frames.
pub(crate) fn frame_counts(json: &str) -> [u64; 3] {
    ["packets", "nonip_frames", "malformed_ip_frames"].map(|key| counter(json, key))
}
