// SPDX-License-Identifier: Apache-2.0
//! The front of the pipeline: parses frames into packets, moves the clock, and distributes packets
//! to shards.

use turboflow_engine::EngineCounters;
use turboflow_merge::{
    KeyWidths, Layout, Machine, MicroflowRecord, Vectors, WORDS_WIDE, WithVectors, prefetch,
};
use turboflow_packet::{
    Frame, Parser, ParserConfig, ReassemblyConfig, RejectClass, Rejected, TelemetryCounters,
    UnreadEtherTypes,
};
use turboflow_record::{Family, InputValues, LAST_TIME_NS, Packet, WORDS_V4, WORDS_V6};

use crate::PipelineConfig;
use crate::batch::{ShardBatch, batch_records};
use crate::clock::Tick;
use crate::feed::{Feed, Shards};
use crate::inspecting::{Inspecting, InspectingCounters};

/// The number of frames that are prefetched ahead of the parser: one page of short frames, because
/// hardware prefetchers stop at page boundaries.
const FRAMES_AHEAD: usize = 64;

/// The frames of a batch, processed by code compiled for the vector instructions of this machine.
struct TakeFrames<'a, 'f, S, const N: usize> {
    front: &'a mut Front<N>,
    frames: &'a [Frame<'f>],
    shards: &'a mut S,
}

impl<S: Shards<N>, const N: usize> WithVectors for TakeFrames<'_, '_, S, N> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vectors>(self, vectors: V) {
        self.front.take_frames(vectors, self.frames, self.shards);
    }
}

/// Counters of the front, for the ledger.
#[derive(Clone, Debug)]
pub(crate) struct FrontReport {
    pub(crate) frames: u64,
    pub(crate) frame_bytes: u64,
    pub(crate) packets: u64,
    /// Wire bytes of the frames that became packets.
    pub(crate) packet_frame_bytes: u64,
    /// IP bytes of these packets.
    pub(crate) packet_bytes: u64,
    pub(crate) rejected: [u64; Rejected::COUNT],
    pub(crate) rejected_bytes: [u64; Rejected::COUNT],
    pub(crate) clock_steps: u64,
    pub(crate) packets_longer_than_frame: u64,
    pub(crate) unread: UnreadEtherTypes,
    /// Fragments that are waiting for their first fragment now.
    pub(crate) held: u64,
    pub(crate) held_frame_bytes: u64,
    pub(crate) inspection: Option<InspectingCounters>,
    /// Counters of in-band telemetry, if any is read.
    pub(crate) telemetry: Option<TelemetryCounters>,
}

impl Default for FrontReport {
    fn default() -> Self {
        Self {
            frames: 0,
            frame_bytes: 0,
            packets: 0,
            packet_frame_bytes: 0,
            packet_bytes: 0,
            rejected: [0; Rejected::COUNT],
            rejected_bytes: [0; Rejected::COUNT],
            clock_steps: 0,
            packets_longer_than_frame: 0,
            unread: UnreadEtherTypes::default(),
            held: 0,
            held_frame_bytes: 0,
            inspection: None,
            telemetry: None,
        }
    }
}

impl FrontReport {
    /// A report for frames that were inspected, not metered.
    pub(crate) fn of_frames(frames: u64, frame_bytes: u64) -> Self {
        Self {
            frames,
            frame_bytes,
            packets: frames,
            packet_frame_bytes: frame_bytes,
            ..Self::default()
        }
    }

    /// Counters of a remote engine, in the form of a front's. The frame bytes of dropped records
    /// are unknown, so they stay in the bytes received. An engine keeps running while its counters
    /// are read, so differences between them may be off by what it does in that time.
    pub(crate) fn of_engine(
        engine: &EngineCounters,
        packets_recorded: u64,
        clock_steps: u64,
    ) -> Self {
        let held = engine
            .packets_metered
            .saturating_sub(engine.packets_dropped);
        let packets = held.max(packets_recorded);
        let packet_frame_bytes = engine.frame_bytes_metered();
        Self {
            frames: packets + engine.rejected_packets.iter().sum::<u64>(),
            frame_bytes: packet_frame_bytes + engine.rejected_bytes.iter().sum::<u64>(),
            packets,
            packet_frame_bytes,
            packet_bytes: engine.bytes_metered.saturating_sub(engine.bytes_dropped),
            rejected: engine.rejected_packets,
            rejected_bytes: engine.rejected_bytes,
            clock_steps,
            packets_longer_than_frame: engine.packets_longer_than_frame,
            ..Self::default()
        }
    }

    /// Adds the counters of another reader.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.frames += other.frames;
        self.frame_bytes += other.frame_bytes;
        self.packets += other.packets;
        self.packet_frame_bytes += other.packet_frame_bytes;
        self.packet_bytes += other.packet_bytes;
        for (sum, more) in self.rejected.iter_mut().zip(other.rejected) {
            *sum += more;
        }
        for (sum, more) in self.rejected_bytes.iter_mut().zip(other.rejected_bytes) {
            *sum += more;
        }
        // All readers see the same clock, so each counts all steps.
        self.clock_steps = self.clock_steps.max(other.clock_steps);
        self.packets_longer_than_frame += other.packets_longer_than_frame;
        self.unread.merge(&other.unread);
        self.held += other.held;
        self.held_frame_bytes += other.held_frame_bytes;
        if let Some(other) = &other.telemetry {
            self.telemetry.get_or_insert_default().merge(other);
        }
        if let Some(other) = &other.inspection {
            self.inspection.get_or_insert_default().merge(other);
        }
    }
}

/// How a packet becomes a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordKind {
    /// Default definition: the record is filled field by field.
    Default,
    /// Biflows in the two-way form with the 5-tuple as key: the record is filled field by field,
    /// too.
    TwoWay,
    /// Compiled plan with the 5-tuple as key, in records for IPv4 and for IPv6.
    ByFamily,
    /// Compiled plan with any key.
    Wide,
}

pub(crate) struct Front<const N: usize> {
    parser: Parser,
    feed: Feed<N>,
    layout: Layout,
    record_kind: RecordKind,
    values: InputValues,
    machine: Machine,
    inspecting: Option<Inspecting>,
    reassembles: bool,
    released: Vec<(Packet, InputValues)>,
    report: FrontReport,
}

impl<const N: usize> Front<N> {
    pub(crate) fn new(
        config: &PipelineConfig,
        layout: &Layout,
        inspecting: Option<Inspecting>,
    ) -> Self {
        let record_kind = match layout.key_widths() {
            KeyWidths::Wide => RecordKind::Wide,
            KeyWidths::ByFamily if N == 0 && !config.biflow => RecordKind::Default,
            KeyWidths::ByFamily if layout.plan().is_two_way::<N>() => RecordKind::TwoWay,
            KeyWidths::ByFamily => RecordKind::ByFamily,
        };
        let parser = ParserConfig {
            decapsulate: config.decapsulate,
            icmp_ports: config.icmp_ports,
            reassemble_flows: reassembly(config),
            telemetry: Some(config.telemetry),
            needs: layout.needs(),
        };
        Self {
            parser: Parser::new(parser),
            feed: Feed::new(config),
            layout: layout.clone(),
            record_kind,
            values: InputValues::default(),
            machine: Machine::detect(),
            inspecting,
            reassembles: config.reassemble_flows.is_some(),
            released: Vec::new(),
            report: FrontReport::default(),
        }
    }

    pub(crate) const fn report(&self) -> &FrontReport {
        &self.report
    }

    /// Advances the clock: every packet up to this time has arrived.
    pub(crate) fn advance(&mut self, delivered_ns: u64, shards: &mut impl Shards<N>) {
        match self.feed.clock.advance(delivered_ns) {
            Tick::Stays => {}
            tick => self.change_cell(tick, shards),
        }
        if self.reassembles {
            self.release(shards);
        }
    }

    /// Takes frames in order of arrival.
    pub(crate) fn frames(&mut self, frames: &[Frame<'_>], shards: &mut impl Shards<N>) {
        if matches!(self.record_kind, RecordKind::Default | RecordKind::TwoWay)
            && self.feed.pending.len() == 1
            && !self.reassembles
            && self.inspecting.is_none()
        {
            self.frames_to_one_shard(frames, shards);
        } else {
            self.frames_to_any_shard(frames, shards);
        }
    }

    /// The hot path for the default definition or its biflows with one shard. Takes runs of plain
    /// packets, and single frames of any other kind between them.
    fn frames_to_one_shard(&mut self, frames: &[Frame<'_>], shards: &mut impl Shards<N>) {
        let mut rest = frames;
        while !rest.is_empty() {
            let plain = match self.record_kind {
                RecordKind::TwoWay => self.plain_frames(rest, Layout::open_plain_v4),
                _ => self.plain_frames(rest, |_, packet| MicroflowRecord::of_v4(packet)),
            };
            self.report.frames += plain as u64;
            rest = &rest[plain..];
            if self.feed.pending[0].v4.len() >= batch_records::<N>() {
                shards.take(0, &mut self.feed.pending[0]);
            } else if let Some((_, after)) = rest.split_first() {
                self.frames_to_any_shard(&rest[..1], shards);
                rest = after;
            }
        }
    }

    /// Makes records of plain IPv4 packets of the current cell, until the batch is full or another
    /// kind of frame follows. Returns how many frames it took. All of its counters stay in
    /// registers.
    #[inline(always)]
    fn plain_frames(
        &mut self,
        frames: &[Frame<'_>],
        record_of: impl Fn(&Layout, &Packet) -> MicroflowRecord<WORDS_V4, N>,
    ) -> usize {
        let records = &mut self.feed.pending[0].v4;
        let room = batch_records::<N>().saturating_sub(records.len());
        records.reserve(room);
        let (watermark_ns, cell_ns) = self.feed.clock.cell();
        let (mut latest_ns, mut frame_bytes, mut packet_bytes, mut count) = (0, 0, 0, 0);
        for (slot, frame) in records.spare_capacity_mut()[..room].iter_mut().zip(frames) {
            if let Some(ahead) = frames.get(count + FRAMES_AHEAD) {
                prefetch(ahead.bytes.as_ptr());
            }
            let Some(packet) = self.parser.parse_plain_v4(frame) else {
                break;
            };
            if packet.timestamp_ns.wrapping_sub(watermark_ns) >= cell_ns {
                break;
            }
            latest_ns = packet.timestamp_ns.max(latest_ns);
            frame_bytes += u64::from(frame.wire_length_bytes);
            packet_bytes += u64::from(packet.ip_length_bytes);
            slot.write(record_of(&self.layout, &packet));
            count += 1;
        }
        // SAFETY: the loop initialised `count` records past the previous length.
        unsafe { records.set_len(records.len() + count) };
        self.feed.clock.passed(latest_ns);
        self.report.frame_bytes += frame_bytes;
        self.report.packet_bytes += packet_bytes;
        count
    }

    fn frames_to_any_shard(&mut self, frames: &[Frame<'_>], shards: &mut impl Shards<N>) {
        self.machine.run_loop::<N, _>(TakeFrames {
            front: self,
            frames,
            shards,
        });
        self.report.frames += frames.len() as u64;
    }

    #[inline(always)]
    fn take_frames<V: Vectors>(
        &mut self,
        vectors: V,
        frames: &[Frame<'_>],
        shards: &mut impl Shards<N>,
    ) {
        let mut values = std::mem::take(&mut self.values);
        for frame in frames {
            self.report.frame_bytes += u64::from(frame.wire_length_bytes);
            values.clear();
            let parsed = match self.record_kind {
                RecordKind::Default | RecordKind::TwoWay => self.parser.parse(frame),
                _ => self.parser.parse_with_inputs(frame, &mut values),
            };
            // For every frame, so that records do not depend on how frames were batched.
            if self.reassembles && matches!(parsed, Ok(_) | Err(Rejected::Held)) {
                self.arrive(frame.timestamp_ns, shards);
            }
            // By reference: a copy of the packet as one vector would wait for the stores of its
            // fields.
            match &parsed {
                Ok(packet) => {
                    self.tick(packet.timestamp_ns, shards);
                    if let Some(inspecting) = &mut self.inspecting {
                        inspecting.offer(packet, frame, &self.parser);
                    }
                    self.meter(vectors, packet, &values, shards);
                }
                Err(rejected) => self.reject(*rejected, frame.wire_length_bytes),
            }
            if self.reassembles {
                self.release(shards);
            }
        }
        self.values = values;
        if let Some(inspecting) = &mut self.inspecting {
            inspecting.poll(self.feed.clock.now_ns());
        }
    }

    /// Takes a packet that the caller has parsed.
    pub(crate) fn parsed(
        &mut self,
        packet: &Packet,
        values: &InputValues,
        shards: &mut impl Shards<N>,
    ) {
        // Capture readers limit timestamps to the last possible time; other callers may not.
        if packet.timestamp_ns > LAST_TIME_NS {
            let packet = Packet {
                timestamp_ns: LAST_TIME_NS,
                ..*packet
            };
            return self.parsed(&packet, values, shards);
        }
        self.report.frames += 1;
        self.report.frame_bytes += u64::from(packet.frame_length_bytes);
        self.tick(packet.timestamp_ns, shards);
        self.meter(self.machine, packet, values, shards);
    }

    /// Makes the record of a packet. The packet may be late.
    #[inline(always)]
    fn meter<V: Vectors>(
        &mut self,
        vectors: V,
        packet: &Packet,
        values: &InputValues,
        shards: &mut impl Shards<N>,
    ) {
        self.report.packet_bytes += u64::from(packet.ip_length_bytes);
        match (self.record_kind, packet.tuple.family()) {
            (RecordKind::Default, Family::V4) => {
                let record = MicroflowRecord::of_v4(packet);
                self.feed.push(record, |pending| &mut pending.v4, shards);
            }
            (RecordKind::Default, Family::V6) => {
                let record = MicroflowRecord::of_v6(packet);
                self.feed.push(record, |pending| &mut pending.v6, shards);
            }
            (RecordKind::ByFamily | RecordKind::TwoWay, Family::V4) => {
                self.open::<_, WORDS_V4>(vectors, packet, values, |to| &mut to.v4, shards);
            }
            (RecordKind::ByFamily | RecordKind::TwoWay, Family::V6) => {
                self.open::<_, WORDS_V6>(vectors, packet, values, |to| &mut to.v6, shards);
            }
            (RecordKind::Wide, _) => {
                self.open::<_, WORDS_WIDE>(vectors, packet, values, |to| &mut to.wide, shards);
            }
        }
    }

    /// Adds the record of a packet to the batch of its shard.
    #[inline(always)]
    fn open<V: Vectors, const K: usize>(
        &mut self,
        vectors: V,
        packet: &Packet,
        values: &InputValues,
        of_width: impl Fn(&mut ShardBatch<N>) -> &mut Vec<MicroflowRecord<K, N>>,
        shards: &mut impl Shards<N>,
    ) {
        let (key, reversed) = self.layout.key::<K>(packet, values);
        let shard = self.feed.shard_of(&key);
        let records = of_width(&mut self.feed.pending[shard]);
        records.push(MicroflowRecord {
            key,
            base: self.layout.base(packet, reversed),
            state: [0; N],
        });
        if let Some(MicroflowRecord { state, .. }) = records.last_mut() {
            self.layout
                .open_state(vectors, state, packet, values, reversed);
        }
        if records.len() == batch_records::<N>() {
            shards.take(shard, &mut self.feed.pending[shard]);
        }
    }

    #[inline(always)]
    fn tick(&mut self, timestamp_ns: u64, shards: &mut impl Shards<N>) {
        match self.feed.clock.tick(timestamp_ns) {
            Tick::Stays => {}
            tick => self.change_cell(tick, shards),
        }
    }

    #[cold]
    #[inline(never)]
    fn change_cell(&mut self, tick: Tick, shards: &mut impl Shards<N>) {
        if let Some(inspecting) = &mut self.inspecting {
            inspecting.settle(self.feed.clock.now_ns());
        }
        if self.reassembles && matches!(tick, Tick::SetBack(_)) {
            // Meters the fragments that are held before the clock goes back.
            let now_ns = self.feed.clock.now_ns();
            self.meter_released(shards, |parser, out| parser.set_back(now_ns, out));
        }
        self.feed.change_cell(tick, shards);
    }

    #[cold]
    #[inline(never)]
    fn reject(&mut self, rejected: Rejected, wire_length_bytes: u32) {
        if rejected.class() == RejectClass::Held {
            self.report.held += 1;
            self.report.held_frame_bytes += u64::from(wire_length_bytes);
        } else {
            self.report.rejected[rejected.index()] += 1;
            self.report.rejected_bytes[rejected.index()] += u64::from(wire_length_bytes);
        }
    }

    /// Notes the arrival of a packet that will be metered or held. Fragments that have waited too
    /// long are metered first: if they came after the flows that this packet opens, they would
    /// exceed the lateness that is allowed.
    fn arrive(&mut self, timestamp_ns: u64, shards: &mut impl Shards<N>) {
        self.tick(timestamp_ns, shards);
        let now_ns = self.feed.clock.now_ns();
        self.meter_released(shards, |parser, out| parser.expire(now_ns, out));
    }

    /// Meters fragments whose first fragment has arrived or is no longer expected.
    fn release(&mut self, shards: &mut impl Shards<N>) {
        let now_ns = self.feed.clock.now_ns();
        self.meter_released(shards, |parser, out| parser.release(now_ns, out));
    }

    /// Meters packets that the parser releases. They arrived earlier and have already moved the
    /// clock, so they do not move it again.
    fn meter_released(
        &mut self,
        shards: &mut impl Shards<N>,
        hand_out: impl FnOnce(&mut Parser, &mut Vec<(Packet, InputValues)>),
    ) {
        let mut released = std::mem::take(&mut self.released);
        hand_out(&mut self.parser, &mut released);
        for (packet, values) in released.drain(..) {
            self.report.held -= 1;
            self.report.held_frame_bytes -= u64::from(packet.frame_length_bytes);
            self.meter(self.machine, &packet, &values, shards);
        }
        self.released = released;
    }

    /// Meters held fragments at the end of the input.
    pub(crate) fn finish(&mut self, shards: &mut impl Shards<N>) {
        self.meter_released(shards, Parser::release_all);
        if let Some(inspecting) = &mut self.inspecting {
            inspecting.finish(self.feed.clock.now_ns());
        }
        self.settle(shards);
    }

    pub(crate) fn count_inspection(&mut self) {
        self.report.inspection = self.inspecting.as_ref().map(Inspecting::counters);
    }

    /// Hands over pending records, so that the report is up to date.
    pub(crate) fn settle(&mut self, shards: &mut impl Shards<N>) {
        self.feed.hand_over(shards);
        self.report.clock_steps = self.feed.clock_steps;
        self.report.packets_longer_than_frame = self.parser.packets_longer_than_frame();
        self.report.telemetry = self.parser.telemetry_counters();
        self.report.unread = *self.parser.unread_ether_types();
        self.count_inspection();
        let rejected: u64 = self.report.rejected.iter().sum();
        let rejected_bytes: u64 = self.report.rejected_bytes.iter().sum();
        self.report.packets = self.report.frames - rejected;
        self.report.packet_frame_bytes = self.report.frame_bytes - rejected_bytes;
    }
}

/// Settings of reassembly. No fragment waits longer than the idle timeout, because it would then
/// exceed the lateness that is allowed.
fn reassembly(config: &PipelineConfig) -> Option<ReassemblyConfig> {
    let idle_ns = config.timeouts.idle_ns.unwrap_or(u64::MAX);
    config.reassemble_flows.map(|reassembly| ReassemblyConfig {
        timeout_ns: reassembly.timeout_ns.min(idle_ns),
        ..reassembly
    })
}
