// SPDX-License-Identifier: Apache-2.0
//! The whole pipeline after the parser, compared record by record with a plain per-packet meter,
//! for every op and for any timeouts, table size, number of shards and seed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use turboflow_aggregate::Timeouts;
use turboflow_engine_software::Sizing;
use turboflow_record::{Definition, FlowBatch, InputValues, Packet};
use turboflow_run::{Ledger, Meter, PipelineConfig};
use turboflow_workload::definitions::random_definition;
use turboflow_workload::reference::{MeterOptions, Metered, Records, meter};
use turboflow_workload::sequences::{SequenceShape, random_packets};

fn config(definition: &Definition, options: &MeterOptions) -> PipelineConfig {
    PipelineConfig {
        definition: definition.clone(),
        biflow: options.biflow,
        timeouts: Timeouts {
            idle_ns: options.idle_timeout_ns,
            active_ns: options.active_timeout_ns,
            linger_ns: options.linger_ns,
            align_ns: options.align_ns,
        },
        max_age_ns: options.max_age_ns,
        max_flows: 10_000,
        sizing: Sizing::Fixed(64),
        ..PipelineConfig::default()
    }
}

/// Whether the source reports a time up to which it has delivered everything.
#[derive(Clone, Copy, Debug)]
enum Silence {
    /// Never, like files.
    Unreported,
    /// Before each packet that is not late, like a silent live source.
    Reported,
}

/// The records of the product.
fn record(
    config: &PipelineConfig,
    packets: &[(Packet, InputValues)],
    silence: Silence,
) -> (Records, Ledger) {
    let batches: Arc<Mutex<Vec<FlowBatch>>> = Arc::default();
    let mut product = Meter::new(config, |_shard| {
        let batches = Arc::clone(&batches);
        Box::new(move |batch: &mut FlowBatch| batches.lock().expect("no panic").push(batch.clone()))
    })
    .expect("the definition compiles");
    let schema = product.layout().schema().clone();
    let mut now_ns = 0;
    for (packet, values) in packets {
        let next_ns = packet.timestamp_ns;
        if matches!(silence, Silence::Reported) && now_ns < next_ns && now_ns > 0 {
            product.advance(now_ns + (next_ns - now_ns) / 2);
            product.advance(next_ns);
        }
        now_ns = now_ns.max(next_ns);
        product.packet(packet, values);
    }
    let ledger = product.finish().ledger;
    let batches = batches.lock().expect("no panic");
    (Records::from_batches(&schema, batches.iter()), ledger)
}

fn check(config: &PipelineConfig, options: &MeterOptions, packets: &[(Packet, InputValues)]) {
    let expected = meter(&config.definition, options, packets.iter().cloned());
    for silence in [Silence::Unreported, Silence::Reported] {
        check_one(config, options, packets, silence, &expected);
    }
}

fn check_one(
    config: &PipelineConfig,
    options: &MeterOptions,
    packets: &[(Packet, InputValues)],
    silence: Silence,
    expected: &Metered,
) {
    let (records, ledger) = record(config, packets, silence);
    assert_eq!(ledger.imbalances(), [], "{ledger:#?}");
    assert_eq!(ledger.packets_recorded, packets.len() as u64);
    assert_eq!(ledger.clock_steps, expected.clock_steps);
    if let Some(difference) = expected.records.difference(&records) {
        panic!("{difference}\n{options:?}");
    }
}

fn sizing() -> impl Strategy<Value = Sizing> {
    prop_oneof![
        Just(Sizing::Fixed(1)),
        Just(Sizing::Fixed(2)),
        Just(Sizing::Fixed(7)),
        Just(Sizing::Fixed(1_024)),
        Just(Sizing::Adaptive),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The default definition and its biflows, which have separate code paths.
    #[test]
    fn records_equal_the_oracles(
        seed: u64,
        packets in 1usize..400,
        sizing in sizing(),
        threads in 1usize..4,
        meters_apart: bool,
        sweep_ns in prop_oneof![Just(1u64), 1_000u64..100_000, Just(u64::MAX / 2)],
        biflow: bool,
    ) {
        let mut shape = SequenceShape::random(seed, packets);
        shape.options.biflow = biflow;
        let packets = random_packets(seed, &shape);
        let config = PipelineConfig {
            sizing, threads, meters_apart, seed, sweep_ns,
            ..config(&Definition::default(), &shape.options)
        };
        check(&config, &shape.options, &packets);
    }

    /// Random definitions with every op and input, unidirectional and as biflows.
    #[test]
    fn records_of_any_definition_equal_the_oracles(
        seed: u64,
        packets in 1usize..250,
        sizing in sizing(),
        threads in 1usize..3,
        meters_apart: bool,
    ) {
        let shape = SequenceShape::random(seed, packets);
        let definition = random_definition(seed, shape.options.biflow);
        let packets = random_packets(seed, &shape);
        let config = PipelineConfig {
            sizing, threads, meters_apart, seed,
            ..config(&definition, &shape.options)
        };
        check(&config, &shape.options, &packets);
    }

    /// Law 5, checked on the records themselves.
    #[test]
    fn no_record_outlasts_its_timeouts_and_none_overlap(seed: u64, packets in 1usize..400) {
        let mut shape = SequenceShape::random(seed, packets);
        shape.options.biflow = false;
        shape.disorder_percent = 0;
        shape.clock_steps_percent = 0;
        let packets = random_packets(seed, &shape);
        let config = config(&Definition::default(), &shape.options);
        let (records, _) = record(&config, &packets, Silence::Unreported);
        let mut spans: BTreeMap<Vec<String>, Vec<(u64, u64)>> = BTreeMap::new();
        for record in records.iter() {
            let (first_ns, last_ns) = (record.unsigned("first_ns"), record.unsigned("last_ns"));
            if let Some(active_ns) = shape.options.active_timeout_ns {
                prop_assert!(last_ns - first_ns <= active_ns);
            }
            let key = ["src_addr", "dst_addr", "src_port", "dst_port", "protocol"]
                .map(|column| format!("{:?}", record.get(column)));
            spans.entry(key.to_vec()).or_default().push((first_ns, last_ns));
        }
        for spans in spans.values_mut() {
            spans.sort_unstable();
            for pair in spans.windows(2) {
                prop_assert!(pair[0].1 <= pair[1].0, "records of one key overlap: {pair:?}");
            }
        }
    }

    /// Windows: no record has packets of two windows, and every packet is in one record.
    #[test]
    fn aligned_records_lie_in_one_window_and_add_up(
        seed: u64,
        packets in 1usize..400,
        align_ns in prop_oneof![Just(1), Just(7), Just(1_000), 1u64..100_000],
        threads in 1usize..4,
        sizing in sizing(),
    ) {
        let shape = SequenceShape::random(seed, packets);
        let packets = random_packets(seed, &shape);
        let whole = PipelineConfig { sizing, threads, ..config(&Definition::default(), &shape.options) };
        let mut aligned = whole.clone();
        aligned.timeouts.align_ns = Some(align_ns);
        let sums = |records: &Records| {
            let mut sums: BTreeMap<Vec<String>, (u64, u64)> = BTreeMap::new();
            for record in records.iter() {
                let key = ["src_addr", "dst_addr", "src_port", "dst_port", "protocol"]
                    .map(|column| format!("{:?}", record.get(column)));
                let of = |name: &str| {
                    let both = [name.to_owned(), format!("reverse_{name}")];
                    let both = both.iter().filter(|name| record.get(name).is_some());
                    both.map(|name| record.unsigned(name)).sum::<u64>()
                };
                let sum = sums.entry(key.to_vec()).or_default();
                *sum = (sum.0 + of("packets"), sum.1 + of("bytes"));
            }
            sums
        };
        let (cut, ledger) = record(&aligned, &packets, Silence::Unreported);
        prop_assert_eq!(ledger.imbalances(), []);
        for record in cut.iter() {
            let window = |name| record.unsigned(name) / align_ns;
            prop_assert_eq!(window("first_ns"), window("last_ns"), "{:?}", record);
        }
        if !shape.options.biflow {
            let (uncut, _) = record(&whole, &packets, Silence::Unreported);
            prop_assert_eq!(sums(&cut), sums(&uncut));
        }
    }

    /// A cache that is too small evicts flows early, but loses no packets.
    #[test]
    fn a_full_cache_conserves_packets(seed: u64, max_flows in 1usize..8, threads in 1usize..3) {
        let mut shape = SequenceShape::random(seed, 300);
        shape.keys = 20;
        let packets = random_packets(seed, &shape);
        let config = PipelineConfig {
            max_flows, threads, seed,
            sizing: Sizing::Fixed(2),
            ..config(&Definition::default(), &shape.options)
        };
        let (_, ledger) = record(&config, &packets, Silence::Unreported);
        prop_assert_eq!(ledger.imbalances(), []);
        prop_assert!(ledger.flows_peak <= (max_flows.div_ceil(threads) * threads * 2) as u64);
        prop_assert_eq!(ledger.packets_recorded, packets.len() as u64);
    }
}
