// SPDX-License-Identifier: Apache-2.0
//! The sweep of the offload paper (Deri and others, section V): 10,000 to 20 million active flows,
//! a tenth of which is replaced every second. Frames come from memory, at 10 M packets per second
//! of the traffic's own clock, and pass through the whole pipeline on one core.

use memmap2::MmapMut;
use turboflow_merge::prefetch;
use turboflow_packet::Frame;
use turboflow_run::{Meter, PipelineConfig};
use turboflow_workload::random::Random;
use turboflow_workload::traffic::{FrameBuffer, Skew, Traffic, TrafficConfig};

use crate::report::median;
use crate::{Options, Row, Timer};

const FRAMES: usize = 1 << 16;
/// The rate offered to the paper's probe, in packets per second.
const PACKETS_PER_SECOND: f64 = 10e6;
/// New flows per second for each active flow.
const BIRTHS: f64 = 0.1;

pub(crate) fn run(options: &Options, row: &mut dyn FnMut(Row)) {
    for flows in &options.flows {
        row(sweep(*flows, options));
        row(lines(*flows, options));
    }
}

/// The memory limit of this machine: each item changes one random cache line, out of as many lines
/// as there are flows, and each line is prefetched. A packet whose flow is in no CPU cache needs at
/// least two lines, one with tags and one with the record.
fn lines(flows: u64, options: &Options) -> Row {
    const AHEAD: usize = 16;
    let mut memory = MmapMut::map_anon(64 * flows as usize).expect("there is memory for the lines");
    // The flow cache asks for huge pages too. Without them, both use small pages.
    #[cfg(target_os = "linux")]
    let _ = memory.advise(memmap2::Advice::HugePage);
    memory.iter_mut().step_by(64).for_each(|byte| *byte = 1);
    let mut random = Random::new(1);
    let rounds = (0..options.repetitions).map(|_| {
        let (mut timer, mut done) = (Timer::default(), 0);
        while done < options.items {
            let places: Vec<usize> = (0..FRAMES)
                .map(|_| 64 * random.below(flows) as usize)
                .collect();
            timer.time(|| {
                for (at, place) in places.iter().enumerate() {
                    if let Some(later) = places.get(at + AHEAD) {
                        prefetch(&raw const memory[*later]);
                    }
                    memory[*place] = memory[*place].wrapping_add(1);
                }
            });
            done += FRAMES as u64;
        }
        Row::new("sweep", "lines", flows, "uniform", done, timer.total())
    });
    median(rounds.collect())
}

fn sweep(flows: u64, options: &Options) -> Row {
    let config = PipelineConfig {
        // Ended flows linger for two seconds and are expired by a sweep once a second, which makes
        // a third more flows.
        max_flows: (flows as usize * 3 / 2).max(1_000),
        seed: 1,
        ..PipelineConfig::default().live()
    };
    let mut meter = Meter::new(&config, |_shard| Box::new(|_records| {}))
        .expect("the default configuration compiles");
    let repetitions = u64::from(options.repetitions);
    // The warm-up opens nearly every flow before the timer starts.
    let warm_up = 1_000_000.max(flows * 3);
    let mut traffic = Traffic::new(TrafficConfig {
        packets: warm_up + (options.items + FRAMES as u64) * repetitions,
        flows,
        births_per_second: flows as f64 * BIRTHS,
        packets_per_second: PACKETS_PER_SECOND,
        skew: Skew::Uniform,
        ..TrafficConfig::default()
    })
    .expect("the benchmark's traffic is in range");
    let mut buffer = FrameBuffer::with_capacity(FRAMES, 64);
    let mut step = |packets: u64| {
        let (mut timer, mut done) = (Timer::default(), 0);
        while done < packets {
            traffic.fill(&mut buffer, FRAMES.min((packets - done) as usize));
            let frames: Vec<Frame<'_>> = buffer.frames().collect();
            timer.time(|| meter.frames(&frames));
            done += frames.len() as u64;
        }
        (done, timer.total())
    };
    step(warm_up);
    let rounds = (0..repetitions).map(|_| {
        let (packets, took) = step(options.items);
        Row::new("sweep", "turboflow", flows, "uniform", packets, took)
    });
    let mut row = median(rounds.collect());
    let ledger = meter.finish().ledger;
    assert_eq!(ledger.imbalances(), []);
    assert_eq!(
        ledger.flows_exported.lack_of_resources, 0,
        "no flow expires early"
    );
    assert_eq!(
        ledger.packets_recorded, ledger.packets_received,
        "no packet is lost"
    );
    row.microflows_per_packet =
        Some(ledger.microflows_merged as f64 / ledger.packets_received as f64);
    row
}
