// SPDX-License-Identifier: Apache-2.0
//! Tests the other tests: they notice the removal of each forward.

use turboflow_engine_rtl::{Build, Size};

use crate::background::Background;
use crate::bench::Run;
use crate::traffic::{Mix, Shape};

/// The numbers of `fault` in `rtl/tf_stage_tags.sv` (1 to 16 and 30 to 32; 24: a period that turns
/// immediately), `rtl/tf_stage_records.sv` (17 to 23, 33), and `rtl/tf_spread.sv` (25 to 28; 29: an
/// entry that forgets its stage when its cell ends). `scripts/rtl-prove.sh faults` uses 34.
const FAULTS: std::ops::RangeInclusive<u32> = 1..=33;

/// Whether the bench notices a fault, and the difference that it finds.
fn missed(fault: u32) -> Option<String> {
    let shapes = [
        (Mix::Trains, 40, 1, 1, 0, true),
        (Mix::Uniform, 24, 1, 1, 0, false),
        (Mix::Uniform, 300, 1, 4, 0, true),
        (Mix::Alternating, 18, 1, 2, 3, true),
        (Mix::Trains, 200, 4, 2, 0, true),
    ];
    for (number, (mix, flows, stages, buckets, idle, strange)) in (1..).zip(shapes) {
        let run = Run {
            build: Build::V4,
            size: Size { stages, buckets },
            ends_cut: true,
            fault,
            shape: Shape {
                mix,
                flows,
                key_bits: 104,
                cell_ns: 100_000,
                strange,
            },
            packets: 8_000,
            entries: 0,
            idle,
            seed: number,
        };
        if let Err(difference) = run.compare() {
            return Some(format!("{difference:?}"));
        }
    }
    let background = |stages, buckets| {
        let run = Background {
            fault,
            ..Background::new(Size { stages, buckets }, 200, 100_000, 20_000)
        };
        run.compare().err()
    };
    background(1, 4).or_else(|| background(4, 1))
}

#[test]
fn every_forward_that_is_taken_out_is_missed() {
    assert_eq!(missed(0), None);
    let unseen: Vec<u32> = FAULTS.filter(|fault| missed(*fault).is_none()).collect();
    assert_eq!(unseen, [], "faults that the bench does not see");
}
