// SPDX-License-Identifier: Apache-2.0
//! Simulates microflow tables on the paper's three workloads and on captures.

use std::fs;
use std::path::Path;

use anyhow::Context;
use turboflow_capture::CaptureFile;
use turboflow_merge::{KeyHash, KeyHasher};
use turboflow_packet::{Parser, ParserConfig};
use turboflow_plan::{Measured, Observed, Simulation, SimulationConfig};
use turboflow_record::{Family, FiveTuple};
use turboflow_workload::workloads::{
    Asked, DataCenterConfig, InternetConfig, Kind, Switch, Workload, WorkloadConfig,
};

/// Bytes of a microflow record in the paper's switch: the table sizes of Table 10 (49 KB, 98 KB,
/// ...) divided by it are powers of two.
pub(super) const PAPERS_RECORD_BYTES: f64 = 24.0;
/// Bytes of TurboFlow's record: IPv4 with the default definition.
pub(super) const OUR_RECORD_BYTES: f64 = 64.0;

/// Packets simulated at a time.
const BATCH: usize = 1 << 14;
/// Bytes of an Ethernet header.
const ETHERNET_BYTES: u32 = 14;

/// A workload of the paper's Table 6.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Link {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Capacity in Gb/s.
    pub(super) gigabits: f64,
    /// Bus load in Table 10, in Mb/s, by slots of the table.
    pub(super) papers_bus_mbits: [(u32, f64); 5],
}

const SLOTS: [u32; 5] = [2_048, 4_096, 8_192, 32_768, 65_536];

const fn loads(mbits: [f64; 5]) -> [(u32, f64); 5] {
    let mut loads = [(0, 0.0); 5];
    let mut index = 0;
    while index < 5 {
        loads[index] = (SLOTS[index], mbits[index]);
        index += 1;
    }
    loads
}

/// The three workloads, at the rates of the paper.
pub(super) fn links() -> [Link; 3] {
    [
        Link {
            name: "Internet link",
            kind: Kind::Internet(InternetConfig::default()),
            gigabits: 10.0,
            papers_bus_mbits: loads([22.57, 19.01, 15.39, 9.27, 7.05]),
        },
        Link {
            name: "ToR switch",
            kind: Kind::DataCenter(DataCenterConfig::new(Switch::TopOfRack)),
            gigabits: 1_280.0,
            papers_bus_mbits: loads([242.93, 173.06, 129.52, 100.04, 94.65]),
        },
        Link {
            name: "aggregation switch",
            kind: Kind::DataCenter(DataCenterConfig::new(Switch::Aggregation)),
            gigabits: 1_440.0,
            papers_bus_mbits: loads([856.99, 563.17, 397.63, 286.92, 267.52]),
        },
    ]
}

/// The result of running a workload through tables.
pub(super) struct Simulated {
    pub(super) measured: Measured,
    /// Births per second. The simulation also counts flows that are active at its start as births.
    pub(super) flows_per_second: f64,
    /// What the paper or its sources state.
    pub(super) asked: Asked,
}

/// Simulates tables on a number of packets of a workload.
pub(super) fn simulate(
    kind: Kind,
    packets: u64,
    seed: u64,
    config: &SimulationConfig,
) -> anyhow::Result<Simulated> {
    let mut workload = Workload::new(&WorkloadConfig {
        packets: Some(packets),
        seed,
        ..WorkloadConfig::new(kind)
    })?;
    let mut simulation = Simulation::new(config)?;
    let hasher = KeyHasher::new(seed);
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        batch.clear();
        batch.extend(workload.by_ref().take(BATCH).map(|arrival| {
            let key = arrival.five_tuple();
            Observed {
                hash: hash(&hasher, &key),
                timestamp_ns: arrival.timestamp_ns,
                wire_bytes: u32::from(arrival.ip_length_bytes) + ETHERNET_BYTES,
                is_ipv6: key.family() == Family::V6,
            }
        }));
        if batch.is_empty() {
            return Ok(Simulated {
                measured: simulation.finish(),
                flows_per_second: workload.statistics().flows_per_second(),
                asked: *workload.asked(),
            });
        }
        simulation.observe(&batch);
    }
}

/// Simulates tables on the packets of a capture file. Frames without an IP packet are ignored.
pub(super) fn simulate_capture(
    path: &Path,
    seed: u64,
    config: &SimulationConfig,
) -> anyhow::Result<Measured> {
    let mut file =
        CaptureFile::open(path).with_context(|| format!("opening {}", path.display()))?;
    let mut parser = Parser::new(ParserConfig::default());
    let mut simulation = Simulation::new(config)?;
    let hasher = KeyHasher::new(seed);
    let mut observed = Vec::with_capacity(BATCH);
    while let Some(batch) = file
        .next_batch(BATCH)
        .with_context(|| format!("reading {}", path.display()))?
    {
        observed.clear();
        let packets = batch
            .frames()
            .iter()
            .filter_map(|frame| parser.parse(frame).ok());
        observed.extend(packets.map(|packet| Observed {
            hash: hash(&hasher, &packet.tuple),
            timestamp_ns: packet.timestamp_ns,
            wire_bytes: packet.frame_length_bytes,
            is_ipv6: packet.tuple.family() == Family::V6,
        }));
        simulation.observe(&observed);
    }
    Ok(simulation.finish())
}

/// The capture files of a folder, sorted by name; empty if there is no such folder.
pub(super) fn captures(folder: &Path) -> Vec<std::path::PathBuf> {
    let is_capture = |path: &std::path::PathBuf| {
        let ending = path.extension().and_then(|ending| ending.to_str());
        matches!(ending, Some("pcap" | "pcapng"))
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries
        .map(|entry| entry.path())
        .filter(is_capture)
        .collect();
    files.sort();
    files
}

#[inline(always)]
fn hash(hasher: &KeyHasher, tuple: &FiveTuple) -> KeyHash {
    let words = tuple.raw_words();
    match tuple.family() {
        Family::V4 => hasher.hash(&[words[0], words[1]]),
        Family::V6 => hasher.hash(words),
    }
}
