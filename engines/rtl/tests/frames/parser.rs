// SPDX-License-Identifier: Apache-2.0
//! Compares the parser with its model and with `crates/packet`, on random frames.

use proptest::prelude::*;
use turboflow_engine_rtl::{
    Damage, GivenFrame, Handed, Pace, Parsed, Verdict, VerilatedParser, key_bits,
};
use turboflow_packet::{Frame, LinkType, Parser, ParserConfig};
use turboflow_record::{Family, Packet};

use crate::generate::{Random, frame};
use crate::model;

/// A frame in the form that `crates/packet` takes.
pub(crate) fn captured(frame: &GivenFrame) -> Frame<'_> {
    Frame {
        bytes: &frame.bytes,
        wire_length_bytes: frame.bytes.len() as u32,
        timestamp_ns: frame.time_ns,
        interface: 0,
        link_type: LinkType::Ethernet,
    }
}

/// Whether a packet of `crates/packet` equals that of the parser.
fn is_packet(parsed: &Parsed, packet: &Packet, is_longer: bool) -> bool {
    let arrival = &parsed.arrival;
    let words = packet.tuple.words();
    let mut key = [0; 5];
    key[..words.len()].copy_from_slice(words);
    key[words.len() - 1] &= (1 << 40) - 1;
    parsed.is_v6 == (packet.tuple.family() == Family::V6)
        && parsed.is_longer == is_longer
        && arrival.key == key
        && arrival.time_ns == packet.timestamp_ns
        && arrival.length_bytes == packet.ip_length_bytes
        && arrival.tcp_flags == packet.tcp_flags
        && arrival.ttl == packet.ttl
        && arrival.tos == packet.tos
}

/// The first difference between the parser's results and the expected ones.
pub(crate) fn difference(
    frames: &[GivenFrame],
    said: &[(Verdict, u64, u32)],
) -> Option<(usize, String)> {
    let mut parser = Parser::new(ParserConfig::default());
    if said.len() != frames.len() {
        return Some((said.len(), "nothing is said of it".to_owned()));
    }
    for (at, (frame, (verdict, time_ns, bytes))) in frames.iter().zip(said).enumerate() {
        let expected = model::verdict(frame);
        if *verdict != expected {
            return Some((at, format!("{verdict:?}, not {expected:?}")));
        }
        let is_whole = frame.bytes.len() <= 65_536 && frame.damage == Damage::None;
        if *time_ns != frame.time_ns || is_whole && *bytes as usize != frame.bytes.len() {
            return Some((at, format!("time {time_ns}, {bytes} bytes")));
        }
        let Ok(parsed) = verdict else { continue };
        let before = parser.packets_longer_than_frame();
        let packet = parser.parse(&captured(frame));
        let is_longer = parser.packets_longer_than_frame() > before;
        if !packet.is_ok_and(|packet| is_packet(parsed, &packet, is_longer)) {
            return Some((at, format!("{parsed:?}, not {packet:?}")));
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn says_what_the_software_says_or_hands_over(
        seed in any::<u64>(),
        count in 1_usize..300,
        given_of_256 in 1_u32..257,
        ready_of_256 in 1_u32..257,
    ) {
        let mut random = Random::new(seed);
        let frames: Vec<_> = (0..count).map(|_| frame(&mut random)).collect();
        let mut parser = VerilatedParser::new(seed as u32, 0);
        let pace = Pace { given_of_256: given_of_256.max(16), ready_of_256: ready_of_256.max(16) };
        let said = parser.parse(&frames, pace);
        let found = difference(&frames, &said);
        let bytes = found.as_ref().and_then(|(at, _)| frames.get(*at)).map(|frame| &frame.bytes);
        prop_assert_eq!(&found, &None, "{:02x?}", bytes);
    }
}

/// Compares the results for this many random frames, at full pace.
pub(crate) fn many(count: usize, seed: u64, fault: u32) -> Option<(usize, String)> {
    let mut random = Random::new(seed);
    let frames: Vec<_> = (0..count).map(|_| frame(&mut random)).collect();
    let said = VerilatedParser::new(1, fault).parse(&frames, Pace::FULL);
    difference(&frames, &said)
}

/// Every reason occurs, and most frames are packets.
#[test]
fn fifty_thousand_frames_at_full_pace() {
    let mut random = Random::new(7);
    let frames: Vec<_> = (0..50_000).map(|_| frame(&mut random)).collect();
    let said = VerilatedParser::new(1, 0).parse(&frames, Pace::FULL);
    let found = difference(&frames, &said);
    let of = found.as_ref().map(|(at, _)| &frames[*at].bytes);
    assert_eq!(found, None, "{of:02x?}");
    for reason in Handed::ALL {
        let count = said
            .iter()
            .filter(|(verdict, ..)| *verdict == Err(reason))
            .count();
        assert!(count >= 50, "{reason:?}: {count}");
    }
    let packets = said.iter().filter(|(verdict, ..)| verdict.is_ok());
    assert!(packets.count() > 25_000);
}

/// A frame of minimum length is one beat: a beat in every clock is a frame in every clock.
#[test]
fn takes_a_frame_in_every_clock() {
    let mut random = Random::new(3);
    let mut frames: Vec<_> = (0..10_000).map(|_| frame(&mut random)).collect();
    for given in &mut frames {
        given.bytes.resize(60, 0);
    }
    let mut parser = VerilatedParser::new(1, 0);
    let before = parser.clocks();
    let said = parser.parse(&frames, Pace::FULL);
    assert_eq!(difference(&frames, &said), None);
    let clocks = parser.clocks() - before;
    assert!(clocks <= 10_000 + 24, "{clocks} clocks for 10,000 frames");
}

/// A frame may be as long as the length field allows.
#[test]
fn a_frame_that_does_not_end_is_damaged() {
    let mut random = Random::new(5);
    let frames: Vec<_> = [65_536, 65_537, 65_600, 65_601, 200_000, 60, 61]
        .map(|count| {
            let mut given = frame(&mut random);
            given.bytes.resize(count, 0);
            given
        })
        .into();
    let said = VerilatedParser::new(1, 0).parse(&frames, Pace::FULL);
    assert_eq!(difference(&frames, &said), None);
    assert_ne!(said[0].0, Err(Handed::Damaged));
    assert_eq!(said[1].0, Err(Handed::Damaged));
}

#[test]
fn keys_are_as_wide_as_those_of_the_lines() {
    assert_eq!((key_bits::<2>(), key_bits::<5>()), (104, 296));
}
