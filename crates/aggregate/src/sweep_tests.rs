// SPDX-License-Identifier: Apache-2.0
//! A sweep over the whole cache leaves no due flow behind, although it skips buckets.

use proptest::prelude::*;
use turboflow_merge::{KeyHasher, Layout, Marks, MicroflowRecord};
use turboflow_record::Definition;

use super::{CacheConfig, Cell, FlowCache};
use crate::flow_table::{CURRENT, Location, OLD};
use crate::region::Place;
use crate::timeouts::Timeouts;

const CELL_NS: u64 = 10;

/// One record of a cell: flow, start within the cell, lateness, duration, and marks.
type Arrival = (u64, u64, u64, u64, u8);

fn record(
    (flow, at_ns, late_ns, length_ns, marks): Arrival,
    cell_ns: u64,
) -> MicroflowRecord<2, 0> {
    let mut record = MicroflowRecord {
        key: [flow + 1, 0x0406_0000_0000],
        ..MicroflowRecord::default()
    };
    record.base.packets = 1;
    record.base.last_ns = (cell_ns + at_ns).saturating_sub(late_ns);
    record.base.first_ns = record.base.last_ns.saturating_sub(length_ns);
    record.base.marks = Marks(marks);
    record
}

fn due_flows(cache: &mut FlowCache<2, 0>) -> usize {
    let mut due = 0;
    for region in [CURRENT, OLD] {
        for bucket in 0..cache.table.regions()[region].buckets() {
            let mut taken = cache.table.regions()[region].lines[bucket].taken();
            while taken != 0 {
                let slot = taken.trailing_zeros() as usize;
                taken &= taken - 1;
                let place = Place { bucket, slot };
                let flow = cache.table.record(Location { region, place }).base;
                due += usize::from(cache.cuts.due(&flow).is_some());
            }
        }
    }
    due
}

fn arrival() -> impl Strategy<Value = Arrival> {
    let marks = prop_oneof![
        6 => Just(0),
        1 => Just(Marks::FIN),
        1 => Just(Marks::REVERSE_FIN),
        1 => Just(Marks::RST),
        1 => Just(Marks::STARTS_WITH_SYN | Marks::SYN),
    ];
    let late_ns = prop_oneof![4 => Just(0), 1 => 0..100u64];
    (0..40u64, 0..CELL_NS, late_ns, 0..CELL_NS, marks)
}

/// The table grows during the whole test, so buckets are swept while they move.
#[test]
fn no_due_flow_stays_while_the_table_grows() {
    let layout = Layout::compile(&Definition::default(), false).expect("compiles");
    let config = CacheConfig {
        timeouts: Timeouts {
            idle_ns: Some(400),
            active_ns: Some(1_000),
            linger_ns: Some(50),
            align_ns: None,
        },
        max_flows: 100_000,
        ending_fins: Marks::FIN,
        sweep_ns: 1,
    };
    let mut cache = FlowCache::<2, 0>::new(config, layout.plan().clone(), KeyHasher::new(7));
    let (mut exported, mut swept_while_moving, mut most) = (Vec::new(), 0, 0);
    for number in 0..120u64 {
        let cell_ns = 1_000 + number * CELL_NS;
        let cell = Cell {
            watermark_ns: cell_ns,
            end_ns: cell_ns + CELL_NS,
        };
        cache.advance(cell, &mut exported);
        swept_while_moving += u32::from(cache.table.is_moving());
        most = most.max(cache.len());
        assert_eq!(due_flows(&mut cache), 0, "cell {number}");
        // Flows that stay open, flows of one packet, and flows that end.
        let born = (0..900).map(|at| (1_000_000 + number * 900 + at, at % CELL_NS, 0, 0, 0));
        let steady = (0..300).map(|flow| (flow, flow % CELL_NS, 0, 0, 0));
        let ending = (0..50).map(|flow| (number * 7 + flow, 3, 0, 0, Marks::FIN));
        let records: Vec<_> = born
            .chain(steady)
            .chain(ending)
            .map(|it| record(it, cell_ns))
            .collect();
        cache.merge(&records, &mut exported);
    }
    assert!(
        swept_while_moving > 1 && most > 20_000,
        "{swept_while_moving}, {most}"
    );
}

fn some_timeout() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![1 => Just(None), 4 => (10..200u64).prop_map(Some)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn no_due_flow_stays(
        idle_ns in some_timeout(),
        active_ns in some_timeout(),
        align_ns in prop_oneof![Just(None), (1u64..=9).prop_map(|cells| Some(cells * CELL_NS))],
        linger_ns in some_timeout(),
        ending_fins in prop_oneof![Just(Marks::FIN), Just(Marks::FIN | Marks::REVERSE_FIN)],
        cells in prop::collection::vec((prop::collection::vec(arrival(), 0..30), 1..5u64), 1..40),
    ) {
        let layout = Layout::compile(&Definition::default(), false).expect("compiles");
        let config = CacheConfig {
            timeouts: Timeouts { idle_ns, active_ns, linger_ns, align_ns },
            max_flows: 100,
            ending_fins,
            sweep_ns: 1,
        };
        let mut cache = FlowCache::<2, 0>::new(config, layout.plan().clone(), KeyHasher::new(1));
        let (mut exported, mut cell_ns) = (Vec::new(), 1_000);
        for (arrivals, cells_on) in cells {
            cell_ns += cells_on * CELL_NS;
            let cell = Cell { watermark_ns: cell_ns, end_ns: cell_ns + CELL_NS };
            cache.advance(cell, &mut exported);
            prop_assert_eq!(due_flows(&mut cache), 0);
            let records: Vec<_> = arrivals.into_iter().map(|it| record(it, cell_ns)).collect();
            cache.merge(&records, &mut exported);
        }
    }
}
