// SPDX-License-Identifier: Apache-2.0
use std::collections::{HashMap, HashSet};

use proptest::prelude::*;
use turboflow_packet::{Parser, ParserConfig};

use super::*;
use crate::traffic::{FrameSizes, Skew, Traffic, TrafficConfig};

/// A source that repeats some frames for each link.
#[derive(Clone)]
struct Recorded {
    frames: FrameBuffer,
    next: usize,
}

impl FrameSource for Recorded {
    type Error = std::convert::Infallible;

    fn read(&mut self, buffer: &mut FrameBuffer, frames: usize) -> Result<(), Self::Error> {
        let end = self.frames.len().min(self.next + frames);
        (self.next..end).for_each(|index| buffer.push_frame(&self.frames.frame(index)));
        self.next = end;
        Ok(())
    }
}

/// A mix of all protocols with addresses and checksums.
fn recorded(packets: u64) -> Recorded {
    let mut traffic = Traffic::new(TrafficConfig {
        packets,
        flows: 50,
        packets_per_second: 1_000.0,
        frame_sizes: FrameSizes::Imix,
        skew: Skew::Uniform,
        ipv6_share: 0.5,
        udp_share: 0.5,
        vlan_share: 0.3,
        ..TrafficConfig::default()
    })
    .unwrap();
    let mut frames = FrameBuffer::default();
    traffic.fill(&mut frames, packets as usize);
    Recorded { frames, next: 0 }
}

fn merged(recorded: &Recorded, links: usize) -> FrameBuffer {
    let mut copies = Links::new(vec![recorded.clone(); links], 1).unwrap();
    let mut all = FrameBuffer::default();
    let mut buffer = FrameBuffer::default();
    while copies.fill(&mut buffer, 100).unwrap() > 0 {
        buffer.frames().for_each(|frame| all.push_frame(&frame));
    }
    assert_eq!(copies.statistics().packets, all.len() as u64);
    all
}

/// The one's complement sum of all 16-bit words.
fn sum(words: &[u8]) -> u32 {
    let sum: u32 = words
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
        .sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    (sum & 0xffff) + (sum >> 16)
}

/// Whether the checksums of IP and of TCP or UDP are correct.
fn sums_up(frame: &[u8]) -> bool {
    let mut ip = 14;
    while frame[ip - 2] == 0x81 {
        ip += 4;
    }
    let packet = &frame[ip..];
    let (addresses, transport, protocol) = if packet[0] >> 4 == 4 {
        if sum(&packet[..20]) != 0xffff {
            return false;
        }
        let total = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
        (&packet[12..20], &packet[20..total], packet[9])
    } else {
        let payload = usize::from(u16::from_be_bytes([packet[4], packet[5]]));
        (&packet[8..40], &packet[40..40 + payload], packet[6])
    };
    let pseudo = sum(addresses) + u32::from(protocol) + transport.len() as u32 + sum(transport);
    (pseudo & 0xffff) + (pseudo >> 16) == 0xffff
}

#[test]
fn links_have_every_packet_once_with_their_tag_and_in_order() {
    let recorded = recorded(1_000);
    let all = merged(&recorded, 7);
    assert_eq!(all.len(), 7_000);
    let mut of_tag = HashMap::<u16, u64>::new();
    let mut last_ns = 0;
    for frame in all.frames() {
        assert!(frame.timestamp_ns >= last_ns);
        last_ns = frame.timestamp_ns;
        assert_eq!(frame.bytes[12..14], [0x81, 0x00]);
        let tag = u16::from_be_bytes([frame.bytes[14], frame.bytes[15]]);
        *of_tag.entry(tag).or_default() += u64::from(frame.wire_length_bytes) - 4;
    }
    let tags: HashSet<_> = of_tag.keys().copied().collect();
    assert_eq!(tags, (1..=7).collect());
    let bytes: u64 = recorded
        .frames
        .frames()
        .map(|frame| u64::from(frame.wire_length_bytes))
        .sum();
    assert!(of_tag.values().all(|&of_link| of_link == bytes));
}

#[test]
fn links_have_distinct_flows() {
    let recorded = recorded(2_000);
    let flows = |frames: &FrameBuffer| {
        let mut parser = Parser::new(ParserConfig::default());
        let packets = frames.frames().map(|frame| parser.parse(&frame).unwrap());
        packets.map(|packet| packet.tuple).collect::<HashSet<_>>()
    };
    let of_one = flows(&recorded.frames).len();
    assert_eq!(flows(&merged(&recorded, 9)).len(), 9 * of_one);
}

#[test]
fn checksums_stay_correct() {
    let recorded = recorded(2_000);
    assert!(recorded.frames.frames().all(|frame| sums_up(frame.bytes)));
    let all = merged(&recorded, 5);
    assert!(all.frames().all(|frame| sums_up(frame.bytes)));
}

#[test]
fn no_links_and_other_link_types_are_refused() {
    let none = Links::<Recorded>::new(Vec::new(), 1).err().unwrap();
    assert!(none.to_string().starts_with("0 links asked for"));
    let many = Links::new(vec![recorded(1); 4_095], 1).err().unwrap();
    assert!(many.to_string().starts_with("4095 links"));
    let mut raw = recorded(1);
    let mut frame = raw.frames.frame(0);
    frame.link_type = LinkType::Raw;
    let mut frames = FrameBuffer::default();
    frames.push_frame(&frame);
    raw.frames = frames;
    let mut links = Links::new(vec![raw], 1).unwrap();
    let refused = links.fill(&mut FrameBuffer::default(), 1).unwrap_err();
    assert!(refused.to_string().contains("link type Raw"));
}

proptest! {
    /// For any bytes, nothing panics, and only addresses and checksums change.
    #[test]
    fn any_frame_is_copied(
        bytes in prop::collection::vec(any::<u8>(), 0..120),
        kind in prop::sample::select(vec![[0x08, 0x00], [0x86, 0xdd], [0x81, 0x00], [0x12, 0x34]]),
        mask: u32,
    ) {
        let mut frame = bytes;
        if let Some(place) = frame.get_mut(12..14) {
            place.copy_from_slice(&kind);
        }
        let mut copy = Vec::new();
        readdress::copy(&frame, 5, mask, &mut copy);
        let tag_bytes = if frame.len() < 12 { 0 } else { 4 };
        prop_assert_eq!(copy.len(), frame.len() + tag_bytes);
        let mut back = Vec::new();
        let mut untagged = copy;
        if tag_bytes == 4 {
            untagged.drain(12..16);
        }
        readdress::copy(&untagged, 5, mask, &mut back);
        if tag_bytes == 4 {
            back.drain(12..16);
        }
        // The checksums 0 and 0xffff are equivalent, so they may differ.
        let differ = back.iter().zip(&frame).filter(|(a, b)| a != b).count();
        prop_assert!(differ <= 4, "{:?} {:?}", frame, back);
    }
}
