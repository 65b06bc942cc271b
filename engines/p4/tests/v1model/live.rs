// SPDX-License-Identifier: Apache-2.0
//! Frames on the ports of a switch are metered live. The flow records equal those of the software
//! engine, both for a switch whose clock is set and for a chip whose clock is not.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use turboflow_capture::CaptureFile;
use turboflow_engine_p4::{Came, Frames, LIVE_CELL_NS, Live, LiveConfig, P4Record, Port};
use turboflow_packet::LinkType;
use turboflow_record::Definition;
use turboflow_run::{PipelineConfig, Source, Stop};
use turboflow_testing::{Need, is_missing};

use crate::chip::{self, Copies, adapt_command, adapt_report};
use crate::lane::{CAUSE_STATUS, KIND_SETTINGS, OUTER_BYTES};
use crate::queue::udp;
use crate::support::{OfFile, Run, captures, run};
use crate::switch::{CPU_PORT, Switch};
use crate::{BATCH, PAPER_EIGHT, TAP};

const PORT: u16 = 6;
const COPY_SESSION: u128 = 101;
/// How much time passes between two looks at the port.
const STEP_NS: u64 = 200_000_000;

/// This machine's clock.
static WALL_NS: AtomicU64 = AtomicU64::new(0);

fn wall_ns() -> u64 {
    WALL_NS.load(Ordering::Relaxed)
}

/// The program, and the device that runs it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Machine {
    Switch,
    /// A switch that batches reports.
    Batch,
    /// A switch that meters behind the queue.
    Queue,
    /// With the time of the chip's clock at the first frame.
    Chip {
        first_ns: u64,
    },
    /// A chip that meters behind the queue, which frames pass once more as copies.
    ChipWithQueue {
        first_ns: u64,
    },
}

impl Machine {
    const fn program(self) -> &'static str {
        match self {
            Self::Switch | Self::Chip { .. } => TAP,
            Self::Batch => BATCH,
            Self::Queue | Self::ChipWithQueue { .. } => PAPER_EIGHT,
        }
    }

    /// The clock of a chip at the first frame.
    const fn chip_first_ns(self) -> Option<u64> {
        match self {
            Self::Switch | Self::Batch | Self::Queue => None,
            Self::Chip { first_ns } | Self::ChipWithQueue { first_ns } => Some(first_ns),
        }
    }
}

/// A frame that arrives on a port.
#[derive(Clone, Debug)]
struct Arrival {
    time_ns: u64,
    /// Number of frames ahead of it in the queue.
    queued: u32,
    bytes: Vec<u8>,
}

/// The faults of a run.
#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    /// One report out of this many is lost.
    loses_one_in: u64,
    /// One copied frame out of this many is lost.
    loses_one_copy_in: u64,
    /// How long the port is not read when nothing comes.
    looks_away_ns: u64,
    /// By how much this machine's clock is set, once, halfway through the frames.
    clock_step_ns: i64,
    /// Whether the switch is gone halfway through the frames.
    is_killed: bool,
}

/// A switch, and the frames that arrive on its ports at their times.
struct InTime {
    switch: Switch,
    machine: Machine,
    copies: Copies,
    faults: Faults,
    frames: VecDeque<Arrival>,
    first_ns: u64,
    /// The true time, whatever this machine's clock says.
    now_ns: u64,
    /// Half the number of frames.
    half: usize,
    /// Whether ports are metered.
    is_open: bool,
    out: VecDeque<Vec<u8>>,
    sent: u64,
    stop: Arc<Stop>,
}

impl InTime {
    fn set_time(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        let is_set = self.frames.len() < self.half;
        let step_ns = if is_set { self.faults.clock_step_ns } else { 0 };
        let wall_ns = now_ns.saturating_add_signed(step_ns);
        WALL_NS.store(wall_ns, Ordering::Relaxed);
        let chip_ns = self.machine.chip_first_ns().unwrap_or(5_000_000);
        self.switch.now_us = (now_ns - self.first_ns + chip_ns) / 1000;
    }

    fn take_in(&mut self, port: u16, bytes: &[u8]) {
        if self.faults.is_killed && self.frames.len() < self.half {
            return;
        }
        for (to, mut report) in self.switch.receive(port, bytes) {
            if to != CPU_PORT {
                // It goes on.
                continue;
            }
            if self.machine.chip_first_ns().is_some() {
                report = adapt_report(report);
            }
            if let Machine::ChipWithQueue { .. } = self.machine {
                self.copies.number(&mut report);
            }
            // The engine asks again for lost answers.
            if report[OUTER_BYTES + 1] != CAUSE_STATUS {
                self.sent += 1;
                let every = self.faults.loses_one_in;
                if every > 0 && self.sent.is_multiple_of(every) {
                    continue;
                }
            }
            self.out.push_back(report);
        }
    }

    /// Advances time. Frames arrive until the time of the next look.
    fn go_on(&mut self) {
        let Some(next) = self.frames.front() else {
            self.set_time(self.now_ns + STEP_NS);
            return self.stop.ask();
        };
        let is_silent = next.time_ns > self.now_ns + 4 * STEP_NS;
        let step_ns = match is_silent {
            true => (4 * STEP_NS).max(self.faults.looks_away_ns),
            false => STEP_NS,
        };
        let until_ns = self.now_ns + step_ns;
        while self.next_comes(until_ns) {}
        self.set_time(until_ns);
    }

    /// Delivers the next frame if its time is not after this. Returns whether it did.
    fn next_comes(&mut self, until_ns: u64) -> bool {
        let is_due = |next: &Arrival| next.time_ns <= until_ns;
        if !self.frames.front().is_some_and(is_due) {
            return false;
        }
        let frame = self.frames.pop_front().unwrap();
        if frame.time_ns > self.now_ns {
            self.set_time(frame.time_ns);
        }
        self.switch.queue = (frame.queued, 0);
        let every = self.faults.loses_one_copy_in;
        if every > 0 && (self.frames.len() as u64).is_multiple_of(every) {
            self.copies.lose(&frame.bytes);
        } else {
            self.take_in(PORT, &frame.bytes);
        }
        true
    }
}

impl Port for InTime {
    fn name(&self) -> &str {
        "in time"
    }

    fn send(&mut self, parts: &[&[u8]]) {
        let mut command = parts.concat();
        let opens = command[OUTER_BYTES] == KIND_SETTINGS && command.ends_with(&[1]);
        let is_chip = self.machine.chip_first_ns().is_some();
        self.copies.take_command(&command[OUTER_BYTES..]);
        if !is_chip || adapt_command(&mut command, &self.switch) {
            self.take_in(CPU_PORT, &command);
        }
        self.is_open |= opens;
        // Once ports are metered, packets may arrive at any time.
        if self.is_open {
            self.next_comes(self.now_ns);
        }
    }

    fn exchange(&mut self, wait: bool, take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        let is_silent = self.out.is_empty();
        if !wait {
            self.go_on();
        }
        self.out.drain(..).for_each(|report| take(&report));
        Ok(!(wait && is_silent))
    }
}

/// The frames of a capture in time order, with times in whole microseconds. `None` if it is not in
/// order.
fn frames(path: &Path) -> Option<Vec<Arrival>> {
    let mut frames = Vec::new();
    let mut file = OfFile(CaptureFile::open(path).unwrap());
    let mut is_fit = true;
    while let Ok(Came::Frames) = file.next(&mut |frame| {
        is_fit &= frame.link_type == LinkType::Ethernet
            && frame.timestamp_ns.is_multiple_of(1000)
            && frame.bytes.len() == frame.wire_length_bytes as usize;
        frames.push(Arrival {
            time_ns: frame.timestamp_ns,
            queued: 0,
            bytes: frame.bytes.to_vec(),
        });
    }) {}
    let lasts_ns = frames.last()?.time_ns.checked_sub(frames[0].time_ns)?;
    (is_fit && frames.is_sorted_by_key(|frame| frame.time_ns) && lasts_ns < 60_000_000_000)
        .then_some(frames)
}

fn config() -> PipelineConfig {
    PipelineConfig {
        max_age_ns: LIVE_CELL_NS,
        ..PipelineConfig::default()
    }
}

fn in_software(path: &Path) -> Run {
    let file = CaptureFile::open(path).unwrap();
    run(&config(), Source::files(vec![file]), &Stop::new())
}

fn live(config: &PipelineConfig, frames: Vec<Arrival>, machine: Machine, faults: Faults) -> Run {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _clock_is_mine = ONE_AT_A_TIME.lock();
    let layout = config.compile().unwrap();
    let record = P4Record::behind_queue(&config.definition, &layout).unwrap();
    let live_config = LiveConfig {
        slots: chip::SLOTS,
        cell_ns: config.timeouts.cell_ns(config.max_age_ns),
        seeds: [1, 2],
        window: 24,
        wall_ns,
        interface_index: None,
    };
    let stop = Arc::new(Stop::new());
    let mut port = InTime {
        switch: Switch::new(machine.program()),
        machine,
        copies: Copies::default(),
        faults,
        first_ns: frames[0].time_ns,
        half: frames.len() / 2,
        frames: frames.into(),
        now_ns: 0,
        is_open: false,
        out: VecDeque::new(),
        sent: 0,
        stop: stop.clone(),
    };
    port.switch.mirror_to_cpu(COPY_SESSION);
    port.set_time(port.first_ns);
    let engine = Live::open(Box::new(port), record, &layout, &live_config).unwrap();
    run(config, Source::engines(vec![Box::new(engine)]), &stop)
}

/// Not the start of a cell.
const UNALIGNED_NS: u64 = 1_234_567_000;
/// Number of captures to compare.
const MANY: usize = 30;

/// Captures with their frames.
fn some_captures() -> impl Iterator<Item = (PathBuf, Vec<Arrival>)> {
    let with_frames = |path: PathBuf| frames(&path).map(|frames| (path, frames));
    captures().into_iter().filter_map(with_frames).take(MANY)
}

#[test]
fn records_of_ports_are_those_of_the_software_engine() {
    if is_missing(&[Need::Captures, Need::Cases]) {
        return;
    }
    let mut compared = 0;
    for (path, frames) in some_captures() {
        let expected = in_software(&path);
        let aligned_ns = frames[0].time_ns % LIVE_CELL_NS + (LIVE_CELL_NS << 5);
        // The 48-bit clock wraps during the run.
        let ends_ns = (1 << 48) - 2 * UNALIGNED_NS;
        let chips = [aligned_ns, UNALIGNED_NS, ends_ns].map(|first_ns| Machine::Chip { first_ns });
        for machine in [&[Machine::Switch, Machine::Batch], &chips[..]].concat() {
            let found = live(&config(), frames.clone(), machine, Faults::default());
            let name = format!("{machine:?}: {}", path.display());
            assert_eq!(expected.difference(&found), None, "{name}");
            assert_eq!(found.ledger.imbalances_at_the_end(), [], "{name}");
            let packets = [&expected, &found].map(|run| run.ledger.packets_recorded);
            assert_eq!(packets[0], packets[1], "{name}");
        }
        compared += 1;
    }
    assert_eq!(compared, MANY);
}

/// What is missing from a chip's records is in the ledger, exact to the packet.
#[test]
fn what_a_chip_loses_is_counted() {
    if is_missing(&[Need::Captures, Need::Cases]) {
        return;
    }
    let machine = Machine::Chip {
        first_ns: UNALIGNED_NS,
    };
    for faults in [
        Faults {
            loses_one_in: 3,
            ..Faults::default()
        },
        // Then the times cannot be told from 32 bits.
        Faults {
            looks_away_ns: 5_000_000_000,
            ..Faults::default()
        },
    ] {
        let (mut dropped, mut recorded) = (0, 0);
        for (path, frames) in some_captures() {
            let expected = in_software(&path).ledger;
            let Run { ledger, .. } = live(&config(), frames, machine, faults);
            assert_eq!(ledger.imbalances_at_the_end(), [], "{}", path.display());
            assert_eq!(
                ledger.packets_recorded + ledger.source_dropped,
                expected.packets_recorded,
                "{faults:?}: {}",
                path.display()
            );
            dropped += ledger.source_dropped;
            recorded += ledger.packets_recorded;
        }
        assert!(
            dropped > 0 && recorded > 0,
            "{faults:?}: {dropped} {recorded}"
        );
    }
}

/// No packet is lost when this machine's clock is set, and all packets are counted when a switch is
/// killed.
#[test]
fn packets_are_counted_whatever_clock_and_switch_do() {
    if is_missing(&[Need::Captures, Need::Cases]) {
        return;
    }
    let chip = Machine::Chip {
        first_ns: UNALIGNED_NS,
    };
    for machine in [Machine::Switch, chip] {
        for clock_step_ns in [-7_000_000_000, -20_000_000, 20_000_000, 7_000_000_000] {
            let faults = Faults {
                clock_step_ns,
                ..Faults::default()
            };
            for (path, frames) in some_captures() {
                let packets = in_software(&path).ledger.packets_recorded;
                let Run { ledger, .. } = live(&config(), frames, machine, faults);
                let name = format!("{machine:?} {faults:?} {}", path.display());
                assert_eq!(ledger.imbalances_at_the_end(), [], "{name}");
                assert_eq!(ledger.packets_recorded, packets, "{name}");
            }
        }
        let faults = Faults {
            is_killed: true,
            ..Faults::default()
        };
        for (path, frames) in some_captures() {
            let Run { ledger, .. } = live(&config(), frames, machine, faults);
            let name = format!("{machine:?} {faults:?} {}", path.display());
            assert_eq!(ledger.imbalances_at_the_end(), [], "{name}");
        }
    }
}

/// Copies of frames that a chip loses before they reach its table are counted, whatever else is
/// under way.
#[test]
fn copies_that_a_chip_loses_are_counted() {
    let frames: Vec<Arrival> = (0..2_000_u64)
        .map(|at| Arrival {
            time_ns: LIVE_CELL_NS + 1_000_000 * at,
            queued: 3,
            bytes: udp(at as u16 % 7),
        })
        .collect();
    let definition = include_str!("../../definitions/paper_eight.toml");
    let config = PipelineConfig {
        definition: Definition::parse(definition).unwrap(),
        ..config()
    };
    let machine = Machine::ChipWithQueue {
        first_ns: UNALIGNED_NS,
    };
    for (loses_one_copy_in, lost) in [(0, 0), (100, 20), (1, 2_000)] {
        let faults = Faults {
            loses_one_copy_in,
            ..Faults::default()
        };
        let Run { ledger, .. } = live(&config, frames.clone(), machine, faults);
        assert_eq!(ledger.imbalances_at_the_end(), []);
        assert_eq!(ledger.source_dropped, lost);
        assert_eq!(ledger.packets_recorded, 2_000 - lost);
    }
}

/// Many simultaneous senders fill a queue (table 1). The flow records show who they were, and who
/// had to wait.
#[test]
fn an_incast_is_in_the_flow_records() {
    const STEADY: u16 = 1;
    let mut frames: Vec<Arrival> = (0..1_000)
        .map(|at| Arrival {
            time_ns: LIVE_CELL_NS + 1_000_000 * at,
            queued: 0,
            bytes: udp(STEADY),
        })
        .collect();
    // The senders of the incast are numbered from 100.
    let burst_ns = LIVE_CELL_NS + 400_500_000;
    for at in 0..320_u16 {
        frames.push(Arrival {
            time_ns: burst_ns + 1_000 * u64::from(at),
            queued: at.into(),
            bytes: udp(100 + at % 32),
        });
    }
    frames.sort_by_key(|frame| frame.time_ns);
    // The steady flow's next packet waits behind all of them.
    let next = frames
        .iter_mut()
        .find(|frame| frame.time_ns > burst_ns + 320_000);
    next.unwrap().queued = 320;

    let definition = include_str!("../../definitions/paper_eight.toml");
    let config = PipelineConfig {
        definition: Definition::parse(definition).unwrap(),
        ..config()
    };
    let found = live(&config, frames, Machine::Queue, Faults::default());
    assert_eq!(found.ledger.imbalances_at_the_end(), []);
    assert_eq!(found.rows.len(), 33);
    for row in &found.rows {
        let fields: Vec<&str> = row.split(' ').collect();
        let number = |at: usize| -> u64 {
            let digits = fields[at].trim_start_matches("Unsigned(");
            digits.trim_end_matches(')').parse().unwrap()
        };
        let [port, packets, max_depth, gap_ns] = [2, 5, 9, 12].map(number);
        let expected = match port {
            1 => (1_000, 320, 1_000_000),
            // Ten packets, 32 apart. The last packet found those of all earlier senders in the
            // queue.
            port => (10, 9 * 32 + port - 100, 32_000),
        };
        assert_eq!((packets, max_depth, gap_ns), expected, "{row}");
    }
}
