// SPDX-License-Identifier: Apache-2.0
//! Every variant of both formats, and the writers against the reader.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

use std::io::Write;

use crate::support::{Dribble, Owned, read_all, read_bytes};
use proptest::collection::vec;
use proptest::prelude::*;
use turboflow_capture::write::{InterfaceOptions, PcapWriter, PcapngWriter};
use turboflow_capture::{ByteOrder, CaptureFile, Compression, Container};
use turboflow_packet::LinkType;

/// A pcap file of any magic number, version and byte order, with one packet of 4 bytes.
fn pcap(magic: u32, version: (u16, u16), order: ByteOrder, fields: [u32; 4]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let u32 = |value: u32| match order {
        ByteOrder::Big => value.to_be_bytes(),
        ByteOrder::Little => value.to_le_bytes(),
    };
    let u16 = |value: u16| match order {
        ByteOrder::Big => value.to_be_bytes(),
        ByteOrder::Little => value.to_le_bytes(),
    };
    bytes.extend(u32(magic));
    bytes.extend(u16(version.0));
    bytes.extend(u16(version.1));
    bytes.extend([0; 8]);
    bytes.extend(u32(65_535));
    // The upper bits give the length of a frame check sequence.
    bytes.extend(u32(0x3000_0000 | 101));
    fields
        .into_iter()
        .for_each(|field| bytes.extend(u32(field)));
    if magic == 0xa1b2_cd34 {
        bytes.extend([9; 8]);
    }
    bytes.extend([0x45, 1, 2, 3]);
    bytes
}

#[test]
fn every_magic_byte_order_and_version_of_pcap_is_read() {
    const VERSION: (u16, u16) = (2, 4);
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let cases = [
            (0xa1b2_c3d4, VERSION, [1, 2, 4, 60], 1_000_002_000, 60),
            (0xa1b2_3c4d, VERSION, [1, 2, 4, 60], 1_000_000_002, 60),
            (0xa1b2_cd34, VERSION, [1, 2, 4, 60], 1_000_002_000, 60),
            // The wire length is the file's, even if it is impossible.
            (0xa1b2_c3d4, VERSION, [1, 2, 4, 3], 1_000_002_000, 3),
            // Before 2.3 the wire length came first; 2.3 has both orders.
            (0xa1b2_c3d4, (2, 2), [1, 2, 60, 4], 1_000_002_000, 60),
            (0xa1b2_c3d4, (543, 0), [1, 2, 60, 4], 1_000_002_000, 60),
            (0xa1b2_c3d4, (2, 3), [1, 2, 60, 4], 1_000_002_000, 60),
            (0xa1b2_c3d4, (2, 3), [1, 2, 4, 60], 1_000_002_000, 60),
            // Fractions beyond a second, as fuzzers write them.
            (
                0xa1b2_c3d4,
                VERSION,
                [1, 3_000_000, 4, 60],
                4_000_000_000,
                60,
            ),
            (
                0xa1b2_c3d4,
                VERSION,
                [u32::MAX, u32::MAX, 4, 60],
                u64::from(u32::MAX) * 1_000_001_000,
                60,
            ),
        ];
        for (magic, version, fields, timestamp_ns, wire_length_bytes) in cases {
            let content = read_bytes(&pcap(magic, version, order, fields));
            assert!(
                content.error.is_none(),
                "{magic:#x} {version:?}: {:?}",
                content.error
            );
            let link_type = LinkType::Raw;
            let bytes = vec![0x45, 1, 2, 3];
            let expected = Owned {
                timestamp_ns,
                wire_length_bytes,
                interface: 0,
                link_type,
                bytes,
            };
            assert_eq!(content.frames, [expected], "{magic:#x} {version:?} {order}");
        }
    }
}

#[test]
fn the_format_is_described() {
    let bytes = pcap(0xa1b2_3c4d, (2, 4), ByteOrder::Big, [0, 0, 4, 4]);
    let file = CaptureFile::from_bytes("t".to_owned(), bytes.clone()).unwrap();
    assert_eq!(
        file.format().to_string(),
        "pcap, nanoseconds, big-endian, Raw, uncompressed"
    );
    assert!(matches!(
        file.format().container,
        Container::Pcap {
            snap_length_bytes: 65_535,
            ..
        }
    ));
    let zipped = zstd::encode_all(bytes.as_slice(), 1).unwrap();
    let mut file = CaptureFile::from_bytes("t".to_owned(), zipped.clone()).unwrap();
    assert_eq!(file.format().compression, Compression::Zstd);
    assert!(file.next_batch(1).unwrap().is_some());
    assert_eq!(
        (file.bytes_read(), file.bytes_total()),
        (zipped.len() as u64, Some(zipped.len() as u64))
    );
    let writer = PcapngWriter::new(Vec::new(), ByteOrder::Big).unwrap();
    let file = CaptureFile::from_bytes("t".to_owned(), writer.finish().unwrap()).unwrap();
    assert_eq!(
        file.format().to_string(),
        "pcapng, big-endian, uncompressed"
    );
}

fn options(resolution: Option<u8>, offset_seconds: Option<i64>) -> InterfaceOptions {
    InterfaceOptions {
        snap_length_bytes: 0,
        resolution,
        offset_seconds,
    }
}

#[test]
fn sections_and_interfaces_keep_their_own_order_and_clock() {
    let mut writer = PcapngWriter::new(Vec::new(), ByteOrder::Little).unwrap();
    writer
        .add_interface(LinkType::Ethernet, options(None, None))
        .unwrap();
    writer
        .add_interface(LinkType::Raw, options(Some(9), Some(100)))
        .unwrap();
    writer.write(0, 7_000_000, &[1; 14], 14).unwrap();
    writer.write(1, 8_000_000_000, &[2; 21], 1500).unwrap();
    writer.start_section(ByteOrder::Big).unwrap();
    writer
        .add_interface(LinkType::LinuxCooked2, options(Some(0x80 | 10), Some(-1)))
        .unwrap();
    writer.write(0, 3 << 10, &[3; 20], 20).unwrap();
    writer.start_section(ByteOrder::Big).unwrap();
    writer
        .add_interface(LinkType::Null, options(Some(0), None))
        .unwrap();
    writer.write(0, 11, &[], 9).unwrap();
    let content = read_bytes(&writer.finish().unwrap());
    assert!(content.error.is_none(), "{:?}", content.error);
    let seen: Vec<_> = content
        .frames
        .iter()
        .map(|frame| {
            let length = (frame.bytes.len(), frame.wire_length_bytes);
            (frame.interface, frame.link_type, frame.timestamp_ns, length)
        })
        .collect();
    assert_eq!(
        seen,
        [
            (0, LinkType::Ethernet, 7_000_000_000, (14, 14)),
            (1, LinkType::Raw, 108_000_000_000, (21, 1500)),
            (2, LinkType::LinuxCooked2, 2_000_000_000, (20, 20)),
            (3, LinkType::Null, 11_000_000_000, (0, 9)),
        ]
    );
}

#[test]
fn packets_of_unknown_link_types_are_counted_and_the_rest_read() {
    let mut writer = PcapngWriter::new(Vec::new(), ByteOrder::Little).unwrap();
    writer
        .add_interface_number(127, options(None, None))
        .unwrap();
    writer
        .add_interface(LinkType::Ethernet, options(None, None))
        .unwrap();
    for number in 0..10 {
        writer
            .write(number % 2, u64::from(number), &[0; 20], 100 + number)
            .unwrap();
    }
    let content = read_bytes(&writer.finish().unwrap());
    assert!(content.error.is_none());
    assert_eq!(content.frames.len(), 5);
    assert!(content.frames.iter().all(|frame| frame.interface == 1));
    let counters = content.counters;
    assert_eq!(
        (
            counters.packets_unknown_link_type,
            counters.bytes_unknown_link_type
        ),
        (5, 520)
    );
}

#[test]
fn simple_packets_follow_the_snap_length_and_the_time_before() {
    let mut writer = PcapngWriter::new(Vec::new(), ByteOrder::Big).unwrap();
    let snapped = InterfaceOptions {
        snap_length_bytes: 10,
        ..InterfaceOptions::default()
    };
    writer.add_interface(LinkType::Ethernet, snapped).unwrap();
    writer.write_simple(&[1; 6], 6).unwrap();
    writer.write(0, 5, &[2; 10], 1000).unwrap();
    writer.write_simple(&[3; 10], 1000).unwrap();
    let content = read_bytes(&writer.finish().unwrap());
    assert!(content.error.is_none(), "{:?}", content.error);
    let seen: Vec<_> = content
        .frames
        .iter()
        .map(|frame| {
            (
                frame.bytes.len(),
                frame.wire_length_bytes,
                frame.timestamp_ns,
            )
        })
        .collect();
    assert_eq!(seen, [(6, 6, 0), (10, 1000, 5_000), (10, 1000, 5_000)]);
    assert_eq!(content.counters.packets_without_time, 2);
}

/// An obsolete Packet Block: interface (2), drops (2), then as in the enhanced block.
fn obsolete_packet(interface: u16, drops: u16, ticks: u32, bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(interface.to_le_bytes());
    body.extend(drops.to_le_bytes());
    body.extend(0_u32.to_le_bytes());
    body.extend(ticks.to_le_bytes());
    body.extend((bytes.len() as u32).to_le_bytes());
    body.extend((bytes.len() as u32).to_le_bytes());
    body.extend(bytes);
    body
}

/// An option of 8 bytes.
fn option(code: u16, value: u64) -> Vec<u8> {
    let header = [code.to_le_bytes(), 8_u16.to_le_bytes()].concat();
    [header, value.to_le_bytes().to_vec()].concat()
}

#[test]
fn drops_come_from_statistics_or_else_from_packets() {
    let mut writer = PcapngWriter::new(Vec::new(), ByteOrder::Little).unwrap();
    for _ in 0..3 {
        writer
            .add_interface(LinkType::Raw, options(None, None))
            .unwrap();
    }
    // The first interface has drop counts in packets only; 0xffff means unknown.
    for drops in [5, 0xffff, 2] {
        writer
            .write_block(2, &obsolete_packet(0, drops, 1, &[1; 5]))
            .unwrap();
    }
    // The second has an enhanced packet with epb_flags and epb_dropcount.
    let mut enhanced = Vec::new();
    for field in [1_u32, 0, 2, 4, 4] {
        enhanced.extend(field.to_le_bytes());
    }
    enhanced.extend([9; 4]);
    enhanced.extend([2, 0, 4, 0, 0, 0, 0, 0]);
    enhanced.extend(option(4, 30));
    enhanced.extend([0; 4]);
    writer.write_block(6, &enhanced).unwrap();
    // The third has two statistics blocks, which count from the start.
    for (interface_drops, system_drops) in [(100, 1), (1_000, 10)] {
        let mut body = [2_u32.to_le_bytes(), [0; 4], [0; 4]].concat();
        body.extend(option(4, 99_999));
        body.extend(option(5, interface_drops));
        body.extend(option(7, system_drops));
        body.extend([0; 4]);
        writer.write_block(5, &body).unwrap();
    }
    writer.start_section(ByteOrder::Little).unwrap();
    let content = read_bytes(&writer.finish().unwrap());
    assert!(content.error.is_none(), "{:?}", content.error);
    assert_eq!(content.frames.len(), 4);
    assert_eq!(content.counters.source_dropped, 7 + 30 + 1_010);
}

#[test]
fn blocks_and_packets_longer_than_the_buffer_are_read() {
    let long = vec![7; 3 << 20];
    let mut writer = PcapngWriter::new(Vec::new(), ByteOrder::Little).unwrap();
    let big = InterfaceOptions {
        snap_length_bytes: 4 << 20,
        ..InterfaceOptions::default()
    };
    writer.add_interface(LinkType::Ethernet, big).unwrap();
    writer.write_block(0x0bad, &long).unwrap();
    writer.write(0, 1, &long, long.len() as u32).unwrap();
    writer.write_block(0x0bad, &long[..2 << 20]).unwrap();
    writer.write(0, 2, &[1; 9], 9).unwrap();
    let bytes = writer.finish().unwrap();
    for most in [1000, 100_000, 10 << 20] {
        let reader = Dribble::new(&bytes, most);
        let content = read_all(CaptureFile::from_reader("t".to_owned(), reader).unwrap(), 8);
        assert!(content.error.is_none(), "{:?}", content.error);
        let lengths: Vec<usize> = content
            .frames
            .iter()
            .map(|frame| frame.bytes.len())
            .collect();
        assert_eq!(lengths, [3 << 20, 9]);
    }
}

#[test]
fn batches_keep_to_the_limit_and_the_order() {
    let mut writer = PcapWriter::new(Vec::new(), LinkType::Ethernet).unwrap();
    for number in 0..1_000 {
        writer.write(number, &[0; 60], 60).unwrap();
    }
    let mut file = CaptureFile::from_bytes("t".to_owned(), writer.finish().unwrap()).unwrap();
    let mut sizes = Vec::new();
    let mut next = 0;
    while let Some(batch) = file.next_batch(300).unwrap() {
        sizes.push(batch.frames().len());
        for frame in batch.frames() {
            assert_eq!(frame.timestamp_ns, next);
            next += 1;
        }
    }
    assert_eq!(sizes, [300, 300, 300, 100]);
    assert_eq!(file.bytes_read(), file.bytes_total().unwrap());
}

#[test]
fn mapped_walk_equals_the_stream_walk_across_windows() {
    let path = std::env::temp_dir().join(format!("turboflow-mapped-{}", std::process::id()));
    for is_pcapng in [false, true] {
        let mut file = std::fs::File::create(&path).unwrap();
        let mut pcapng = PcapngWriter::new(Vec::new(), ByteOrder::Little).unwrap();
        pcapng
            .add_interface(LinkType::Ethernet, InterfaceOptions::default())
            .unwrap();
        let mut pcap = PcapWriter::new(Vec::new(), LinkType::Ethernet).unwrap();
        for number in 0..40_000_u32 {
            let bytes = vec![number as u8; (number * 7919 % 700) as usize];
            pcap.write(u64::from(number), &bytes, 700).unwrap();
            pcapng.write(0, u64::from(number), &bytes, 700).unwrap();
        }
        let bytes = if is_pcapng {
            pcapng.finish().unwrap()
        } else {
            pcap.finish().unwrap()
        };
        file.write_all(&bytes).unwrap();
        let mapped = read_all(CaptureFile::open(&path).unwrap(), 1000);
        let reader = Box::new(std::io::Cursor::new(bytes));
        let name = path.display().to_string();
        let stream = read_all(CaptureFile::from_reader(name, reader).unwrap(), 77);
        assert_eq!(mapped.frames.len(), 40_000);
        assert!(mapped.comparable() == stream.comparable());
    }
    std::fs::remove_file(&path).unwrap();
}

fn frames() -> impl Strategy<Value = Vec<(u32, u32, u32, Vec<u8>)>> {
    let frame = (
        any::<u32>(),
        0..1_000_000_000_u32,
        any::<u32>(),
        vec(any::<u8>(), 0..200),
    );
    vec(frame, 0..60)
}

proptest! {
    #[test]
    fn written_pcap_files_read_back(frames in frames(), limit in 1..20_usize) {
        let mut writer = PcapWriter::new(Vec::new(), LinkType::RawIpv6).unwrap();
        for (seconds, fraction, wire_length_bytes, bytes) in &frames {
            let timestamp_ns = u64::from(*seconds) * 1_000_000_000 + u64::from(*fraction);
            writer.write(timestamp_ns, bytes, *wire_length_bytes).unwrap();
        }
        let bytes = writer.finish().unwrap();
        let content = read_all(CaptureFile::from_bytes("t".to_owned(), bytes).unwrap(), limit);
        prop_assert!(content.error.is_none());
        prop_assert_eq!(content.frames.len(), frames.len());
        for (frame, (seconds, fraction, wire_length_bytes, bytes)) in
            content.frames.iter().zip(&frames)
        {
            let timestamp_ns = u64::from(*seconds) * 1_000_000_000 + u64::from(*fraction);
            prop_assert_eq!(frame.timestamp_ns, timestamp_ns);
            prop_assert_eq!(frame.wire_length_bytes, *wire_length_bytes);
            prop_assert_eq!(&frame.bytes, bytes);
            prop_assert_eq!(frame.link_type, LinkType::RawIpv6);
        }
    }

    #[test]
    fn written_pcapng_files_read_back(
        frames in frames(),
        big in any::<bool>(),
        most in 1..99_usize,
    ) {
        let order = if big { ByteOrder::Big } else { ByteOrder::Little };
        let mut writer = PcapngWriter::new(Vec::new(), order).unwrap();
        for link_type in [LinkType::Ethernet, LinkType::Raw] {
            writer.add_interface(link_type, options(Some(9), None)).unwrap();
        }
        for (seconds, fraction, wire_length_bytes, bytes) in &frames {
            let ticks = u64::from(*seconds) << 32 | u64::from(*fraction);
            writer.write(seconds % 2, ticks, bytes, *wire_length_bytes).unwrap();
        }
        let reader = Dribble::new(&writer.finish().unwrap(), most);
        let content = read_all(CaptureFile::from_reader("t".to_owned(), reader).unwrap(), 7);
        prop_assert!(content.error.is_none());
        prop_assert_eq!(content.frames.len(), frames.len());
        for (frame, (seconds, fraction, wire_length_bytes, bytes)) in
            content.frames.iter().zip(&frames)
        {
            prop_assert_eq!(frame.timestamp_ns, u64::from(*seconds) << 32 | u64::from(*fraction));
            prop_assert_eq!(frame.wire_length_bytes, *wire_length_bytes);
            prop_assert_eq!(frame.interface, seconds % 2);
            prop_assert_eq!(&frame.bytes, bytes);
        }
    }

    /// The property that the fuzz targets check, for damaged files.
    #[test]
    fn damaged_bytes_never_panic_and_read_alike_from_memory_and_stream(
        is_pcapng in any::<bool>(),
        flips in vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        most in 1..200_usize,
    ) {
        let mut writer = PcapngWriter::new(Vec::new(), ByteOrder::Little).unwrap();
        writer.add_interface(LinkType::Ethernet, options(Some(6), Some(1))).unwrap();
        let mut pcap = PcapWriter::new(Vec::new(), LinkType::Ethernet).unwrap();
        for number in 0..12_u8 {
            writer.write(0, u64::from(number), &[number; 30], 30).unwrap();
            writer.write_block(0xbad, &[number; 40]).unwrap();
            pcap.write(u64::from(number), &[number; 30], 30).unwrap();
        }
        let mut bytes = if is_pcapng { writer.finish() } else { pcap.finish() }.unwrap();
        for (index, flip) in flips {
            let at = index.index(bytes.len());
            bytes[at] ^= flip;
        }
        let memory = CaptureFile::from_bytes("t".to_owned(), bytes.clone());
        let stream = CaptureFile::from_reader("t".to_owned(), Dribble::new(&bytes, most));
        match (memory, stream) {
            (Ok(memory), Ok(stream)) => {
                let (memory, stream) = (read_all(memory, 5), read_all(stream, 64));
                prop_assert_eq!(memory.comparable(), stream.comparable());
            }
            (Err(memory), Err(stream)) => {
                prop_assert_eq!(memory.to_string(), stream.to_string());
            }
            (memory, stream) => prop_assert!(false, "{:?} but {:?}", memory, stream),
        }
    }
}

#[test]
fn skipped_packets_may_be_longer_than_any_frame() {
    let mut writer = PcapngWriter::new(Vec::new(), ByteOrder::Little).unwrap();
    writer
        .add_interface(LinkType::Ethernet, InterfaceOptions::default())
        .unwrap();
    // USB as specified for the format: interface 1, link type 249, snap length 262,144.
    let usb = [
        &249_u16.to_le_bytes()[..],
        &[0; 2],
        &262_144_u32.to_le_bytes(),
    ]
    .concat();
    writer.write_block(1, &usb).unwrap();
    writer.write(0, 1, &[1; 60], 60).unwrap();
    let transfer = vec![7; 300_000];
    let length = (transfer.len() as u32).to_le_bytes();
    let head = [1_u32.to_le_bytes(), [0; 4], [2, 0, 0, 0], length, length].concat();
    writer.write_block(6, &[head, transfer].concat()).unwrap();
    writer.write(0, 3, &[3; 60], 60).unwrap();
    let content = read_bytes(&writer.finish().unwrap());
    assert!(content.error.is_none(), "{:?}", content.error);
    assert_eq!(content.frames.len(), 2);
    assert_eq!(content.counters.packets_unknown_link_type, 1);
}

#[test]
fn a_file_that_was_closed_is_opened_when_its_turn_comes() {
    let path = std::env::temp_dir().join(format!("turboflow-closed-{}", std::process::id()));
    let mut writer = PcapngWriter::new(Vec::new(), ByteOrder::Little).unwrap();
    writer
        .add_interface(LinkType::Ethernet, InterfaceOptions::default())
        .unwrap();
    writer.write(0, 1, &[1; 60], 60).unwrap();
    std::fs::write(&path, writer.finish().unwrap()).unwrap();
    let closed = || {
        let mut file = CaptureFile::open(&path).unwrap();
        file.close_until_read();
        file
    };
    let mut file = closed();
    assert_eq!(file.next_batch(9).unwrap().unwrap().frames().len(), 1);
    assert!(file.next_batch(9).unwrap().is_none());
    // Another file of that name must not be read.
    let (mut file, bytes) = (closed(), std::fs::read(&path).unwrap());
    let kept = path.with_extension("kept");
    std::fs::rename(&path, &kept).unwrap();
    std::fs::write(&path, bytes).unwrap();
    let error = file.next_batch(9).unwrap_err().to_string();
    assert!(
        error.contains("no longer the file that was there"),
        "{error}"
    );
    let mut file = closed();
    std::fs::remove_file(&path).unwrap();
    std::fs::remove_file(&kept).unwrap();
    let error = file.next_batch(9).unwrap_err().to_string();
    assert!(error.contains("could not be opened again"), "{error}");
    assert!(error.contains("does not exist"), "{error}");
    assert!(file.next_batch(9).unwrap().is_none());
}
