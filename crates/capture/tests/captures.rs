// SPDX-License-Identifier: Apache-2.0
//! Real captures: totals compared with capinfos and tshark, packets compared with `pcap-file`, and
//! equal content from a file, memory, a pipe, gzip and zstd.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

use std::fs::File;
use std::io::Write;
use std::path::Path;

use crate::support::{Content, Dribble, captures, read_all};
use serde_json::Value;
use turboflow_capture::{CaptureFile, Container, OpenError};
use turboflow_testing::{Need, captures_folder, is_missing};

/// Opens a capture. `None` if it is a classic pcap file of an unsupported link type.
fn open(folder: &Path, capture: &str) -> Option<CaptureFile> {
    match CaptureFile::open(&folder.join(capture)) {
        Ok(file) => Some(file),
        Err(OpenError::UnsupportedLinkType {
            number, link_type, ..
        }) => {
            eprintln!("not read: {capture}: link type {number} ({link_type})");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn truth(folder: &Path, capture: &str) -> Value {
    let path = folder.join("truth").join(format!("{capture}.json"));
    let text = std::fs::read_to_string(&path);
    serde_json::from_str(&text.unwrap_or_else(|error| panic!("{}: {error}", path.display())))
        .unwrap()
}

#[test]
fn totals_equal_the_truth() {
    if is_missing(&[Need::Captures]) {
        return;
    }
    let folder = captures_folder().unwrap();
    let (mut read, mut refused, mut damaged, mut packets, mut bytes) = (0, 0, 0, 0, 0);
    let mut wrong = Vec::new();
    for capture in captures(&folder) {
        let truth = truth(&folder, &capture);
        let Some(file) = open(&folder, &capture) else {
            refused += 1;
            continue;
        };
        let content = read_all(file, 256);
        let counters = content.counters;
        let ours = (
            counters.packets + counters.packets_unknown_link_type,
            counters.bytes + counters.bytes_unknown_link_type,
        );
        // The ground truth of the one file that tshark cannot open is empty.
        let total = |name: &str| truth[name].as_u64().unwrap_or(0);
        let theirs = (total("packets"), total("frame_bytes"));
        if let Some(error) = &content.error {
            damaged += 1;
            eprintln!("damaged: {error}; tshark says: {}", truth["tshark_stderr"]);
        }
        if counters.packets_unknown_link_type > 0 {
            eprintln!("unknown link types in {capture}: {counters:?}");
        }
        if ours != theirs {
            wrong.push(format!("{capture}: ours {ours:?}, truth {theirs:?}"));
        }
        read += 1;
        packets += ours.0;
        bytes += ours.1;
    }
    eprintln!(
        "{read} captures read ({damaged} damaged), {refused} of unread link types; \
         {packets} packets, {bytes} bytes"
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Compares content, except for the name in the error, and for the place of an error in compressed
/// files.
fn assert_same(capture: &str, way: &str, plain: &Content, other: &Content) {
    assert!(
        plain.frames == other.frames,
        "{capture}: frames differ, {way}"
    );
    assert_eq!(plain.counters, other.counters, "{capture}: {way}");
    let place = |content: &Content| {
        content
            .error
            .as_ref()
            .map(|error| (error.offset_bytes, error.packet, error.damage.to_string()))
    };
    assert_eq!(place(plain), place(other), "{capture}: {way}");
}

#[test]
fn content_does_not_depend_on_how_it_is_read() {
    if is_missing(&[Need::Captures]) {
        return;
    }
    let folder = captures_folder().unwrap();
    let mut compared = 0;
    for capture in captures(&folder) {
        let Some(file) = open(&folder, &capture) else {
            continue;
        };
        let plain = read_all(file, 256);
        let bytes = std::fs::read(folder.join(&capture)).unwrap();
        let half = bytes.len() / 2;
        let name = || "way".to_owned();
        let two_members = [gzip(&bytes[..half]), gzip(&bytes[half..])].concat();
        let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
        let two_frames = [zstd(&bytes[..half]), zstd(&bytes[half..])].concat();
        let ways = [
            ("memory", CaptureFile::from_bytes(name(), bytes.clone())),
            (
                "gzip of two members",
                CaptureFile::from_bytes(name(), two_members),
            ),
            (
                "zstd of two frames",
                CaptureFile::from_bytes(name(), two_frames),
            ),
            (
                "a pipe",
                CaptureFile::from_reader(name(), Dribble::new(&bytes, 4096)),
            ),
            (
                "a slow pipe",
                CaptureFile::from_reader(name(), Dribble::new(&bytes, 61)),
            ),
        ];
        for (way, file) in ways {
            let limit = if way == "memory" { 1 } else { 1024 };
            assert_same(&capture, way, &plain, &read_all(file.unwrap(), limit));
            compared += 1;
        }
    }
    eprintln!("{compared} readings equal the plain file's");
}

/// Frames according to `pcap-file`: nanoseconds, captured bytes, wire length.
type Oracle = Vec<(u64, Vec<u8>, u32)>;

/// The packets that the oracle reads, and whether it reached the end. It rejects some oddities that
/// TurboFlow accepts, such as a wire length below the captured length.
fn oracle_pcap(path: &Path) -> (Oracle, bool) {
    let mut reader = pcap_file::pcap::PcapReader::new(File::open(path).unwrap()).unwrap();
    let fraction_ns = match reader.header().ts_resolution {
        pcap_file::pcap::PcapTsResolution::MicroSecond => 1_000,
        pcap_file::pcap::PcapTsResolution::NanoSecond => 1,
    };
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_raw_packet() {
        let Ok(packet) = packet else {
            return (packets, false);
        };
        let seconds_ns = u64::from(packet.ts_sec) * 1_000_000_000;
        let timestamp_ns = seconds_ns + u64::from(packet.ts_frac) * fraction_ns;
        packets.push((timestamp_ns, packet.data.to_vec(), packet.orig_len));
    }
    (packets, true)
}

fn oracle_pcapng(path: &Path) -> (Oracle, bool) {
    use pcap_file::pcapng::Block;
    let Ok(mut reader) = pcap_file::pcapng::PcapNgReader::new(File::open(path).unwrap()) else {
        return (Vec::new(), false);
    };
    let mut packets: Oracle = Vec::new();
    while let Some(block) = reader.next_block() {
        let Ok((block, _)) = block else {
            return (packets, false);
        };
        let (timestamp, data, original_len) = match block {
            Block::EnhancedPacket(packet) => {
                (Some(packet.timestamp), packet.data, packet.original_len)
            }
            Block::Packet(packet) => (Some(packet.timestamp), packet.data, packet.original_len),
            Block::SimplePacket(packet) => (None, packet.data, packet.original_len),
            _ => continue,
        };
        let before_ns = packets.last().map_or(0, |packet| packet.0);
        let timestamp_ns = timestamp.map_or(before_ns, |time| time.as_nanos() as u64);
        packets.push((timestamp_ns, data.to_vec(), original_len));
    }
    (packets, true)
}

#[test]
fn packets_equal_those_of_pcap_file() {
    if is_missing(&[Need::Captures]) {
        return;
    }
    let folder = captures_folder().unwrap();
    let (mut equal, mut prefixes) = (0, 0);
    for capture in captures(&folder) {
        let path = folder.join(&capture);
        let Some(file) = open(&folder, &capture) else {
            continue;
        };
        let is_pcapng = matches!(file.format().container, Container::Pcapng { .. });
        let content = read_all(file, 256);
        if content.counters.packets_unknown_link_type > 0 {
            continue;
        }
        let (theirs, at_end) = if is_pcapng {
            oracle_pcapng(&path)
        } else {
            oracle_pcap(&path)
        };
        let mut ours: Oracle = content
            .frames
            .into_iter()
            .map(|frame| (frame.timestamp_ns, frame.bytes, frame.wire_length_bytes))
            .collect();
        if at_end && content.error.is_none() {
            equal += 1;
        } else {
            eprintln!(
                "{capture}: pcap-file stops after {} of {}",
                theirs.len(),
                ours.len()
            );
            prefixes += 1;
            ours.truncate(theirs.len());
        }
        assert!(
            ours == theirs,
            "{capture}: packets differ from those of pcap-file"
        );
    }
    eprintln!("{equal} captures equal to their end, {prefixes} as far as pcap-file reads");
}
