// SPDX-License-Identifier: Apache-2.0
//! The ports of a switch are metered as they come. The flow records are those of the software
//! engine, of a switch whose clock is set and of a chip whose clock is not.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use turboflow_capture::CaptureFile;
use turboflow_engine_p4::{Came, Frames, LIVE_CELL_NS, Live, LiveConfig, P4Record, Port};
use turboflow_packet::LinkType;
use turboflow_run::{PipelineConfig, Source, Stop};
use turboflow_testing::{Need, is_missing};

use crate::TAP;
use crate::chip::{self, adapt_command, adapt_report};
use crate::support::{OfFile, Run, captures, run};
use crate::switch::{CPU_PORT, Switch};

const PORT: u16 = 6;
const CAUSE_STATUS: u8 = 4;
/// How far time goes on between two looks at the port.
const STEP_NS: u64 = 200_000_000;

/// This machine's clock.
static WALL_NS: AtomicU64 = AtomicU64::new(0);

fn wall_ns() -> u64 {
    WALL_NS.load(Ordering::Relaxed)
}

/// What runs the program.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Machine {
    Switch,
    /// With the chip's clock at the first frame.
    Chip {
        first_ns: u64,
    },
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    /// Of so many reports one is lost.
    loses_one_in: u64,
    /// How long the port is left alone when nothing comes.
    looks_away_ns: u64,
}

/// A switch, and the frames that come to its ports in time.
struct InTime {
    switch: Switch,
    machine: Machine,
    faults: Faults,
    frames: VecDeque<(u64, Vec<u8>)>,
    first_ns: u64,
    out: VecDeque<Vec<u8>>,
    sent: u64,
    stop: Arc<Stop>,
}

impl InTime {
    fn set_time(&mut self, now_ns: u64) {
        WALL_NS.store(now_ns, Ordering::Relaxed);
        let chip_ns = match self.machine {
            Machine::Switch => 5_000_000,
            Machine::Chip { first_ns } => first_ns,
        };
        self.switch.now_us = (now_ns - self.first_ns + chip_ns) / 1000;
    }

    fn take_in(&mut self, port: u16, bytes: &[u8]) {
        for (_, mut report) in self.switch.receive(port, bytes) {
            if let Machine::Chip { .. } = self.machine {
                report = adapt_report(report);
            }
            // Answers are asked for again.
            if report[15] != CAUSE_STATUS {
                self.sent += 1;
                let every = self.faults.loses_one_in;
                if every > 0 && self.sent.is_multiple_of(every) {
                    continue;
                }
            }
            self.out.push_back(report);
        }
    }

    /// Time goes on. Frames come until it reaches the next look.
    fn go_on(&mut self) {
        let Some((next_ns, _)) = self.frames.front() else {
            self.set_time(wall_ns() + STEP_NS);
            return self.stop.ask();
        };
        let is_silent = *next_ns > wall_ns() + 4 * STEP_NS;
        let step_ns = match is_silent {
            true => (4 * STEP_NS).max(self.faults.looks_away_ns),
            false => STEP_NS,
        };
        let until_ns = wall_ns() + step_ns;
        while let Some((time_ns, _)) = self.frames.front()
            && *time_ns <= until_ns
            && let Some((time_ns, frame)) = self.frames.pop_front()
        {
            self.set_time(time_ns);
            self.take_in(PORT, &frame);
        }
        self.set_time(until_ns);
    }
}

impl Port for InTime {
    fn name(&self) -> &str {
        "in time"
    }

    fn send(&mut self, parts: &[&[u8]]) {
        let mut command = parts.concat();
        if self.machine == Machine::Switch || adapt_command(&mut command, &self.switch) {
            self.take_in(CPU_PORT, &command);
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

/// The frames of a capture that is in the order of time, with times in whole microseconds.
fn frames(path: &Path) -> Option<Vec<(u64, Vec<u8>)>> {
    let mut frames = Vec::new();
    let mut file = OfFile(CaptureFile::open(path).unwrap());
    let mut is_fit = true;
    while let Ok(Came::Frames) = file.next(&mut |frame| {
        is_fit &= frame.link_type == LinkType::Ethernet
            && frame.timestamp_ns.is_multiple_of(1000)
            && frame.bytes.len() == frame.wire_length_bytes as usize;
        frames.push((frame.timestamp_ns, frame.bytes.to_vec()));
    }) {}
    let lasts_ns = frames.last()?.0.checked_sub(frames[0].0)?;
    (is_fit && frames.is_sorted_by_key(|(time_ns, _)| *time_ns) && lasts_ns < 60_000_000_000)
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

fn live(frames: Vec<(u64, Vec<u8>)>, machine: Machine, faults: Faults) -> Run {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _clock_is_mine = ONE_AT_A_TIME.lock();
    let config = config();
    let layout = config.compile().unwrap();
    let record = P4Record::new(&config.definition, &layout).unwrap();
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
        switch: Switch::new(TAP),
        machine,
        faults,
        first_ns: frames[0].0,
        frames: frames.into(),
        out: VecDeque::new(),
        sent: 0,
        stop: stop.clone(),
    };
    port.set_time(port.first_ns);
    let engine = Live::open(Box::new(port), record, &layout, &live_config).unwrap();
    run(&config, Source::Engines(vec![Box::new(engine)]), &stop)
}

/// Not the start of a cell.
const UNALIGNED_NS: u64 = 1_234_567_000;
/// Captures to compare.
const MANY: usize = 30;

/// Captures with their frames.
fn some_captures() -> impl Iterator<Item = (PathBuf, Vec<(u64, Vec<u8>)>)> {
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
        let aligned_ns = frames[0].0 % LIVE_CELL_NS + (LIVE_CELL_NS << 5);
        // The clock's bits end on the way.
        let ends_ns = (1 << 48) - 2 * UNALIGNED_NS;
        let chips = [aligned_ns, UNALIGNED_NS, ends_ns].map(|first_ns| Machine::Chip { first_ns });
        for machine in [&[Machine::Switch], &chips[..]].concat() {
            let found = live(frames.clone(), machine, Faults::default());
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

/// What a chip's records lack is in the ledger, packet by packet.
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
        // Times are not known from 32 bits then.
        Faults {
            looks_away_ns: 5_000_000_000,
            ..Faults::default()
        },
    ] {
        let (mut dropped, mut recorded) = (0, 0);
        for (path, frames) in some_captures() {
            let expected = in_software(&path).ledger;
            let Run { ledger, .. } = live(frames, machine, faults);
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
