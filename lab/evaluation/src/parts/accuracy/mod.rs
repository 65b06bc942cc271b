// SPDX-License-Identifier: Apache-2.0
//! Accuracy of sampling and sketches against TurboFlow, on the same traffic (TurboFlow, section 2.2
//! and Table 3).

mod report;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use turboflow_accuracy::{
    Answer, CountMin, ERROR_STEPS, ElasticConfig, ElasticSketch, FlowCounter, FlowRadar, HashPipe,
    Pick, Sampling, Score, Truth,
};
use turboflow_aggregate::FlowCache;
use turboflow_bench::Timer;
use turboflow_engine_software::{Sizing, SoftwareEngine};
use turboflow_record::{Column, FiveTuple, FlowBatch, InputValues, Packet, Value, WORDS_V4};
use turboflow_run::{Meter, PipelineConfig};
use turboflow_workload::workloads::{Arrival, InternetConfig, Kind, Workload, WorkloadConfig};

use super::{FactSink, Part, Scale};
use crate::facts::Fact;

pub(super) const PART: Part = Part {
    name: "accuracy",
    title: "Accuracy: sampling and sketches beside TurboFlow (Table 3)",
    measure,
    report: report::report,
    is_computed: false,
};

type Key = [u64; WORDS_V4];

/// Memory of each sketch, and of TurboFlow's microflow table: 1 MiB.
const FAST_BYTES: usize = 1 << 20;
/// Bytes of an Ethernet header.
const ETHERNET_BYTES: u32 = 14;
const SEED: u64 = 1;

fn measure(scale: &Scale, give: FactSink<'_>) -> anyhow::Result<()> {
    let packets = link_traffic(scale.pick(1_000_000, 10_000_000))?;
    let keys: Vec<Key> = packets.iter().map(|packet| key(&packet.tuple)).collect();
    let mut truth = Truth::default();
    keys.iter().for_each(|key| truth.observe(key));
    let flows = truth.packets.len();
    let mut run = Run {
        keys: &keys,
        truth: &truth,
        give,
    };
    run.turboflow(&packets)?;
    for interval in [100, 1_000, 30_000] {
        for (pick, how) in [(Pick::CountBased, "count-based"), (Pick::Random, "random")] {
            let design = format!("sampling 1:{interval}, {how}");
            run.counter(&design, Sampling::new(pick, interval, SEED));
        }
    }
    // With 40 bits per flow and ten hash functions, the filter has no false positives. With ten
    // bits per flow, it has some.
    let radars = [
        ("FlowRadar, 1.3 cells a flow", 1.3, 40, 10),
        ("FlowRadar, 1.1 cells a flow", 1.1, 40, 10),
        ("FlowRadar, 1.3 cells, small filter", 1.3, 10, 7),
    ];
    for (design, cells_a_flow, bits_a_flow, filter_hashes) in radars {
        let cells = (flows as f64 * cells_a_flow) as usize;
        let radar = FlowRadar::new(flows * bits_a_flow, filter_hashes, cells, 3, SEED);
        run.counter(design, radar);
    }
    let width = FAST_BYTES / size_of::<u32>() / 4;
    run.counter("Count-Min", CountMin::new(width, 4, SEED));
    let slot_bytes = HashPipe::<WORDS_V4>::new(1, 1, SEED).size_bytes();
    let slots_a_stage = FAST_BYTES / slot_bytes / 6;
    run.counter("HashPipe", HashPipe::new(6, slots_a_stage, SEED));
    run.counter("Elastic sketch", ElasticSketch::new(elastic(), SEED));
    Ok(())
}

/// A quarter of the memory is for the heavy part, the rest for the light part.
fn elastic() -> ElasticConfig {
    let one = ElasticConfig {
        buckets: 1,
        light_width: 1,
        light_depth: 1,
        lambda: 8,
    };
    let bucket_bytes = ElasticSketch::<WORDS_V4>::new(one, SEED).size_bytes() - 1;
    ElasticConfig {
        buckets: FAST_BYTES / 4 / bucket_bytes,
        light_width: FAST_BYTES * 3 / 4,
        ..one
    }
}

/// IPv4 packets like those of the paper's Internet link.
fn link_traffic(packets: u64) -> anyhow::Result<Vec<Packet>> {
    let workload = Workload::new(&WorkloadConfig {
        packets: Some(packets),
        seed: SEED,
        ..WorkloadConfig::new(Kind::Internet(InternetConfig::default()))
    })?;
    let packet = |arrival: Arrival| Packet {
        tuple: arrival.five_tuple(),
        timestamp_ns: arrival.timestamp_ns,
        ip_length_bytes: u32::from(arrival.ip_length_bytes),
        frame_length_bytes: u32::from(arrival.ip_length_bytes) + ETHERNET_BYTES,
        tcp_flags: arrival.tcp_flags,
        ttl: 64,
        tos: 0,
        is_echo_reply: false,
    };
    Ok(workload.map(packet).collect())
}

/// The key words of an IPv4 5-tuple.
fn key(tuple: &FiveTuple) -> Key {
    let [first, second, ..] = *tuple.raw_words();
    [first, second]
}

struct Run<'a> {
    keys: &'a [Key],
    truth: &'a Truth<WORDS_V4>,
    give: FactSink<'a>,
}

impl Run<'_> {
    fn counter<C: FlowCounter<WORDS_V4>>(&mut self, design: &str, counter: C) {
        let mut counter = Box::new(counter);
        let mut timer = Timer::default();
        timer.time(|| self.keys.iter().for_each(|key| counter.observe(key)));
        let size_bytes = counter.size_bytes();
        let score = Score::new(self.truth, &counter.answer());
        self.give(design, &score, &timer, size_bytes, 0);
    }

    /// The product itself: an engine with a microflow table of that memory, the aggregator and its
    /// records.
    fn turboflow(&mut self, packets: &[Packet]) -> anyhow::Result<()> {
        let table_bytes = SoftwareEngine::<WORDS_V4, 0>::size_bytes_of;
        let slots = (FAST_BYTES / (table_bytes(1 << 10) >> 10)) as u32;
        let config = PipelineConfig {
            sizing: Sizing::Fixed(slots),
            seed: SEED,
            ..PipelineConfig::default()
        };
        let delivered: Arc<Mutex<Vec<FlowBatch>>> = Arc::default();
        let mut meter = Meter::new(&config, |_shard| {
            let delivered = Arc::clone(&delivered);
            Box::new(move |batch| {
                let mut delivered = delivered.lock().expect("the holder does not panic");
                delivered.push(batch.clone());
                batch.clear();
            })
        })?;
        let schema = meter.layout().schema().to_vec();
        let values = InputValues::default();
        let mut timer = Timer::default();
        timer.time(|| {
            packets
                .iter()
                .for_each(|packet| meter.packet(packet, &values))
        });
        let ledger = timer.time(|| meter.finish()).ledger;
        anyhow::ensure!(
            ledger.imbalances().is_empty(),
            "the ledger does not balance"
        );
        let batches = delivered.lock().expect("the holder does not panic");
        let answer = Answer {
            listed: packets_by_flow(&schema, &batches)?,
            others: None,
        };
        let score = Score::new(self.truth, &answer);
        // Size of a flow cache for the peak number of open flows. Its tables for IPv6 are not
        // counted, because these packets do not use them.
        let cache_bytes = FlowCache::<WORDS_V4, 0>::max_size_bytes(ledger.flows_peak as usize);
        self.give("TurboFlow", &score, &timer, table_bytes(slots), cache_bytes);
        Ok(())
    }

    fn give(&mut self, design: &str, score: &Score, timer: &Timer, fast: usize, slow: usize) {
        let ns = timer.total().as_secs_f64() * 1e9 / self.keys.len() as f64;
        let fact = Fact::new(PART.name)
            .of("design", design)
            .value("packets", self.keys.len() as f64)
            .value("flows", score.flows as f64)
            .value("listed_share", score.listed_share)
            .value("invented_flows", score.invented as f64)
            .value("exact_share", score.exact_share)
            .value("small_flows", score.small_flows as f64)
            .value("small_missed_share", score.small_missed_share)
            .value("error_mean", score.error_mean)
            .value("error_p50", score.error_p50)
            .value("error_p90", score.error_p90)
            .value("error_p99", score.error_p99)
            .value("error_max", score.error_max)
            .value("memory_bytes", fast as f64)
            .value("flow_cache_bytes", slow as f64)
            .value("ns_per_packet", ns);
        let within = ERROR_STEPS.iter().zip(score.shares_within);
        let fact = within.fold(fact, |fact, (step, share)| {
            fact.value(&within_name(*step), share)
        });
        (self.give)(fact);
    }
}

/// The fact key for the share of flows whose error is within a step.
fn within_name(step: f64) -> String {
    format!("share_within_{step}")
}

/// The packets of each flow, summed over its records.
fn packets_by_flow(schema: &[Column], batches: &[FlowBatch]) -> anyhow::Result<HashMap<Key, u64>> {
    let column = |name: &str| {
        let place = schema.iter().position(|column| column.name == name);
        place.ok_or_else(|| anyhow::anyhow!("the default definition has no {name}"))
    };
    let addresses = [column("src_addr")?, column("dst_addr")?];
    let numbers = [
        column("src_port")?,
        column("dst_port")?,
        column("protocol")?,
        column("packets")?,
    ];
    let mut packets = HashMap::new();
    for batch in batches {
        for row in 0..batch.rows() {
            let [source, destination] = addresses.map(|column| batch.value(row, column));
            let (Value::Address(source), Value::Address(destination)) = (source, destination)
            else {
                anyhow::bail!("a record has no addresses");
            };
            let [source_port, destination_port, protocol, count] =
                numbers.map(|column| match batch.value(row, column) {
                    Value::Unsigned(number) => number,
                    _ => 0,
                });
            let tuple = FiveTuple::new(
                source,
                destination,
                source_port as u16,
                destination_port as u16,
                protocol as u8,
            );
            *packets.entry(key(&tuple)).or_default() += count;
        }
    }
    Ok(packets)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::facts::Facts;

    #[test]
    fn turboflow_is_exact_because_its_records_are() {
        let mut facts = Vec::new();
        let scale = Scale {
            quick: true,
            redis: None,
            captures: PathBuf::new(),
        };
        measure(&scale, &mut |fact| facts.push(fact)).unwrap();
        let facts = Facts(facts);
        let ours = facts.with("design", "TurboFlow");
        assert_eq!(ours.first("exact_share"), Some(1.0));
        assert_eq!(ours.first("invented_flows"), Some(0.0));
        let sampled = facts.with("design", "sampling 1:1000, random");
        assert!(sampled.first("small_missed_share") > Some(0.9));
        assert!(ours.first("ns_per_packet") > Some(0.0));
    }
}
