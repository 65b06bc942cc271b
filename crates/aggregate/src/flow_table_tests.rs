// SPDX-License-Identifier: Apache-2.0

use std::collections::BTreeMap;

use proptest::prelude::*;
use turboflow_merge::{KeyHasher, LaneHash, LaneHasher, Layout, MicroflowRecord};
use turboflow_record::Definition;

use super::*;

type Table = FlowTable<2, 0>;

fn record(flow: u64) -> MicroflowRecord<2, 0> {
    let mut record = MicroflowRecord {
        key: [flow, 0x0406_0000_0000],
        ..MicroflowRecord::default()
    };
    record.base.packets = flow + 1;
    record
}

/// A table and a map with the expected content.
struct Pair {
    table: Table,
    map: BTreeMap<u64, u64>,
    hasher: LaneHasher<2>,
}

impl Pair {
    fn new(max_flows: usize, seed: u64) -> Self {
        let hasher = LaneHasher::new(&KeyHasher::new(seed));
        Self {
            table: Table::new(max_flows, turboflow_merge::Plan::default()),
            map: BTreeMap::new(),
            hasher,
        }
    }

    fn insert(&mut self, flow: u64) {
        let record = record(flow);
        let hash = self.hasher.hash(&record.key);
        if self.table.find(&record.key, hash).is_none() {
            assert!(self.table.insert(&record, hash, 0).is_some());
            self.map.insert(flow, flow + 1);
        }
    }

    fn remove(&mut self, flow: u64) {
        let key = record(flow).key;
        let hash = self.hasher.hash(&key);
        let found = self.table.find(&key, hash);
        assert_eq!(found.is_some(), self.map.remove(&flow).is_some());
        if let Some(location) = found {
            assert_eq!(self.table.remove(location, hash).base.packets, flow + 1);
        }
    }

    fn grow(&mut self, homes: usize) {
        if self.table.wants_to_grow(16) {
            self.table.start_growing();
        }
        if self.table.is_moving() {
            let mut refused = Vec::new();
            self.table.move_homes(homes, &self.hasher, &mut refused);
            assert!(refused.is_empty());
        }
    }

    fn check(&mut self) {
        assert_eq!(self.table.len(), self.map.len());
        for (&flow, &packets) in &self.map {
            let key = record(flow).key;
            let hash = self.hasher.hash(&key);
            let location = self
                .table
                .find(&key, hash)
                .expect("an inserted record is found");
            assert_eq!(self.table.record(location).base.packets, packets);
        }
        let resident: u32 = self
            .table
            .regions()
            .iter()
            .flat_map(|region| region.lines.iter())
            .map(|line| line.taken().count_ones())
            .sum();
        assert_eq!(
            resident as usize,
            self.map.len(),
            "no record lies in two places"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn holds_what_a_map_holds_while_it_grows(
        seed: u64,
        steps in prop::collection::vec((0u64..12_000, 0usize..40, prop::bool::weighted(0.2)), 1..30),
    ) {
        let mut pair = Pair::new(20_000, seed);
        let mut next = 0;
        for (count, homes, removes) in steps {
            for flow in next..next + count.min(20_000 - pair.map.len() as u64) {
                pair.insert(flow);
                if flow % 16 == 0 {
                    pair.grow(8 + homes);
                }
            }
            next += count;
            if removes {
                let gone: Vec<u64> = pair.map.keys().copied().filter(|flow| flow % 3 != 0).collect();
                gone.into_iter().for_each(|flow| pair.remove(flow));
            }
            pair.check();
        }
    }
}

/// A biflow in the two-way form that was seen in one direction only.
fn biflow(flow: u64) -> MicroflowRecord<2, 8> {
    let MicroflowRecord { key, base, .. } = record(flow);
    MicroflowRecord {
        key,
        base,
        // This state is not in use and must not be stored.
        state: [7; 8],
    }
}

fn two_way_table(max_flows: usize) -> (FlowTable<2, 8>, LaneHasher<2>) {
    let layout = Layout::compile(&Definition::default(), true).expect("it compiles");
    let plan = layout.in_two_way_form().plan().clone();
    let hasher = LaneHasher::new(&KeyHasher::new(1));
    (FlowTable::new(max_flows, plan), hasher)
}

#[test]
fn biflows_seen_in_one_direction_touch_no_state() {
    const FLOWS: u64 = 20_000;
    let (mut table, hasher) = two_way_table(FLOWS as usize);
    for flow in 0..FLOWS {
        let record = biflow(flow);
        let hash = hasher.hash(&record.key);
        let location = table.insert(&record, hash, 0).expect("there is room");
        table.merge(location, &record);
        assert_eq!(table.replace(location, &record).state, [0; 8]);
        if flow % 3 == 0 {
            assert_eq!(table.remove(location, hash).state, [0; 8]);
        }
        if table.wants_to_grow(16) {
            assert!(table.start_growing());
        }
        if table.is_moving() {
            table.move_homes(8, &hasher, &mut Vec::new());
        }
        assert!(table.size_bytes() <= 2 * FlowTable::<2, 8>::max_size_bytes(FLOWS as usize));
    }
    let mut states = table
        .regions()
        .iter()
        .flat_map(|region| region.states.iter());
    assert!(states.all(|state| *state == [0; 8]));
}

#[test]
fn a_freed_slot_gives_its_state_to_no_later_flow() {
    let (mut table, hasher) = two_way_table(100);
    let mut both = biflow(1);
    both.base.has_other = 1;
    let hash = hasher.hash(&both.key);
    let location = table.insert(&both, hash, 0).expect("there is room");
    assert_eq!(table.remove(location, hash).state, [7; 8]);
    let again = table.insert(&biflow(1), hash, 0).expect("there is room");
    assert_eq!(again.place, location.place);
    assert_eq!(table.record(again).state, [0; 8]);
}

#[test]
fn grows_to_its_most_flows_within_the_memory_announced() {
    const FLOWS: u64 = 200_000;
    let mut pair = Pair::new(FLOWS as usize, 3);
    for flow in 0..FLOWS {
        pair.insert(flow);
        assert!(pair.table.size_bytes() <= 2 * Table::max_size_bytes(FLOWS as usize));
        if flow % 64 == 0 {
            pair.grow(16);
        }
    }
    while pair.table.is_moving() || pair.table.wants_to_grow(0) {
        pair.grow(1_000);
    }
    pair.check();
    assert!(pair.table.size_bytes() <= Table::max_size_bytes(FLOWS as usize));
    assert!(Table::max_size_bytes(20_000_000) <= 100 * 20_000_000);
}

#[test]
fn finds_an_old_flow_near_any_hash_when_full() {
    let mut pair = Pair::new(10, 1);
    (0..10).for_each(|flow| pair.insert(flow));
    for flow in 0..1_000 {
        let hash = pair.hasher.hash(&record(flow).key);
        let near = pair
            .table
            .oldest_near(hash)
            .or_else(|| pair.table.oldest_near(LaneHash(0)));
        assert!(near.is_some());
    }
}
