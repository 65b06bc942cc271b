// SPDX-License-Identifier: Apache-2.0
//! From frames in memory to open flows, stage by stage.
//!
//! | design | what runs |
//! |---|---|
//! | `touch` | one byte of every header is read |
//! | `parse` | the parser, its packets folded into a sum |
//! | `straight` | everything, without a microflow table |
//! | `table` | everything, always with the table |
//! | `turboflow` | everything, as `turboflow record` does by default |

use turboflow_engine_software::Sizing;
use turboflow_packet::{Frame, Parser, ParserConfig};
use turboflow_run::{Meter, PipelineConfig};
use turboflow_workload::traffic::{FrameBuffer, Traffic, TrafficConfig};

use crate::report::median;
use crate::{Options, Row, Spread, Timer};

/// Frames made at a time. They exceed the L2 cache, as packets in memory do.
const FRAMES: usize = 1 << 16;
/// Packets per second of the traffic's own clock.
const PACKETS_PER_SECOND: f64 = 10e6;

pub(crate) fn run(options: &Options, row: &mut dyn FnMut(Row)) {
    for &flows in &options.flows {
        for spread in Spread::ALL {
            let run = Run {
                flows,
                spread,
                options,
            };
            row(run.loop_over("touch", touch));
            let mut parser = Parser::new(ParserConfig::default());
            row(run.loop_over("parse", |frames| parse(&mut parser, frames)));
            row(run.meter("straight", Sizing::Off));
            row(run.meter("table", Sizing::Fixed(Sizing::ADAPTIVE_SLOTS)));
            row(run.meter("turboflow", Sizing::Adaptive));
        }
    }
}

fn touch(frames: &[Frame<'_>]) -> u64 {
    frames.iter().map(|frame| u64::from(frame.bytes[23])).sum()
}

fn parse(parser: &mut Parser, frames: &[Frame<'_>]) -> u64 {
    let mut sum = 0;
    for frame in frames {
        if let Ok(packet) = parser.parse(frame) {
            let [w0, w1, ..] = *packet.tuple.raw_words();
            sum ^= w0 ^ w1 ^ u64::from(packet.ip_length_bytes) ^ u64::from(packet.ttl);
        }
    }
    sum
}

struct Run<'a> {
    flows: u64,
    spread: Spread,
    options: &'a Options,
}

impl Run<'_> {
    /// Feeds the same frames to each design. Only `work` is timed.
    fn feed(&self, name: &str, warm_up: u64, mut work: impl FnMut(&[Frame<'_>])) -> Row {
        let repetitions = u64::from(self.options.repetitions);
        let mut traffic = Traffic::new(TrafficConfig {
            packets: warm_up + self.options.items * repetitions + FRAMES as u64,
            flows: self.flows,
            packets_per_second: PACKETS_PER_SECOND,
            skew: self.spread.skew(),
            ..TrafficConfig::default()
        })
        .expect("the benchmark's traffic is in range");
        let mut buffer = FrameBuffer::with_capacity(FRAMES, 64);
        let mut step = |packets: u64| {
            let (mut timer, mut done) = (Timer::default(), 0);
            while done < packets {
                traffic.fill(&mut buffer, FRAMES.min((packets - done) as usize));
                let frames: Vec<Frame<'_>> = buffer.frames().collect();
                timer.time(|| work(&frames));
                done += frames.len() as u64;
            }
            (done, timer.total())
        };
        step(warm_up);
        let runs = (0..repetitions).map(|_| {
            let (packets, took) = step(self.options.items);
            Row::new(
                "pipeline",
                name,
                self.flows,
                self.spread.name(),
                packets,
                took,
            )
        });
        median(runs.collect())
    }

    fn loop_over(&self, name: &str, mut work: impl FnMut(&[Frame<'_>]) -> u64) -> Row {
        let mut sum = 0;
        let row = self.feed(name, FRAMES as u64, |frames| sum ^= work(frames));
        std::hint::black_box(sum);
        row
    }

    fn meter(&self, name: &str, sizing: Sizing) -> Row {
        let config = PipelineConfig {
            sizing,
            max_flows: (self.flows as usize * 5 / 4).max(1_000),
            seed: 1,
            ..PipelineConfig::default()
        };
        let mut meter = Meter::new(&config, |_shard| Box::new(|_records| {}))
            .expect("the default configuration compiles");
        // The warm-up opens nearly every flow before the timer starts.
        let mut row = self.feed(name, 1_000_000.max(self.flows * 3), |frames| {
            meter.frames(frames)
        });
        let ledger = meter.finish().ledger;
        assert_eq!(ledger.imbalances(), []);
        row.microflows_per_packet =
            Some(ledger.microflows_merged as f64 / ledger.packets_received as f64);
        row
    }
}
