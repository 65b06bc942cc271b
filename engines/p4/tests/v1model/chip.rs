// SPDX-License-Identifier: Apache-2.0
//! Sends and takes what `tna/` would, made from what `v1model/` does: 32-bit words, no list of
//! slots, a 48-bit clock that cannot be set, and counters that wrap.

use crate::lane::{
    CAUSE_PUNTED, CAUSE_STATUS, FLAG_COUNTS_COPIES, FLAG_SLOT, KIND_SETTINGS, KIND_STATUS,
    KIND_SWEEP, LANE_BYTES, OUTER_BYTES, REPORT_BYTES,
};
use crate::switch::Switch;

const REPORT_AT: usize = OUTER_BYTES;
const BODY_AT: usize = REPORT_AT + REPORT_BYTES;
const LANE_AT: usize = OUTER_BYTES;
const SETTINGS_AT: usize = LANE_AT + LANE_BYTES;
const ABILITY_WRAPS: u8 = 4;

/// Slots of each table.
pub(crate) const SLOTS: u32 = 64;
/// The program's first slot for IPv6.
const FIRST_V6_SLOT: u32 = 1 << 16;
const CELL_SHIFT: u32 = 29;
/// The start of the counters: they soon wrap.
const COUNTED_BEFORE: u32 = u32::MAX - 100;
/// One answer out of this many reports copies under way.
const BUSY_ANSWERS: u32 = 3;
/// Number of copies that were lost before the run.
const LOST_BEFORE: u32 = u32::MAX - 1;

/// The program with the table in egress, which frames reach as copies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies {
    /// The command that is being answered.
    command: u8,
    answers: u32,
    reports: u32,
    lost: u32,
    lost_bytes: u32,
}

impl Copies {
    /// Notes that the copy of this frame is lost.
    pub(crate) fn lose(&mut self, frame: &[u8]) {
        self.lost += 1;
        // The frame is IPv4 without tags.
        self.lost_bytes += u32::from(u16::from_be_bytes([frame[16], frame[17]]));
    }

    /// Notes that this command will be answered next.
    pub(crate) fn take_command(&mut self, bytes: &[u8]) {
        self.command = bytes[0];
    }

    /// Puts its number, or the number of copies, into a report.
    pub(crate) fn number(&mut self, report: &mut [u8]) {
        if report[REPORT_AT + 1] == CAUSE_STATUS {
            let status = &mut report[BODY_AT..];
            for (counter, lost) in [(36, self.lost), (44, self.lost_bytes)] {
                let counted = number(status, counter).wrapping_add(lost);
                set(status, counter, counted);
            }
            if self.command == KIND_STATUS {
                self.answers += 1;
                let under_way = u32::from(self.answers.is_multiple_of(BUSY_ANSWERS)) * 5;
                let copies = LOST_BEFORE.wrapping_add(self.lost).wrapping_add(under_way);
                report[REPORT_AT + 2] |= FLAG_COUNTS_COPIES;
                return set(report, REPORT_AT + 4, copies);
            }
        }
        set(report, REPORT_AT + 4, self.reports);
        self.reports += 1;
    }
}

/// Whether the chip would take this command. Converts the command for the program.
pub(crate) fn adapt_command(bytes: &mut [u8], switch: &Switch) -> bool {
    let [kind, flags] = [bytes[LANE_AT], bytes[LANE_AT + 1]];
    match kind {
        KIND_SWEEP if flags & FLAG_SLOT == 0 => return false,
        KIND_SWEEP => {
            let slot = number(bytes, LANE_AT + 4) % (2 * SLOTS);
            let slot = match slot.checked_sub(SLOTS) {
                None => slot,
                Some(v6) => FIRST_V6_SLOT + v6,
            };
            let cell = ((switch.now_us * 1000) >> CELL_SHIFT) as u32 + 1;
            set(bytes, LANE_AT + 4, slot);
            set(bytes, LANE_AT + 12, cell);
        }
        KIND_SETTINGS => {
            bytes[SETTINGS_AT + 16..SETTINGS_AT + 24].fill(0);
            set(bytes, SETTINGS_AT + 24, SLOTS - 1);
            set(bytes, SETTINGS_AT + 28, 1);
        }
        _ => {}
    }
    true
}

/// Converts a report to what the chip would send.
pub(crate) fn adapt_report(mut bytes: Vec<u8>) -> Vec<u8> {
    // The clock has only 48 bits.
    bytes[REPORT_AT + 8..REPORT_AT + 10].fill(0);
    match bytes[REPORT_AT + 1] {
        CAUSE_STATUS => {
            let status = &mut bytes[BODY_AT..];
            set(status, 16, SLOTS);
            status[20..24].copy_from_slice(&[0, ABILITY_WRAPS, 0, 32]);
            status[24..28].fill(0);
            for counter in [32, 40] {
                let counted = number(status, counter + 4).wrapping_add(COUNTED_BEFORE);
                set(status, counter, 0);
                set(status, counter + 4, counted);
            }
            status[48..].fill(0);
            bytes
        }
        CAUSE_PUNTED => bytes,
        _ => {
            let words = bytes.split_off(BODY_AT);
            let (key, folds) = words.split_at(40);
            let version = key[39];
            bytes[REPORT_AT + 3] = version;
            let unused = if version == 4 { 12 } else { 0 };
            bytes.extend(&key[unused..16]);
            bytes.extend(&key[16 + unused..32]);
            bytes.extend(&key[34..39]);
            bytes.extend([0; 3]);
            for word in folds.chunks_exact(8) {
                bytes.extend(&word[4..]);
            }
            bytes
        }
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn set(bytes: &mut [u8], at: usize, number: u32) {
    bytes[at..at + 4].copy_from_slice(&number.to_be_bytes());
}
