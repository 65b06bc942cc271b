// SPDX-License-Identifier: Apache-2.0
//! Generates frames from arbitrary bytes: mostly valid ones of every kind, then truncated, padded
//! and mutated.

use proptest::prelude::*;

use super::build;

/// The ports of INT and of its reports in these frames.
pub(crate) const INT_PORT: u16 = 5_000;
pub(crate) const REPORT_PORT: u16 = 5_001;

/// A source of choices, read from arbitrary bytes. All are 0 once the bytes are used up.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn below(&mut self, limit: u8) -> u8 {
        self.byte() % limit
    }

    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&first, rest)) => {
                self.0 = rest;
                first
            }
            None => 0,
        }
    }

    fn u16(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    fn bytes(&mut self, count: u8) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }
}

/// Ethernet frames, half of them mutated.
pub(crate) fn frames() -> impl Strategy<Value = Vec<u8>> {
    let choices = prop::collection::vec(any::<u8>(), 0..160);
    let mutations = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    (choices, mutations, any::<bool>()).prop_map(|(choices, mutations, mutate)| {
        let mut frame = ethernet(&mut Choices(&choices), 0);
        if mutate && !frame.is_empty() {
            for (index, value) in mutations {
                let at = index.index(frame.len());
                frame[at] = value;
            }
        }
        frame
    })
}

fn ethernet(choices: &mut Choices<'_>, depth: u8) -> Vec<u8> {
    let (mut ether_type, mut payload) = match choices.below(12) {
        0 => (0x0806, choices.bytes(28)),
        1 => (
            0x8847,
            build::join(&[&[0, 1, 0x21, 64], &ip(choices, depth).1]),
        ),
        2 => {
            let (ether_type, datagram) = ip(choices, depth);
            let protocol: [u8; 2] = if ether_type == 0x0800 {
                [0, 0x21]
            } else {
                [0, 0x57]
            };
            (
                0x8864,
                build::join(&[&[0x11, 0, 0, 1, 0, 0], &protocol, &datagram]),
            )
        }
        3 => {
            let (ether_type, datagram) = ip(choices, depth);
            let snap = [&[0xaa, 0xaa, 3, 0, 0, 0][..], &u16::to_be_bytes(ether_type)].concat();
            (100, build::join(&[&snap, &datagram]))
        }
        _ => ip(choices, depth),
    };
    for _ in 0..choices.below(8).saturating_sub(4) {
        payload = build::tag(choices.u16(), ether_type, &payload);
        ether_type = [0x8100, 0x88a8, 0x9100][usize::from(choices.below(3))];
    }
    let mut frame = build::ethernet(ether_type, &payload);
    match choices.below(4) {
        0 => frame.truncate(usize::from(choices.byte())),
        1 => frame.extend(choices.bytes(18)),
        _ => {}
    }
    frame
}

/// Returns EtherType and datagram.
fn ip(choices: &mut Choices<'_>, depth: u8) -> (u16, Vec<u8>) {
    let (protocol, payload) = transport(choices, depth);
    if choices.below(3) == 0 {
        return (0x86dd, ipv6(choices, protocol, payload));
    }
    let mut datagram = match choices.below(6) {
        0 => {
            let words = choices.below(11);
            build::ipv4_with_options(protocol, &choices.bytes(words * 4), &payload)
        }
        1 => build::ipv4_fragment(protocol, choices.u16(), choices.u16(), &payload),
        _ => build::ipv4(protocol, &payload),
    };
    if choices.below(12) == 0 {
        datagram[2..4].copy_from_slice(&[0, choices.byte()]);
    }
    (0x0800, datagram)
}

fn ipv6(choices: &mut Choices<'_>, mut next: u8, mut payload: Vec<u8>) -> Vec<u8> {
    for _ in 0..choices.below(6).saturating_sub(2) {
        (next, payload) = match choices.below(6) {
            5 => (0, ioam(choices, next, &payload)),
            0 => (
                44,
                build::fragment(next, choices.u16() & 0x0019, 7, &payload),
            ),
            1 => (
                51,
                build::join(&[&[next, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &payload]),
            ),
            2 => (43, build::extension(next, choices.below(3), &payload)),
            3 => (0, build::extension(next, choices.below(3), &payload)),
            _ => (60, build::extension(next, choices.below(3), &payload)),
        };
    }
    let mut datagram = build::ipv6(next, &payload);
    if choices.below(12) == 0 {
        datagram[4..6].copy_from_slice(&[0, choices.below(30)]);
    }
    datagram
}

/// Returns protocol and payload, with at most three nested tunnels.
fn transport(choices: &mut Choices<'_>, depth: u8) -> (u8, Vec<u8>) {
    let more = choices.below(24);
    match choices.below(if depth < 3 { 20 } else { 8 }) {
        0..=2 => {
            let flags = choices.u16() & 0xfff;
            let options = choices.below(4) * 4;
            (
                6,
                build::tcp(flags, &choices.bytes(options), &choices.bytes(more)),
            )
        }
        3..=5 => (
            17,
            build::udp(choices.u16(), choices.u16(), &choices.bytes(more)),
        ),
        6 => (1, choices.bytes(more)),
        7 => (choices.byte(), choices.bytes(more)),
        8 => (4, ip(choices, depth + 1).1),
        9 => (41, ip(choices, depth + 1).1),
        10 => {
            let (ether_type, datagram) = ip(choices, depth + 1);
            (
                47,
                build::join(&[&[0x20, 0], &ether_type.to_be_bytes(), &[9; 4], &datagram]),
            )
        }
        11 => (
            47,
            build::join(&[&[0, 0, 0x65, 0x58], &ethernet(choices, depth + 1)]),
        ),
        12 => {
            let frame = ethernet(choices, depth + 1);
            (
                17,
                build::udp(9, 4789, &build::join(&[&[8, 0, 0, 0, 1, 2, 3, 0], &frame])),
            )
        }
        13 => {
            let frame = ethernet(choices, depth + 1);
            let header = [1, 0, 0x65, 0x58, 1, 2, 3, 0, 0, 0, 0, 0];
            (17, build::udp(9, 6081, &build::join(&[&header, &frame])))
        }
        14 => {
            let header = [0x34, 255, 0, 9, 0, 0, 0, 7, 0, 0, 0, 0x85, 1, 1, 1, 0];
            let datagram = ip(choices, depth + 1).1;
            (
                17,
                build::udp(2152, 2152, &build::join(&[&header, &datagram])),
            )
        }
        15 => (17, build::udp(9, 53, &int(choices, 0, &[0, 0]))),
        16 => (17, build::udp(9, INT_PORT, &int(choices, 1, &[0, 53]))),
        17 => {
            let int = int(choices, 2, &[0, 6]);
            let segment = build::tcp(2, &[], &choices.bytes(more));
            (17, build::udp(9, INT_PORT, &build::join(&[&int, &segment])))
        }
        18 => {
            let (ether_type, inner) = ip(choices, depth + 1);
            let kind = if ether_type == 0x0800 { 4 } else { 5 };
            let words = [0x20, 0, 0, 1, 0, 0, 0, 9, kind, 0xff, 0, 0];
            let report = build::join(&[&words, &inner]);
            (17, build::udp(9, REPORT_PORT, &report))
        }
        _ => {
            let (port, header): (u16, &[u8]) = match choices.below(2) {
                0 => (3544, &[0, 0, 1, 2, 3, 4, 5, 6]),
                _ => (1701, &[0, 2, 0, 1, 0, 2, 0, 0x21]),
            };
            let datagram = ip(choices, depth + 1).1;
            (
                17,
                build::udp(port, port, &build::join(&[header, &datagram])),
            )
        }
    }
}

/// A shim of INT, an INT header, and up to four hops with node, interfaces, latency and queue.
fn int(choices: &mut Choices<'_>, next: u8, original: &[u8; 2]) -> Vec<u8> {
    let hops = choices.below(5);
    let shim = [0x10 | next << 2, 3 + hops * 4, original[0], original[1]];
    let header = [0x20, 0, 4, 8, 0xf0, 0, 0, 0, 0, 0, 0, 0];
    build::join(&[&shim, &header, &choices.bytes(hops * 16)])
}

/// A hop-by-hop header with a pre-allocated trace of up to four nodes and room for one.
fn ioam(choices: &mut Choices<'_>, next: u8, payload: &[u8]) -> Vec<u8> {
    let nodes = choices.below(5);
    let length = 10 + 16 * (nodes + 1);
    let option = [0x31, length, 0, 0, 0, 1, 4 << 3, 4, 0b1100_1010, 0, 0, 0];
    let header = [next, (nodes + 1) * 2 + 1, 1, 0];
    let data = build::join(&[&[0; 16], &choices.bytes(nodes * 16)]);
    build::join(&[&header[..4], &option, &data, payload])
}
