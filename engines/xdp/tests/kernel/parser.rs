// SPDX-License-Identifier: Apache-2.0
//! The program parses every frame of every capture as `crates/packet` does.

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use turboflow_engine_xdp::{KernelConfig, KernelEngine, Tested, TestedProgram};
use turboflow_packet::{Parser, ParserConfig, Rejected};
use turboflow_record::{Packet, TCP_ACK};

use crate::build::{self, extension, ipv4, ipv6, udp};
use crate::generate;
use crate::support::{
    Captured, ETHERNET_HEADER_BYTES, VERDICT_PASS, captures, config, frame, frames_of, is_runnable,
    load, tcp,
};

fn with_parser() -> KernelConfig {
    KernelConfig {
        tested: Some(Tested::default()),
        ..config(1)
    }
}

/// The result of parsing a frame.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Packet {
        key: [u64; 5],
        ip_length_bytes: u32,
        tcp_flags: u16,
        ttl: u8,
        tos: u8,
    },
    Rejected(Rejected),
}

fn in_user_space(bytes: &[u8]) -> Outcome {
    match Parser::new(ParserConfig::default()).parse(&frame(bytes)) {
        Ok(Packet {
            tuple,
            ip_length_bytes,
            tcp_flags,
            ttl,
            tos,
            ..
        }) => Outcome::Packet {
            key: *tuple.raw_words(),
            ip_length_bytes,
            tcp_flags,
            ttl,
            tos,
        },
        Err(reason) => Outcome::Rejected(reason),
    }
}

fn in_kernel(engine: &KernelEngine, bytes: &[u8]) -> Outcome {
    let run = engine
        .tester()
        .run(TestedProgram::Parse, bytes, 1)
        .unwrap_or_else(|error| panic!("{} bytes: {error}", bytes.len()));
    assert_eq!(run.verdict, VERDICT_PASS);
    let outcome = engine.tester().parsed().unwrap();
    let (words, _) = outcome.as_chunks::<8>();
    let [key @ .., rest, reason] = std::array::from_fn::<_, 7, _>(|i| u64::from_le_bytes(words[i]));
    match usize::try_from(reason as i64) {
        Ok(reason) => Outcome::Rejected(Rejected::ALL[reason]),
        Err(_) => Outcome::Packet {
            key,
            ip_length_bytes: rest as u32,
            tcp_flags: (rest >> 32) as u16,
            ttl: (rest >> 48) as u8,
            tos: (rest >> 56) as u8,
        },
    }
}

/// Exceptions are listed and counted: frames of a length that test runs do not accept, frames of
/// other links than Ethernet, and the rest of captures that cannot be read to the end.
#[test]
fn every_frame_of_every_capture() {
    let Some(engine) = load(&with_parser()) else {
        return;
    };
    let (mut alike, mut rejected, mut unrunnable) = (0u64, 0u64, Vec::new());
    let (mut of_other_links, mut unread) = (0u64, Vec::new());
    for path in captures() {
        let captured = Captured::of(&path);
        of_other_links += captured.of_other_links;
        unread.extend(
            captured
                .unread
                .map(|why| format!("{}: {why}", path.display())),
        );
        for (number, bytes) in (1..).zip(captured.frames) {
            if !is_runnable(&bytes) {
                unrunnable.push(bytes.len());
                continue;
            }
            let expected = in_user_space(&bytes);
            let found = in_kernel(&engine, &bytes);
            assert_eq!(found, expected, "{}, frame {number}", path.display());
            alike += 1;
            rejected += u64::from(matches!(found, Outcome::Rejected(_)));
        }
    }
    eprintln!(
        "{alike} frames read alike, {rejected} of them no packets; {} of these lengths cannot be run: {unrunnable:?}",
        unrunnable.len()
    );
    eprintln!(
        "{of_other_links} frames of other links; {} captures not read to the end:\n{}",
        unread.len(),
        unread.join("\n")
    );
    assert!(alike > 100 && rejected > 0);
    assert!(
        of_other_links * 10 < alike && unread.len() < 40,
        "few are left out"
    );
    assert!(unrunnable.len() as u64 * 1_000 < alike, "few are left out");
}

/// Frames cut at every length, and with every first nibble, ether type and length field.
#[test]
fn mutated_frames() {
    let Some(engine) = load(&with_parser()) else {
        return;
    };
    let mut seeds: Vec<Vec<u8>> = vec![tcp(1, TCP_ACK as u8)];
    for path in captures() {
        if path.to_string_lossy().contains("samples/cases") {
            seeds.extend(frames_of(&path).into_iter().take(3));
        }
    }
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut below = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound as u64) as usize
    };
    for seed in &seeds {
        for _ in 0..40 {
            let mut bytes = seed.clone();
            for _ in 0..=below(3) {
                let at = 12 + below(bytes.len().min(80) - 12);
                bytes[at] = [0, 0x45, 0x60, 0x88, 0xff, below(256) as u8][below(6)];
            }
            if below(2) == 0 {
                bytes.truncate(ETHERNET_HEADER_BYTES + below(bytes.len() - ETHERNET_HEADER_BYTES));
            }
            let (found, expected) = (in_kernel(&engine, &bytes), in_user_space(&bytes));
            assert_eq!(found, expected, "{bytes:02x?}");
        }
    }
}

fn alike(engine: &KernelEngine, bytes: &[u8]) -> Outcome {
    let (found, expected) = (in_kernel(engine, bytes), in_user_space(bytes));
    assert_eq!(found, expected, "{bytes:02x?}");
    found
}

/// Frames of every kind, half of them damaged, from the generator of the parser's tests.
#[test]
fn generated_frames() {
    let Some(engine) = load(&with_parser()) else {
        return;
    };
    let mut runner = TestRunner::deterministic();
    let strategy = generate::frames();
    let (mut packets, mut rejected) = (0, 0);
    for _ in 0..20_000 {
        let bytes = strategy.new_tree(&mut runner).unwrap().current();
        if !is_runnable(&bytes) {
            continue;
        }
        match alike(&engine, &bytes) {
            Outcome::Packet { .. } => packets += 1,
            Outcome::Rejected(_) => rejected += 1,
        }
    }
    assert!(packets > 5_000 && rejected > 1_000, "{packets} {rejected}");
}

/// Handmade frames: 802.2 headers, PPPoE with protocol fields of one and two bytes, MPLS labels in
/// PPP.
#[test]
fn link_headers_of_every_kind() {
    let Some(engine) = load(&with_parser()) else {
        return;
    };
    let datagram = ipv4(17, &udp(7, 9, &[1; 20]));
    let v4_behind: [&[u8]; 5] = [
        &[0x00, 60, 0xaa, 0xaa, 0x03, 0, 0, 0, 0x08, 0x00],
        &[0x00, 60, 0xaa, 0xaa, 0x03, 0, 0, 0xf8, 0x08, 0x00],
        &[0x05, 0xdc, 0x06, 0x06, 0x03],
        &[0x88, 0x64, 0x11, 0, 0, 1, 0, 50, 0x21],
        &[0x88, 0x64, 0x11, 0, 0, 1, 0, 50, 0x02, 0x81, 0, 0, 0x11, 64],
    ];
    let nothing_behind: [&[u8]; 7] = [
        &[0x00, 60, 0xaa, 0xaa, 0x03, 0, 0, 1, 0x08, 0x00],
        &[0x00, 60, 0xaa, 0xaa, 0x03, 0, 0, 0, 0x00, 0x28],
        &[0x00, 60, 0xaa, 0xaa, 0x04, 0, 0, 0, 0x08, 0x00],
        &[0x00, 60, 0x42, 0x42, 0x03],
        &[0x05, 0xdd],
        &[0x88, 0x64, 0x11, 0, 0, 1, 0, 50, 0xc0, 0x21],
        &[0x88, 0x47, 0, 0, 0x11, 64, 0],
    ];
    for (headers, is_packet) in v4_behind
        .map(|headers| (headers, true))
        .into_iter()
        .chain(nothing_behind.map(|headers| (headers, false)))
    {
        let whole = build::join(&[&[2; 12], headers, &datagram]);
        let found = alike(&engine, &whole);
        assert_eq!(
            matches!(found, Outcome::Packet { .. }),
            is_packet,
            "{headers:02x?}"
        );
        (ETHERNET_HEADER_BYTES..whole.len()).for_each(|cut| {
            alike(&engine, &whole[..cut]);
        });
    }
}

/// Jumbo options after others, cut anywhere; and chains of extension headers up to and past the
/// limit.
#[test]
fn extension_headers() {
    let Some(engine) = load(&with_parser()) else {
        return;
    };
    let behind = udp(7, 9, &[1; 20]);
    for options in [
        [0xc2, 4, 0, 1, 0x86, 0xa0, 0, 0, 0, 0, 0, 0, 0, 0],
        [0, 1, 0, 5, 2, 1, 1, 0xc2, 4, 0xff, 0xff, 0xff, 0xff, 0],
        [1, 2, 7, 7, 0xc2, 3, 0, 0, 1, 0, 0, 0, 0, 0],
        [1, 200, 0xc2, 4, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xc2, 4],
    ] {
        let hop_by_hop = build::join(&[&[17, 1], &options, &behind]);
        let mut whole = build::ethernet(0x86dd, &ipv6(0, &hop_by_hop));
        whole[18..20].fill(0);
        (ETHERNET_HEADER_BYTES..=whole.len()).for_each(|cut| {
            alike(&engine, &whole[..cut]);
        });
    }
    for count in [1, 2, 255, 256, 257, 300] {
        let chain = (0..count).fold((17, behind.clone()), |(next, payload), _| {
            (60, extension(next, 0, &payload))
        });
        let whole = build::ethernet(0x86dd, &ipv6(chain.0, &chain.1));
        let found = alike(&engine, &whole);
        let udp_was_reached =
            matches!(found, Outcome::Packet { key, .. } if key[4] >> 32 & 0xff == 17);
        assert_eq!(udp_was_reached, count <= 256, "{count}");
    }
}

/// Tags and labels up to the limit, and one more.
#[test]
fn link_headers_up_to_the_limit() {
    let Some(engine) = load(&with_parser()) else {
        return;
    };
    let plain = tcp(1, TCP_ACK as u8);
    for count in [1, 2, 3, 255, 256, 257, 300] {
        let mut tagged = plain[..12].to_vec();
        (0..count).for_each(|_| tagged.extend([0x81, 0, 0, 5]));
        tagged.extend(&plain[12..]);
        let mut labelled = plain[..12].to_vec();
        labelled.extend([0x88, 0x47]);
        (1..count).for_each(|_| labelled.extend([0, 0, 0x10, 64]));
        labelled.extend([0, 0, 0x11, 64]);
        labelled.extend(&plain[14..]);
        for bytes in [tagged, labelled] {
            let found = in_kernel(&engine, &bytes);
            assert_eq!(found, in_user_space(&bytes), "{count}");
            assert_eq!(
                found == Outcome::Rejected(Rejected::TagDepthExceeded),
                count > 256 || (count == 256 && bytes[12] == 0x81),
                "{count}"
            );
        }
    }
}
