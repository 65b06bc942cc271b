// SPDX-License-Identifier: Apache-2.0
//! Conservation under orders, full tables, slow cards, late events, and rows that come and go.

use proptest::prelude::*;
use turboflow_engine_offload::model::CardProfile;
use turboflow_workload::random::Random;

use crate::world::{MS, SECOND, World, key, packet};

/// Random packets of `flows` flows for some time, with rows removed in between; then silence until
/// all rows are gone.
fn run(profile: CardProfile, flows: u32, packets: u32, seed: u64) -> World {
    let mut world = World::new(profile, 3, true);
    let mut random = Random::new(seed);
    let mut now_ns = 0;
    for number in 0..packets {
        now_ns += random.below(20_000);
        let flow = random.below(flows.into()) as u32;
        world.packet(&packet(flow, random.below(2) == 1), now_ns);
        if random.below(50) == 0 {
            world.remove(key(random.below(flows.into()) as u32));
        }
        if number % 1_000 == 0 {
            world.collect();
        }
    }
    for _ in 0..200 {
        now_ns += SECOND / 4;
        world.step(now_ns);
    }
    world.check_conservation();
    let counts = world.counts();
    assert_eq!(world.card.rows(), 0, "silent flows have no rows");
    assert_eq!(counts.rows_open(), 0, "each ended once: {counts:?}");
    assert_eq!(
        counts.taps_read,
        counts.taps_decided + counts.taps_undecided + counts.taps_unheard
    );
    world
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn every_packet_is_counted_once(
        rows in 1u32..400,
        flows in 1u32..400,
        learning_rate in 50u64..1_000_000,
        delay_ns in 0u64..20 * MS,
        drain_ns in 0u64..20 * MS,
        lag_ns in 0u64..SECOND,
        ways in 1u32..=4,
        slots in 1u32..=8,
        seed: u64,
    ) {
        let profile = CardProfile {
            rows,
            learning_rate,
            programming_delay_ns: delay_ns,
            drain_ns,
            event_lag_ns: lag_ns,
            ways,
            slots,
            seed,
            ..CardProfile::default()
        };
        run(profile, flows, 8_000, seed);
    }
}

#[test]
fn a_full_card_refuses_and_counts() {
    let profile = CardProfile {
        rows: 100,
        ..CardProfile::default()
    };
    let world = run(profile, 1_000, 100_000, 1);
    let counts = world.counts();
    assert!(counts.refused_full > 1_000, "{counts:?}");
    assert_eq!((counts.refused_too_fast, counts.refused_failed), (0, 0));
    // Cuckoo tables with two ways and four slots per bucket take nearly all rows.
    assert!(counts.rows_begun >= 90, "{counts:?}");
}

#[test]
fn a_slow_card_refuses_and_counts() {
    let profile = CardProfile {
        rows: 10_000,
        learning_rate: 100,
        ..CardProfile::default()
    };
    let counts = run(profile, 1_000, 20_000, 1).counts();
    assert!(counts.refused_too_fast > 1_000, "{counts:?}");
    assert_eq!(counts.refused_full, 0);
}

#[test]
fn a_card_does_the_same_each_time() {
    let profile = CardProfile {
        rows: 200,
        ..CardProfile::default()
    };
    let [one, other] = [5, 5].map(|seed| run(profile, 300, 20_000, seed));
    assert_eq!(one.counts(), other.counts());
    assert_eq!(one.by_card, other.by_card);
    assert_ne!(run(profile, 300, 20_000, 6).by_card, one.by_card);
}
