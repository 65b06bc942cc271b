// SPDX-License-Identifier: Apache-2.0
//! The offload paper's sweep (Deri and others, section V): from 10,000 to 20 million active flows,
//! a tenth of them replaced every second, at 10 M packets a second of the traffic's own time, from
//! memory through the whole pipeline on one core.

use memmap2::MmapMut;
use turboflow_merge::prefetch;
use turboflow_packet::Frame;
use turboflow_run::{Meter, PipelineConfig};
use turboflow_workload::random::Random;
use turboflow_workload::traffic::{FrameBuffer, Skew, Traffic, TrafficConfig};

use crate::report::median;
use crate::{Options, Row, Timer};

const FRAMES: usize = 1 << 16;
/// The rate that the paper's probe is offered, in packets a second.
const PACKETS_PER_SECOND: f64 = 10e6;
/// New flows a second for each that is active.
const BIRTHS: f64 = 0.1;

pub(crate) fn run(options: &Options, row: &mut dyn FnMut(Row)) {
    for flows in &options.flows {
        row(sweep(*flows, options));
        row(lines(*flows, options));
    }
}

/// What the machine's memory gives: of as many lines as there are flows, any one is changed for each item, and asked for ahead. A
/// packet of a flow that no cache holds takes two at least, one with the tags and one with the record.
fn lines(flows: u64, options: &Options) -> Row {
    const AHEAD: usize = 16;
    let mut memory = MmapMut::map_anon(64 * flows as usize).expect("there is memory for the lines");
    // As the flow cache does. Where the system has no such pages, neither of them gets any.
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
        // Flows that ended linger for two seconds and leave with a sweep each second: a third more.
        max_flows: (flows as usize * 3 / 2).max(1_000),
        seed: 1,
        ..PipelineConfig::default().live()
    };
    let mut meter = Meter::new(&config, |_shard| Box::new(|_records| {}))
        .expect("the default configuration compiles");
    let repetitions = u64::from(options.repetitions);
    // Long enough that nearly every flow is open before the clock starts.
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
        "no flow left early"
    );
    assert_eq!(
        ledger.packets_recorded, ledger.packets_received,
        "no packet was lost"
    );
    row.microflows_per_packet =
        Some(ledger.microflows_merged as f64 / ledger.packets_received as f64);
    row
}
