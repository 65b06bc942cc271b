// SPDX-License-Identifier: Apache-2.0
//! Cells that end while packets go on: the line is swept in the background.

use std::collections::BTreeMap;

use turboflow_engine_rtl::{
    Build, Left, Line, LineConfig, Model, Size, Step, Stopped, VerilatedLine,
};
use turboflow_merge::{Base, KeyHasher};

use crate::traffic::{Mix, Shape, Traffic};

/// The records of every flow and cell, merged, in order. Records of a flow that are not in order
/// are an error.
fn merged(all: &[Left], cell_ns: u64) -> Result<BTreeMap<([u64; 5], u64), Base>, String> {
    let mut flows: BTreeMap<([u64; 5], u64), Base> = BTreeMap::new();
    let mut last: BTreeMap<[u64; 5], u64> = BTreeMap::new();
    for left in all {
        let cell = left.base.first_ns / cell_ns;
        if left.base.last_ns / cell_ns != cell {
            return Err(format!("a record of two cells: {left:?}"));
        }
        let before = last.insert(left.key, left.base.last_ns);
        if before.is_some_and(|last_ns| last_ns > left.base.first_ns) {
            return Err(format!("a record behind a later one: {left:?}"));
        }
        let merge = |base: &mut Base| base.merge(&left.base);
        let flow = flows.entry((left.key, cell));
        flow.and_modify(merge).or_insert(left.base);
    }
    Ok(flows)
}

/// Runs cells of that length back to back. Returns keys a clock.
pub(crate) fn run(
    fault: u32,
    (stages, buckets): (u32, u32),
    flows: u64,
    cell_ns: u64,
    packets: u32,
) -> Result<f64, String> {
    let (size, seed) = (Size { stages, buckets }, flows);
    let config = LineConfig {
        fault,
        ..LineConfig::new(Build::V4, size, KeyHasher::new(seed))
    };
    let shape = Shape {
        mix: Mix::Trains,
        flows,
        key_bits: 104,
        cell_ns,
        strange: false,
    };
    let (mut traffic, mut entered_ns) = (Traffic::new(shape, seed), None);
    let mut steps = Vec::new();
    for _ in 0..packets {
        let packet = traffic.packet();
        if entered_ns != Some(traffic.cell_ns()) {
            entered_ns = Some(traffic.cell_ns());
            steps.push(Step::Cell(traffic.cell_ns()));
        }
        steps.push(Step::Packet(packet));
    }
    let (mut line, mut model) = (VerilatedLine::new(config), Model::new(config));
    let (mut found, mut expected) = (Vec::new(), Vec::new());
    let stopped = |stopped: Stopped| stopped.to_string();
    line.try_give(&[Step::Idle; 1_024], &mut found)
        .map_err(stopped)?;
    let before = line.clocks();
    line.try_give(&steps, &mut found).map_err(stopped)?;
    let keys_a_clock = f64::from(packets) / (line.clocks() - before) as f64;
    model.give(&steps, &mut expected);
    let last = [Step::Cell(u64::MAX >> 1)];
    model.give(&last, &mut expected);
    let mut rest = last.to_vec();
    rest.extend(std::iter::repeat_n(Step::Idle, 60_000));
    line.try_give(&rest, &mut found).map_err(stopped)?;
    match merged(&found, cell_ns)? == merged(&expected, cell_ns)? {
        true => Ok(keys_a_clock),
        false => Err("the records of a flow and cell differ".to_owned()),
    }
}

#[test]
fn sweeps_in_the_background_leave_most_clocks_to_keys() {
    // Cells of 200,000, 20,000 and 2,000 packets: each is long enough to sweep the line.
    for (size, flows, cell_ns, packets) in [
        ((4, 16), 3_000, 10_000_000, 300_000),
        ((1, 4), 60, 1_000_000, 60_000),
        ((1, 1), 18, 100_000, 30_000),
    ] {
        let keys_a_clock = run(0, size, flows, cell_ns, packets);
        let keys_a_clock = keys_a_clock.unwrap_or_else(|error| panic!("{size:?}: {error}"));
        assert!(
            keys_a_clock >= 0.94,
            "{size:?}: {keys_a_clock} keys a clock"
        );
    }
}
