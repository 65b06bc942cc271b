// SPDX-License-Identifier: Apache-2.0
//! Random frames: mostly valid ones, with all headers that the parser follows; then cut, padded or
//! damaged ones, and some with false lengths.

use turboflow_engine_rtl::{Damage, GivenFrame};

/// Pseudorandom numbers (xorshift).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn one_in(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// A frame, with its time and damage.
pub(crate) fn frame(random: &mut Random) -> GivenFrame {
    let (mut announced, mut payload) = match random.below(16) {
        0 => (random.of(&[0x0806, 0x8847, 0x0026]), random.bytes(46)),
        1..=8 => (0x0800, v4(random)),
        _ => (0x86dd, v6(random)),
    };
    if random.one_in(40) {
        announced ^= 0x0800 ^ 0x86dd;
    }
    for _ in 0..random.of(&[0, 0, 0, 1, 1, 2, 2, 3]) {
        let mut tagged = random.bytes(2);
        tagged.extend(u16::to_be_bytes(announced));
        tagged.extend(payload);
        (announced, payload) = (random.of(&[0x8100, 0x88a8, 0x9100]), tagged);
    }
    let mut bytes = random.bytes(12);
    bytes.extend(u16::to_be_bytes(announced));
    bytes.extend(payload);
    match random.below(8) {
        0 | 1 => bytes.truncate(1 + random.below(bytes.len())),
        2 | 3 => {
            let padding = random.below(46);
            bytes.extend(random.bytes(padding));
        }
        4 => {
            for _ in 0..1 + random.below(4) {
                let at = random.below(bytes.len().min(110));
                bytes[at] = random.next() as u8;
            }
        }
        _ => {}
    }
    let damage = match random.below(60) {
        0 => Damage::Marked,
        1 => Damage::Gap,
        _ => Damage::None,
    };
    GivenFrame {
        bytes,
        time_ns: random.next(),
        damage,
    }
}

/// The protocol, and the bytes of a transport header and of what follows it.
fn transport(random: &mut Random) -> (u8, Vec<u8>) {
    let protocol = match random.below(10) {
        0..=3 => 6,
        4..=6 => 17,
        7 => 132,
        _ => random.of(&[1, 33, 47, 50, 51, 58, 59, 136, 255]),
    };
    let short = random.below(24);
    let long = random.below(300);
    let count = if random.one_in(3) { short } else { long };
    (protocol, random.bytes(count))
}

/// The right length, and sometimes another one.
fn length(random: &mut Random, right: usize) -> [u8; 2] {
    let length = match random.below(24) {
        0 => 0,
        1 => random.below(40),
        2 => right + random.below(60),
        3 => random.below(65_536),
        4 => right.saturating_sub(random.below(20)),
        _ => right,
    };
    u16::to_be_bytes(length as u16)
}

fn v4(random: &mut Random) -> Vec<u8> {
    let (protocol, payload) = transport(random);
    let words = match random.below(6) {
        0 => random.below(11),
        1 => 10,
        _ => 0,
    };
    let mut ip = vec![0x45 + words as u8, random.next() as u8];
    ip.extend(length(random, 20 + 4 * words + payload.len()));
    ip.extend(random.bytes(2));
    // Not fragmented, a first fragment, or a later one.
    ip.extend(random.of(&[[0, 0], [0x40, 0], [0x40, 0], [0x20, 0], [0x20, 5], [0, 1]]));
    ip.extend([random.next() as u8, protocol, 0, 0]);
    ip.extend(random.bytes(8 + 4 * words));
    ip.extend(payload);
    if random.one_in(40) {
        ip[0] = random.next() as u8;
    }
    ip
}

fn v6(random: &mut Random) -> Vec<u8> {
    let (mut next, mut payload) = transport(random);
    for _ in 0..random.of(&[0, 0, 0, 1, 1, 2, 3, 4, 5]) {
        let kind = random.of(&[0, 43, 44, 44, 60, 60, 0, 43, 60, 51]);
        let mut header = vec![next];
        match kind {
            44 => {
                header.push(random.of(&[0, 0, 3]));
                header.extend(random.of(&[[0, 0], [0, 1], [0, 6], [0, 1], [1, 0]]));
                header.extend(random.bytes(4));
            }
            51 => {
                header.push(2);
                header.extend(random.bytes(14));
            }
            _ => {
                let blocks = random.of(&[0, 0, 0, 0, 1, 2, 5, 255]);
                header.push(blocks);
                let there = usize::from(blocks).min(random.of(&[1, 5, 255]));
                header.extend(random.bytes(6 + 8 * there));
            }
        }
        header.extend(payload);
        (next, payload) = (kind, header);
    }
    let mut ip = vec![0x60 | random.below(16) as u8];
    ip.extend(random.bytes(3));
    ip.extend(length(random, payload.len()));
    ip.extend([next, random.next() as u8]);
    ip.extend(random.bytes(32));
    ip.extend(payload);
    ip
}
