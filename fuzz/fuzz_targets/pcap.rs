// SPDX-License-Identifier: Apache-2.0
//! Classic pcap from hostile bytes: no panic, no more bytes out than in, and equal results from
//! memory and from a stream.
#![no_main]

use std::io::{Cursor, Read};

use libfuzzer_sys::fuzz_target;
use turboflow_capture::CaptureFile;

/// A reader that returns a few bytes at a time.
struct Dribble(Cursor<Vec<u8>>);

impl Read for Dribble {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let most = buffer.len().min(37);
        self.0.read(&mut buffer[..most])
    }
}

/// A frame for comparisons; the last element holds the bytes.
type SeenFrame = (u64, u32, u32, Vec<u8>);

fn read_all(mut file: CaptureFile, limit: usize) -> (Vec<SeenFrame>, Option<String>) {
    let mut seen = Vec::new();
    let error = loop {
        match file.next_batch(limit) {
            Ok(Some(batch)) => seen.extend(batch.frames().iter().map(|frame| {
                let bytes = frame.bytes.to_vec();
                (
                    frame.timestamp_ns,
                    frame.wire_length_bytes,
                    frame.interface,
                    bytes,
                )
            })),
            Ok(None) => break None,
            Err(error) => break Some(error.to_string()),
        }
    };
    assert_eq!(file.counters().packets, seen.len() as u64);
    (seen, error)
}

fuzz_target!(|data: &[u8]| {
    // A known magic number first, so that the fuzzer need not find one.
    const MAGICS: [[u8; 4]; 4] = [
        [0xd4, 0xc3, 0xb2, 0xa1],
        [0xa1, 0xb2, 0xc3, 0xd4],
        [0x4d, 0x3c, 0xb2, 0xa1],
        [0xa1, 0xb2, 0xcd, 0x34],
    ];
    let Some((choice, rest)) = data.split_first() else {
        return;
    };
    let bytes = [&MAGICS[usize::from(*choice) % MAGICS.len()][..], rest].concat();
    let memory = CaptureFile::from_bytes("fuzz".to_owned(), bytes.clone());
    let reader = Box::new(Dribble(Cursor::new(bytes.clone())));
    let stream = CaptureFile::from_reader("fuzz".to_owned(), reader);
    match (memory, stream) {
        (Ok(memory), Ok(stream)) => {
            let memory = read_all(memory, 5);
            let delivered: usize = memory.0.iter().map(|frame| frame.3.len() + 16).sum();
            assert!(delivered <= bytes.len(), "no more bytes out than in");
            assert_eq!(memory, read_all(stream, 64));
        }
        (Err(memory), Err(stream)) => assert_eq!(memory.to_string(), stream.to_string()),
        (memory, stream) => panic!("{memory:?} but {stream:?}"),
    }
});
