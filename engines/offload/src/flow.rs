// SPDX-License-Identifier: Apache-2.0
//! The key of a flow in a table: its 5-tuple, sorted, so that both directions have one key.

use turboflow_record::{Family, FiveTuple};

/// Addresses, ports and protocol, the smaller end first. `sort` in `engines/xdp/bpf/verdict.h`
/// makes the same key in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowKey {
    words: [u64; 5],
}

/// The part of the last word that holds the ports.
const PORTS: u64 = 0xffff_ffff;

impl FlowKey {
    /// The key of a 5-tuple, and whether the tuple goes from the greater end to the smaller.
    #[must_use]
    pub fn of(tuple: &FiveTuple) -> (Self, bool) {
        let words = tuple.raw_words();
        let transport = tuple.transport();
        let (from_port, to_port) = (transport & 0xffff, transport >> 16 & 0xffff);
        let turned = turned(transport);
        match tuple.family() {
            Family::V4 => {
                let (from, to) = (words[0] & PORTS, words[0] >> 32);
                match (from, from_port) > (to, to_port) {
                    false => (Self::of_words([words[0], transport, 0, 0, 0]), false),
                    true => (Self::of_words([from << 32 | to, turned, 0, 0, 0]), true),
                }
            }
            Family::V6 => {
                let [a, b, c, d] = [words[0], words[1], words[2], words[3]];
                match (a, b, from_port) > (c, d, to_port) {
                    false => (Self::of_words([a, b, c, d, transport]), false),
                    true => (Self::of_words([c, d, a, b, turned]), true),
                }
            }
        }
    }

    /// The key with these words, the smaller end first. For an IPv4 flow: two words, then zeros.
    #[must_use]
    pub const fn of_words(words: [u64; 5]) -> Self {
        Self { words }
    }

    /// The words of the key.
    #[must_use]
    pub const fn words(&self) -> [u64; 5] {
        self.words
    }

    /// The words of the 5-tuple in one direction: from the smaller end to the greater, or the
    /// reverse if `is_reversed`.
    #[must_use]
    pub const fn directed(&self, is_reversed: bool) -> [u64; 5] {
        let [a, b, c, d, e] = self.words;
        match (is_reversed, self.is_v6()) {
            (false, _) => self.words,
            (true, false) => [a.rotate_left(32), turned(b), 0, 0, 0],
            (true, true) => [c, d, a, b, turned(e)],
        }
    }

    /// Whether the flow is IPv6. The last word of an IPv6 key is never 0.
    #[must_use]
    pub const fn is_v6(&self) -> bool {
        self.words[4] != 0
    }
}

/// The word of ports and protocol in the other direction.
const fn turned(transport: u64) -> u64 {
    (transport & !PORTS) | (transport & 0xffff) << 16 | (transport >> 16 & 0xffff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::IpAddr;

    proptest! {
        #[test]
        fn both_directions_have_one_key_and_other_flows_another(
            a: u8, b: u8, ports: (u16, u16), protocol: u8, v6: bool,
        ) {
            let address = |last: u8| match v6 {
                false => IpAddr::from([10, 0, 0, last]),
                true => IpAddr::from([0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]),
            };
            let (a, b) = (address(a), address(b));
            let tuple = FiveTuple::new(a, b, ports.0, ports.1, protocol);
            let answer = FiveTuple::new(b, a, ports.1, ports.0, protocol);
            let (key, is_reversed) = FlowKey::of(&tuple);
            let (other, other_reversed) = FlowKey::of(&answer);
            prop_assert_eq!(key, other);
            prop_assert_eq!(key.is_v6(), v6);
            prop_assert_eq!(&key.directed(is_reversed), tuple.raw_words());
            if (a, ports.0) != (b, ports.1) {
                prop_assert_ne!(is_reversed, other_reversed);
            }
            let next = FiveTuple::new(a, b, ports.0, ports.1, protocol ^ 1);
            prop_assert_ne!(key, FlowKey::of(&next).0);
            if a != b && ports.0 != ports.1 {
                let crossed = FiveTuple::new(a, b, ports.1, ports.0, protocol);
                prop_assert_ne!(key, FlowKey::of(&crossed).0);
            }
        }
    }
}
