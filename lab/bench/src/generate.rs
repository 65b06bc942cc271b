// SPDX-License-Identifier: Apache-2.0
//! The speed of the traffic generators, which must not limit any measurement.
//!
//! | design | what is made |
//! |---|---|
//! | `packets` | packets without frames: key, length, time |
//! | `frames` | frames of which 64 bytes are captured, into memory |
//! | `file` | frames of which 64 bytes are captured, into a capture file in the directory for temporary files |

use std::fs::File;
use std::hint::black_box;
use std::path::PathBuf;

use turboflow_capture::write::PcapWriter;
use turboflow_packet::LinkType;
use turboflow_workload::traffic::{FrameBuffer, Traffic, TrafficConfig};
use turboflow_workload::workloads::{
    AdversarialConfig, Attack, DataCenterConfig, InternetConfig, Kind, Switch, Workload,
    WorkloadConfig,
};

use crate::report::{Measured, in_turn, median};
use crate::{Options, Row, Spread, Timer};

/// Frames made at a time. Their bytes stay in L2.
const FRAMES: usize = 1_024;
/// Captured bytes of a frame.
const SNAP_BYTES: u32 = 64;
/// Number of active flows, and of new flows per second, for traffic with a fixed number of flows.
const FLOWS: u64 = 1_000_000;
const PACKETS_PER_SECOND: f64 = 10e6;

pub(crate) fn run(options: &Options, row: &mut dyn FnMut(Row)) {
    let switch = |switch| Kind::DataCenter(DataCenterConfig::new(switch));
    let attack = AdversarialConfig {
        attack: Attack::SinglePackets,
        packets_per_second: PACKETS_PER_SECOND,
    };
    let workloads = [
        ("internet", Kind::Internet(InternetConfig::default())),
        ("dc-tor", switch(Switch::TopOfRack)),
        ("dc-aggregation", switch(Switch::Aggregation)),
        ("attack", Kind::Adversarial(attack)),
    ];
    for (traffic, kind) in workloads {
        let config = WorkloadConfig {
            snap_length_bytes: Some(SNAP_BYTES),
            ..WorkloadConfig::new(kind)
        };
        let workload = Workload::new(&config).expect("the benchmark's workload is in range");
        let flows = workload.statistics().flows.active;
        let (mut packets, mut frames, mut file) = (workload.clone(), workload.clone(), workload);
        let designs: [(_, Make<'_>); 3] = [
            (
                "packets",
                Box::new(|items| make_packets(&mut packets, items)),
            ),
            (
                "frames",
                Box::new(|items| make_frames(items, |buffer| frames.fill(buffer, FRAMES))),
            ),
            (
                "file",
                Box::new(|items| make_file(items, |buffer| file.fill(buffer, FRAMES))),
            ),
        ];
        measure(traffic, flows, designs.into(), options, row);
    }
    for spread in Spread::ALL {
        let config = TrafficConfig {
            packets: 1 << 40,
            flows: FLOWS,
            births_per_second: FLOWS as f64 / 10.0,
            packets_per_second: PACKETS_PER_SECOND,
            skew: spread.skew(),
            snap_length_bytes: Some(SNAP_BYTES),
            ..TrafficConfig::default()
        };
        let mut frames = Traffic::new(config).expect("the benchmark's traffic is in range");
        let mut file = frames.clone();
        let designs: [(_, Make<'_>); 2] = [
            (
                "frames",
                Box::new(|items| make_frames(items, |buffer| frames.fill(buffer, FRAMES))),
            ),
            (
                "file",
                Box::new(|items| make_file(items, |buffer| file.fill(buffer, FRAMES))),
            ),
        ];
        measure(spread.name(), FLOWS, designs.into(), options, row);
    }
}

/// Generates a number of packets, which must be a multiple of [`FRAMES`].
type Make<'a> = Box<dyn FnMut(u64) + 'a>;

fn measure(
    traffic: &'static str,
    flows: u64,
    designs: Vec<(&'static str, Make<'_>)>,
    options: &Options,
    row: &mut dyn FnMut(Row),
) {
    let runs = designs
        .into_iter()
        .map(|(design, make)| -> Box<dyn Measured + '_> {
            Box::new(Run {
                traffic,
                flows,
                design,
                make,
                rounds: Vec::new(),
            })
        });
    in_turn(runs.collect(), options, row);
}

fn make_packets(workload: &mut Workload, items: u64) {
    let mut sum = 0;
    for packet in workload.take(items as usize) {
        let [w0, w1, ..] = *packet.five_tuple().raw_words();
        sum ^= w0 ^ w1 ^ packet.timestamp_ns ^ u64::from(packet.ip_length_bytes);
    }
    black_box(sum);
}

fn make_frames(items: u64, mut fill: impl FnMut(&mut FrameBuffer) -> usize) {
    let mut buffer = FrameBuffer::with_capacity(FRAMES, SNAP_BYTES as usize);
    for _ in 0..items / FRAMES as u64 {
        fill(&mut buffer);
        black_box(buffer.bytes());
    }
}

fn make_file(items: u64, fill: impl FnMut(&mut FrameBuffer) -> usize) {
    write_file(items, fill).expect("the temporary directory is writable");
}

fn write_file(items: u64, mut fill: impl FnMut(&mut FrameBuffer) -> usize) -> std::io::Result<()> {
    let path = Scratch::new();
    let mut buffer = FrameBuffer::with_capacity(FRAMES, SNAP_BYTES as usize);
    let mut writer = PcapWriter::new(File::create(&path.0)?, LinkType::Ethernet)?;
    for _ in 0..items / FRAMES as u64 {
        fill(&mut buffer);
        for frame in buffer.frames() {
            writer.write_frame(&frame)?;
        }
    }
    writer.finish().map(drop)
}

struct Run<'a> {
    traffic: &'static str,
    flows: u64,
    design: &'static str,
    make: Make<'a>,
    rounds: Vec<Row>,
}

impl Measured for Run<'_> {
    fn round(&mut self, items: u64) {
        let items = items.next_multiple_of(FRAMES as u64);
        let mut timer = Timer::default();
        timer.time(|| (self.make)(items));
        let (design, took) = (self.design, timer.total());
        let row = Row::new("generate", design, self.flows, self.traffic, items, took);
        self.rounds.push(row);
    }

    fn finish(self: Box<Self>) -> Row {
        median(self.rounds)
    }
}

/// A file that is removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        let name = format!("turboflow-bench-{}.pcap", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
