// SPDX-License-Identifier: Apache-2.0
//! The program reads every frame of every capture as `crates/packet` does.

use turboflow_engine_xdp::{KernelConfig, KernelEngine, TestedProgram};
use turboflow_packet::{Parser, ParserConfig, Rejected};
use turboflow_record::{Packet, TCP_ACK};

use crate::support::{
    ETHERNET_HEADER_BYTES, VERDICT_PASS, captures, config, frame, frames_of, is_runnable, load, tcp,
};

fn with_parser() -> KernelConfig {
    KernelConfig {
        loads_tested_programs: true,
        ..config(1)
    }
}

/// What the two may say of a frame.
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
        .test_run(TestedProgram::Parse, bytes, 1)
        .unwrap_or_else(|error| panic!("{} bytes: {error}", bytes.len()));
    assert_eq!(run.verdict, VERDICT_PASS);
    let outcome = engine.parsed().unwrap();
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

/// The one exception: frames of a length that test runs do not take.
#[test]
fn every_frame_of_every_capture() {
    let Some(engine) = load(&with_parser()) else {
        return;
    };
    let (mut alike, mut rejected, mut unrunnable) = (0u64, 0u64, Vec::new());
    for path in captures() {
        for (number, bytes) in (1..).zip(frames_of(&path)) {
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
    assert!(alike > 100 && rejected > 0);
    assert!(unrunnable.len() as u64 * 1_000 < alike, "few are left out");
}

/// Every length of a frame that a capture cut, and every first nibble, ether type and length field.
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

/// Tags and labels up to the limit and one past it.
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
