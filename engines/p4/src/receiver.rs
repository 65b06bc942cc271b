// SPDX-License-Identifier: Apache-2.0
//! Takes what the pipeline sends: records, frames that it does not understand, and counters.

use std::collections::HashSet;

use turboflow_engine::{EngineCounters, MicroflowBatch};
use turboflow_merge::Layout;
use turboflow_packet::{Frame, LinkType};

use crate::chip::{Chip, ChipClock, WideRecord};
use crate::punted::{PuntedFrames, PuntedRecord};
use crate::record::{KEY_BYTES, P4Record};
use crate::report::{Body, Cause, Punted, Record, RecordSizes, Report, Reports, Status, Strange};
use crate::sequence::Sequence;

/// Bytes of a frame before the packet, at the least.
const ETHERNET_BYTES: u64 = 14;

/// Frames from the port that are not reports, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StrangeFrames {
    /// Frames with another EtherType: the port also carries other traffic.
    pub other_ether_type: u64,
    /// Reports of another version of the program.
    pub other_version: u64,
    /// Reports that are cut, or contain undefined numbers.
    pub malformed: u64,
}

/// The state of receiving from a pipeline.
pub(crate) struct Receiver {
    record: P4Record,
    sizes: RecordSizes,
    /// The state of the chip, if the pipeline has 32-bit words.
    chip: Option<Chip>,
    pub(crate) batch: MicroflowBatch,
    /// Records that began at this time or later wait until the earlier ones are handed over.
    hold_from_ns: u64,
    held: MicroflowBatch,
    /// Whether the pipeline was restarted.
    pub(crate) has_restarted: bool,
    /// Whether nothing more will come, although the pipeline has not said that this is all.
    pub(crate) has_failed: bool,
    punted: PuntedFrames,
    sequence: Sequence,
    /// Keys of which a frame was punted in this cell. Their records wait for the cell's end,
    /// because a record in the table may have begun before that frame.
    keys: HashSet<[u8; KEY_BYTES]>,
    /// The waiting records, each with the time of its first packet.
    waiting: Vec<(u64, MicroflowBatch)>,
    /// The last answer.
    last_status: Status,
    /// Number of reports that have arrived.
    reports: u64,
    /// Number of frames that were sent to the pipeline.
    sent_frames: u64,
    /// What the pipeline had counted before the run began.
    at_begin: Status,
    /// Whether the whole table is being swept: then records of the current cell count as flushed.
    pub(crate) is_flushing: bool,
    counters: EngineCounters,
    packets_in_records: u64,
    bytes_in_records: u64,
    /// Frames handed up by the pipeline, and their bytes on the wire. The pipeline counts both,
    /// too.
    punted_frames: u64,
    punted_bytes: u64,
    /// What is missing from the records once the table is empty.
    lost: Lost,
    /// Records whose times or sums cannot be told.
    unknown: Lost,
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
            record,
            batch: MicroflowBatch::default(),
            hold_from_ns: u64::MAX,
            held: MicroflowBatch::default(),
            has_restarted: false,
            has_failed: false,
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
            unknown: Lost::default(),
            strange: StrangeFrames::default(),
        }
    }

    /// Begins a run: what has arrived until now belongs to an earlier one.
    pub(crate) fn begin(&mut self) {
        if let Some(chip) = &mut self.chip {
            chip.copies.begin();
        }
        let record = self.record.clone();
        *self = Self {
            sequence: self.sequence.restart(),
            sizes: self.sizes,
            chip: self.chip.take(),
            hold_from_ns: self.hold_from_ns,
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

    /// The program id that the receiver expects.
    pub(crate) fn program_id(&self) -> u64 {
        self.record.id()
    }

    /// The state of the chip, if the pipeline is one.
    pub(crate) const fn chip(&self) -> Option<&Chip> {
        self.chip.as_ref()
    }

    pub(crate) const fn chip_mut(&mut self) -> Option<&mut Chip> {
        self.chip.as_mut()
    }

    /// Takes the word size from the program's answer. Returns whether this size is supported.
    pub(crate) fn set_words(&mut self) -> bool {
        let status = &self.last_status;
        match (status.word_bits, status.has(Status::WRAPS)) {
            (32, true) => {
                self.chip = Some(Chip::new(ChipClock::new(status.now_ns)));
                self.sizes = self.record.sizes_of_chip();
            }
            (64, false) => {}
            _ => return false,
        }
        true
    }

    /// Hands over the waiting records. From now on, records that begin at this time or later wait.
    pub(crate) fn hold_from(&mut self, time_ns: u64) {
        self.batch.append(&mut self.held);
        self.hold_from_ns = time_ns;
    }

    pub(crate) const fn last_status(&self) -> &Status {
        &self.last_status
    }

    /// The answer to a command, if it has arrived.
    pub(crate) fn answer(&self, token: u64) -> Option<Status> {
        (self.last_status.token == token).then_some(self.last_status)
    }

    /// Number of reports that have arrived.
    pub(crate) const fn reports(&self) -> u64 {
        self.reports
    }

    /// Counts a frame that was sent to the pipeline.
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
        if let Some(number) = report.sequence {
            self.sequence.take(number);
        }
        match report.body {
            Body::Record(record) => self.take_record(&record),
            Body::Status {
                now_ns,
                copies,
                bytes,
            } => {
                if let (Some(chip), Some(copies)) = (&mut self.chip, copies) {
                    chip.copies.take(copies);
                }
                self.take_status(Status::read(now_ns, bytes));
            }
            Body::Punted(mut punted) => {
                self.punted_frames += 1;
                self.punted_bytes += u64::from(punted.wire_length_bytes);
                if let Some(Chip { clock, .. }) = &self.chip {
                    punted.time_ns = clock.wall_ns(punted.time_ns);
                }
                self.meter(&frame_of(&punted));
            }
        }
    }

    fn take_status(&mut self, mut status: Status) {
        if let Some(chip) = &mut self.chip {
            self.has_restarted |= !chip.clock.read(status.now_ns);
            status.now_ns = chip.clock.wall_ns(status.now_ns);
            status = status.continues(&self.last_status);
        } else {
            self.has_restarted |= status.packets < self.last_status.packets;
        }
        // After a restart, the earlier counters remain valid.
        if !self.has_restarted {
            self.last_status = status;
        }
    }

    fn take_record(&mut self, record: &Record<'_>) {
        let Some(mut chip) = self.chip.take() else {
            return self.take_words(record.cause, record.words);
        };
        match chip.widen(&self.record, record) {
            Some(WideRecord { words, is_known }) if is_known => {
                self.take_words(record.cause, words);
            }
            Some(WideRecord { words, .. }) => self.lose(words),
            None => self.strange.malformed += 1,
        }
        self.chip = Some(chip);
    }

    #[inline]
    fn take_words(&mut self, cause: Cause, words: &[u8]) {
        let Some((packets, bytes)) = self.append(words) else {
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

    /// Counts a record whose times or sums cannot be told.
    fn lose(&mut self, words: &[u8]) {
        let [packets, bytes] = P4Record::packets_and_bytes(words);
        self.unknown.records += 1;
        self.unknown.packets = self.unknown.packets.saturating_add(packets);
        self.unknown.bytes = self.unknown.bytes.saturating_add(bytes);
    }

    /// Appends a record of these words. Returns its packets and bytes; `None` if the record is
    /// invalid.
    #[inline]
    fn append(&mut self, words: &[u8]) -> Option<(u64, u64)> {
        match words.first_chunk() {
            Some(key) if !self.keys.is_empty() && self.keys.contains(key) => {
                let mut batch = MicroflowBatch::default();
                let appended = self.record.append(words, &mut batch);
                let first_ns = batch.first_ns().unwrap_or_default();
                self.waiting.push((first_ns, batch));
                appended
            }
            _ if P4Record::first_ns(words) >= self.hold_from_ns => {
                self.record.append(words, &mut self.held)
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

    /// All records of the cell have arrived: those that waited follow, in time order. Those of the
    /// next cell keep waiting.
    pub(crate) fn end_cell(&mut self) {
        self.waiting.sort_by_key(|(first_ns, _)| *first_ns);
        let is_over = |(first_ns, _): &(u64, _)| *first_ns < self.hold_from_ns;
        let over = self.waiting.partition_point(is_over);
        for (_, mut batch) in self.waiting.drain(..over) {
            self.batch.append(&mut batch);
        }
        if self.waiting.is_empty() {
            self.keys.clear();
        }
    }

    /// The table is empty: what the pipeline counted but did not deliver is lost.
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

    /// A chip cannot be stopped, and it also counts packets that are in its table when a run begins
    /// or ends. So nothing counts as lost unless reports are missing by their numbers, or copies
    /// did not reach the table. In that case, everything missing from the counters is lost, and at
    /// least one packet for each missing report and copy.
    fn lost_of_chip(&self, status: &Status) -> Lost {
        let unknown = self.unknown;
        let reports = self.sequence.lost();
        let copies = self.chip.as_ref().map_or(0, |chip| chip.copies.lost());
        if reports + copies == 0 {
            return unknown;
        }
        let packets = status.packets.saturating_sub(self.packets_in_records);
        let bytes = status.bytes.saturating_sub(self.bytes_in_records);
        let records = reports.saturating_add(unknown.records);
        Lost {
            records,
            packets: packets.max(records.saturating_add(copies)),
            bytes: bytes.max(unknown.bytes),
            frames: 0,
        }
    }

    /// What the pipeline has metered: packets, their bytes, and the bytes of frames. A chip does
    /// not count frames, and also meters before and after the run.
    fn metered(&self, status: &Status) -> (u64, u64, u64) {
        let packets = self.packets_in_records.saturating_add(self.lost.packets);
        let bytes = self.bytes_in_records.saturating_add(self.lost.bytes);
        if self.chip.is_some() {
            return (packets, bytes, bytes);
        }
        // The pipeline also counts the bytes of frames that it hands up. If it fails, its records
        // may be newer than its last answer. The length of a frame is not in a record, but it is at
        // least that of the packet and the Ethernet header.
        let frame_bytes = status.frame_bytes.saturating_sub(self.punted_bytes);
        let (packets, bytes) = (status.packets.max(packets), status.bytes.max(bytes));
        let least = bytes.saturating_add(packets.saturating_mul(ETHERNET_BYTES));
        let frame_bytes = if self.has_failed {
            frame_bytes.max(least)
        } else {
            frame_bytes
        };
        (packets, bytes, frame_bytes.max(bytes))
    }

    /// Frames that did not reach the pipeline, or were handed up and did not arrive.
    fn frames_lost_until(&self, status: &Status) -> u64 {
        let packets = status.packets.max(self.packets_in_records);
        let arrived = packets.saturating_add(status.punted.max(self.punted_frames));
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

    /// EtherTypes of frames that were handed up and could not be read here, either.
    pub(crate) fn unread_ether_types(&self) -> Vec<(u16, u64)> {
        self.punted.unread_ether_types()
    }

    /// Frames that did not reach the pipeline, or were handed up and did not arrive.
    pub(crate) const fn frames_lost(&self) -> u64 {
        self.lost.frames
    }

    /// Number of reports that are missing by their sequence numbers.
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
