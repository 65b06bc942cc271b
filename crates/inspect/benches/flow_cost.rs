// SPDX-License-Identifier: Apache-2.0
//! Processor time of an inspection, in the meter and in its process: `cargo bench --package
//! turboflow-inspect --features dpi -- CAPTURE...`
//!
//! Prints one JSON object per capture, with the cost of: the library alone, in this process; the
//! process that inspects, including what it reads and answers; and the meter's side. The time is
//! from the scheduler, so other work on the machine matters little; the minimum of several runs is
//! reported.

use std::collections::HashMap;
use std::path::Path;

use turboflow_capture::CaptureFile;
use turboflow_inspect::{
    Facts, FlowKey, InspectConfig, InspectCounters, Inspection, Inspector, NdpiInspector,
    PacketLimits, Progress, Sight,
};
use turboflow_packet::{Parser, ParserConfig};
use turboflow_record::Packet;

const RUNS: usize = 15;
/// Packets in a batch, after which a meter checks for answers.
const BATCH: usize = 64;

fn main() {
    let captures = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"));
    for capture in captures {
        let packets = read(Path::new(&capture));
        let runs: Vec<Costs> = (0..RUNS).map(|_| run(&packets)).collect();
        let least = |of: fn(&Costs) -> u64| runs.iter().map(of).min().unwrap_or(0);
        let counters = runs[0].counters;
        let flows = counters.inspections_opened.max(1);
        let library: Vec<[u64; 2]> = (0..RUNS).map(|_| library_ns(&packets)).collect();
        let library = [0, 1].map(|pass| library.iter().map(|run| run[pass]).min().unwrap_or(0));
        let name = Path::new(&capture).file_name().unwrap_or_default();
        println!(
            "{{\"capture\": {name:?}, \"packets\": {}, \"flows\": {flows}, \"inspected\": {}, \
             \"late\": {}, \"library_us_a_flow\": {:.2}, \"library_again_us_a_flow\": {:.2}, \
             \"process_us_a_flow\": {:.2}, \"meter_ns_a_packet\": {:.1}}}",
            packets.len(),
            counters.packets_inspected,
            counters.packets_late,
            library[0] as f64 / flows as f64 / 1000.0,
            library[1] as f64 / flows as f64 / 1000.0,
            least(|it| it.process_ns) as f64 / flows as f64 / 1000.0,
            least(|it| it.meter_ns) as f64 / packets.len().max(1) as f64,
        );
    }
}

struct Costs {
    process_ns: u64,
    meter_ns: u64,
    counters: InspectCounters,
}

/// All packets of a capture with their IP packets, loaded in advance so that reading is not
/// measured.
fn read(path: &Path) -> Vec<(Packet, Option<Vec<u8>>)> {
    let mut packets = Vec::new();
    let mut parser = Parser::new(ParserConfig::default());
    let mut file = CaptureFile::open(path).expect("the capture can be opened");
    while let Ok(Some(batch)) = file.next_batch(256) {
        for frame in batch.frames() {
            if let Ok(packet) = parser.parse(frame) {
                packets.push((packet, parser.ip_datagram(frame).map(<[u8]>::to_vec)));
            }
        }
    }
    packets
}

fn run(packets: &[(Packet, Option<Vec<u8>>)]) -> Costs {
    let config = InspectConfig {
        is_lossless: true,
        program: Some(env!("CARGO_BIN_EXE_turboflow-inspector").into()),
        ..InspectConfig::default()
    };
    let mut inspection = Inspection::start(config, |_: &[u8]| 1).expect("the library is here");
    let process = inspection.process_id().expect("it was just started");
    let process = format!("/proc/{process}/schedstat");
    let before = (time_ns(&process), thread_ns());
    let mut settled_ns = 0;
    for (number, (packet, datagram)) in packets.iter().enumerate() {
        if number.is_multiple_of(BATCH) {
            inspection.poll(packet.timestamp_ns);
        }
        // As a meter that writes records once per second.
        if packet.timestamp_ns.saturating_sub(settled_ns) > 1_000_000_000 {
            settled_ns = packet.timestamp_ns;
            inspection.wait_until_caught_up(settled_ns);
        }
        inspection.offer(packet, || datagram.as_deref());
    }
    inspection.finish(settled_ns);
    Costs {
        process_ns: time_ns(&process) - before.0,
        meter_ns: thread_ns() - before.1,
        counters: inspection.counters(),
    }
}

/// The time that the library alone takes for the packets that it inspects: in the first run, when
/// its code and tables are in no cache, and in a repeated run.
fn library_ns(packets: &[(Packet, Option<Vec<u8>>)]) -> [u64; 2] {
    let mut inspector = NdpiInspector::new().expect("the library is here");
    [(); 2].map(|()| pass_ns(&mut inspector, packets))
}

fn pass_ns(inspector: &mut NdpiInspector, packets: &[(Packet, Option<Vec<u8>>)]) -> u64 {
    let limits = PacketLimits::default();
    let mut flows: HashMap<FlowKey, Option<(_, u8)>> = HashMap::new();
    let mut facts = Facts::default();
    let before = thread_ns();
    for (packet, datagram) in packets {
        let Some(datagram) = datagram else {
            continue;
        };
        let (key, is_reversed) = FlowKey::of(&packet.tuple);
        let place = flows
            .entry(key)
            .or_insert_with(|| inspector.open().map(|flow| (flow, 0)));
        let Some((flow, count)) = place else {
            continue;
        };
        let sight = Sight {
            datagram,
            time_ns: packet.timestamp_ns,
            is_reversed,
        };
        let progress = inspector.inspect(flow, &sight, &mut facts);
        *count += 1;
        let limit = if key.protocol() == 6 {
            limits.tcp
        } else {
            limits.udp
        };
        if progress == Progress::Complete || *count >= limit {
            *place = None;
        }
    }
    drop(flows);
    thread_ns() - before
}

/// Processor time of this thread, in nanoseconds.
fn thread_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Processor time of another process, in nanoseconds.
fn time_ns(path: &str) -> u64 {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|number| number.parse().ok()).unwrap_or(0)
}
