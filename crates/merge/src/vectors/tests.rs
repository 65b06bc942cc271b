// SPDX-License-Identifier: Apache-2.0
//! Every vector width gives the results of plain code.

use proptest::prelude::*;

use super::*;
use crate::{Complement, KeyHasher, LaneHash, LaneHasher, Marks};

fn base() -> impl Strategy<Value = Base> {
    let times = prop_oneof![0..8u64, any::<u64>()];
    let words = (any::<u32>(), any::<u32>(), times.clone(), times);
    let small = (any::<u32>(), any::<u32>(), any::<u16>(), any::<[u8; 5]>());
    (words, small).prop_map(|((packets, bytes, first_ns, last_ns), small)| {
        let (min_length_bytes, max_length_bytes, tcp_flags, [marks, tos, min_ttl, max_ttl, end]) =
            small;
        Base {
            packets: u64::from(packets),
            bytes: u64::from(bytes),
            first_ns,
            last_ns,
            min_length_bytes: Complement::of(min_length_bytes),
            max_length_bytes,
            tcp_flags,
            marks: Marks(marks & marks.rotate_left(3)),
            tos,
            min_ttl: Complement::of(min_ttl),
            max_ttl,
            end_reason: end,
            has_other: 0,
        }
    })
}

/// Gates, some of them closed.
fn gate() -> impl Strategy<Value = MergeGate> {
    let times = || prop_oneof![Just(0), 0..8u64, any::<u64>()];
    (times(), times(), times(), any::<bool>()).prop_map(
        |(from_ns, since_first_ns, since_last_ns, without_ends)| {
            let gate = MergeGate::new(from_ns, since_first_ns, since_last_ns);
            if without_ends {
                gate.without_ends()
            } else {
                gate
            }
        },
    )
}

/// Moves the times of a record to the lower half of their range.
fn before_2262(mut base: Base) -> Base {
    base.first_ns &= u64::MAX >> 1;
    base.last_ns &= u64::MAX >> 1;
    base
}

/// The vector widths that this machine has.
fn widths() -> Vec<Machine> {
    let mut widths = vec![Machine::Plain(Plain)];
    #[cfg(target_arch = "x86_64")]
    {
        widths.extend(Avx2::detect().map(Machine::Avx2));
        widths.extend(Avx512::detect().map(Machine::Avx512));
    }
    widths
}

struct Merge(Base, Base);

impl WithVectors for Merge {
    type Output = Base;

    fn run<V: Vectors>(mut self, vectors: V) -> Base {
        vectors.merge_in_order(&mut self.0, &self.1);
        self.0
    }
}

struct Compare([u64; 2], [u64; 2]);

impl WithVectors for Compare {
    type Output = bool;

    fn run<V: Vectors>(self, vectors: V) -> bool {
        vectors.same_key(&self.0, &self.1)
    }
}

struct Hash<'a, const K: usize>(LaneHasher<K>, &'a [MicroflowRecord<K, 8>; LANES]);

impl<const K: usize> WithVectors for Hash<'_, K> {
    type Output = ([LaneHash; LANES], [u32; LANES]);

    fn run<V: Vectors>(self, vectors: V) -> Self::Output {
        let (mut hashes, mut twice) = ([0; LANES], [0; LANES]);
        let words = self.0.hash_keys(vectors, self.1);
        words.store(&mut hashes);
        words.third_quarters_twice().store(&mut twice);
        (hashes.map(LaneHash), twice.map(|word| word as u32))
    }
}

fn hashes_as_plain_code_does<const K: usize>(seed: u64, keys: [[u64; K]; LANES]) {
    let hasher = LaneHasher::new(&KeyHasher::new(seed));
    let records = keys.map(|key| MicroflowRecord {
        key,
        ..MicroflowRecord::default()
    });
    for machine in widths() {
        let found = machine.run(Hash(hasher, &records));
        let hashes = keys.map(|key| hasher.hash(&key));
        let twice = hashes.map(|LaneHash(hash)| (hash >> 32 & 0xffff) as u32 * 0x1_0001);
        assert_eq!(found, (hashes, twice), "{machine:?}");
    }
}

struct MergeIf<const K: usize>(MergeGate, MicroflowRecord<K, 8>, MicroflowRecord<K, 8>);

impl<const K: usize> WithVectors for MergeIf<K> {
    type Output = (bool, MicroflowRecord<K, 8>);

    fn run<V: Vectors>(mut self, vectors: V) -> Self::Output {
        let gate = vectors.gate(&self.0);
        let merged = vectors.merge_if_passes(&gate, &mut self.1, &self.2);
        (merged, self.1)
    }
}

/// Merges with every width, whether or not key and gate allow it.
fn merges_if_passes<const K: usize>(
    gate: MergeGate,
    key: [u64; K],
    bases: [Base; 2],
    differs: usize,
) {
    let [base, later] = bases;
    let state = [7; 8];
    let flow = MicroflowRecord { key, base, state };
    let mut other = key;
    if let Some(word) = other.get_mut(differs) {
        *word ^= 1 << 63;
    }
    let passes = key == other && gate.passes(&base, &later);
    let mut expected = flow;
    if passes {
        expected.base.merge(&later);
    }
    let later = MicroflowRecord {
        key: other,
        base: later,
        state: [9; 8],
    };
    for machine in widths() {
        let found = machine.run(MergeIf(gate, flow, later));
        assert_eq!(found, (passes, expected), "{machine:?}");
    }
}

struct Lanes([u16; 32], u16);

impl WithVectors for Lanes {
    type Output = u32;

    fn run<V: Vectors>(self, vectors: V) -> u32 {
        vectors.equal_lanes(&self.0, u32::from(self.1) * 0x1_0001)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn merges_as_plain_code_does(flow in base(), mut later in base()) {
        later.first_ns = later.first_ns.max(flow.first_ns);
        let mut expected = flow;
        expected.merge(&later);
        for machine in widths() {
            prop_assert_eq!(machine.run(Merge(flow, later)), expected, "{:?}", machine);
        }
    }

    #[test]
    fn compares_as_plain_code_does(a in [0..3u64, 0..3u64], b in [0..3u64, 0..3u64]) {
        for machine in widths() {
            prop_assert_eq!(machine.run(Compare(a, b)), a == b, "{:?}", machine);
        }
    }

    #[test]
    fn hashes_keys_as_plain_code(seed in any::<u64>(), keys in any::<[[u64; 2]; LANES]>(), of_v6 in any::<[[u64; 5]; LANES]>()) {
        hashes_as_plain_code_does(seed, keys);
        hashes_as_plain_code_does(seed, of_v6);
    }

    #[test]
    fn merges_where_key_and_gate_allow_it(
        mut gate in gate(),
        mut bases in [base(), base()],
        key in any::<[u64; 5]>(),
        differs in 0..8usize,
        is_open in any::<bool>(),
    ) {
        // Gates are correct only for these times.
        bases = bases.map(before_2262);
        if is_open {
            bases[1].first_ns = bases[1].first_ns.max(bases[0].first_ns);
            bases[1].last_ns = bases[1].last_ns.max(bases[0].last_ns);
            let open = MergeGate::new(0, MergeGate::UNLIMITED_NS, MergeGate::UNLIMITED_NS);
            gate = if differs % 2 == 0 { open.without_ends() } else { open };
        }
        merges_if_passes(gate, [key[0], key[1]], bases, differs);
        merges_if_passes(gate, key, bases, differs);
    }

    #[test]
    fn finds_equal_lanes(lanes in proptest::array::uniform32(0..4u16), value in 0..4u16) {
        let expected = (0..32).filter(|&lane| lanes[lane] == value);
        let expected = expected.fold(0, |mask, lane| mask | 1u32 << lane);
        for machine in widths() {
            prop_assert_eq!(machine.run(Lanes(lanes, value)), expected, "{:?}", machine);
        }
    }
}
