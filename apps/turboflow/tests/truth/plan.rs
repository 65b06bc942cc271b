// SPDX-License-Identifier: Apache-2.0
//! The planner on captures: its simulated tables evict what the engine's table evicts, and never
//! more than the worst case (TurboFlow, section 5.4 and Figure 14).

use std::fs;
use std::path::{Path, PathBuf};

use turboflow_capture::CaptureFile;
use turboflow_engine::PacketEngine;
use turboflow_engine_software::{EngineConfig, Sizing, SoftwareEngine};
use turboflow_merge::{KeyHasher, Layout, MicroflowRecord};
use turboflow_packet::{Parser, ParserConfig};
use turboflow_plan::{Measured, Observed, Simulation, SimulationConfig};
use turboflow_record::{Definition, Family, Packet, WORDS_V4};
use turboflow_testing::{Need, captures_folder, is_missing_in_part};

/// The project's own captures, and the large ones if they are beside the checkout.
fn captures() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let samples = ["samples/office.pcap", "samples/two-links.pcapng"];
    let mut captures: Vec<PathBuf> = samples.iter().map(|sample| root.join(sample)).collect();
    if is_missing_in_part(&[Need::Captures]) {
        return captures;
    }
    let large = captures_folder().unwrap().join("large");
    let paths = fs::read_dir(large).unwrap();
    let paths = paths.map(|entry| entry.unwrap().path());
    let endings = ["pcap", "pcapng"];
    captures.extend(paths.filter(|path| {
        let ending = path.extension().and_then(|ending| ending.to_str());
        ending.is_some_and(|ending| endings.contains(&ending))
    }));
    captures
}

fn packets(capture: &Path) -> Vec<Packet> {
    let mut file = CaptureFile::open(capture).unwrap();
    let mut parser = Parser::new(ParserConfig::default());
    let mut packets = Vec::new();
    while let Ok(Some(batch)) = file.next_batch(1_024) {
        packets.extend(batch.frames().iter().flat_map(|frame| parser.parse(frame)));
    }
    assert!(packets.len() > 100, "{}", capture.display());
    packets
}

fn simulate(packets: &[Packet], seed: u64, table_slots: Vec<u32>) -> Measured {
    let hasher = KeyHasher::new(seed);
    let observed: Vec<Observed> = packets
        .iter()
        .map(|packet| Observed {
            hash: match packet.tuple.words() {
                [a, b] => hasher.hash(&[*a, *b]),
                _ => hasher.hash(packet.tuple.raw_words()),
            },
            timestamp_ns: packet.timestamp_ns,
            wire_bytes: packet.frame_length_bytes,
            is_ipv6: packet.tuple.words().len() > 2,
        })
        .collect();
    let config = SimulationConfig {
        table_slots,
        ..SimulationConfig::default()
    };
    let mut simulation = Simulation::new(&config).unwrap();
    simulation.observe(&observed);
    simulation.finish()
}

/// The bound is an expectation over hash functions, so the mean of several is compared. A single
/// hash function may exceed it by a record or two if hardly any flow has a second packet.
#[test]
fn measurements_stay_below_the_worst_case_on_every_capture() {
    const SEEDS: u64 = 16;
    for capture in captures() {
        let (packets, name) = (packets(&capture), capture.display());
        let runs: Vec<Measured> = (1..=SEEDS)
            .map(|seed| simulate(&packets, seed, SimulationConfig::default().table_slots))
            .collect();
        for (index, table) in runs[0].tables.iter().enumerate() {
            let worst = runs[0].worst_case_to_measured(table) * table.microflows as f64;
            let sum: u64 = runs.iter().map(|run| run.tables[index].microflows).sum();
            let mean = sum as f64 / SEEDS as f64;
            // If every packet evicts, both are equal up to rounding.
            assert!(
                mean <= worst * (1.0 + 1e-12),
                "{name}: {mean} of {worst} with {table:?}"
            );
            let most = runs.iter().map(|run| run.tables[index].microflows).max();
            assert!(
                most.unwrap() as f64 <= worst + 2.0,
                "{name}: {most:?} of {worst}"
            );
        }
    }
}

#[test]
fn tables_evict_what_the_engines_table_does() {
    let layout = Layout::compile(&Definition::default(), false).unwrap();
    let (seed, plan) = (5, layout.plan().clone());
    for capture in captures() {
        let mut packets = packets(&capture);
        // The engine has one table per key width.
        packets.retain(|packet| packet.tuple.family() == Family::V4);
        let records: Vec<MicroflowRecord<WORDS_V4, 0>> =
            packets.iter().map(MicroflowRecord::of_v4).collect();
        for slots in [1, 7, 64, 1_000, 65_536] {
            let measured = simulate(&packets, seed, vec![slots]);
            let config = EngineConfig {
                sizing: Sizing::Fixed(slots),
                evict_after: 0,
            };
            // A single cell for all time, so that records are evicted only by collisions, or are
            // cut in place.
            let mut engine = SoftwareEngine::new(config, plan.clone(), KeyHasher::new(seed));
            let mut evicted = Vec::new();
            engine.observe(&records, &mut evicted);
            let name = capture.display();
            let collisions = engine.evicted().collision;
            assert_eq!(
                collisions, measured.tables[0].evictions,
                "{name}, {slots} slots"
            );
            let begun = collisions + engine.resident() as u64;
            assert_eq!(
                begun, measured.tables[0].microflows,
                "{name}, {slots} slots"
            );
        }
    }
}
