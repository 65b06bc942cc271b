// SPDX-License-Identifier: Apache-2.0
//! Sends frames of all kinds on one interface, and receives them on another.

use std::time::Duration;

use turboflow_capture::live::{Interface, InterfaceConfig, RingSize, Sender, wait};
use turboflow_packet::{Frame, LinkType};
use turboflow_testing::until;

/// A host on the sending side.
const NEAR_HOST: [u8; 6] = [2, 0, 0, 0, 0, 1];
const ANOTHER_HOST: [u8; 6] = [2, 0, 0, 0, 0, 9];
/// Last byte of the frame that marks the end.
const END: u8 = 0xee;

/// Destination addresses, and the bytes after both addresses.
const KINDS: [([u8; 6], &[u8]); 13] = [
    ([0xff; 6], &[8, 6]),                                           // ARP
    (ANOTHER_HOST, &[8, 0]),                                        // IPv4
    (NEAR_HOST, &[8, 0]),                                           // to the side that it is from
    ([0x33, 0x33, 0, 0, 0, 0xfb], &[0x86, 0xdd]),                   // IPv6 to a group
    ([1, 0, 0x5e, 0, 0, 0xfb], &[8, 0]),                            // IPv4 to a group
    ([1, 0x80, 0xc2, 0, 0, 0], &[0, 38, 0x42, 0x42, 3]),            // spanning tree
    ([1, 0x80, 0xc2, 0, 0, 2], &[0x88, 9, 1]),                      // LACP
    ([1, 0x80, 0xc2, 0, 0, 3], &[0x88, 0x8e]),                      // 802.1X
    ([1, 0x80, 0xc2, 0, 0, 0x0e], &[0x88, 0xcc]),                   // LLDP
    ([1, 0x80, 0xc2, 0, 0, 0x21], &[0x88, 0xf5]),                   // MVRP
    (ANOTHER_HOST, &[0x81, 0, 0, 7, 8, 0]),                         // VLAN 7
    (ANOTHER_HOST, &[0x88, 0xa8, 0, 9, 0x81, 0, 0, 7, 0x86, 0xdd]), // VLAN 7 in 9
    (ANOTHER_HOST, &[0x88, 0xb5]),                                  // an experiment
];

/// Frames of all kinds in turn, short ones and full-sized ones, each ending in its number.
pub(crate) fn frames(count: usize) -> Vec<Vec<u8>> {
    let frame = |number: usize| {
        let (to, behind) = KINDS[number % KINDS.len()];
        let length = match number % 3 {
            0 => 1514,
            _ => 60,
        };
        let mut frame = frame(to, behind, length);
        let at = frame.len() - 4;
        frame[at..].copy_from_slice(&(number as u32).to_le_bytes());
        frame
    };
    (0..count).map(frame).collect()
}

/// A pause frame, which no bridge may forward.
pub(crate) fn pause() -> Vec<u8> {
    frame([1, 0x80, 0xc2, 0, 0, 1], &[0x88, 8, 0, 1], 60)
}

fn frame(to: [u8; 6], behind: &[u8], length: usize) -> Vec<u8> {
    let mut frame = [&to[..], &NEAR_HOST, behind].concat();
    frame.resize(length, 0);
    frame
}

/// Number of frames sent before received ones are taken. In the worst case each takes a whole block
/// of the ring, because the kernel completes a block every millisecond; the ring has twice as many.
const AT_ONCE: usize = 16;

/// Receives frames on an interface.
pub(crate) struct Ear {
    interface: [Interface; 1],
    heard: Vec<Vec<u8>>,
}

impl Ear {
    pub(crate) fn at(name: &str) -> Self {
        let config = InterfaceConfig {
            ring: RingSize::new(8 << 20).unwrap(),
            only_incoming: true,
            latency_ms: Some(1),
            ..InterfaceConfig::default()
        };
        Self {
            interface: [Interface::open(name, &config).unwrap()],
            heard: Vec::new(),
        }
    }

    /// Sends frames from another interface.
    pub(crate) fn send(&mut self, from: &mut Sender, frames: &[Vec<u8>]) {
        for some in frames.chunks(AT_ONCE) {
            pass_on(from, some);
            self.take();
        }
    }

    /// All frames received before the one of [`end`].
    pub(crate) fn heard(&mut self) -> Vec<Vec<u8>> {
        until("the last frame has come", || {
            wait(&mut self.interface, Duration::from_millis(20)).unwrap();
            self.take();
            let last = self.heard.last();
            last.is_some_and(|frame| frame.last() == Some(&END))
        });
        self.heard.pop();
        std::mem::take(&mut self.heard)
    }

    /// Takes the frames received so far.
    fn take(&mut self) {
        while let Some(batch) = self.interface[0].next_batch() {
            let frames = batch.frames().iter();
            self.heard.extend(frames.map(|frame| frame.bytes.to_vec()));
        }
    }
}

/// Sends frames. If there are many, an [`Ear`] that only listens afterwards may lose some.
pub(crate) fn pass_on(sender: &mut Sender, frames: &[Vec<u8>]) {
    let frames = frames.iter().map(|bytes| Frame {
        bytes,
        wire_length_bytes: bytes.len() as u32,
        timestamp_ns: 0,
        interface: 0,
        link_type: LinkType::Ethernet,
    });
    let frames: Vec<_> = frames.collect();
    let mut rest = &frames[..];
    while !rest.is_empty() {
        let sent = sender.send(rest).unwrap();
        rest = &rest[sent..];
    }
}

/// Sends the frame that marks the end.
pub(crate) fn end(from: &mut Sender) {
    let mut last = frame(ANOTHER_HOST, &[0x88, 0xb5], 60);
    last[59] = END;
    pass_on(from, &[last]);
}
