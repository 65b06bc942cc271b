// SPDX-License-Identifier: Apache-2.0
//! Frames that are not packets are handed up whole on request.

use turboflow_engine_xdp::{HandUp, KernelConfig, KernelEngine};
use turboflow_packet::{Parser, ParserConfig};

use crate::support::{captures, config, frame, frames_of, is_runnable, load, meter, wall_ns};

const PAGE_BYTES: u32 = 4_096;

fn asking(hand_up: HandUp) -> KernelConfig {
    KernelConfig {
        hand_up: Some(hand_up),
        ..config(8)
    }
}

/// The frames handed up, with their lengths on the wire.
fn handed_up(engine: &mut KernelEngine) -> Vec<(Vec<u8>, u32)> {
    let (mut frames, now_ns) = (Vec::new(), wall_ns());
    engine.take_unparsed(|frame| {
        assert!(now_ns.abs_diff(frame.timestamp_ns) < 600_000_000_000);
        frames.push((frame.bytes.to_vec(), frame.wire_length_bytes));
    });
    frames
}

#[test]
fn all_that_no_flow_has_comes_up_whole() {
    let hand_up = HandUp {
        snap_bytes: HandUp::MAX_SNAP_BYTES,
        ring_bytes: 1 << 20,
    };
    let Some(mut engine) = load(&asking(hand_up)) else {
        return;
    };
    let mut parser = Parser::new(ParserConfig::default());
    let mut compared = 0;
    for path in captures() {
        for bytes in frames_of(&path).iter().filter(|bytes| is_runnable(bytes)) {
            meter(&engine, bytes);
            let came = handed_up(&mut engine);
            if parser.parse(&frame(bytes)).is_ok() {
                assert!(came.is_empty());
                continue;
            }
            let kept = bytes.len().min(HandUp::MAX_SNAP_BYTES as usize);
            assert!(came == [(bytes[..kept].to_vec(), bytes.len() as u32)]);
            compared += 1;
        }
    }
    assert!(compared >= 31, "{compared}");
    assert_eq!(engine.unparsed_lost().unwrap(), 0);
}

/// Far past the ring's end, in items of different lengths, which wrap at different offsets.
#[test]
fn what_has_room_comes_up_in_order_and_the_rest_is_counted() {
    let hand_up = HandUp {
        snap_bytes: 900,
        ring_bytes: PAGE_BYTES,
    };
    let Some(mut engine) = load(&asking(hand_up)) else {
        return;
    };
    let (mut sent, mut came, mut most) = (0u64, 0, 0);
    for round in 0..200_usize {
        for number in 0..round % 11 {
            let mut bytes = vec![0x99; 60 + (round * 37 + number * 101) % 1_000];
            bytes[..8].copy_from_slice(&sent.to_ne_bytes());
            meter(&engine, &bytes);
            sent += 1;
        }
        let frames = handed_up(&mut engine);
        most = most.max(frames.len());
        came += frames.len() as u64;
        for pair in frames.windows(2) {
            let number = |at: usize| u64::from_ne_bytes(pair[at].0[..8].try_into().unwrap());
            assert!(number(0) < number(1));
        }
        for (bytes, wire_length_bytes) in frames {
            assert_eq!(bytes.len(), (wire_length_bytes as usize).min(900));
            assert!(bytes[12..].iter().all(|byte| *byte == 0x99));
        }
    }
    let lost = engine.unparsed_lost().unwrap();
    assert_eq!(came + lost, sent);
    assert!(lost > 0 && came > 300 && most > 3, "{lost} {came} {most}");
}

#[test]
fn without_a_request_no_frame_is_handed_up() {
    let Some(mut engine) = load(&config(8)) else {
        return;
    };
    meter(&engine, &[0x99; 60]);
    assert!(handed_up(&mut engine).is_empty());
    assert_eq!(engine.unparsed_lost().unwrap(), 0);
}
