// SPDX-License-Identifier: Apache-2.0
//! Engines to test, and frames for them.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use turboflow_capture::CaptureFile;
use turboflow_engine::MicroflowBatch;
use turboflow_engine_xdp::{
    Clock, KernelConfig, KernelCounters, KernelEngine, Tables, TestedProgram,
};
use turboflow_merge::MicroflowRecord;
use turboflow_packet::{Frame, LinkType};
use turboflow_record::WORDS_V6;
use turboflow_testing::{Need, captures_folder, cases_folder, is_missing, is_missing_in_part};

pub(crate) const ETHERNET_HEADER_BYTES: usize = 14;

/// The frame lengths that test runs accept: at least an Ethernet header, at most a page and 17
/// fragments of a page. No interface delivers anything else.
pub(crate) fn is_runnable(bytes: &[u8]) -> bool {
    (ETHERNET_HEADER_BYTES..=73_000).contains(&bytes.len())
}

pub(crate) const VERDICT_PASS: u32 = 2;

pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// One width for records of both families: an IPv4 key is padded with three words of zeros.
pub(crate) type Record = MicroflowRecord<WORDS_V6, 0>;

pub(crate) fn config(slots: u32) -> KernelConfig {
    KernelConfig {
        is_bound: false,
        interfaces: Vec::new(),
        layout: None,
        tables: Tables::PerCpu,
        slots,
        ring_bytes: 1 << 24,
        cell_ns: SECOND_NS,
        evict_after: 0,
        clock: Clock::Precise,
        wall_ns,
        drops: false,
        longest_frame_bytes: u32::MAX,
        hand_up: None,
        offload: None,
        tested: None,
        hash_keys: std::array::from_fn(|i| (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
    }
}

/// Loads the engine for a test on one CPU; `None` where the test is skipped because this user may
/// not load it.
pub(crate) fn load(config: &KernelConfig) -> Option<KernelEngine> {
    let engine = load_for_all_cpus(config)?;
    stay_on_this_cpu();
    Some(engine)
}

/// Loads the engine for a test on several CPUs.
pub(crate) fn load_for_all_cpus(config: &KernelConfig) -> Option<KernelEngine> {
    match KernelEngine::load(config) {
        Ok(engine) => Some(engine),
        Err(error) if error.is_permission() && is_missing(&[Need::Right("load BPF", false)]) => {
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A test run takes place on the caller's CPU: on one CPU there is one table, and one order.
fn stay_on_this_cpu() {
    stay_on(rustix::thread::sched_getcpu());
}

pub(crate) fn stay_on(cpu: usize) {
    let mut cpus = rustix::thread::CpuSet::new();
    cpus.set(cpu);
    rustix::thread::sched_setaffinity(None, &cpus).unwrap();
}

/// Both designs of the table.
pub(crate) const DESIGNS: [Tables; 2] = [Tables::PerCpu, Tables::RowLock];

/// The wall clock that records are compared with.
pub(crate) fn wall_ns() -> u64 {
    clock_ns(rustix::time::ClockId::Realtime)
}

pub(crate) fn clock_ns(clock: rustix::time::ClockId) -> u64 {
    let now = rustix::time::clock_gettime(clock);
    now.tv_sec as u64 * SECOND_NS + now.tv_nsec as u64
}

/// A frame as user space receives it: not truncated, as in the kernel.
pub(crate) fn frame(bytes: &[u8]) -> Frame<'_> {
    Frame {
        bytes,
        timestamp_ns: 0,
        wire_length_bytes: bytes.len() as u32,
        link_type: LinkType::Ethernet,
        interface: 0,
    }
}

/// Meters a frame, which must be passed on.
pub(crate) fn meter(engine: &KernelEngine, bytes: &[u8]) {
    let run = engine
        .tester()
        .run(TestedProgram::Microflows, bytes, 1)
        .unwrap();
    assert_eq!(run.verdict, VERDICT_PASS);
}

/// The records of a batch at one width: each family in the order of eviction.
pub(crate) fn records(batch: &MicroflowBatch) -> Vec<Record> {
    let v4 = batch.v4::<0>().map(|record| Record {
        key: [record.key[0], record.key[1], 0, 0, 0],
        base: record.base,
        state: [],
    });
    v4.chain(batch.v6::<0>()).collect()
}

/// Appends all available records; returns the time up to which they are complete, if known.
pub(crate) fn collect(engine: &mut KernelEngine, batch: &mut MicroflowBatch) -> Option<u64> {
    let mut complete_ns = None;
    loop {
        let collected = engine.collect(batch).unwrap();
        complete_ns = collected.complete_ns.or(complete_ns);
        if !collected.has_more {
            return complete_ns;
        }
    }
}

/// Ends the engine, and appends all remaining records.
pub(crate) fn finish(mut engine: KernelEngine, batch: &mut MicroflowBatch) -> KernelCounters {
    engine.finish().unwrap();
    collect(&mut engine, batch);
    engine.counters().unwrap()
}

/// The frames of a capture for this engine.
#[derive(Default)]
pub(crate) struct Captured {
    /// The Ethernet frames, in order.
    pub(crate) frames: Vec<Vec<u8>>,
    pub(crate) of_other_links: u64,
    /// Why the capture was not read to the end, if so.
    pub(crate) unread: Option<String>,
}

impl Captured {
    pub(crate) fn of(path: &Path) -> Self {
        let mut captured = Self::default();
        let read = CaptureFile::open(path).map_err(|error| error.to_string());
        let read = read.and_then(|file| captured.read(file));
        captured.unread = read.err();
        captured
    }

    fn read(&mut self, mut file: CaptureFile) -> Result<(), String> {
        while let Some(batch) = file.next_batch(256).map_err(|error| error.to_string())? {
            for frame in batch.frames() {
                match frame.link_type {
                    LinkType::Ethernet => self.frames.push(frame.bytes.to_vec()),
                    _ => self.of_other_links += 1,
                }
            }
        }
        Ok(())
    }
}

/// The Ethernet frames of a capture in order, as far as it can be read.
pub(crate) fn frames_of(path: &Path) -> Vec<Vec<u8>> {
    Captured::of(path).frames
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every capture of the project, and the real captures and those of reported bugs if they are
/// beside the checkout.
pub(crate) fn captures() -> Vec<PathBuf> {
    let mut captures = Vec::new();
    add_captures(&root().join("samples"), &mut captures);
    let own = captures.len();
    assert!(own > 50, "the samples were found");
    if !is_missing_in_part(&[Need::Captures]) {
        add_captures(&captures_folder().unwrap(), &mut captures);
    }
    if !is_missing_in_part(&[Need::Cases]) {
        add_captures(&cases_folder().unwrap(), &mut captures);
    }
    captures.sort();
    captures
}

/// Other files in the folders of captures.
const BESIDE: [&str; 11] = [
    "csv",
    "gitignore",
    "json",
    "md",
    "out",
    "parquet",
    "py",
    "sh",
    "toml",
    "tsv",
    "txt",
];

fn add_captures(folder: &Path, captures: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            add_captures(&path, captures);
        } else if !path
            .extension()
            .is_some_and(|end| BESIDE.iter().any(|other| end == *other))
        {
            captures.push(path);
        }
    }
}

/// A plain TCP packet over IPv4, between two hosts derived from `flow`.
pub(crate) fn tcp(flow: u16, flags: u8) -> Vec<u8> {
    let [high, low] = flow.to_be_bytes();
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00];
    bytes.extend([0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0]);
    bytes.extend([10, 0, 0, 1, 10, 0, high, low]);
    bytes.extend([
        high, low, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0,
    ]);
    bytes.resize(60, 0);
    bytes
}

/// Totals of many records, without keeping them.
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) records: u64,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// Sum of the records' durations.
    pub(crate) durations_ns: u64,
    /// End of the last record of each flow.
    last_ns: HashMap<[u64; 2], u64>,
    /// Sum of the first words of further features.
    pub(crate) first_words: u64,
    /// Records that began before the end of their flow's last one.
    pub(crate) overlapping: u64,
}

impl Totals {
    pub(crate) fn take(&mut self, batch: &mut MicroflowBatch) {
        for record in batch.v4::<8>() {
            let (key, base) = (record.key, record.base);
            self.first_words = self.first_words.wrapping_add(record.state[0]);
            assert!(base.first_ns <= base.last_ns);
            self.records += 1;
            self.packets += base.packets;
            self.bytes += base.bytes;
            self.durations_ns += base.last_ns - base.first_ns;
            let last_ns = self.last_ns.entry(key).or_default();
            self.overlapping += u64::from(base.first_ns < *last_ns);
            *last_ns = base.last_ns;
        }
        batch.clear();
    }

    pub(crate) fn flows(&self) -> usize {
        self.last_ns.len()
    }
}
