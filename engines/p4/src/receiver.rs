// SPDX-License-Identifier: Apache-2.0
//! Takes what comes from the pipeline: records, frames it does not understand, counters.

use std::collections::HashSet;

use turboflow_engine::{EngineCounters, MicroflowBatch};
use turboflow_merge::Layout;
use turboflow_packet::{Frame, LinkType};

use crate::chip::{ChipClock, widen_record};
use crate::punted::{PuntedFrames, PuntedRecord};
use crate::record::{KEY_BYTES, P4Record};
use crate::report::{Body, Cause, Punted, Record, RecordSizes, Report, Reports, Status, Strange};
use crate::sequence::Sequence;

/// How long after its begin a record's times are known from 32 bits of nanoseconds.
const MOST_AGE_NS: u64 = 1 << 32;

/// Frames from the port that are no reports, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StrangeFrames {
    /// Of another EtherType: the port carries other traffic, too.
    pub other_ether_type: u64,
    /// Of another version of the program.
    pub other_version: u64,
    /// Cut, or with numbers that do not exist.
    pub malformed: u64,
}

/// What came from the pipeline.
pub(crate) struct Receiver {
    record: P4Record,
    sizes: RecordSizes,
    /// The clock of a chip, whose words have 32 bits; none where words have 64.
    chip: Option<ChipClock>,
    /// No record in the table is older, on this machine's clock.
    pub(crate) oldest_ns: u64,
    /// The words of one record of a chip, as words of 64 bits.
    wide: Vec<u8>,
    pub(crate) batch: MicroflowBatch,
    punted: PuntedFrames,
    sequence: Sequence,
    /// Keys of which a frame was punted in this cell. Their records wait for the cell's end,
    /// because a record in the table may have begun before that frame.
    keys: HashSet<[u8; KEY_BYTES]>,
    /// These records, with the time of their first packets.
    waiting: Vec<(u64, MicroflowBatch)>,
    /// The last answer.
    last_status: Status,
    /// All reports that came.
    reports: u64,
    /// Frames that were sent to the pipeline.
    sent_frames: u64,
    /// What the pipeline had counted when the run began.
    at_begin: Status,
    /// Whether the table is swept as a whole from now on: records of the current cell are flushed.
    pub(crate) is_flushing: bool,
    counters: EngineCounters,
    packets_in_records: u64,
    bytes_in_records: u64,
    /// Frames handed up by the pipeline, and their bytes on the wire, which it counts, too.
    punted_frames: u64,
    punted_bytes: u64,
    /// What is missing in the records of a table that is empty.
    lost: Lost,
    /// Records whose times are not known.
    outdated: Lost,
    pub(crate) strange: StrangeFrames,
}

#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    records: u64,
    packets: u64,
    bytes: u64,
    frames: u64,
}

impl Receiver {
    pub(crate) fn new(record: P4Record, layout: &Layout) -> Self {
        Self {
            sizes: record.sizes(),
            chip: None,
            oldest_ns: 0,
            wide: Vec::new(),
            record,
            batch: MicroflowBatch::default(),
            punted: PuntedFrames::new(layout),
            sequence: Sequence::default(),
            keys: HashSet::new(),
            waiting: Vec::new(),
            reports: 0,
            sent_frames: 0,
            last_status: Status::default(),
            at_begin: Status::default(),
            is_flushing: false,
            counters: EngineCounters::default(),
            packets_in_records: 0,
            bytes_in_records: 0,
            punted_frames: 0,
            punted_bytes: 0,
            lost: Lost::default(),
            outdated: Lost::default(),
            strange: StrangeFrames::default(),
        }
    }

    /// The run begins: what came until now belongs to an earlier one.
    pub(crate) fn begin(&mut self) {
        let record = self.record.clone();
        *self = Self {
            sequence: self.sequence.restart(),
            sizes: self.sizes,
            chip: self.chip,
            oldest_ns: self.oldest_ns,
            last_status: self.last_status,
            at_begin: self.last_status,
            ..Self::new(record, self.punted.layout())
        };
    }

    /// What the pipeline has counted in this run.
    fn counted(&self) -> Status {
        let (now, then) = (&self.last_status, &self.at_begin);
        Status {
            packets: now.packets.wrapping_sub(then.packets),
            bytes: now.bytes.wrapping_sub(then.bytes),
            too_long: now.too_long.wrapping_sub(then.too_long),
            frame_bytes: now.frame_bytes.wrapping_sub(then.frame_bytes),
            punted: now.punted.wrapping_sub(then.punted),
            evicted: now.evicted.wrapping_sub(then.evicted),
            ..*now
        }
    }

    /// The program that it expects.
    pub(crate) fn program_id(&self) -> u64 {
        self.record.id()
    }

    /// Whether the program is that of a chip.
    pub(crate) const fn chip(&self) -> Option<&ChipClock> {
        self.chip.as_ref()
    }

    /// From now on, words have so many bits. Returns whether there are such.
    pub(crate) fn set_word_bits(&mut self, bits: u16) -> bool {
        match bits {
            32 => {
                self.sizes = self.record.sizes_of_chip();
                self.chip = Some(ChipClock::default());
            }
            64 => {}
            _ => return false,
        }
        true
    }

    /// The clock of a chip is that much further behind than was known.
    pub(crate) const fn correct_clock(&mut self, behind_ns: u64) {
        if let Some(clock) = &mut self.chip {
            clock.correct(behind_ns);
        }
    }

    pub(crate) const fn last_status(&self) -> &Status {
        &self.last_status
    }

    /// The answer to a command, if it has come.
    pub(crate) fn answer(&self, token: u64) -> Option<Status> {
        (self.last_status.token == token).then_some(self.last_status)
    }

    /// How many reports have come.
    pub(crate) const fn reports(&self) -> u64 {
        self.reports
    }

    /// A frame was sent to the pipeline.
    pub(crate) const fn count_sent(&mut self) {
        self.sent_frames += 1;
    }

    /// Takes a frame from the port.
    pub(crate) fn take(&mut self, frame: &[u8]) {
        let reports = match Reports::of(frame, self.sizes) {
            Ok(reports) => reports,
            Err(strange) => return self.count_strange(strange),
        };
        for report in reports {
            match report {
                Ok(report) => self.take_report(&report),
                Err(strange) => self.count_strange(strange),
            }
        }
    }

    fn count_strange(&mut self, strange: Strange) {
        match strange {
            Strange::OtherEtherType => self.strange.other_ether_type += 1,
            Strange::Version => self.strange.other_version += 1,
            Strange::Cut | Strange::Cause => self.strange.malformed += 1,
        }
    }

    fn take_report(&mut self, report: &Report<'_>) {
        self.reports += 1;
        self.sequence.take(report.sequence);
        match report.body {
            Body::Record(record) => self.take_record(&record),
            Body::Status(status) => self.take_status(status),
            Body::Punted(mut punted) => {
                self.punted_frames += 1;
                self.punted_bytes += u64::from(punted.wire_length_bytes);
                if let Some(clock) = &self.chip {
                    punted.time_ns = clock.wall_ns(punted.time_ns);
                }
                self.meter(&frame_of(&punted));
            }
        }
    }

    fn take_status(&mut self, mut status: Status) {
        if let Some(clock) = &mut self.chip {
            clock.read(status.now_ns);
            status.now_ns = clock.wall_ns(status.now_ns);
            status = status.continues(&self.last_status);
        }
        self.last_status = status;
    }

    fn take_record(&mut self, record: &Record<'_>) {
        let appended = match self.chip {
            None => self.append(record.words),
            Some(clock) => {
                let mut wide = std::mem::take(&mut self.wide);
                wide.clear();
                let is_record = widen_record(&self.record, record, &clock, &mut wide);
                let age_ns = clock.wall_ns(record.now_ns).saturating_sub(self.oldest_ns);
                let appended = match is_record {
                    true if age_ns >= MOST_AGE_NS => return self.lose(&wide),
                    true => self.append(&wide),
                    false => None,
                };
                self.wide = wide;
                appended
            }
        };
        let Some((packets, bytes)) = appended else {
            self.strange.malformed += 1;
            return;
        };
        // Saturates, because reports may be wrong.
        self.packets_in_records = self.packets_in_records.saturating_add(packets);
        self.bytes_in_records = self.bytes_in_records.saturating_add(bytes);
        let evicted = &mut self.counters.evicted;
        *match record.cause {
            Cause::Collision => &mut evicted.collision,
            Cause::Cut => &mut evicted.cut,
            Cause::Aged if self.is_flushing => &mut evicted.flush,
            Cause::Aged => &mut evicted.age,
        } += 1;
    }

    /// Loses a record that may be older than 32 bits tell: the table was not swept in time.
    fn lose(&mut self, wide: &[u8]) {
        let mut batch = MicroflowBatch::default();
        if let Some((packets, bytes)) = self.record.append(wide, &mut batch) {
            self.outdated.records += 1;
            self.outdated.packets = self.outdated.packets.saturating_add(packets);
            self.outdated.bytes = self.outdated.bytes.saturating_add(bytes);
        }
    }

    /// Appends a record of these words. Returns its packets and bytes, if it is one.
    fn append(&mut self, words: &[u8]) -> Option<(u64, u64)> {
        match words.first_chunk() {
            Some(key) if !self.keys.is_empty() && self.keys.contains(key) => {
                let mut batch = MicroflowBatch::default();
                let appended = self.record.append(words, &mut batch);
                let first_ns = batch.first_ns().unwrap_or_default();
                self.waiting.push((first_ns, batch));
                appended
            }
            _ => self.record.append(words, &mut self.batch),
        }
    }

    /// Meters a frame in this process.
    pub(crate) fn meter(&mut self, frame: &Frame<'_>) {
        if let Some(PuntedRecord {
            key,
            first_ns,
            batch,
        }) = self.punted.meter(frame)
        {
            self.keys.insert(key);
            self.waiting.push((first_ns, batch));
        }
    }

    /// All records of the cell have come: those that waited follow, in the order of time.
    pub(crate) fn end_cell(&mut self) {
        self.waiting.sort_by_key(|(first_ns, _)| *first_ns);
        for (_, mut batch) in self.waiting.drain(..) {
            self.batch.append(&mut batch);
        }
        self.keys.clear();
    }

    /// The table is empty: what the pipeline counted and did not arrive is lost.
    pub(crate) fn settle(&mut self) {
        let status = self.counted();
        if self.chip.is_some() {
            self.lost = self.lost_of_chip(&status);
            return;
        }
        let evicted = &self.counters.evicted;
        self.lost = Lost {
            records: status.evicted.saturating_sub(evicted.total()),
            packets: status.packets.saturating_sub(self.packets_in_records),
            bytes: status.bytes.saturating_sub(self.bytes_in_records),
            frames: self.frames_lost_until(&status),
        };
    }

    /// A chip cannot be told to stop, and counts packets that are in its table when a run begins or
    /// ends. So nothing is lost unless the numbers of reports have gaps; then what the counters say
    /// is missing, a packet for each report at least.
    fn lost_of_chip(&self, status: &Status) -> Lost {
        let outdated = self.outdated;
        let reports = self.sequence.lost();
        if reports == 0 {
            return outdated;
        }
        let packets = status.packets.saturating_sub(self.packets_in_records);
        let bytes = status.bytes.saturating_sub(self.bytes_in_records);
        let records = reports.saturating_add(outdated.records);
        Lost {
            records,
            packets: packets.max(records),
            bytes: bytes.max(outdated.bytes),
            frames: 0,
        }
    }

    /// What the pipeline has metered: packets, their bytes, and the bytes of frames. A chip does
    /// not count frames, and meters before and after the run, too.
    fn metered(&self, status: &Status) -> (u64, u64, u64) {
        if self.chip.is_none() {
            // It has counted the bytes of what it handed up.
            let frame_bytes = status.frame_bytes.saturating_sub(self.punted_bytes);
            return (status.packets, status.bytes, frame_bytes);
        }
        let packets = self.packets_in_records.saturating_add(self.lost.packets);
        let bytes = self.bytes_in_records.saturating_add(self.lost.bytes);
        (packets, bytes, bytes)
    }

    /// Frames that did not reach the pipeline, or did not come back from it.
    fn frames_lost_until(&self, status: &Status) -> u64 {
        let arrived = status.packets.saturating_add(status.punted);
        let on_the_way_in = self.sent_frames.saturating_sub(arrived);
        let on_the_way_back = status.punted.saturating_sub(self.punted_frames);
        on_the_way_in.saturating_add(on_the_way_back)
    }

    /// The counters of the pipeline, and those of this process.
    pub(crate) fn counters(&self) -> EngineCounters {
        let status = self.counted();
        let (packets, bytes, frame_bytes) = self.metered(&status);
        let mut counters = EngineCounters {
            packets_received: packets,
            bytes_received: frame_bytes,
            packets_metered: packets,
            bytes_metered: bytes,
            packets_longer_than_frame: status.too_long,
            evicted: self.counters.evicted,
            microflows_dropped: self.lost.records,
            microflows_unnamed: self.lost.records,
            packets_dropped: self.lost.packets,
            bytes_dropped: self.lost.bytes,
            ..EngineCounters::default()
        };
        counters.evicted.age = counters.evicted.age.saturating_add(self.lost.records);
        counters += &self.punted.counters;
        counters
    }

    /// Frames that did not reach the pipeline, or were handed up and did not arrive.
    pub(crate) const fn frames_lost(&self) -> u64 {
        self.lost.frames
    }

    /// Reports that did not arrive, by their numbers.
    pub(crate) const fn reports_lost(&self) -> u64 {
        self.sequence.lost()
    }
}

fn frame_of<'a>(punted: &Punted<'a>) -> Frame<'a> {
    Frame {
        bytes: punted.bytes,
        wire_length_bytes: punted.wire_length_bytes,
        timestamp_ns: punted.time_ns,
        interface: 0,
        link_type: LinkType::Ethernet,
    }
}
