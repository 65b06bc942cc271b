// SPDX-License-Identifier: Apache-2.0
//! Helpers shared by the tests.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "every test program uses another part"
)]

use std::io::{self, Read};
use std::path::Path;

use turboflow_capture::{CaptureFile, Counters, ReadError};
use turboflow_packet::LinkType;

/// A frame that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    pub timestamp_ns: u64,
    pub wire_length_bytes: u32,
    pub interface: u32,
    pub link_type: LinkType,
    pub bytes: Vec<u8>,
}

/// Everything that a capture delivers.
#[derive(Debug)]
pub struct Content {
    pub frames: Vec<Owned>,
    pub counters: Counters,
    pub error: Option<ReadError>,
}

impl Content {
    /// The content for comparisons, with the error as text.
    pub fn comparable(&self) -> (&[Owned], Counters, Option<String>) {
        let error = self.error.as_ref().map(|error| error.to_string());
        (&self.frames, self.counters, error)
    }
}

/// Reads a capture to its end, `limit` frames at a time, and checks the counters after each batch.
pub fn read_all(mut file: CaptureFile, limit: usize) -> Content {
    let mut frames = Vec::new();
    let mut bytes = 0;
    let error = loop {
        match file.next_batch(limit) {
            Ok(Some(batch)) => {
                assert!(!batch.frames().is_empty() && batch.frames().len() <= limit);
                for frame in batch.frames() {
                    bytes += u64::from(frame.wire_length_bytes);
                    frames.push(Owned {
                        timestamp_ns: frame.timestamp_ns,
                        wire_length_bytes: frame.wire_length_bytes,
                        interface: frame.interface,
                        link_type: frame.link_type,
                        bytes: frame.bytes.to_vec(),
                    });
                }
            }
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    assert!(
        matches!(file.next_batch(limit), Ok(None)),
        "the reader stays at its end"
    );
    let counters = file.counters();
    assert_eq!(counters.packets, frames.len() as u64);
    assert_eq!(counters.bytes, bytes);
    Content {
        frames,
        counters,
        error,
    }
}

/// Reads a capture from memory.
pub fn read_bytes(bytes: &[u8]) -> Content {
    read_all(
        CaptureFile::from_bytes("test".to_owned(), bytes.to_vec()).unwrap(),
        64,
    )
}

/// A reader that returns a few bytes at a time, as a pipe may.
pub struct Dribble {
    pub bytes: io::Cursor<Vec<u8>>,
    pub most: usize,
}

impl Dribble {
    pub fn new(bytes: &[u8], most: usize) -> Box<Self> {
        Box::new(Self {
            bytes: io::Cursor::new(bytes.to_vec()),
            most,
        })
    }
}

impl Read for Dribble {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(self.most);
        self.bytes.read(&mut buffer[..most])
    }
}

/// The real captures, as paths relative to their folder.
pub fn captures(folder: &Path) -> Vec<String> {
    let manifest = std::fs::read_to_string(folder.join("MANIFEST.tsv")).unwrap();
    manifest
        .lines()
        .skip(1)
        .filter_map(|line| line.split('\t').next())
        .map(str::to_owned)
        .collect()
}
