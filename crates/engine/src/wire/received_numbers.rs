// SPDX-License-Identifier: Apache-2.0
//! Tracks the sequence numbers of one engine's messages, to find lost and repeated microflow
//! records. The sequence numbers of IPFIX and NetFlow are counted in
//! `crates/formats/src/wire/session.rs`, and checked on arrival in
//! `engines/collector/src/exporter_numbers.rs`.

use std::ops::Range;

/// How many gaps are remembered. A late message can still fill one of these.
const GAPS: usize = 64;

/// The sequence numbers received from one engine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sequence {
    /// The next number, extended to 64 bits. The wire has the low 32.
    next: Option<u64>,
    gaps: Vec<Range<u64>>,
    pub(crate) lost: u64,
    pub(crate) repeated: u64,
}

impl Sequence {
    /// Notes the arrival of `count` records from number `first` on. Returns false if any of them
    /// arrived before; the caller must then discard all of them.
    pub(crate) fn accept(&mut self, first: u32, count: u64) -> bool {
        let next = *self.next.get_or_insert(u64::from(first));
        let ahead = first.wrapping_sub(next as u32);
        if ahead < 1 << 31 {
            let first = next + u64::from(ahead);
            if ahead > 0 {
                self.add_gap(next..first);
            }
            self.next = Some(first + count);
            return true;
        }
        let Some(first) = next.checked_sub(u64::from(ahead.wrapping_neg())) else {
            return self.count_repeated(count);
        };
        self.fill(first..first + count) || self.count_repeated(count)
    }

    fn add_gap(&mut self, gap: Range<u64>) {
        self.lost += gap.end - gap.start;
        if self.gaps.len() == GAPS {
            self.gaps.remove(0);
        }
        self.gaps.push(gap);
    }

    fn count_repeated(&mut self, count: u64) -> bool {
        self.repeated += count;
        false
    }

    /// Removes these records from the gap that they are in. Returns false if no single gap contains
    /// them all.
    fn fill(&mut self, records: Range<u64>) -> bool {
        let within = |gap: &Range<u64>| gap.start <= records.start && records.end <= gap.end;
        let Some(place) = self.gaps.iter().position(within) else {
            return false;
        };
        let gap = self.gaps.swap_remove(place);
        self.lost -= records.end - records.start;
        let rest = [gap.start..records.start, records.end..gap.end];
        self.gaps
            .extend(rest.into_iter().filter(|part| !part.is_empty()));
        self.gaps.truncate(GAPS);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_missing_records_until_they_arrive() {
        let mut sequence = Sequence::default();
        assert!(sequence.accept(u32::MAX - 1, 4));
        assert!(sequence.accept(2, 3));
        assert_eq!((sequence.lost, sequence.repeated), (0, 0));
        assert!(sequence.accept(15, 1));
        assert_eq!(sequence.lost, 10);
        assert!(sequence.accept(8, 2));
        assert_eq!(sequence.lost, 8);
        assert!(!sequence.accept(8, 2), "repeated");
        assert!(!sequence.accept(4, 3), "partly repeated");
        assert_eq!((sequence.lost, sequence.repeated), (8, 5));
        assert!(sequence.accept(5, 3) && sequence.accept(10, 5));
        assert_eq!(sequence.lost, 0);
        assert!(sequence.accept(16, 1));
    }

    #[test]
    fn remembers_a_bounded_number_of_gaps() {
        let mut sequence = Sequence::default();
        for place in 0..1_000 {
            assert!(sequence.accept(2 * place, 1));
        }
        assert_eq!((sequence.lost, sequence.gaps.len()), (999, GAPS));
        assert!(!sequence.accept(1, 1), "forgotten");
        assert!(sequence.accept(1_997, 1));
    }
}
