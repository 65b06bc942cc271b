// SPDX-License-Identifier: Apache-2.0
//! Plain frames on ports give reports equal to those for frames with a lane.

use std::path::{Path, PathBuf};

use turboflow_capture::CaptureFile;
use turboflow_engine_p4::{Came, Frames, Port};
use turboflow_packet::LinkType;
use turboflow_testing::{Need, is_missing};

use crate::lane::{
    CAUSE_AGED, CAUSE_COLLISION, CAUSE_CUT, CAUSE_PUNTED, CAUSE_STATUS, FLAG_ALL, FLAG_CUT_AT_ENDS,
    FLAG_HAS_LANE, FLAG_ODD, FLAG_RESET, FLAG_SLOT, KIND_REPLAY, KIND_SETTINGS, KIND_STATUS,
    KIND_SWEEP, LANE_BYTES, OUTER_BYTES, REPORT_BYTES,
};
use crate::support::{OfFile, captures};
use crate::switch::{CPU_PORT, Switch};
use crate::{BATCH, INLINE, TAP};

/// Bytes of a record of the default definition.
const RECORD_BYTES: usize = 15 * 8;
/// Offset of `packets` in a record, after the key.
const PACKETS_AT: usize = 40;
/// Slots of the program.
const SLOTS: u32 = 1 << 16;
const SESSION: u128 = 100;
const PORT: u16 = 6;
const NEIGHBOUR: u16 = 7;

/// A lane header after its Ethernet header.
#[derive(Clone, Copy, Default)]
struct Lane {
    kind: u8,
    flags: u8,
    bytes: usize,
    argument: u32,
    cell: u32,
    time_ns: u64,
}

impl Lane {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; 12];
        bytes.extend([0x88, 0xb6, self.kind, self.flags]);
        bytes.extend((self.bytes as u16).to_be_bytes());
        bytes.extend(self.argument.to_be_bytes());
        bytes.extend((self.bytes as u32).to_be_bytes());
        bytes.extend(self.cell.to_be_bytes());
        bytes.extend(self.time_ns.to_be_bytes());
        bytes
    }
}

/// The content of a settings message: seeds, no time offset, the table's size, and that ports are
/// metered.
fn settings_bytes(slots: u32) -> Vec<u8> {
    let sizes = [slots - 1, 1].map(u32::to_be_bytes);
    [&[7; 16][..], &[0; 8], sizes.as_flattened()].concat()
}

/// A report, without the parts that depend on how its frame came.
#[derive(Clone, Debug, PartialEq)]
struct Report {
    cause: u8,
    sequence: [u8; 4],
    now_ns: u64,
    body: Vec<u8>,
}

impl Report {
    /// The reports of a frame.
    fn of(frame: &[u8]) -> Vec<Self> {
        assert_eq!(frame[12..14], [0x88, 0xb6]);
        let mut rest = &frame[OUTER_BYTES..];
        let mut reports = Vec::new();
        while let Some((report, behind)) = rest.split_at_checked(REPORT_BYTES) {
            assert_eq!((report[0], report[3]), (0xf1, 0), "version and family");
            let cause = report[1];
            let skipped = if report[2] & FLAG_HAS_LANE != 0 {
                LANE_BYTES
            } else {
                0
            };
            let bytes = match cause {
                CAUSE_COLLISION | CAUSE_CUT | CAUSE_AGED => RECORD_BYTES,
                _ => behind.len(),
            };
            let (body, behind) = behind.split_at(bytes);
            rest = behind;
            reports.push(Self {
                cause,
                sequence: report[4..8].try_into().unwrap(),
                now_ns: u64::from_be_bytes(report[8..].try_into().unwrap()),
                body: body[skipped..].to_vec(),
            });
        }
        assert!(!reports.is_empty() && rest.is_empty());
        reports
    }

    fn packets(&self) -> u64 {
        match self.cause {
            CAUSE_COLLISION | CAUSE_CUT | CAUSE_AGED => {
                u64::from_be_bytes(self.body[PACKETS_AT..PACKETS_AT + 8].try_into().unwrap())
            }
            CAUSE_PUNTED => 1,
            _ => 0,
        }
    }

    /// `listed` of a status.
    fn listed(&self) -> u32 {
        assert_eq!(self.cause, CAUSE_STATUS);
        u32::from_be_bytes(self.body[24..28].try_into().unwrap())
    }
}

/// How frames reach a switch.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Lane,
    Tap,
    Inline,
    Batch,
}

/// A switch, and its reports so far.
struct Metered {
    switch: Switch,
    way: Way,
    reports: Vec<Report>,
    /// The largest number of reports in one frame.
    most_in_a_frame: usize,
    cell: u32,
}

impl Metered {
    fn new(way: Way, slots: u32) -> Self {
        let program = match way {
            Way::Lane | Way::Tap => TAP,
            Way::Inline => INLINE,
            Way::Batch => BATCH,
        };
        let mut metered = Self {
            switch: Switch::new(program),
            way,
            reports: Vec::new(),
            most_in_a_frame: 0,
            cell: 0,
        };
        metered.switch.mirror_to_cpu(SESSION);
        let mut settings = Lane {
            kind: KIND_SETTINGS,
            ..Lane::default()
        }
        .bytes();
        settings.extend(settings_bytes(slots));
        metered.command(&settings);
        metered
    }

    fn command(&mut self, bytes: &[u8]) {
        let mut frames = Vec::new();
        self.switch.send(&[bytes]);
        let taken = self
            .switch
            .exchange(false, &mut |frame| frames.push(frame.to_vec()));
        assert!(taken.unwrap());
        frames.iter().for_each(|frame| self.take(frame));
    }

    fn take(&mut self, frame: &[u8]) {
        let reports = Report::of(frame);
        self.most_in_a_frame = self.most_in_a_frame.max(reports.len());
        self.reports.extend(reports);
    }

    fn status(&mut self, flags: u8) -> u32 {
        self.status_with(flags, 0)
    }

    /// Empties a list with this many places in use.
    fn reset(&mut self, list: u8, listed: u32) {
        self.status_with(list | FLAG_RESET, listed);
    }

    fn status_with(&mut self, flags: u8, argument: u32) -> u32 {
        let kind = KIND_STATUS;
        self.command(
            &Lane {
                kind,
                flags,
                argument,
                ..Lane::default()
            }
            .bytes(),
        );
        self.reports.last().unwrap().listed()
    }

    fn sweep(&mut self, flags: u8, argument: u32, cell: u32) {
        let kind = KIND_SWEEP;
        self.command(
            &Lane {
                kind,
                flags,
                argument,
                cell,
                ..Lane::default()
            }
            .bytes(),
        );
    }

    /// Delivers a frame. Before that, the records of another cell are swept.
    fn meter(&mut self, now_us: u64, frame: &[u8]) {
        let cell = ((now_us * 1000) >> 29) as u32 + 1;
        self.switch.now_us = now_us;
        if cell != self.cell {
            let list = if self.cell.is_multiple_of(2) {
                0
            } else {
                FLAG_ODD
            };
            let listed = self.status(list);
            for place in 0..listed {
                self.sweep(list, place, cell);
            }
            self.reset(list, listed);
            self.cell = cell;
        }
        if self.way == Way::Lane {
            let lane = Lane {
                kind: KIND_REPLAY,
                flags: FLAG_CUT_AT_ENDS,
                bytes: frame.len(),
                cell,
                time_ns: 1000 * now_us,
                ..Lane::default()
            };
            return self.command(&[lane.bytes().as_slice(), frame].concat());
        }
        let mut is_passed_on = false;
        for (port, bytes) in self.switch.receive(PORT, frame) {
            match port {
                CPU_PORT => self.take(&bytes),
                NEIGHBOUR => is_passed_on = bytes == frame,
                other => panic!("a frame leaves by port {other}"),
            }
        }
        assert_eq!(is_passed_on, self.way == Way::Inline);
    }

    /// Takes everything out of the table.
    fn flush(&mut self) {
        for list in [0, FLAG_ODD] {
            let listed = self.status(list);
            for place in 0..listed {
                self.sweep(list | FLAG_ALL, place, 0);
            }
            self.reset(list, listed);
        }
    }

    fn count(&self, cause: u8) -> usize {
        let reports = self.reports.iter();
        reports.filter(|report| report.cause == cause).count()
    }

    fn packets(&self) -> u64 {
        self.reports.iter().map(Report::packets).sum()
    }
}

/// The Ethernet frames of a capture, with their times in microseconds.
fn frames(path: &Path) -> Vec<(u64, Vec<u8>)> {
    let mut frames = Vec::new();
    let mut file = OfFile(CaptureFile::open(path).unwrap());
    while let Ok(Came::Frames) = file.next(&mut |frame| {
        if frame.link_type == LinkType::Ethernet {
            // A lane has at most 65,535 bytes, and bmv2's clock has 48 bits.
            let bytes = &frame.bytes[..frame.bytes.len().min(65_535)];
            let time_us = frame.timestamp_ns / 1000 % (1 << 47);
            frames.push((time_us, bytes.to_vec()));
        }
    }) {}
    frames
}

/// The reports of these frames over each path. They must be equal.
fn by_every_way(frames: &[(u64, Vec<u8>)], slots: u32) -> Metered {
    let ways = [Way::Lane, Way::Tap, Way::Inline, Way::Batch];
    let [lane, tap, inline, mut batch] = ways.map(|way| {
        let mut metered = Metered::new(way, slots);
        for (now_us, frame) in frames {
            metered.meter(*now_us, frame);
        }
        metered.flush();
        assert_eq!(metered.packets(), frames.len() as u64);
        metered
    });
    assert!(lane.reports == tap.reports);
    assert!(tap.reports == inline.reports);
    // Frames that are handed up, and answers, overtake waiting records. An answer keeps the number
    // that it would have had.
    batch.reports.sort_by_key(|report| report.sequence);
    assert!(batch.reports == tap.reports);
    assert!(tap.most_in_a_frame == 1 && batch.most_in_a_frame <= 3);
    lane
}

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../samples")
        .join(name)
}

#[test]
fn plain_frames_are_metered_as_with_a_lane() {
    let frames = frames(&sample("office.pcap"));
    for slots in [1, 64, SLOTS] {
        let metered = by_every_way(&frames, slots);
        for cause in [CAUSE_AGED, CAUSE_PUNTED] {
            assert!(
                metered.count(cause) > 0,
                "{slots} slots: none of cause {cause}"
            );
        }
        assert_eq!(metered.count(CAUSE_COLLISION) > 0, slots < SLOTS);
        assert_eq!(metered.count(CAUSE_CUT) > 0, slots > 1);
    }
}

#[test]
fn plain_frames_of_all_captures_are_metered_as_with_a_lane() {
    if is_missing(&[Need::Captures, Need::Cases]) {
        return;
    }
    let mut all = 0;
    for path in captures() {
        let frames = frames(&path);
        by_every_way(&frames, 64);
        all += frames.len();
    }
    assert!(all > 100_000, "{all} frames");
}

/// Frames with every header that the parser reads, cut at every length.
#[test]
fn frames_that_are_cut_are_metered_as_with_a_lane() {
    let addresses = [0; 12];
    let tcp = [&[0x10, 0, 0, 80][..], &[0; 8], &[0x50, 0x10], &[0; 6]].concat();
    let v4 = [
        &[0x46, 0, 0, 44, 0, 0, 0, 0, 64, 6, 0, 0][..],
        &[1; 8],
        &[1; 4],
        &tcp,
    ]
    .concat();
    let v6 = |payload: &[u8], next| {
        let length = payload.len() as u8;
        [&[0x60, 0, 0, 0, 0, length, next, 64][..], &[2; 32], payload].concat()
    };
    let extension = |next, words: u8| {
        let mut bytes = vec![0; 8 + 8 * usize::from(words)];
        bytes[..2].copy_from_slice(&[next, words]);
        bytes
    };
    let extensions = [
        extension(43, 1),
        extension(60, 0),
        extension(60, 2),
        extension(44, 0),
        vec![6, 0, 0, 1, 0, 0, 0, 9],
    ];
    let v6 = v6(&[extensions.concat(), tcp].concat(), 0);
    let tags = |count| [0x81, 0, 0, 5].repeat(count);
    let mut cut = Vec::new();
    let mut whole = Vec::new();
    for (ether_type, packet) in [([8, 0], &v4), ([0x86, 0xdd], &v6)] {
        for count in [0, 4, 5] {
            let frame = [&addresses[..], &tags(count), &ether_type, packet].concat();
            cut.extend((0..=frame.len()).map(|bytes| (1, frame[..bytes].to_vec())));
            whole.push((1, frame));
        }
    }
    assert_eq!(by_every_way(&cut, SLOTS).packets(), cut.len() as u64);
    // Only those with 5 tags.
    let metered = by_every_way(&whole, SLOTS);
    let punted = metered
        .reports
        .iter()
        .filter(|report| report.cause == CAUSE_PUNTED);
    let punted: Vec<_> = punted.map(|report| report.body.clone()).collect();
    assert_eq!(punted, [whole[2].1.clone(), whole[5].1.clone()]);
}

#[test]
fn three_records_leave_in_one_frame() {
    let mut metered = Metered::new(Way::Batch, 1);
    for (now_us, frame) in frames(&sample("office.pcap")) {
        metered.meter(now_us, &frame);
    }
    assert_eq!(metered.most_in_a_frame, 3);
}

/// There would be no receiver for the reports.
#[test]
fn ports_are_metered_once_a_receiver_says_so() {
    let frame = [&[0; 12][..], &[0x88, 0x47], &[5; 40]].concat();
    assert_eq!(Switch::new(TAP).receive(PORT, &frame), []);
    let passed_on = Switch::new(INLINE).receive(PORT, &frame);
    assert_eq!(passed_on, [(NEIGHBOUR, frame)]);
}

#[test]
fn what_a_host_sends_over_the_cpu_port_is_no_command() {
    for program in [TAP, INLINE] {
        let mut switch = Switch::new(program);
        let lane = Lane::default().bytes();
        let settings = Lane {
            kind: KIND_SETTINGS,
            ..Lane::default()
        };
        let settings = [settings.bytes(), settings_bytes(1)].concat();
        assert_eq!(switch.receive(CPU_PORT, &settings).len(), 1);
        let solicitation = [&[0x33; 12][..], &[0x86, 0xdd], &[0; 60]].concat();
        for frame in [
            &solicitation,
            &solicitation[..9],
            &lane[..OUTER_BYTES + 5],
            &[],
        ] {
            assert_eq!(switch.receive(CPU_PORT, frame), []);
        }
    }
}

/// Number 0, together with the bit that lets packets join, is the number of an empty slot.
#[test]
fn no_packet_is_lost_in_a_cell_with_the_number_0() {
    let mut metered = Metered::new(Way::Lane, 64);
    let (_, frame) = &frames(&sample("office.pcap"))[0];
    let lane = Lane {
        bytes: frame.len(),
        ..Lane::default()
    };
    let frame = [lane.bytes().as_slice(), frame].concat();
    (0..3).for_each(|_| metered.command(&frame));
    metered.flush();
    assert_eq!(metered.packets(), 3);
}

/// The list then shows that slots are missing from it.
#[test]
fn a_list_that_is_full_counts_on() {
    const PLACES: u32 = 2 * SLOTS;
    let mut metered = Metered::new(Way::Tap, 1);
    let frames = frames(&sample("office.pcap"));
    let is_metered = |frame: &Vec<u8>| frame[12..14] == [8, 0];
    let (_, frame) = frames.iter().find(|(_, frame)| is_metered(frame)).unwrap();
    for _ in 0..PLACES + 3 {
        metered.meter(1, frame);
        metered.sweep(FLAG_SLOT | FLAG_ALL, 0, 0);
    }
    assert_eq!(metered.packets(), u64::from(PLACES + 3));
    assert_eq!(metered.status(FLAG_ODD), PLACES + 3);
    assert_eq!(metered.status(0), 0);
    // The list is not emptied while it has more places in use than were read.
    metered.reset(FLAG_ODD, PLACES + 2);
    assert_eq!(metered.status(FLAG_ODD), PLACES + 3);
    metered.reset(FLAG_ODD, PLACES + 3);
    assert_eq!(metered.status(FLAG_ODD), 0);
}
