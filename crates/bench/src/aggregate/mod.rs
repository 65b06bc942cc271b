// SPDX-License-Identifier: Apache-2.0
//! The aggregator against what else one would use: all merge the same stream of microflow records
//! of the default definition into open flows.

mod designs;

use turboflow_record::MicroflowRecord;

use crate::flows::microflow;
use crate::{Row, Skew, Timer};
use designs::{Design, HashbrownTable, PaperTable, StdTable, TurboflowCache};

/// Records merged a call, as an engine would hand them over.
const BATCH: usize = 512;

/// Measures every design at one size.
pub fn run(flows: u64, skew: Skew, items: u64) -> Vec<Row> {
    let mut rows = vec![measure::<TurboflowCache>(flows, skew, items)];
    rows.push(measure::<PaperTable>(flows, skew, items));
    if std::env::var("ALL").is_ok() { rows.push(measure::<HashbrownTable>(flows, skew, items));
    rows.push(measure::<StdTable>(flows, skew, items)); }
    rows
}

fn measure<D: Design>(flows: u64, skew: Skew, items: u64) -> Row {
    let mut design = D::new(flows as usize);
    let mut batch: Vec<MicroflowRecord<2, 0>> = Vec::with_capacity(BATCH);
    let mut at_ns = 1;
    let mut fill = Timer::default();
    for start in (0..flows).step_by(BATCH) {
        batch.clear();
        batch.extend((start..flows.min(start + BATCH as u64)).map(|flow| microflow(flow, at_ns)));
        fill.time(|| design.merge(&batch));
    }
    let mut timer = Timer::default();
    let mut random = 0x1234_5678_9abc_def0u64;
    let mut done = 0;
    while done < items {
        at_ns += 1;
        batch.clear();
        for _ in 0..BATCH {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let flow = ((u128::from(random) * u128::from(flows)) >> 64) as u64;
            batch.push(microflow(flow, at_ns));
        }
        timer.time(|| design.merge(&batch));
        done += BATCH as u64;
    }
    let size_bytes = design.size_bytes();
    assert_eq!(design.packets(), (flows + done) * 3, "{} lost packets", D::NAME);
    eprintln!("  fill {} {:?} ns", D::NAME, fill.total().as_nanos() as f64 / flows as f64);
    let mut row = Row::new("aggregate", D::NAME, flows, skew.name(), done, timer.total());
    row.bytes_per_flow = size_bytes.map(|size| size as f64 / flows as f64);
    row
}
