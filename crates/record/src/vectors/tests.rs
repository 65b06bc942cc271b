// SPDX-License-Identifier: Apache-2.0
//! Every width of vectors does what plain code does.

use proptest::prelude::*;

use super::*;

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
            min_length_bytes,
            max_length_bytes,
            tcp_flags,
            marks: Marks(marks & marks.rotate_left(3)),
            tos,
            min_ttl,
            max_ttl,
            end_reason: end,
            padding: 0,
        }
    })
}

fn gate() -> impl Strategy<Value = MergeGate> {
    let times = || prop_oneof![Just(0), 0..8u64, any::<u64>()];
    let marks = || prop_oneof![Just(0), Just(Marks::ENDS), any::<u8>()];
    (times(), times(), times(), marks(), marks()).prop_map(
        |(oldest_first_ns, oldest_last_ns, oldest_later_ns, flow_marks, later_marks)| MergeGate {
            oldest_first_ns,
            oldest_last_ns,
            oldest_later_ns,
            flow_marks,
            later_marks,
            ..MergeGate::default()
        },
    )
}

/// Runs `work` with every width that this machine has.
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

struct Compare(MergeGate, Base, Base, [u64; 2], [u64; 2]);

impl WithVectors for Compare {
    type Output = (bool, bool);

    fn run<V: Vectors>(self, vectors: V) -> (bool, bool) {
        let passes = vectors.passes(&self.0, &self.1, &self.2);
        (passes, vectors.same_key(&self.3, &self.4))
    }
}

struct MergeIf<const K: usize>(MergeGate, MicroflowRecord<K, 8>, MicroflowRecord<K, 8>);

impl<const K: usize> WithVectors for MergeIf<K> {
    type Output = (bool, MicroflowRecord<K, 8>);

    fn run<V: Vectors>(mut self, vectors: V) -> Self::Output {
        let merged = vectors.merge_if_passes(&self.0, &mut self.1, &self.2);
        (merged, self.1)
    }
}

/// Merges by every width, where key and gate let it and where not.
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
        vectors.equal_lanes(&self.0, self.1)
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
    fn compares_as_plain_code_does(
        gate in gate(),
        flow in base(),
        later in base(),
        keys in [[0..3u64, 0..3u64], [0..3u64, 0..3u64]],
    ) {
        let [a, b] = keys;
        let expected = (gate.passes(&flow, &later), a == b);
        for machine in widths() {
            let found = machine.run(Compare(gate, flow, later, a, b));
            prop_assert_eq!(found, expected, "{:?}", machine);
        }
    }

    #[test]
    fn merges_where_key_and_gate_let_it(
        mut gate in gate(),
        mut bases in [base(), base()],
        key in any::<[u64; 5]>(),
        differs in 0..8usize,
        is_open in any::<bool>(),
    ) {
        if is_open {
            bases[1].first_ns = bases[1].first_ns.max(bases[0].first_ns);
            gate = MergeGate::default();
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
