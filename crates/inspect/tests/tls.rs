// SPDX-License-Identifier: Apache-2.0
//! Fingerprints of every TLS client hello in the captures, compared with tshark.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::process::Command;

use sha2::{Digest, Sha256};
use turboflow_inspect::tls::{HelloWatch, ja3, ja4};
use turboflow_packet::{ParserConfig, TunnelSet};
use turboflow_record::FiveTuple;
use turboflow_testing::{Need, captures_folder, is_missing};

use crate::support::{captures, each_frame};

/// Client hellos by the number of the frame that completes them.
type Hellos = BTreeMap<u64, Hello>;

#[derive(Debug, Default, PartialEq, Eq)]
struct Hello {
    ja3: String,
    ja4: String,
    server_name: String,
}

const FIELDS: [&str; 9] = [
    "frame.number",
    "tls.handshake.ja3",
    "tls.handshake.version",
    "tls.handshake.ciphersuite",
    "tls.handshake.extension.type",
    "tls.handshake.sig_hash_alg",
    "tls.handshake.extensions_alpn_str",
    "tls.handshake.extensions.supported_version",
    "tls.handshake.sig_hash_alg_len",
];

/// The client hellos of a capture according to tshark. Its version in Debian 12 has no JA4, so that
/// is computed from the lists that it shows.
fn tshark(path: &Path) -> Hellos {
    let mut command = Command::new("tshark");
    // The captures have TLS on many ports.
    command.args(["-n", "-Y", "tls.handshake.type == 1 && tcp", "-T", "fields"]);
    command.args(["-E", "separator=|", "-r"]).arg(path);
    for field in FIELDS {
        command.args(["-e", field]);
    }
    command.args(["-e", "tls.handshake.extensions_server_name"]);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows = text.lines().map(row);
    // tshark gives no fingerprint for client hellos of SSL 2 and for damaged ones.
    rows.filter(|(_, hello)| !hello.ja3.is_empty()).collect()
}

fn row(line: &str) -> (u64, Hello) {
    let cells: Vec<&str> = line.split('|').collect();
    let list = |cell: usize| -> Vec<u16> { numbers(cells[cell]) };
    let signatures = signatures(&list(4), &list(5), &list(8));
    let hello = Hello {
        ja3: cells[1].to_owned(),
        ja4: ja4_of(
            list(2)[0],
            &list(3),
            &list(4),
            &signatures,
            cells[6],
            &list(7),
        ),
        server_name: cells[9].to_owned(),
    };
    (cells[0].parse().unwrap(), hello)
}

/// The values of the extension of signature algorithms. tshark shows those of delegated credentials
/// (34) in the same field, in the order of the extensions.
fn signatures(extensions: &[u16], all: &[u16], lengths: &[u16]) -> Vec<u16> {
    let kinds = extensions.iter().filter(|kind| matches!(kind, 13 | 34));
    let mut rest = all;
    for (kind, bytes) in kinds.zip(lengths) {
        let (list, behind) = rest.split_at((usize::from(*bytes) / 2).min(rest.len()));
        if *kind == 13 {
            return list.to_vec();
        }
        rest = behind;
    }
    Vec::new()
}

/// Numbers in decimal or, with the prefix `0x`, in hexadecimal.
fn numbers(list: &str) -> Vec<u16> {
    let list = list.split(',').filter(|number| !number.is_empty());
    let numbers = list.map(|number| match number.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16).unwrap(),
        None => number.parse().unwrap(),
    });
    numbers.collect()
}

/// JA4 according to its specification, from lists.
fn ja4_of(
    version: u16,
    ciphers: &[u16],
    extensions: &[u16],
    signatures: &[u16],
    alpn: &str,
    versions: &[u16],
) -> String {
    let is_grease = |value: &u16| value & 0x0f0f == 0x0a0a && value >> 8 == value & 0xff;
    let plain =
        |list: &[u16]| -> Vec<u16> { list.iter().copied().filter(|it| !is_grease(it)).collect() };
    let highest = plain(versions).into_iter().max().unwrap_or(version);
    let version = match highest {
        0x0300 => "s3".to_owned(),
        0x0301..=0x0304 => format!("1{}", (highest & 0xff) - 1),
        _ => "00".to_owned(),
    };
    let (mut ciphers, mut extensions) = (plain(ciphers), plain(extensions));
    let name = if extensions.contains(&0) { "d" } else { "i" };
    let first = alpn.split(',').next().unwrap_or_default();
    let ends = match (first.chars().next(), first.chars().last()) {
        (Some(first), Some(last)) => format!("{first}{last}"),
        _ => "00".to_owned(),
    };
    let counts = format!(
        "{:02}{:02}",
        ciphers.len().min(99),
        extensions.len().min(99)
    );
    ciphers.sort_unstable();
    extensions.sort_unstable();
    extensions.retain(|kind| *kind != 0 && *kind != 16);
    let join = |list: &[u16]| -> String {
        let codes: Vec<String> = list.iter().map(|code| format!("{code:04x}")).collect();
        codes.join(",")
    };
    let mut second = join(&extensions);
    if !second.is_empty() && !signatures.is_empty() {
        second = format!("{second}_{}", join(&plain(signatures)));
    }
    let hash = |text: &str| match text.is_empty() {
        true => "0".repeat(12),
        false => {
            let digest = Sha256::digest(text);
            let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            digits[..12].to_owned()
        }
    };
    let (ciphers, second) = (hash(&join(&ciphers)), hash(&second));
    format!("t{version}{name}{counts}{ends}_{ciphers}_{second}")
}

/// The client hellos that this crate finds.
fn ours(path: &Path) -> Hellos {
    let mut watches: HashMap<FiveTuple, HelloWatch> = HashMap::new();
    let mut found = Hellos::new();
    let parser = ParserConfig {
        decapsulate: TunnelSet::ALL,
        ..ParserConfig::default()
    };
    each_frame(path, parser, |number, packet, _, datagram| {
        let Some(datagram) = datagram.filter(|_| packet.tuple.protocol() == 6) else {
            return;
        };
        let watch = watches.entry(packet.tuple).or_default();
        if let Some(hello) = watch.see(datagram, false, true) {
            // Another one may follow after a request to try again.
            *watch = HelloWatch::default();
            let name = hello.server_name.clone().unwrap_or_default();
            let fingerprints = Hello {
                ja3: ja3(&hello),
                ja4: ja4(&hello),
                server_name: String::from_utf8_lossy(&name).into_owned(),
            };
            found.insert(number, fingerprints);
        }
    });
    found
}

/// Whether a capture may contain a client hello over TCP, because tshark takes half a second per
/// capture.
fn may_have_hello(path: &Path) -> bool {
    let bytes = std::fs::read(path).unwrap();
    let mut windows = bytes.windows(6);
    windows.any(|bytes| bytes[..2] == [22, 3] && bytes[2] <= 4 && bytes[5] == 1)
}

/// Client hellos that only one of the two finds, with the reasons. All others must be equal.
const EXCEPTIONS: [(&str, u64, &str); 10] = [
    ("l7/Facebook/KakaoTalk_chat.pcap", 72, "sent twice"),
    ("l7/HAProxy/haproxy.pcap", 1, "behind a line of PROXY"),
    ("l7/OpenVPN/openvpn.pcap", 31, "inside OpenVPN"),
    ("l7/OpenVPN/openvpn_nohmac_tcp.pcapng", 10, "inside OpenVPN"),
    (
        "l7/RDP/rdp_over_tls.pcap",
        6,
        "tshark reads the port as RDP",
    ),
    ("l7/RTP/KakaoTalk_talk.pcap", 36, "sent twice"),
    (
        "l7/TLS/tls_cipher_lens.pcap",
        5,
        "damaged: a list is longer than the hello",
    ),
    (
        "l7/TLS/tls_invalid_reads.pcap",
        4,
        "damaged: a list is longer than the hello",
    ),
    ("l7/TunnelBear/tunnelbear.pcap", 209, "sent twice"),
    ("l7/TunnelBear/tunnelbear.pcap", 210, "sent twice"),
];

#[test]
fn fingerprints_of_every_client_hello_equal_tsharks() {
    if is_missing(&[Need::Captures, Need::Tool("tshark")]) {
        return;
    }
    let root = captures_folder().unwrap();
    let (mut equal, mut different) = (0, Vec::new());
    for path in captures("").iter().filter(|path| may_have_hello(path)) {
        let (expected, found) = (tshark(path), ours(path));
        let name = path
            .strip_prefix(&root)
            .unwrap()
            .to_string_lossy()
            .into_owned();
        let frames: BTreeSet<u64> = expected.keys().chain(found.keys()).copied().collect();
        for frame in frames {
            match (expected.get(&frame), found.get(&frame)) {
                (Some(expected), Some(found)) if expected == found => equal += 1,
                (Some(expected), Some(found)) => panic!("{name} {frame}: {expected:?} {found:?}"),
                _ => different.push((name.clone(), frame)),
            }
        }
    }
    println!("{equal} hellos are equal");
    assert!(equal > 400, "{equal}");
    let known = EXCEPTIONS.map(|(name, frame, _)| (name.to_owned(), frame));
    assert_eq!(different, known);
}
