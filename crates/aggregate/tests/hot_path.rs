// SPDX-License-Identifier: Apache-2.0
//! Compares the prefetching hot path with merging one record at a time, for more flows than fit
//! into a chunk or a table of one size. Also tests a full cache.

use proptest::prelude::*;
use turboflow_aggregate::{CacheConfig, Cell, FlowCache, Timeouts, Way};
use turboflow_merge::{Base, Complement, KeyHasher, Layout, Marks, MicroflowRecord};
use turboflow_record::{Definition, Feature, Input, Op};

type Record<const N: usize> = MicroflowRecord<2, N>;

fn cache<const N: usize>(
    layout: &Layout,
    max_flows: usize,
    timeouts: Timeouts,
    seed: u64,
) -> FlowCache<2, N> {
    let config = CacheConfig {
        timeouts,
        max_flows,
        ending_fins: layout.ending_fins(),
        sweep_ns: 50,
    };
    FlowCache::new(config, layout.plan().clone(), KeyHasher::new(seed))
}

/// Generates microflow records of `flows` flows with increasing times.
struct Stream {
    state: u64,
    now_ns: u64,
    flows: u64,
    is_two_way: bool,
}

impl Stream {
    fn next<const N: usize>(&mut self) -> Record<N> {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let random = self.state >> 33;
        self.now_ns += random % 3;
        let mut record = Record::<N> {
            key: [self.state % self.flows + 1, 0x0406_0000_0000],
            ..Record::default()
        };
        record.base.packets = 1 + random % 4;
        record.base.bytes = 40 * record.base.packets + random % 1_000;
        record.base.first_ns = self.now_ns;
        record.base.last_ns = self.now_ns;
        record.base.min_length_bytes = Complement::of(40 + (random % 50) as u32);
        record.base.max_length_bytes = 900 + (random % 500) as u32;
        record.base.tcp_flags = 1 << (random % 9);
        record.base.marks = Marks(match random % 40 {
            0 => Marks::FIN,
            1 => Marks::RST,
            2 | 3 => Marks::STARTS_WITH_SYN | Marks::SYN,
            _ => 0,
        });
        record.base.tos = random as u8;
        record.base.min_ttl = Complement::of((random % 60) as u8);
        record.base.max_ttl = 100 + (random % 60) as u8;
        record.state = std::array::from_fn(|word| random.wrapping_mul(word as u64 + 3) % 1_000);
        if self.is_two_way {
            Self::direct(&mut record, random);
        }
        record
    }

    /// Gives a record in the two-way form its direction. Some records also get packets of the other
    /// direction; the states of all others are not in use.
    fn direct<const N: usize>(record: &mut Record<N>, random: u64) {
        let base = &mut record.base;
        if random & 64 != 0 {
            base.marks.0 |= Marks::STARTS_REVERSED;
        }
        if random.is_multiple_of(7) {
            let other = Base {
                packets: 2,
                marks: Marks(0),
                ..*base
            };
            (base.packets, base.bytes) = (base.packets + 2, base.bytes + other.bytes);
            base.has_other = 1;
            let state = other
                .words()
                .into_iter()
                .chain([base.first_ns, base.last_ns]);
            for (word, value) in record.state.iter_mut().zip(state) {
                *word = value;
            }
        }
    }
}

fn compare<const N: usize>(
    layout: &Layout,
    seed: u64,
    flows: u64,
    records: usize,
    batch: usize,
    timeouts: Timeouts,
    way: Option<Way>,
) {
    let mut fast = cache::<N>(layout, 100_000, timeouts, seed);
    if let Some(way) = way {
        fast = fast.always(way);
    }
    let mut careful = cache::<N>(layout, 100_000, timeouts, !seed);
    let (mut left, mut right) = (Vec::new(), Vec::new());
    let mut stream = Stream {
        state: seed,
        now_ns: 1_000,
        flows,
        is_two_way: layout.is_two_way(),
    };
    let mut pending: Vec<Record<N>> = Vec::new();
    let cell_ns = timeouts.cell_ns(1_000);
    let mut cell = Cell::default();
    for _ in 0..records {
        let record = stream.next::<N>();
        let watermark_ns = record.base.first_ns / cell_ns * cell_ns;
        if watermark_ns != cell.watermark_ns {
            fast.merge(&pending, &mut left);
            pending.clear();
            cell = Cell {
                watermark_ns,
                end_ns: watermark_ns + cell_ns,
            };
            fast.advance(cell, &mut left);
            careful.advance(cell, &mut right);
        }
        pending.push(record);
        careful.merge_one(&record, &mut right);
        if pending.len() == batch {
            fast.merge(&pending, &mut left);
            pending.clear();
        }
    }
    fast.merge(&pending, &mut left);
    fast.flush(&mut left);
    careful.flush(&mut right);
    let sort = |records: &mut Vec<Record<N>>| {
        // Ignores states that are not in use: a record that left at once never had its stored.
        let is_unused = |record: &&mut Record<N>| layout.is_two_way() && record.base.has_other == 0;
        let unused = records.iter_mut().filter(is_unused);
        unused.for_each(|record| record.state = [0; N]);
        records.sort_by_key(|record| {
            (
                record.key,
                record.base.first_ns,
                record.base.last_ns,
                record.base.packets,
            )
        });
    };
    sort(&mut left);
    sort(&mut right);
    assert_eq!(left.len(), right.len());
    for (left, right) in left.iter().zip(&right) {
        assert_eq!(left, right);
    }
    let (fast, careful) = (fast.counters(), careful.counters());
    assert_eq!(fast.flows_opened, careful.flows_opened);
    assert_eq!(fast.flows_exported, careful.flows_exported);
    assert_eq!(fast.flows_opened, fast.flows_exported.iter().sum::<u64>());
}

fn timeout() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![Just(None), (200u64..20_000).prop_map(Some)]
}

const WAYS: [Way; 2] = [Way::Deep, Way::Near];

/// A prefetch distance, or `None` for the one that this machine uses with small tables.
fn ways() -> impl Strategy<Value = Option<Way>> {
    prop::option::of(prop::sample::select(&WAYS[..]))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 180, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn hot_path_equals_one_at_a_time(
        seed: u64,
        flows in prop_oneof![1u64..20, 1_000u64..40_000],
        batch in 1usize..3_000,
        idle_ns in timeout(),
        active_ns in timeout(),
        align_ns in prop_oneof![2 => Just(None), 1 => (1u64..20_000).prop_map(Some)],
        linger_ns in prop_oneof![Just(None), Just(Some(0)), (1u64..5_000).prop_map(Some)],
        way in ways(),
    ) {
        let timeouts = Timeouts { idle_ns, active_ns, linger_ns, align_ns };
        let default = Layout::compile(&Definition::default(), false).unwrap();
        compare::<0>(&default, seed, flows, 30_000, batch, timeouts, way);
        let mut definition = Definition::default();
        for (name, op, of) in [
            ("windows", Op::Sum, Input::PayloadLength),
            ("window", Op::Min, Input::TcpWindow),
            ("label", Op::Last, Input::FlowLabel),
            ("options", Op::BitOr, Input::TcpOptions),
        ] {
            definition.features.push(Feature { name: name.to_owned(), op, of: Some(of), per_biflow: false });
        }
        let layout = Layout::compile(&definition, false).unwrap();
        assert_eq!(layout.state_words(), 8);
        compare::<8>(&layout, seed, flows, 10_000, batch, timeouts, way);
        let two_way = Layout::compile(&Definition::default(), true).unwrap().in_two_way_form();
        compare::<8>(&two_way, seed, flows, 10_000, batch, timeouts, way);
    }
}

#[test]
fn records_of_every_size_merge_with_every_prefetch_distance() {
    fn in_ways<const N: usize>(ways: &[Way]) {
        let mut definition = Definition::default();
        definition.features.push(Feature {
            name: "lengths".to_owned(),
            op: Op::Histogram {
                edges: (1..N as u64).collect(),
            },
            of: Some(Input::PayloadLength),
            per_biflow: false,
        });
        let layout = Layout::compile(&definition, false).unwrap();
        assert_eq!(layout.state_words(), N);
        let timeouts = Timeouts::default();
        for way in ways {
            compare::<N>(&layout, 7, 500, 8_000, 1_000, timeouts, Some(*way));
        }
    }
    in_ways::<8>(&WAYS);
    // Larger records are always merged with `Deep`.
    in_ways::<24>(&[Way::Deep]);
    in_ways::<56>(&[Way::Deep]);
    in_ways::<120>(&[Way::Deep]);
}

#[test]
fn a_flood_of_keys_stays_within_the_memory_announced() {
    const MAX_FLOWS: usize = 50_000;
    let layout = Layout::compile(&Definition::default(), false).unwrap();
    let mut cache = cache::<0>(&layout, MAX_FLOWS, Timeouts::default(), 9);
    let most_bytes = FlowCache::<2, 0>::max_size_bytes(MAX_FLOWS);
    let mut exported = Vec::new();
    let mut stream = Stream {
        state: 5,
        now_ns: 1_000,
        flows: u64::MAX,
        is_two_way: false,
    };
    let mut packets = 0;
    for _ in 0..1_000 {
        let batch: Vec<Record<0>> = (0..1_000).map(|_| stream.next()).collect();
        packets += batch.iter().map(|record| record.base.packets).sum::<u64>();
        cache.merge(&batch, &mut exported);
        assert!(cache.len() <= MAX_FLOWS);
        assert!(cache.size_bytes() <= most_bytes);
    }
    let early = cache.counters().flows_exported[5];
    assert!(early > 900_000, "{early}");
    // Old flows are displaced, not young ones: the oldest of a few neighbours is rarely young.
    let young = exported
        .iter()
        .filter(|record| record.base.end_reason == 5)
        .skip(100_000)
        .zip(1_u64..)
        .filter(|(record, _)| record.base.last_ns + 20_000 > stream.now_ns)
        .count();
    assert!(young < exported.len() / 10, "{young} of {}", exported.len());
    cache.flush(&mut exported);
    assert_eq!(
        exported
            .iter()
            .map(|record| record.base.packets)
            .sum::<u64>(),
        packets
    );
}

#[test]
fn a_cache_without_a_cell_applies_the_rules() {
    let layout = Layout::compile(&Definition::default(), false).unwrap();
    let timeouts = Timeouts {
        idle_ns: Some(10),
        ..Timeouts::default()
    };
    let mut cache = cache::<0>(&layout, 100, timeouts, 1);
    let packet = |at_ns: u64| {
        let mut record = Record::<0> {
            key: [1, 0x0406_0000_0000],
            ..Record::default()
        };
        record.base.packets = 1;
        (record.base.first_ns, record.base.last_ns) = (at_ns, at_ns);
        record
    };
    let mut exported = Vec::new();
    // Packets of a flow that was open before their batch take the hot path.
    cache.merge(&[packet(5)], &mut exported);
    cache.merge(&[packet(15), packet(26)], &mut exported);
    cache.flush(&mut exported);
    let packets: Vec<u64> = exported.iter().map(|record| record.base.packets).collect();
    assert_eq!(packets, [2, 1], "a silence of 11 ns ends a flow");
}
