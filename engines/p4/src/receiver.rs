// SPDX-License-Identifier: Apache-2.0
//! Takes what comes from the pipeline: records, frames it does not understand, counters.

use std::collections::HashSet;

use turboflow_engine::{EngineCounters, MicroflowBatch};
use turboflow_merge::Layout;
use turboflow_packet::{Frame, LinkType};

use crate::punted::{PuntedFrames, PuntedRecord};
use crate::record::{KEY_BYTES, P4Record};
use crate::report::{Body, Cause, Punted, Report, Reports, Status, Strange};

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
    record_bytes: usize,
    pub(crate) batch: MicroflowBatch,
    punted: PuntedFrames,
    /// The number of the next report; unknown before the first one.
    next_sequence: Option<u32>,
    /// Keys of which a frame was punted in this cell. Their records wait for the cell's end,
    /// because a record in the table may have begun before that frame.
    keys: HashSet<[u8; KEY_BYTES]>,
    /// These records, with the time of their first packets.
    waiting: Vec<(u64, MicroflowBatch)>,
    /// The last answer.
    last_status: Status,
    /// All reports that came.
    reports: u64,
    /// Frames that were sent to the pipeline, and their bytes on the wire.
    sent_frames: u64,
    sent_bytes: u64,
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
    reports_lost: u64,
    /// What is missing in the records of a table that is empty.
    lost: Lost,
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
            record_bytes: 8 * record.words(),
            record,
            batch: MicroflowBatch::default(),
            punted: PuntedFrames::new(layout),
            next_sequence: None,
            keys: HashSet::new(),
            waiting: Vec::new(),
            reports: 0,
            sent_frames: 0,
            sent_bytes: 0,
            last_status: Status::default(),
            at_begin: Status::default(),
            is_flushing: false,
            counters: EngineCounters::default(),
            packets_in_records: 0,
            bytes_in_records: 0,
            punted_frames: 0,
            punted_bytes: 0,
            reports_lost: 0,
            lost: Lost::default(),
            strange: StrangeFrames::default(),
        }
    }

    /// The run begins: what came until now belongs to an earlier one.
    pub(crate) fn begin(&mut self) {
        let record = self.record.clone();
        *self = Self {
            next_sequence: self.next_sequence,
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
    pub(crate) fn count_sent(&mut self, wire_bytes: u32) {
        self.sent_frames += 1;
        self.sent_bytes += u64::from(wire_bytes);
    }

    /// Takes a frame from the port.
    pub(crate) fn take(&mut self, frame: &[u8]) {
        let reports = match Reports::of(frame, self.record_bytes) {
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
            Strange::Version(_) => self.strange.other_version += 1,
            Strange::Cut | Strange::Cause => self.strange.malformed += 1,
        }
    }

    fn take_report(&mut self, report: &Report<'_>) {
        self.reports += 1;
        let expected = self.next_sequence.unwrap_or(report.sequence);
        self.reports_lost += u64::from(report.sequence.wrapping_sub(expected));
        self.next_sequence = Some(report.sequence.wrapping_add(1));
        match report.body {
            Body::Record { cause, words } => self.take_record(cause, words),
            Body::Status(status) => self.last_status = status,
            Body::Punted(punted) => {
                self.punted_frames += 1;
                self.punted_bytes += u64::from(punted.wire_length_bytes);
                self.meter(&frame_of(&punted));
            }
        }
    }

    fn take_record(&mut self, cause: Cause, words: &[u8]) {
        let appended = match words.first_chunk() {
            Some(key) if !self.keys.is_empty() && self.keys.contains(key) => {
                let mut batch = MicroflowBatch::default();
                let appended = self.record.append(words, &mut batch);
                let first_ns = batch.first_ns().unwrap_or_default();
                self.waiting.push((first_ns, batch));
                appended
            }
            _ => self.record.append(words, &mut self.batch),
        };
        let Some((packets, bytes)) = appended else {
            self.strange.malformed += 1;
            return;
        };
        // Saturates, because reports may be wrong.
        self.packets_in_records = self.packets_in_records.saturating_add(packets);
        self.bytes_in_records = self.bytes_in_records.saturating_add(bytes);
        let evicted = &mut self.counters.evicted;
        *match cause {
            Cause::Collision => &mut evicted.collision,
            Cause::Cut => &mut evicted.cut,
            Cause::Aged if self.is_flushing => &mut evicted.flush,
            Cause::Aged => &mut evicted.age,
        } += 1;
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
        let evicted = &self.counters.evicted;
        self.lost = Lost {
            records: status.evicted.saturating_sub(evicted.total()),
            packets: status.packets.saturating_sub(self.packets_in_records),
            bytes: status.bytes.saturating_sub(self.bytes_in_records),
            frames: self.frames_lost_until(&status),
        };
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
        let mut counters = EngineCounters {
            packets_received: status.packets,
            bytes_received: status.frame_bytes,
            packets_metered: status.packets,
            bytes_metered: status.bytes,
            packets_longer_than_frame: status.too_long,
            evicted: self.counters.evicted,
            microflows_dropped: self.lost.records,
            microflows_unnamed: self.lost.records,
            packets_dropped: self.lost.packets,
            bytes_dropped: self.lost.bytes,
            ..EngineCounters::default()
        };
        counters.evicted.age = counters.evicted.age.saturating_add(self.lost.records);
        let mut here = self.punted.counters;
        // The pipeline has counted the bytes of what it handed up.
        here.bytes_received -= self.punted_bytes;
        counters += &here;
        counters
    }

    /// Frames that were handed up and did not arrive.
    pub(crate) const fn frames_lost(&self) -> u64 {
        self.lost.frames
    }

    /// Reports that did not arrive, by their numbers.
    pub(crate) const fn reports_lost(&self) -> u64 {
        self.reports_lost
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
