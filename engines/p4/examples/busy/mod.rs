// SPDX-License-Identifier: Apache-2.0
//! What a pipeline sends if it evicts all the time: answers, and reports of one-packet records.

use turboflow_engine_p4::P4Record;

const OUTER: [u8; 14] = [2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0x88, 0xb6];
const LANE_AT: usize = OUTER.len();
const VERSION: u8 = 0xf1;
const COLLISION: u8 = 1;
const STATUS: u8 = 4;
const KIND_STATUS: u8 = 2;
const KIND_SETTINGS: u8 = 3;
/// The default definition's records: offsets of the words for packets, bytes, and times.
const PACKETS_AT: usize = 40;
const PACKET_BYTES: u64 = 64;
/// Reports per frame.
pub(crate) const REPORTS_A_FRAME: u32 = 10;

/// The pipeline.
pub(crate) struct Busy {
    program_id: u64,
    record_bytes: usize,
    /// The number of the next report.
    pub(crate) sequence: u32,
    /// Records so far, each of one packet.
    pub(crate) records: u64,
    /// Number of flows. Their records come in turn.
    flows: u32,
    /// Whether ports are metered.
    pub(crate) meters: bool,
    time_offset_ns: u64,
}

impl Busy {
    pub(crate) fn new(record: &P4Record, flows: u32) -> Self {
        Self {
            program_id: record.id(),
            record_bytes: 8 * record.words(),
            sequence: 0,
            records: 0,
            flows,
            meters: false,
            time_offset_ns: 0,
        }
    }

    fn report(&mut self, cause: u8, now_ns: u64, frame: &mut Vec<u8>) {
        frame.extend([VERSION, cause, 0, 0]);
        frame.extend(self.sequence.to_be_bytes());
        frame.extend(now_ns.to_be_bytes());
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// Fills a frame with reports of one-packet records, evicted at this time of the pipeline's
    /// clock.
    pub(crate) fn evict(&mut self, now_ns: u64, frame: &mut Vec<u8>) {
        let now_ns = now_ns.wrapping_add(self.time_offset_ns);
        frame.clear();
        frame.extend(OUTER);
        for _ in 0..REPORTS_A_FRAME {
            self.report(COLLISION, now_ns, frame);
            let start = frame.len();
            frame.resize(start + self.record_bytes, 0);
            // The source address is the number of the flow.
            let flow = (self.records % u64::from(self.flows)) as u32;
            frame[start + 12..start + 16].copy_from_slice(&flow.to_be_bytes());
            frame[start + 39] = 4;
            let words = [1, PACKET_BYTES, now_ns, now_ns].map(u64::to_be_bytes);
            let words = words.as_flattened();
            frame[start + PACKETS_AT..][..words.len()].copy_from_slice(words);
            self.records += 1;
        }
    }

    /// The answer to a command, if it has one.
    pub(crate) fn answer(&mut self, command: &[u8], now_ns: u64) -> Option<Vec<u8>> {
        let lane = command.get(LANE_AT..LANE_AT + 24)?;
        if command[12..LANE_AT] != OUTER[12..] || !(KIND_STATUS..=KIND_SETTINGS).contains(&lane[0])
        {
            return None;
        }
        if let Some(settings) = command.get(LANE_AT + 24..LANE_AT + 56)
            && lane[0] == KIND_SETTINGS
        {
            self.time_offset_ns = u64::from_be_bytes(settings[16..24].try_into().ok()?);
            self.meters = settings[31] != 0;
        }
        let mut frame = OUTER.to_vec();
        self.report(STATUS, now_ns.wrapping_add(self.time_offset_ns), &mut frame);
        frame.extend(&lane[16..24]);
        frame.extend(self.program_id.to_be_bytes());
        frame.extend((1_u32 << 16).to_be_bytes());
        // It lists slots, takes frames over the lane, and has 64-bit words.
        frame.extend([0, 3, 0, 64]);
        // Nothing is listed. Cells last 2^29 ns.
        frame.extend([0, 0, 0, 0, 0, 0, 0, 29]);
        let bytes = self.records * PACKET_BYTES;
        for counter in [self.records, bytes, 0, bytes, 0, self.records, 0] {
            frame.extend(counter.to_be_bytes());
        }
        Some(frame)
    }
}
