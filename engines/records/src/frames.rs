// SPDX-License-Identifier: Apache-2.0
//! Whole frames, which a sender of records handed over because its parser does not read them, as
//! messages of the wire form: they join the records of the same run.

use std::io::{self, Read};

use turboflow_engine::wire::Encoder;
use turboflow_engine::{EngineCounters, MicroflowBatch, RecordShape};
use turboflow_merge::{Layout, MOST_STATE_WORDS, MicroflowRecord};
use turboflow_packet::{Frame, Parser, ParserConfig};
use turboflow_record::{Family, InputValues, Packet, WORDS_V4, WORDS_V6};

/// The time between two watermarks. Frames arrive in time order.
const CELL_NS: u64 = 1_000_000_000;
/// Maximum number of records of a cell that wait to be encoded into messages.
const MOST_WAITING_RECORDS: usize = 4_096;
/// Maximum length of a message.
const MESSAGE_BYTES: usize = 1_400;
/// The number of the stream's only sender, which can be any.
const ENGINE_ID: u32 = 0;

/// A source of frames.
pub trait FrameSource: Send {
    /// Passes some of the next frames to `each`. Returns false at the end.
    ///
    /// # Errors
    /// If no further frames can be read.
    fn next(&mut self, each: &mut dyn FnMut(&Frame<'_>)) -> io::Result<bool>;
}

/// The messages of frames, for [`RecordsEngine`](crate::RecordsEngine): a record of every packet, a
/// watermark for every second, and the counters of all of them.
pub struct FrameMessages<S> {
    source: S,
    meter: Meter,
    bytes: Vec<u8>,
    /// Position up to which `bytes` has been read.
    at: usize,
    /// Why there are no further frames. Reported after the messages of the frames that came.
    failure: Option<io::Error>,
    is_over: bool,
}

impl<S: FrameSource> FrameMessages<S> {
    /// The messages of the frames from a source, with records of `layout`.
    #[must_use]
    pub fn new(source: S, layout: &Layout) -> Self {
        Self {
            source,
            meter: Meter::new(layout),
            bytes: Vec::new(),
            at: 0,
            failure: None,
            is_over: false,
        }
    }
}

impl<S: FrameSource> Read for FrameMessages<S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.bytes.len() && !self.is_over {
            self.bytes.clear();
            self.at = 0;
            if let Some(failure) = self.failure.take() {
                self.is_over = true;
                return Err(failure);
            }
            let (meter, bytes) = (&mut self.meter, &mut self.bytes);
            match self.source.next(&mut |frame| meter.frame(frame, bytes)) {
                Ok(true) => {}
                // Without a watermark, as at the end of a capture: idle times count only to the
                // last packet.
                Ok(false) => {
                    meter.complete(0, true, bytes);
                    self.is_over = true;
                }
                Err(failure) => {
                    meter.complete(0, false, bytes);
                    self.failure = Some(failure);
                }
            }
        }
        let count = into.len().min(self.bytes.len() - self.at);
        into[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// Makes records of frames. It has no table, because only few frames are handed over whole.
struct Meter {
    parser: Parser,
    layout: Layout,
    shape: RecordShape,
    values: InputValues,
    encoder: Encoder,
    counters: EngineCounters,
    batch: MicroflowBatch,
    /// The number of the last frame's cell; 0 before the first frame.
    cell: u64,
}

impl Meter {
    fn new(layout: &Layout) -> Self {
        Self {
            parser: Parser::new(ParserConfig {
                needs: layout.needs(),
                ..ParserConfig::default()
            }),
            layout: layout.clone(),
            shape: RecordShape::of(layout),
            values: InputValues::default(),
            encoder: Encoder::new(layout, ENGINE_ID, MESSAGE_BYTES),
            counters: EngineCounters::default(),
            batch: MicroflowBatch::default(),
            cell: 0,
        }
    }

    fn frame(&mut self, frame: &Frame<'_>, bytes: &mut Vec<u8>) {
        let cell = frame.timestamp_ns / CELL_NS;
        if cell > self.cell {
            if self.cell > 0 {
                self.complete(cell * CELL_NS, false, bytes);
            }
            self.cell = cell;
        }
        let wire_bytes = u64::from(frame.wire_length_bytes);
        self.counters.packets_received += 1;
        self.counters.bytes_received += wire_bytes;
        match self.parser.parse_with_inputs(frame, &mut self.values) {
            Err(reason) => {
                self.counters.rejected_packets[reason.index()] += 1;
                self.counters.rejected_bytes[reason.index()] += wire_bytes;
            }
            Ok(packet) => {
                self.counters.packets_longer_than_frame = self.parser.packets_longer_than_frame();
                self.counters.packets_metered += 1;
                self.counters.bytes_metered += u64::from(packet.ip_length_bytes);
                self.counters.evicted.bypass += 1;
                self.record(&packet);
            }
        }
        // Time may stand still in a capture, so a cell can become large.
        if self.batch.len() >= MOST_WAITING_RECORDS {
            self.encoder
                .records(&self.batch, |message| bytes.extend(message));
            self.batch.clear();
        }
    }

    fn record(&mut self, packet: &Packet) {
        let batch = &mut self.batch;
        match (packet.tuple.family(), self.shape.is_plain()) {
            (Family::V4, true) => batch.plain_v4.push_record(MicroflowRecord::of_v4(packet)),
            (Family::V6, true) => batch.plain_v6.push_record(MicroflowRecord::of_v6(packet)),
            (Family::V4, false) => self.row::<WORDS_V4>(packet),
            (Family::V6, false) => self.row::<WORDS_V6>(packet),
        }
    }

    fn row<const K: usize>(&mut self, packet: &Packet) {
        let record: MicroflowRecord<K, MOST_STATE_WORDS> = self.layout.open(packet, &self.values);
        let mut row = record.base.words().to_vec();
        row.extend(&record.state[..self.shape.state_words]);
        row.extend(record.key);
        let is_record = self.batch.push_row(row.into_iter(), self.shape);
        assert!(is_record, "rows have the shape of the layout");
    }

    /// Ends a cell: all records before the watermark have been encoded.
    fn complete(&mut self, watermark_ns: u64, is_end: bool, bytes: &mut Vec<u8>) {
        let Self {
            encoder,
            batch,
            counters,
            ..
        } = self;
        encoder.records(batch, |message| bytes.extend(message));
        encoder.counters(counters, watermark_ns, is_end, |message| {
            bytes.extend(message);
        });
        batch.clear();
    }
}
