// SPDX-License-Identifier: Apache-2.0
//! Reports of a chip that computes in words of 32 bits: a Tofino.
//!
//! Its clock has 48 bits, and cannot be set. A record has the lower 32 of them; the report has all
//! of the moment when the record left, which was less than 2^32 ns later.

use crate::record::P4Record;
use crate::report::Record;

/// Bits of the chip's clock.
const CLOCK_BITS: u32 = 48;

/// The chip's clock, by a moment on both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChipClock {
    chip_ns: u64,
    wall_ns: u64,
}

impl ChipClock {
    /// A time of the chip on this machine's clock: less than 39 hours from the moment that was read
    /// last.
    pub(crate) const fn wall_ns(&self, chip_ns: u64) -> u64 {
        let since_ns = chip_ns.wrapping_sub(self.chip_ns) << (u64::BITS - CLOCK_BITS);
        let since_ns = since_ns.cast_signed() >> (u64::BITS - CLOCK_BITS);
        self.wall_ns.wrapping_add_signed(since_ns)
    }

    /// The chip's clock was read.
    pub(crate) const fn read(&mut self, chip_ns: u64) {
        self.wall_ns = self.wall_ns(chip_ns);
        self.chip_ns = chip_ns;
    }

    /// The chip's clock is that much further behind than was known, modulo 2^64.
    pub(crate) const fn correct(&mut self, behind_ns: u64) {
        self.wall_ns = self.wall_ns.wrapping_add(behind_ns);
    }

    /// The end of the cell in which the clock was read last, on this machine's clock. Cells are
    /// those of the chip: they begin at multiples of their length, a power of two.
    pub(crate) const fn cell_end_ns(&self, cell_ns: u64) -> u64 {
        let end_ns = (self.chip_ns / cell_ns)
            .wrapping_add(1)
            .wrapping_mul(cell_ns);
        self.wall_ns(end_ns)
    }

    /// A time that lies less than 2^32 ns before `now_ns`, from its lower 32 bits.
    const fn widen(now_ns: u64, time_ns: u32) -> u64 {
        now_ns.wrapping_sub((now_ns as u32).wrapping_sub(time_ns) as u64)
    }
}

/// Appends the words of 64 bits of a record, for [`P4Record::append`]. Returns whether it is
/// one of this layout.
pub(crate) fn widen_record(
    layout: &P4Record,
    record: &Record<'_>,
    clock: &ChipClock,
    wide: &mut Vec<u8>,
) -> bool {
    let address_words = match record.family {
        4 => 1,
        6 => 4,
        _ => return false,
    };
    let (words, _) = record.words.as_chunks::<4>();
    let Some((source, rest)) = words.split_at_checked(address_words) else {
        return false;
    };
    let Some((destination, rest)) = rest.split_at_checked(address_words) else {
        return false;
    };
    let [ports, protocol, packets, octets, first, last, folds @ ..] = rest else {
        return false;
    };
    // TCP flags, and the features.
    if folds.len() != 1 + layout.features().len() {
        return false;
    }
    let [s0, s1, d0, d1] = *ports;
    for address in [source, destination] {
        wide.resize(wide.len() + 4 * (4 - address_words), 0);
        wide.extend(address.as_flattened());
    }
    wide.extend([0, 0, s0, s1, d0, d1, protocol[0], record.family]);
    let number = |word: &[u8; 4]| u64::from(u32::from_be_bytes(*word));
    let time =
        |word: &[u8; 4]| clock.wall_ns(ChipClock::widen(record.now_ns, u32::from_be_bytes(*word)));
    for value in [number(packets), number(octets), time(first), time(last)] {
        wide.extend(value.to_be_bytes());
    }
    for fold in folds {
        wide.extend(number(fold).to_be_bytes());
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_runs_over_the_end_of_its_bits() {
        let end_ns = 1 << CLOCK_BITS;
        let mut clock = ChipClock::default();
        clock.read(end_ns - 10);
        clock.correct(5_000_u64.wrapping_sub(clock.wall_ns(end_ns - 10)));
        assert_eq!(clock.wall_ns(end_ns - 10), 5_000);
        assert_eq!(clock.wall_ns(end_ns - 12), 4_998);
        assert_eq!(clock.wall_ns(7), 5_017);
        clock.read(7);
        assert_eq!(clock.wall_ns(end_ns - 10), 5_000);
        assert_eq!(clock.cell_end_ns(16), 5_026);
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
