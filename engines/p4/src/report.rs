// SPDX-License-Identifier: Apache-2.0
//! What the pipeline sends, with the numbers of `p4/shared/lane.p4`.

use crate::lane::{ETHER_TYPE, LANE_BYTES, OUTER_BYTES};

const VERSION: u8 = 0xf1;
const HAS_TRAILER: u8 = 1;
const HAS_LANE: u8 = 2;
const COUNTS_COPIES: u8 = 4;
const REPORT_BYTES: usize = 16;
const STATUS_BYTES: usize = 88;

/// Why a record left the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Collision,
    Cut,
    Aged,
}

/// A report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report<'a> {
    /// The number of reports before this one. Some answers have none.
    pub(crate) sequence: Option<u32>,
    pub(crate) body: Body<'a>,
}

/// The content of a report.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body<'a> {
    /// The words of a record, as received.
    Record(Record<'a>),
    /// The program's time, and the other counters as received.
    Status {
        now_ns: u64,
        /// Copies of frames that are under way to the table or were lost, if the answer gives these
        /// instead of a number.
        copies: Option<u32>,
        bytes: &'a [u8],
    },
    Punted(Punted<'a>),
}

/// A record that has left the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    pub(crate) cause: Cause,
    /// The IP version, if words have 32 bits.
    pub(crate) family: u8,
    /// When it left the table, in nanoseconds of the pipeline's clock.
    pub(crate) now_ns: u64,
    /// Its words, as received.
    pub(crate) words: &'a [u8],
}

/// The lengths of records, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordSizes {
    pub(crate) v4_bytes: usize,
    pub(crate) v6_bytes: usize,
}

/// A frame that the pipeline's parser does not understand with certainty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Punted<'a> {
    /// When it arrived, in nanoseconds of the pipeline's clock.
    pub(crate) time_ns: u64,
    /// Length on the wire, in bytes.
    pub(crate) wire_length_bytes: u32,
    pub(crate) bytes: &'a [u8],
}

/// The program, and its counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) token: u64,
    pub(crate) program_id: u64,
    pub(crate) slots: u32,
    pub(crate) abilities: u16,
    pub(crate) word_bits: u16,
    /// Places in use in the list that was asked for.
    pub(crate) listed: u32,
    /// Without a lane, cells last 2 to the power of this in nanoseconds; 0: frames come only by the
    /// lane.
    pub(crate) cell_shift: u32,
    /// The pipeline's clock, in nanoseconds.
    pub(crate) now_ns: u64,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) too_long: u64,
    pub(crate) frame_bytes: u64,
    pub(crate) punted: u64,
    pub(crate) evicted: u64,
    /// Number of commands that swept a slot.
    pub(crate) sweeps: u64,
}

impl Status {
    /// The program lists the slots in use.
    pub(crate) const LISTS: u16 = 1;
    /// The program takes frames over the lane.
    pub(crate) const REPLAY: u16 = 2;
    /// The program has 32-bit counters and a 48-bit clock that cannot be set, and it cannot be
    /// stopped. A sum in its records stays at `u32::MAX` once it has reached that.
    pub(crate) const WRAPS: u16 = 4;
    /// The program has only one table, for IPv4.
    pub(crate) const NO_V6: u16 = 8;

    /// Reads the counters of an answer: 88 bytes.
    pub(crate) fn read(now_ns: u64, bytes: &[u8]) -> Self {
        Self {
            token: u64_at(bytes, 0),
            program_id: u64_at(bytes, 8),
            slots: u32_at(bytes, 16),
            abilities: u16_at(bytes, 20),
            word_bits: u16_at(bytes, 22),
            listed: u32_at(bytes, 24),
            cell_shift: u32_at(bytes, 28),
            now_ns,
            packets: u64_at(bytes, 32),
            bytes: u64_at(bytes, 40),
            too_long: u64_at(bytes, 48),
            frame_bytes: u64_at(bytes, 56),
            punted: u64_at(bytes, 64),
            evicted: u64_at(bytes, 72),
            sweeps: u64_at(bytes, 80),
        }
    }

    pub(crate) const fn has(&self, ability: u16) -> bool {
        self.abilities & ability != 0
    }

    /// Extends the 32-bit counters of an answer to 64 bits, given the previous answer `last`.
    /// Counters must be asked for before they wrap a second time.
    pub(crate) const fn continues(self, last: &Self) -> Self {
        const fn go_on(last: u64, now: u64) -> u64 {
            last.wrapping_add((now as u32).wrapping_sub(last as u32) as u64)
        }
        Self {
            packets: go_on(last.packets, self.packets),
            bytes: go_on(last.bytes, self.bytes),
            ..self
        }
    }
}

/// Why a frame from the port is not a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strange {
    /// It has another EtherType: the port also carries other traffic.
    OtherEtherType,
    /// It ends in the middle of a report.
    Cut,
    /// The program has another version.
    Version,
    /// Its cause does not exist in this version.
    Cause,
}

/// The reports of a frame.
pub(crate) struct Reports<'a> {
    rest: &'a [u8],
    sizes: RecordSizes,
}

impl<'a> Reports<'a> {
    /// The reports in a frame, for records of these sizes.
    pub(crate) fn of(frame: &'a [u8], sizes: RecordSizes) -> Result<Self, Strange> {
        match frame.split_at_checked(OUTER_BYTES) {
            Some((outer, rest)) if outer[12..] == ETHER_TYPE.to_be_bytes() => {
                Ok(Self { rest, sizes })
            }
            _ => Err(Strange::OtherEtherType),
        }
    }

    fn read(&mut self) -> Result<Report<'a>, Strange> {
        let (header, rest) = self
            .rest
            .split_at_checked(REPORT_BYTES)
            .ok_or(Strange::Cut)?;
        let &[version, cause, flags, family, ..] = header else {
            return Err(Strange::Cut);
        };
        if version != VERSION {
            return Err(Strange::Version);
        }
        let cause = match cause {
            1 => Cause::Collision,
            2 => Cause::Cut,
            3 => Cause::Aged,
            4 => return self.read_status(header, rest, flags),
            5 => return self.read_punted(header, rest, flags),
            _ => return Err(Strange::Cause),
        };
        let record_bytes = match family {
            6 => self.sizes.v6_bytes,
            _ => self.sizes.v4_bytes,
        };
        let (words, rest) = rest.split_at_checked(record_bytes).ok_or(Strange::Cut)?;
        self.rest = behind(rest, flags);
        Ok(Report {
            sequence: Some(u32_at(header, 4)),
            body: Body::Record(Record {
                cause,
                family,
                now_ns: u64_at(header, 8),
                words,
            }),
        })
    }

    fn read_status(
        &mut self,
        header: &[u8],
        rest: &'a [u8],
        flags: u8,
    ) -> Result<Report<'a>, Strange> {
        let (bytes, rest) = rest.split_at_checked(STATUS_BYTES).ok_or(Strange::Cut)?;
        self.rest = behind(rest, flags);
        let number = u32_at(header, 4);
        let (sequence, copies) = match flags & COUNTS_COPIES {
            0 => (Some(number), None),
            _ => (None, Some(number)),
        };
        Ok(Report {
            sequence,
            body: Body::Status {
                now_ns: u64_at(header, 8),
                copies,
                bytes,
            },
        })
    }

    fn read_punted(
        &mut self,
        header: &[u8],
        rest: &'a [u8],
        flags: u8,
    ) -> Result<Report<'a>, Strange> {
        self.rest = &[];
        let punted = if flags & HAS_LANE == 0 {
            Punted {
                time_ns: u64_at(header, 8),
                wire_length_bytes: u32::try_from(rest.len()).unwrap_or(u32::MAX),
                bytes: rest,
            }
        } else {
            let (lane, bytes) = rest.split_at_checked(LANE_BYTES).ok_or(Strange::Cut)?;
            Punted {
                time_ns: u64_at(lane, 16),
                wire_length_bytes: u32_at(lane, 8),
                bytes,
            }
        };
        Ok(Report {
            sequence: Some(u32_at(header, 4)),
            body: Body::Punted(punted),
        })
    }
}

/// The bytes after a report, if they are another report.
const fn behind(rest: &[u8], flags: u8) -> &[u8] {
    if flags & HAS_TRAILER == 0 { rest } else { &[] }
}

impl<'a> Iterator for Reports<'a> {
    type Item = Result<Report<'a>, Strange>;

    fn next(&mut self) -> Option<Self::Item> {
        // Short frames are padded with zeros.
        if self.rest.iter().all(|byte| *byte == 0) {
            return None;
        }
        let report = self.read();
        if report.is_err() {
            self.rest = &[];
        }
        Some(report)
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}
