// SPDX-License-Identifier: Apache-2.0
//! Whatever the order of records and messages, sums are those of what was sent.

use proptest::prelude::*;

use super::*;

fn usual() -> impl Strategy<Value = Usual> {
    (1u32..6, 1u64..1_000, 0u64..400_000)
        .prop_map(|(number, packets, ago_ms)| flow(number, packets, ago_ms))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn sums_do_not_depend_on_order_cuts_or_lag(
        flows in proptest::collection::vec(usual(), 1..80),
        size in 1usize..12,
        lag_s in proptest::option::of(0u64..500),
        most_records in 1usize..50,
        shuffle in proptest::collection::vec(any::<u32>(), 80),
    ) {
        let mut sequence = 0;
        let mut messages: Vec<Sent> = flows
            .chunks(size)
            .map(|chunk| {
                let sent = message(sequence, chunk);
                sequence += chunk.len() as u32;
                sent
            })
            .collect();
        let mut keyed: Vec<(u32, Sent)> = shuffle.into_iter().zip(messages.drain(..)).collect();
        keyed.sort_by_key(|(key, _)| *key);
        let config = CollectorConfig {
            lag_ns: lag_s.map(|seconds| seconds * 1_000_000_000),
            most_records,
            ..CONFIG
        };
        let outcome = run_with(keyed.into_iter().map(|(_, sent)| sent).collect(), config, None);
        let packets: u64 = flows.iter().map(|flow| flow.packets).sum();
        prop_assert_eq!(outcome.sums(), (flows.len(), packets, packets * 100));
    }

    #[test]
    fn any_bytes_are_messages_or_counted(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        version in prop_oneof![Just(5u8), Just(9), Just(10), any::<u8>()],
    ) {
        let mut message = vec![0, version];
        message.extend(&bytes);
        let outcome = run(vec![(1, message)]);
        prop_assert_eq!(outcome.counts.messages, 1);
    }
}
