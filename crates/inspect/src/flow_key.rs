// SPDX-License-Identifier: Apache-2.0
//! The key of a flow under inspection: its 5-tuple, equal for both directions.

use turboflow_record::{Family, FiveTuple};

const TCP: u8 = 6;
const UDP: u8 = 17;
const SCTP: u8 = 132;

/// Addresses, ports and protocol, with the smaller end first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowKey {
    words: [u64; 5],
}

impl FlowKey {
    /// A key that belongs to no flow, because no 5-tuple has family 0.
    pub(crate) const NONE: Self = Self { words: [0; 5] };

    /// The key of a 5-tuple, and whether the tuple begins with the greater end.
    ///
    /// The ports are 0 for protocols without ports, even if records store ICMP's type there.
    #[must_use]
    pub fn of(tuple: &FiveTuple) -> (Self, bool) {
        let words = tuple.raw_words();
        let (source, destination) = match tuple.family() {
            Family::V4 => ([words[0] & 0xffff_ffff, 0], [words[0] >> 32, 0]),
            Family::V6 => ([words[0], words[1]], [words[2], words[3]]),
        };
        let transport = tuple.transport();
        let has_ports = matches!(tuple.protocol(), TCP | UDP | SCTP);
        let (from, to) = match has_ports {
            true => (transport & 0xffff, transport >> 16 & 0xffff),
            false => (0, 0),
        };
        let is_reversed = (source, from) > (destination, to);
        let (source, from, destination, to) = match is_reversed {
            false => (source, from, destination, to),
            true => (destination, to, source, from),
        };
        let last = (transport & !0xffff_ffff) | to << 16 | from;
        let words = [source[0], source[1], destination[0], destination[1], last];
        (Self { words }, is_reversed)
    }

    /// The protocol.
    #[must_use]
    pub const fn protocol(&self) -> u8 {
        (self.words[4] >> 32) as u8
    }

    /// A hash whose collisions cannot be chosen by a sender who does not know the seed.
    #[inline]
    #[must_use]
    pub fn hash(&self, seed: u64) -> u64 {
        const ODD: [u64; 5] = [
            0x9e37_79b9_7f4a_7c15,
            0xc2b2_ae3d_27d4_eb4f,
            0x1656_67b1_9e37_79f9,
            0x27d4_eb2f_1656_67c5,
            0x8563_58b5_2c9b_1d4d,
        ];
        let mut hash = seed;
        for (word, odd) in self.words.iter().zip(ODD) {
            let product = u128::from(word ^ hash) * u128::from(odd ^ seed.rotate_left(32) | 1);
            hash = (product as u64) ^ (product >> 64) as u64;
        }
        hash ^ hash >> 29
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::IpAddr;

    proptest! {
        #[test]
        fn both_directions_have_one_key(
            a: [u8; 4], b: [u8; 4], ports: (u16, u16), protocol: u8, v6: bool,
        ) {
            let address = |bytes: [u8; 4]| match v6 {
                false => IpAddr::from(bytes),
                true => IpAddr::from([bytes, bytes, bytes, bytes].concat_16()),
            };
            let (a, b) = (address(a), address(b));
            let tuple = FiveTuple::new(a, b, ports.0, ports.1, protocol);
            let answer = FiveTuple::new(b, a, ports.1, ports.0, protocol);
            let (key, is_reversed) = FlowKey::of(&tuple);
            let (other, other_reversed) = FlowKey::of(&answer);
            prop_assert_eq!(key, other);
            prop_assert_eq!(key.protocol(), protocol);
            prop_assert_eq!(key.hash(7), other.hash(7));
            let has_ports = matches!(protocol, TCP | UDP | SCTP);
            if a != b || has_ports && ports.0 != ports.1 {
                prop_assert_ne!(is_reversed, other_reversed);
            }
        }
    }

    trait Concat {
        fn concat_16(self) -> [u8; 16];
    }

    impl Concat for [[u8; 4]; 4] {
        fn concat_16(self) -> [u8; 16] {
            self.concat().try_into().unwrap()
        }
    }

    #[test]
    fn flows_that_differ_in_one_part_differ() {
        let a = IpAddr::from([10, 0, 0, 1]);
        let b = IpAddr::from([10, 0, 0, 2]);
        let key = |from, to, protocol| FlowKey::of(&FiveTuple::new(a, b, from, to, protocol)).0;
        assert_ne!(key(1, 2, 6), key(2, 1, 6));
        assert_ne!(key(1, 2, 6), key(1, 2, 17));
        assert_eq!(key(0, 2048, 1), key(0, 0, 1));
        assert_ne!(key(1, 2, 6), FlowKey::NONE);
    }
}
