// SPDX-License-Identifier: Apache-2.0
//! Damaged, truncated and foreign files: complete packets are delivered, and the message says what
//! is wrong.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

use crate::support;
use std::io::{self, Read, Write};
use std::path::Path;

use crate::support::{Content, Dribble, read_all, read_bytes};
use turboflow_capture::write::{InterfaceOptions, PcapWriter, PcapngWriter};
use turboflow_capture::{ByteOrder, CaptureFile, Damage, OpenError};
use turboflow_packet::LinkType;

/// A pcap file with packets of 60 bytes: 24 bytes of header, 76 per packet.
fn pcap(packets: u8) -> Vec<u8> {
    let mut writer = PcapWriter::new(Vec::new(), LinkType::Ethernet).unwrap();
    for number in 0..packets {
        writer.write(u64::from(number), &[number; 60], 60).unwrap();
    }
    writer.finish().unwrap()
}

/// A writer after the section header (28 bytes) and one Ethernet interface (24 bytes).
fn pcapng_start() -> PcapngWriter<Vec<u8>> {
    let mut writer = PcapngWriter::new(Vec::new(), ByteOrder::Little).unwrap();
    writer
        .add_interface(LinkType::Ethernet, InterfaceOptions::default())
        .unwrap();
    writer
}

fn open_error(bytes: &[u8]) -> String {
    CaptureFile::from_bytes("t.pcap".to_owned(), bytes.to_vec())
        .unwrap_err()
        .to_string()
}

fn set_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// The number of packets delivered, and the message after them.
fn outcome(bytes: &[u8]) -> (usize, String) {
    let content = read_bytes(bytes);
    (
        content.frames.len(),
        content.error.expect("the file is damaged").to_string(),
    )
}

#[test]
fn missing_empty_and_foreign_files_are_refused_with_advice() {
    let missing = CaptureFile::open(Path::new("/no/such.pcap")).unwrap_err();
    assert_eq!(
        missing.to_string(),
        "/no/such.pcap does not exist: check the path"
    );
    let directory = CaptureFile::open(&std::env::temp_dir()).unwrap_err();
    assert!(
        matches!(directory, OpenError::Directory { .. }),
        "{directory}"
    );
    assert_eq!(
        open_error(b""),
        "t.pcap is empty: nothing was captured, or whatever should have written it failed"
    );
    assert_eq!(
        open_error(b"snoop\0\0\0\0\0\0\x02\0\0\0\x04"),
        "t.pcap is not a pcap or pcapng file (it starts with 73 6e 6f 6f 70 00 00 00): \
         a Solaris snoop capture, convert it with `editcap IN OUT`"
    );
    assert_eq!(
        open_error(b"10:20:30 IP a > b: tcp"),
        "t.pcap is not a pcap or pcapng file (it starts with 31 30 3a 32 30 3a 33 30, \
         \"10:20:30\"): text: if it has flow records, `turboflow show FILE` answers questions about \
         them; a capture must be saved as pcap or pcapng"
    );
    assert_eq!(
        open_error(&[0xde, 0xad, 0xbe, 0xef]),
        "t.pcap is not a pcap or pcapng file (it starts with de ad be ef)"
    );
    let erf = [
        1, 2, 3, 4, 5, 6, 7, 8, 2, 4, 0, 82, 0, 0, 0, 64, 0, 0, 1, 2, 3, 4, 5, 6,
    ];
    assert!(
        open_error(&erf)
            .ends_with("perhaps an Endace ERF capture, convert it with `editcap IN OUT`")
    );
    for (magic, word) in [
        (&b"\x04\x22\x4d\x18...."[..], "lz4 -dc"),
        (b"\xfd7zXZ\0..", "xz -dc"),
        (b"BZh91AY&SY", "bzip2 -dc"),
        (b"\0\0\0\0\0\0\0\0", "never written"),
        (b"<!DOCTYPE html>", "web page"),
    ] {
        let message = open_error(magic);
        assert!(message.contains(word), "{message}");
    }
}

#[cfg(unix)]
#[test]
fn file_without_permission_is_refused_with_advice() {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::temp_dir().join(format!("turboflow-denied-{}", std::process::id()));
    std::fs::write(&path, pcap(1)).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    // Root may read everything.
    if let Err(error) = CaptureFile::open(&path) {
        assert!(
            matches!(error, OpenError::PermissionDenied { .. }),
            "{error}"
        );
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn truncated_and_unknown_headers_are_refused() {
    assert_eq!(
        open_error(&pcap(0)[..20]),
        "t.pcap ends inside its pcap header: 20 of 24 bytes are there, no packet was captured or \
         the file was cut"
    );
    let mut radiotap = pcap(1);
    set_u32(&mut radiotap, 20, 127);
    assert_eq!(
        open_error(&radiotap),
        "t.pcap has link type 127 (IEEE802_11_RADIOTAP, wireless LAN with radiotap header), which \
         turboflow does not read: it reads Ethernet, Linux cooked v1 and v2, BSD loopback, raw IP \
         and PPP"
    );
    let mut version = pcap(1);
    version[4] = 9;
    assert_eq!(
        open_error(&version),
        "t.pcap is pcap of version 9.4, which is not known: it may be damaged, otherwise convert \
         it with `editcap IN OUT`"
    );
    let mut version = pcapng_start().finish().unwrap();
    version[12] = 7;
    assert!(open_error(&version).contains("pcapng of version 7.0"));
    let mut gzip = vec![0x1f, 0x8b, 8, 0];
    gzip.extend([0xff; 40]);
    assert!(open_error(&gzip).starts_with("t.pcap looks like gzip but does not decompress"));
}

#[test]
fn pcap_cut_in_a_packet_names_place_and_lengths() {
    let bytes = pcap(3);
    assert_eq!(
        outcome(&bytes[..24 + 76 + 50]),
        (
            1,
            "test: packet 2 at byte 100: the file ends inside the packet: 50 of 76 bytes are \
             there, it was cut or is still being written, packets before were read"
                .to_owned()
        )
    );
    assert_eq!(
        outcome(&bytes[..24 + 2 * 76 + 5]),
        (
            2,
            "test: packet 3 at byte 176: the file ends inside the packet header: 5 of 16 bytes \
             are there, it was cut or is still being written, packets before were read"
                .to_owned()
        )
    );
}

#[test]
fn absurd_captured_length_ends_the_file() {
    let mut bytes = pcap(3);
    set_u32(&mut bytes, 24 + 76 + 8, 262_145);
    assert_eq!(
        outcome(&bytes),
        (
            1,
            "test: packet 2 at byte 100: captured length of 262145 bytes where at most 262144 \
             make sense: the file is damaged here, packets before were read, the rest cannot \
             be"
            .to_owned()
        )
    );
    // A larger snap length in the header is accepted.
    set_u32(&mut bytes, 16, 300_000);
    assert!(
        outcome(&bytes)
            .1
            .contains("the file ends inside the packet: 152 of 262161 bytes")
    );
}

#[test]
fn another_file_behind_the_first_is_named() {
    let (plain, mut writer) = (pcap(2), pcapng_start());
    writer.write(0, 0, &[1; 60], 60).unwrap();
    let blocks = writer.finish().unwrap();
    let big = {
        let mut big = pcap(0);
        big[..4].reverse();
        big
    };
    for (first, second, packets) in [
        (&plain, &plain, 2),
        (&plain, &big, 2),
        (&plain, &blocks, 2),
        (&blocks, &plain, 1),
    ] {
        let (frames, message) = outcome(&[&first[..], &second[..]].concat());
        assert_eq!(frames, packets);
        assert!(
            message.contains("another capture file begins here"),
            "{message}"
        );
    }
    let twice = read_bytes(&[&blocks[..], &blocks[..]].concat());
    assert!(twice.error.is_none(), "pcapng files may be joined by cat");
    assert_eq!(twice.frames.len(), 2);
}

#[test]
fn damaged_pcapng_blocks_end_the_file() {
    let mut writer = pcapng_start();
    for number in 0..3 {
        writer.write(0, number, &[7; 60], 60).unwrap();
    }
    let good = writer.finish().unwrap();
    // The second packet block; blocks have 92 bytes.
    let at = 28 + 24 + 92;
    let damaged = |offset: usize, value: u32| {
        let mut bytes = good.clone();
        set_u32(&mut bytes, at + offset, value);
        let (packets, message) = outcome(&bytes);
        assert_eq!(packets, 1);
        message
            .strip_prefix("test: packet 2 at byte 144: ")
            .expect("the place")
            .to_owned()
    };
    assert!(damaged(4, 28).starts_with(
        "block of type 0x00000006 with a length of 28 bytes (too short for its type): the file"
    ));
    assert!(damaged(4, 93).contains("93 bytes (not a multiple of 4)"));
    assert!(damaged(4, 0x4000_0000).contains("(longer than any such block)"));
    assert!(damaged(88, 96).starts_with(
        "block length is 92 bytes at its start but 96 at its end: the file is damaged here"
    ));
    assert!(damaged(8, 1).starts_with("interface 1 in a section that describes 1: the file is"));
    assert!(damaged(20, 61).starts_with("captured length of 61 bytes in a block with room for 60"));
    assert!(damaged(20, 1 << 20).starts_with("captured length of 1048576 bytes where at most"));
    assert!(damaged(0, 0x0a0d_0d0a).starts_with(
        "section header with byte-order mark 0x00000000 instead of 0x1a2b3c4d: the file is"
    ));
    assert!(damaged(4, 400).starts_with("the file ends inside the packet block: 184 of 400 bytes"));
}

#[test]
fn cut_in_a_skipped_block_names_the_blocks_start() {
    let mut writer = pcapng_start();
    writer.write(0, 5, &[7; 60], 60).unwrap();
    writer.write_block(0x0bad, &[9; 3000]).unwrap();
    let bytes = writer.finish().unwrap();
    for most in [7, 1 << 20] {
        let reader = Dribble::new(&bytes[..28 + 24 + 92 + 1000], most);
        let content = read_all(
            CaptureFile::from_reader("test".to_owned(), reader).unwrap(),
            8,
        );
        let message = content.error.unwrap().to_string();
        assert!(
            message.starts_with(
                "test: packet 2 at byte 144: the file ends inside the block: 1000 of 3012 bytes"
            ),
            "{message}"
        );
    }
}

#[test]
fn later_section_of_unknown_version_and_too_many_interfaces_end_the_file() {
    let mut writer = pcapng_start();
    writer.write(0, 5, &[7; 60], 60).unwrap();
    writer.start_section(ByteOrder::Big).unwrap();
    let mut bytes = writer.finish().unwrap();
    bytes[28 + 24 + 92 + 13] = 3;
    assert!(outcome(&bytes).1.contains("section of pcapng version 3.0"));
    let mut writer = pcapng_start();
    for _ in 0..1 << 16 {
        writer
            .add_interface(LinkType::Raw, InterfaceOptions::default())
            .unwrap();
    }
    let message = outcome(&writer.finish().unwrap()).1;
    assert!(
        message.contains("more than 65536 interfaces in one section"),
        "{message}"
    );
}

fn compressed(bytes: &[u8]) -> [(&'static str, Vec<u8>); 2] {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    [
        ("gzip", encoder.finish().unwrap()),
        ("zstd", zstd::encode_all(bytes, 1).unwrap()),
    ]
}

#[test]
fn truncated_compressed_files_deliver_complete_packets() {
    let mut writer = PcapWriter::new(Vec::new(), LinkType::Ethernet).unwrap();
    let mut state = 1_u64;
    for number in 0..5_000 {
        // Incompressible bytes, so that half of the file holds half of the packets.
        let packet: Vec<u8> = std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        })
        .take(200)
        .collect();
        writer.write(number, &packet, 200).unwrap();
    }
    for (compression, whole) in compressed(&writer.finish().unwrap()) {
        let mut content = read_bytes(&whole[..whole.len() / 2]);
        let error = content.error.take().unwrap();
        assert!(matches!(error.damage, Damage::Compressed { .. }), "{error}");
        assert!(
            error
                .to_string()
                .contains(&format!("{compression} data is damaged or ends early"))
        );
        let packets = content.frames.len();
        assert!(
            (1_500..2_600).contains(&packets),
            "{compression}: {packets} packets"
        );
        // A flipped byte loses only what the decompressor was working on.
        let mut flipped = whole.clone();
        flipped[whole.len() - 40] ^= 0x55;
        let content = read_bytes(&flipped);
        assert!(content.error.is_some(), "{compression}");
        let packets = content.frames.len();
        assert!(packets > 4_000, "{compression}: {packets} packets");
    }
}

/// A reader that fails after its last byte.
struct Failing(io::Cursor<Vec<u8>>);

impl Read for Failing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::Error::other("the cable was pulled")),
            bytes => Ok(bytes),
        }
    }
}

#[test]
fn failing_reader_delivers_earlier_packets() {
    let reader = Box::new(Failing(io::Cursor::new(
        pcap(3)[..24 + 2 * 76 + 30].to_vec(),
    )));
    let content = read_all(
        CaptureFile::from_reader("net".to_owned(), reader).unwrap(),
        8,
    );
    assert_eq!(content.frames.len(), 2);
    assert_eq!(
        content.error.unwrap().to_string(),
        "net: packet 3 at byte 176: reading failed: the cable was pulled"
    );
}

/// Truncates a capture at every byte. Exactly the packets that end before the cut must be
/// delivered, then an error, or a clean end if the cut is between records.
fn check_every_cut(whole: &[u8], ends: &[usize], clean: &[usize], header_bytes: usize) {
    for cut in header_bytes..=whole.len() {
        let expected = ends.iter().filter(|end| **end <= cut).count();
        let memory = read_bytes(&whole[..cut]);
        let reader = Dribble::new(&whole[..cut], 33);
        let stream = read_all(
            CaptureFile::from_reader("test".to_owned(), reader).unwrap(),
            64,
        );
        assert_eq!(memory.frames.len(), expected, "cut at {cut}");
        assert_eq!(memory.error.is_none(), clean.contains(&cut), "cut at {cut}");
        assert_eq!(memory.comparable(), stream.comparable(), "cut at {cut}");
    }
}

#[test]
fn every_cut_of_a_pcap_delivers_the_complete_packets() {
    let ends: Vec<usize> = (1..=5).map(|packet| 24 + packet * 76).collect();
    let clean = [&[24], ends.as_slice()].concat();
    check_every_cut(&pcap(5), &ends, &clean, 24);
    for cut in 1..24 {
        assert!(CaptureFile::from_bytes("t".to_owned(), pcap(5)[..cut].to_vec()).is_err());
    }
}

#[test]
fn every_cut_of_a_pcapng_delivers_the_complete_packets() {
    for byte_order in [ByteOrder::Little, ByteOrder::Big] {
        let (mut whole, mut ends, mut clean) = (Vec::new(), Vec::new(), Vec::new());
        for section in 0..2_u64 {
            let order = if section == 0 {
                byte_order
            } else {
                ByteOrder::Big
            };
            let mut writer = PcapngWriter::new(Vec::new(), order).unwrap();
            clean.push(whole.len() + 28);
            writer
                .add_interface(LinkType::Raw, InterfaceOptions::default())
                .unwrap();
            clean.push(whole.len() + 28 + 24);
            let mut sizes = vec![28 + 24];
            writer.write(0, section, &[1; 41], 41).unwrap();
            sizes.push(32 + 44);
            writer.write_block(0xbad, &[5; 20]).unwrap();
            sizes.push(32);
            writer.write_simple(&[3; 10], 10).unwrap();
            sizes.push(16 + 12);
            let mut end = whole.len();
            for (number, size) in sizes.into_iter().enumerate() {
                end += size;
                clean.push(end);
                if number == 1 || number == 3 {
                    ends.push(end);
                }
            }
            whole.extend(writer.finish().unwrap());
        }
        assert_eq!(clean.last(), Some(&whole.len()));
        check_every_cut(&whole, &ends, &clean, 28);
    }
}

/// A mapped file that another program truncates causes an error, not a signal, if the cut is beyond
/// the window of the walk.
#[cfg(target_os = "linux")]
#[test]
fn file_that_shrinks_while_mapped_is_an_error() {
    let path = std::env::temp_dir().join(format!("turboflow-shrinks-{}", std::process::id()));
    let mut writer =
        PcapWriter::new(std::fs::File::create(&path).unwrap(), LinkType::Ethernet).unwrap();
    for number in 0..20_000_u64 {
        writer.write(number, &[1; 984], 984).unwrap();
    }
    let file = writer.finish().unwrap();
    let mut capture = CaptureFile::open(&path).unwrap();
    assert!(capture.next_batch(10).unwrap().is_some());
    file.set_len(10_000_024).unwrap();
    let content: Content = read_all_from(capture);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(content.frames.len(), 10_000 - 10);
    let message = content.error.unwrap().to_string();
    assert!(
        message.contains("packet 10001 at byte 10000024: the file became shorter"),
        "{message}"
    );
}

/// Like `read_all`, for a file of which some packets were already read.
#[cfg(target_os = "linux")]
fn read_all_from(mut file: CaptureFile) -> Content {
    let mut frames = Vec::new();
    let error = loop {
        match file.next_batch(64) {
            Ok(Some(batch)) => frames.extend(batch.frames().iter().map(|frame| support::Owned {
                timestamp_ns: frame.timestamp_ns,
                wire_length_bytes: frame.wire_length_bytes,
                interface: frame.interface,
                link_type: frame.link_type,
                bytes: frame.bytes.to_vec(),
            })),
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    Content {
        frames,
        counters: file.counters(),
        error,
    }
}
