// SPDX-License-Identifier: Apache-2.0
//! Reports of a chip that computes with 32-bit words: a Tofino.
//!
//! Its clock has 48 bits and cannot be set. Times in a record are the lower 32 bits. A report
//! contains all 48 bits of the time at which the record left, which is less than 2^32 ns later.

use crate::record::{P4Op, P4Record};
use crate::report::Record;

/// Bits of the chip's clock.
const CLOCK_BITS: u32 = 48;

/// The age up to which a record's times can be told from 32 bits.
const MOST_AGE_NS: i64 = 1 << 32;
/// If the clock goes back by more than this, it was restarted.
const MOST_BACK_NS: i64 = 1_000_000_000;

/// Nanoseconds from one time of a chip to another. The two must be less than 39 hours apart.
const fn between(from_ns: u64, to_ns: u64) -> i64 {
    let bits = to_ns.wrapping_sub(from_ns) << (u64::BITS - CLOCK_BITS);
    bits.cast_signed() >> (u64::BITS - CLOCK_BITS)
}

/// The chip's clock, known by one moment on both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChipClock {
    chip_ns: u64,
    wall_ns: u64,
}

impl ChipClock {
    /// A chip clock at this time, before its relation to this machine's clock is known.
    pub(crate) const fn new(chip_ns: u64) -> Self {
        Self {
            chip_ns,
            wall_ns: chip_ns,
        }
    }

    /// Converts a time of the chip to this machine's clock. It must be less than 39 hours from the
    /// last reading.
    pub(crate) const fn wall_ns(&self, chip_ns: u64) -> u64 {
        self.wall_ns
            .wrapping_add_signed(between(self.chip_ns, chip_ns))
    }

    /// Notes a reading of the chip's clock. Returns false if the clock was restarted.
    pub(crate) const fn read(&mut self, chip_ns: u64) -> bool {
        let goes_on = between(self.chip_ns, chip_ns) >= -MOST_BACK_NS;
        self.wall_ns = self.wall_ns(chip_ns);
        self.chip_ns = chip_ns;
        goes_on
    }

    /// Notes that the chip's clock is further behind than was known, by this much modulo 2^64.
    pub(crate) const fn correct(&mut self, behind_ns: u64) {
        self.wall_ns = self.wall_ns.wrapping_add(behind_ns);
    }

    /// The last reading, on the chip's clock.
    pub(crate) const fn now_ns(&self) -> u64 {
        self.chip_ns
    }

    /// The start of the cell of the last reading, on the chip's clock. Cells begin at multiples of
    /// their length, a power of two.
    pub(crate) const fn cell_start_ns(&self, cell_ns: u64) -> u64 {
        self.chip_ns / cell_ns * cell_ns
    }

    /// Restores a time from its lower 32 bits. It must be less than 2^32 ns before `now_ns`.
    const fn widen(now_ns: u64, time_ns: u32) -> u64 {
        now_ns.wrapping_sub((now_ns as u32).wrapping_sub(time_ns) as u64)
    }
}

/// Counts copies of frames that did not reach the table. A chip reports how many copies are under
/// way; those that were lost stay in that number forever.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copies {
    /// The smallest number since [`Copies::settle`].
    fewest: Option<u32>,
    /// The smallest number before the run: copies that were already lost.
    lost_before: Option<u32>,
}

impl Copies {
    const NONE: Self = Self {
        fewest: None,
        lost_before: None,
    };

    /// Notes a report of how many copies are under way.
    pub(crate) fn take(&mut self, under_way: u32) {
        // The number wraps.
        let is_fewer = |fewest: u32| under_way.wrapping_sub(fewest).cast_signed() < 0;
        if self.fewest.is_none_or(is_fewer) {
            self.fewest = Some(under_way);
        }
    }

    /// From now on, further lost copies count.
    pub(crate) fn begin(&mut self) {
        self.lost_before = self.fewest.take();
    }

    /// Starts to look for the smallest number again: copies under way now may still arrive.
    pub(crate) const fn settle(&mut self) {
        self.fewest = None;
    }

    /// Number of copies that were lost.
    pub(crate) fn lost(&self) -> u64 {
        match (self.lost_before, self.fewest) {
            (Some(before), Some(now)) => {
                let lost = now.wrapping_sub(before).cast_signed();
                lost.max(0).unsigned_abs().into()
            }
            _ => 0,
        }
    }
}

/// The words of a record.
pub(crate) struct WideRecord<'a> {
    /// As words of 64 bits, for [`P4Record::append`].
    pub(crate) words: &'a [u8],
    /// Whether its times and sums can be told from the chip's words.
    pub(crate) is_known: bool,
}

/// The state of a chip.
#[derive(Debug)]
pub(crate) struct Chip {
    pub(crate) clock: ChipClock,
    pub(crate) copies: Copies,
    /// No record in the table is older than this, on the chip's clock. Initially unknown.
    pub(crate) oldest_ns: Option<u64>,
    /// The words of one record, as words of 64 bits.
    wide: Vec<u8>,
}

impl Chip {
    pub(crate) const fn new(clock: ChipClock) -> Self {
        Self {
            clock,
            copies: Copies::NONE,
            oldest_ns: None,
            wide: Vec::new(),
        }
    }

    /// Whether a record may be older than 32 bits can tell, because the table was not swept in
    /// time.
    fn is_outdated(&self, record: &Record<'_>) -> bool {
        self.oldest_ns
            .is_some_and(|oldest_ns| between(oldest_ns, record.now_ns) >= MOST_AGE_NS)
    }

    /// The words of a record, widened to 64 bits, if it has this layout.
    pub(crate) fn widen(
        &mut self,
        layout: &P4Record,
        record: &Record<'_>,
    ) -> Option<WideRecord<'_>> {
        let address_words = match record.family {
            4 => 1,
            6 => 4,
            _ => return None,
        };
        let (words, _) = record.words.as_chunks::<4>();
        let (source, rest) = words.split_at_checked(address_words)?;
        let (destination, rest) = rest.split_at_checked(address_words)?;
        let [ports, protocol, packets, octets, first, last, folds @ ..] = rest else {
            return None;
        };
        // TCP flags, and the features.
        if folds.len() != 1 + layout.features().len() {
            return None;
        }
        // A sum that has reached its maximum stays there.
        let is_full = |word: &[u8; 4]| *word == [u8::MAX; 4];
        let mut sums = layout.features().iter().zip(&folds[1..]);
        let has_full_sum =
            is_full(octets) || sums.any(|(feature, word)| feature.op == P4Op::Sum && is_full(word));
        let is_known = !has_full_sum && !self.is_outdated(record);
        let wide = &mut self.wide;
        wide.clear();
        for address in [source, destination] {
            wide.resize(wide.len() + 4 * (4 - address_words), 0);
            wide.extend(address.as_flattened());
        }
        let [s0, s1, d0, d1] = *ports;
        wide.extend([0, 0, s0, s1, d0, d1, protocol[0], record.family]);
        let number = |word: &[u8; 4]| u64::from(u32::from_be_bytes(*word));
        let time = |word: &[u8; 4]| {
            let time_ns = ChipClock::widen(record.now_ns, u32::from_be_bytes(*word));
            self.clock.wall_ns(time_ns)
        };
        for value in [number(packets), number(octets), time(first), time(last)] {
            wide.extend(value.to_be_bytes());
        }
        for fold in folds {
            wide.extend(number(fold).to_be_bytes());
        }
        Some(WideRecord {
            words: wide,
            is_known,
        })
    }
}

#[cfg(test)]
mod tests {
    use turboflow_merge::Layout;
    use turboflow_record::Definition;

    use super::*;
    use crate::report::Cause;

    #[test]
    fn the_clock_runs_over_the_end_of_its_bits() {
        let end_ns = 1 << CLOCK_BITS;
        let mut clock = ChipClock::new(end_ns - 20);
        assert!(clock.read(end_ns - 10));
        clock.correct(5_000_u64.wrapping_sub(clock.wall_ns(end_ns - 10)));
        assert_eq!(clock.wall_ns(end_ns - 10), 5_000);
        assert_eq!(clock.wall_ns(end_ns - 12), 4_998);
        assert_eq!(clock.wall_ns(7), 5_017);
        assert!(clock.read(7));
        assert_eq!(clock.wall_ns(end_ns - 10), 5_000);
        assert_eq!(clock.cell_start_ns(4), 4);
        assert!(!clock.read(end_ns - 2_000_000_000));
    }

    #[test]
    fn copies_that_never_come_are_lost() {
        let lost = |before: &[u32], late: &[u32]| {
            let mut copies = Copies::NONE;
            before.iter().for_each(|under_way| copies.take(*under_way));
            copies.begin();
            copies.take(1_000_000);
            copies.settle();
            late.iter().for_each(|under_way| copies.take(*under_way));
            copies.lost()
        };
        assert_eq!(lost(&[3, 0, 2], &[7, 0, 5]), 0);
        assert_eq!(lost(&[3, 2, 9], &[7, 4, 5]), 2);
        assert_eq!(lost(&[u32::MAX, 4], &[3, 1, 5]), 2);
        assert_eq!(lost(&[5], &[4]), 0);
        assert_eq!(lost(&[], &[]), 0);
    }

    #[test]
    fn a_sum_at_its_end_is_not_known() {
        let definition =
            Definition::parse(include_str!("../definitions/paper_eight.toml")).unwrap();
        let layout = Layout::compile(&definition, false).unwrap();
        let record = P4Record::behind_queue(&definition, &layout).unwrap();
        let at = record
            .features()
            .iter()
            .position(|feature| feature.op == P4Op::Sum);
        let bytes_at = 4 * 5;
        let sum_at = bytes_at + 4 * (4 + at.unwrap());
        let mut chip = Chip::new(ChipClock::new(0));
        let mut is_known = |full_at: Option<usize>| {
            let mut words = vec![0; record.sizes_of_chip().v4_bytes];
            if let Some(at) = full_at {
                words[at..at + 4].fill(u8::MAX);
            }
            let record_of_chip = Record {
                cause: Cause::Aged,
                family: 4,
                now_ns: 0,
                words: &words,
            };
            chip.widen(&record, &record_of_chip).unwrap().is_known
        };
        assert!(is_known(None));
        assert!(!is_known(Some(bytes_at)));
        assert!(!is_known(Some(sum_at)));
        // Any other word may have this value.
        assert!(is_known(Some(sum_at + 4)));
    }

    #[test]
    fn times_are_widened_over_the_end_of_their_bits() {
        let now_ns = 7 << 32 | 100;
        for before_ns in [0, 100, 101, u32::MAX.into()] {
            let time_ns = now_ns - before_ns;
            assert_eq!(ChipClock::widen(now_ns, time_ns as u32), time_ns);
        }
    }
}
