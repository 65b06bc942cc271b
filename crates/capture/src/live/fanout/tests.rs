// SPDX-License-Identifier: Apache-2.0
//! Runs the program on packets from captures, as the kernel presents them.

use std::collections::HashMap;
use std::net::UdpSocket;
use std::path::Path;
use std::time::Duration;

use turboflow_packet::{Frame, Parser, ParserConfig};
use turboflow_testing::{Need, captures_folder, is_missing};

use super::*;
use crate::CaptureFile;
use crate::filter::Captured;
use crate::live::{Interface, InterfaceConfig, InterfaceError, wait};

/// A packet as the kernel presents it to the program.
struct KernelPacket<'a> {
    bytes: &'a [u8],
    protocol: u16,
    packet_type: u8,
}

impl Captured for KernelPacket<'_> {
    fn bytes_at<const N: usize>(&self, at: u32) -> Option<[u8; N]> {
        let known = match at {
            PROTOCOL_AT => u32::from(self.protocol),
            PACKET_TYPE_AT => u32::from(self.packet_type),
            _ => return self.bytes.bytes_at(at),
        };
        known.to_be_bytes()[4 - N..].try_into().ok()
    }
}

/// A received packet: the outermost tag is removed.
fn received(frame: &[u8]) -> Option<KernelPacket<'_>> {
    let type_at = |at: usize| Some(u16::from_be_bytes(frame.get(at..at + 2)?.try_into().ok()?));
    let (protocol, from) = match type_at(12)? {
        0x8100 | 0x88a8 => (type_at(16)?, 18),
        protocol => (protocol, 14),
    };
    Some(KernelPacket {
        bytes: frame.get(from..)?,
        protocol,
        packet_type: 0,
    })
}

fn leaving(frame: &[u8]) -> KernelPacket<'_> {
    KernelPacket {
        bytes: frame,
        protocol: 0,
        packet_type: libc::PACKET_OUTGOING,
    }
}

fn reader(program: &Program, packet: &KernelPacket<'_>) -> u32 {
    program.run(packet, 0).unwrap_or(0)
}

/// Calls `each` with the frames of an Ethernet capture.
fn for_each_frame(path: &Path, mut each: impl FnMut(&Frame<'_>)) {
    let Ok(mut file) = CaptureFile::open(path) else {
        return;
    };
    while let Ok(Some(batch)) = file.next_batch(1_024) {
        let frames = batch.frames().iter();
        frames
            .filter(|frame| frame.link_type == LinkType::Ethernet)
            .for_each(&mut each);
    }
}

fn project(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

/// Asserts that all packets between two addresses go to one reader, in both directions, sent or
/// received. Returns the number of packets per reader.
fn distribute(path: &Path, readers: usize) -> Vec<u64> {
    let program = program(readers, LinkType::Ethernet);
    let mut parser = Parser::new(ParserConfig::default());
    let mut homes = HashMap::new();
    let mut packets = vec![0; readers];
    for_each_frame(path, |frame| {
        let Some(packet) = received(frame.bytes) else {
            return;
        };
        let home = reader(&program, &packet);
        assert_eq!(home, reader(&program, &leaving(frame.bytes)), "{path:?}");
        packets[home as usize] += 1;
        if let Ok(packet) = parser.parse(frame) {
            let (source, destination) = (packet.tuple.source(), packet.tuple.destination());
            let pair = (source.min(destination), source.max(destination));
            let first = *homes.entry(pair).or_insert(home);
            assert_eq!(first, home, "{path:?}: {pair:?}");
        }
    });
    packets
}

#[test]
fn flows_of_the_sample_stay_together() {
    let office = project("samples/office.pcap");
    for readers in [2, 3, 8, MAX_READERS] {
        let packets = distribute(&office, readers);
        eprintln!("{readers} readers: {packets:?}");
        let total: u64 = packets.iter().sum();
        assert_eq!(total, 13_035);
    }
}

#[test]
fn flows_of_real_captures_stay_together() {
    if is_missing(&[Need::Captures]) {
        return;
    }
    let captures = captures_folder().unwrap();
    for folder in ["fragments", "ipv4", "ipv6", "tunnels", "vlan-mpls"] {
        for entry in std::fs::read_dir(captures.join(folder)).unwrap().flatten() {
            let _ = distribute(&entry.path(), 5);
        }
    }
}

#[test]
fn neighbouring_addresses_are_spread_and_other_packets_go_to_the_first_reader() {
    let program = program(4, LinkType::Raw);
    let mut packets = [0; 4];
    for host in 0..=255 {
        let mut bytes = [0; 20];
        bytes[0] = 0x45;
        bytes[12..20].copy_from_slice(&[192, 0, 2, host, 192, 0, 2, 1]);
        let there = program.run(&bytes[..], 20).unwrap();
        bytes.copy_within(12..16, 4);
        bytes.copy_within(16..20, 12);
        bytes.copy_within(4..8, 16);
        assert_eq!(program.run(&bytes[..], 20), Some(there));
        packets[there as usize] += 1;
    }
    assert!(packets.iter().all(|count| *count > 32), "{packets:?}");
    assert_eq!(program.run(&[0x10; 40][..], 40), Some(0));
    assert_eq!(program.run(&[0x45; 19][..], 19), None);
}

/// A filter that accepts UDP over IPv4 to a port.
fn udp_to(port: u16) -> Program {
    let instruction = |code, jump_false, k| Instruction {
        code,
        jump_true: 0,
        jump_false,
        k,
    };
    Program::new(vec![
        instruction(LOAD_HALF, 0, 12),
        instruction(IF_EQUAL, 5, 0x0800),
        instruction(LOAD_BYTE, 0, 23),
        instruction(IF_EQUAL, 3, 17),
        instruction(LOAD_HALF, 0, 36),
        instruction(IF_EQUAL, 1, port.into()),
        instruction(RETURN, 0, u32::MAX),
        instruction(RETURN, 0, 0),
    ])
    .unwrap()
}

#[test]
fn the_kernel_distributes_as_the_program_says() {
    const RINGS: usize = 3;
    const SENDERS: u8 = 60;
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = receiver.local_addr().unwrap();
    let config = InterfaceConfig {
        filter: Some(udp_to(address.port())),
        ..InterfaceConfig::default()
    };
    let mut rings = match Interface::open_group("lo", &config, RINGS) {
        Ok(rings) => rings,
        Err(InterfaceError::PermissionDenied { .. })
            if is_missing(&[Need::Right("capture", false)]) =>
        {
            return;
        }
        Err(error) => panic!("{error}"),
    };
    for host in 2..2 + SENDERS {
        let sender = UdpSocket::bind(format!("127.0.0.{host}:0")).unwrap();
        sender.send_to(&[0; 100], address).unwrap();
    }
    let program = program(RINGS, LinkType::Ethernet);
    let mut packets = [0_u64; RINGS];
    while packets.iter().sum::<u64>() < u64::from(SENDERS) {
        wait(&mut rings, Duration::from_millis(50)).unwrap();
        for (number, ring) in rings.iter_mut().enumerate() {
            while let Some(batch) = ring.next_batch() {
                for frame in batch.frames() {
                    let packet = received(frame.bytes).unwrap();
                    assert_eq!(reader(&program, &packet), number as u32);
                    packets[number] += 1;
                }
            }
        }
    }
    assert_eq!(packets.iter().sum::<u64>(), u64::from(SENDERS));
    assert!(packets.iter().all(|count| *count > 0), "{packets:?}");
    // The program sees sent packets differently, but must choose the same readers.
    for (ring, packets) in rings.iter_mut().zip(packets) {
        let counters = ring.counters().unwrap();
        assert_eq!((counters.delivered, counters.copies), (packets, packets));
    }
}
