// SPDX-License-Identifier: Apache-2.0
//! The records that leave the line equal those of the model, in the same order.

use proptest::prelude::*;
use turboflow_engine_rtl::{
    Arrival, Build, Left, Line, LineConfig, Size, Step, VerilatedLine, line_clocks,
};
use turboflow_merge::KeyHasher;

use crate::bench::Run;
use crate::traffic::{Mix, Shape, Traffic};

const MIXES: [Mix; 4] = [Mix::Uniform, Mix::Zipf, Mix::Trains, Mix::Alternating];

/// Runs every mix with these numbers of flows, with and without idle places.
fn holds(build: Build, stages: u32, buckets: u32, flows: &[u64], packets: u64) {
    let mut runs = 0;
    for &flows in flows {
        for mix in MIXES {
            runs += 1;
            let run = Run {
                build,
                size: Size { stages, buckets },
                ends_cut: runs % 2 == 0,
                fault: 0,
                shape: Shape {
                    mix,
                    flows,
                    key_bits: build.key_bits,
                    cell_ns: if runs % 3 == 0 { 100_000 } else { 2_000_000 },
                    strange: runs % 4 != 1,
                },
                packets,
                entries: 0,
                idle: [0, 2, 9][runs % 3],
                seed: runs as u64,
            };
            match run.compare() {
                Ok(ran) => assert!(ran.displaced + ran.swept > 0, "{run:?}: {ran:?}"),
                Err(difference) => panic!("{run:?}: {difference:?}"),
            }
        }
    }
}

#[test]
fn a_line_of_one_bucket_pair_gives_the_models_records() {
    holds(Build::V4, 1, 1, &[2, 20, 300], 20_000);
}

#[test]
fn a_line_of_few_buckets_gives_the_models_records() {
    holds(Build::V4, 1, 4, &[30, 100], 30_000);
    holds(Build::V4, 2, 2, &[3, 80], 20_000);
}

#[test]
fn a_line_of_four_stages_gives_the_models_records() {
    holds(Build::V4, 4, 16, &[500, 3_000], 30_000);
}

/// Flows that share the stage of an entry, in all orders and at all distances.
#[test]
fn flows_of_few_entries_give_the_models_records() {
    for (seed, idle) in [(1, 0), (2, 3)] {
        let run = Run {
            build: Build::V4,
            size: Size {
                stages: 4,
                buckets: 2,
            },
            ends_cut: false,
            fault: 0,
            shape: Shape {
                mix: Mix::Uniform,
                flows: 120,
                key_bits: 104,
                cell_ns: 20_000,
                strange: true,
            },
            packets: 20_000,
            entries: 40,
            idle,
            seed,
        };
        let ran = run.compare();
        assert!(ran.as_ref().is_ok_and(|ran| ran.displaced > 0), "{ran:?}");
    }
}

#[test]
fn the_largest_line_gives_the_models_records() {
    holds(Build::V4, 4, 512, &[60_000], 50_000);
}

#[test]
fn a_line_of_ipv6_keys_gives_the_models_records() {
    holds(Build::V6, 1, 1, &[25], 15_000);
    holds(Build::V6, 4, 8, &[700], 15_000);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    /// Any build, any part of it in use, any mix: from far fewer flows than slots to far more.
    #[test]
    fn a_line_of_any_size_gives_the_models_records(
        (kind, stage_bits, bucket_bits) in (0_usize..3, 0_u32..3, 0_u32..7),
        (mix, load, cell_bits) in (0_usize..MIXES.len(), 1_u64..40, 13_u32..22),
        (ends_cut, strange) in (any::<bool>(), any::<bool>()),
        (idle, seed) in (0_u64..6, any::<u32>()),
    ) {
        let build = [Build::V4, Build::V6, Build::DIRECT][kind];
        let size = Size {
            stages: (1 << stage_bits).min(build.size().stages),
            buckets: 1 << bucket_bits,
        };
        let run = Run {
            build,
            size,
            ends_cut,
            fault: 0,
            shape: Shape {
                mix: MIXES[mix],
                flows: (u64::from(build.slots(size)) * load / 10).max(2),
                key_bits: build.key_bits,
                cell_ns: 1 << cell_bits,
                strange,
            },
            packets: 6_000,
            entries: 0,
            // With 1, no place would have a packet.
            idle: if idle == 1 { 0 } else { idle },
            seed: seed.into(),
        };
        let ran = run.compare();
        prop_assert!(ran.is_ok(), "{:?}: {:?}", run, ran);
    }
}

/// TurboFlow's table is the same stage with one subtable and buckets of one slot.
#[test]
fn a_direct_mapped_table_gives_the_models_records() {
    holds(Build::DIRECT, 1, 1, &[2, 9], 20_000);
    holds(Build::DIRECT, 1, 64, &[100], 20_000);
    holds(Build::DIRECT, 1, 4_096, &[9_000], 20_000);
}

/// Any keys: one flow, two flows in turn, all different.
#[test]
fn takes_a_key_in_every_clock() {
    let builds = [Build::V4, Build::V6, Build::DIRECT];
    let mixes = [
        (Mix::Uniform, 1),
        (Mix::Alternating, 3),
        (Mix::Uniform, 1 << 40),
    ];
    for (build, (mix, flows)) in builds
        .into_iter()
        .flat_map(|build| mixes.map(|mix| (build, mix)))
    {
        let size = Size {
            stages: build.size().stages,
            buckets: 64,
        };
        let mut line = VerilatedLine::new(LineConfig::new(build, size, KeyHasher::new(1)));
        let mut left: Vec<Left> = Vec::new();
        let shape = Shape {
            mix,
            flows,
            key_bits: build.key_bits,
            cell_ns: 1_000_000_000,
            strange: false,
        };
        let mut traffic = Traffic::new(shape, 3);
        let first = traffic.packet();
        line.give(&[Step::Cell(traffic.cell_ns())], &mut left);
        line.give(&[Step::Idle; 1_024], &mut left);
        let packets: Vec<Step> = (0..20_000)
            .map(|_| Step::Packet(traffic.packet()))
            .collect();
        let before = line.clocks();
        line.give(&[Step::Packet(first)], &mut left);
        line.give(&packets, &mut left);
        let clocks = line.clocks() - before;
        assert_eq!(clocks, 20_001, "{build:?}, {mix:?} of {flows} flows");
    }
}

/// The latency from the head to the end of a line, as documents quote it.
#[test]
fn a_place_takes_the_clocks_that_are_said() {
    for build in [Build::V4, Build::V6, Build::DIRECT] {
        let mut line = VerilatedLine::new(LineConfig::new(build, build.size(), KeyHasher::new(1)));
        let mut left = Vec::new();
        line.give(&[Step::Cell(1_000)], &mut left);
        line.give(&[Step::Idle; 8_192], &mut left);
        // Too long for a record: the packet leaves as it came, one clock after a flush.
        let packet = Arrival {
            time_ns: 1_500,
            length_bytes: 100_000,
            ..Arrival::default()
        };
        let before = line.clocks();
        line.give(&[Step::Packet(packet)], &mut left);
        while left.is_empty() && line.clocks() - before < 1_000 {
            line.give(&[Step::Idle], &mut left);
        }
        let clocks = line_clocks(build.size().stages as usize) + 1;
        assert_eq!(line.clocks() - before, clocks as u64, "{build:?}");
    }
}

/// The record of a flow leaves before a late packet of that flow, and the packet leaves as it came.
#[test]
fn a_late_packet_leaves_behind_the_record_of_its_flow() {
    let size = Size {
        stages: 1,
        buckets: 4,
    };
    let mut line = VerilatedLine::new(LineConfig::new(Build::V4, size, KeyHasher::new(1)));
    let packet = |time_ns| Arrival {
        key: [7, 9, 0, 0, 0],
        time_ns,
        length_bytes: 100_000,
        ttl: 1,
        ..Arrival::default()
    };
    let short = |time_ns| Arrival {
        length_bytes: 60,
        ..packet(time_ns)
    };
    let mut left = Vec::new();
    let late = 500;
    let steps = [
        short(5_000),
        short(6_000),
        short(late),
        packet(7_000),
        short(8_000),
    ];
    line.give(&[Step::Cell(4_000)], &mut left);
    line.give(&steps.map(Step::Packet), &mut left);
    line.give(&[Step::Cell(9_000)], &mut left);
    line.give(&[Step::Idle; 512], &mut left);
    let times = left
        .iter()
        .map(|left| (left.base.first_ns, left.base.last_ns));
    assert_eq!(
        times.collect::<Vec<_>>(),
        [(5_000, 6_000), (late, late), (7_000, 7_000), (8_000, 8_000)]
    );
    assert_eq!(left[2].base.bytes, 100_000);
}
