// SPDX-License-Identifier: Apache-2.0
//! Sequence numbers of one exporter's domain: what is missing, late, repeated, or begun anew.
//!
//! They count records in NetFlow v5 and IPFIX, messages in NetFlow v9, and samples of a data source
//! in sFlow, modulo 2^32.

/// A gap of more is no loss but another start: ten seconds of ten million records a second would be
/// lost.
const LARGEST_GAP: u32 = 1 << 26;
/// How many datagrams are remembered, to tell one that came twice from an exporter that started
/// again.
const REMEMBERED: usize = 16;

/// What a message's sequence number says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It follows the last one, or is the first.
    Next,
    /// So many are missing before it.
    Gap(u32),
    /// It came behind later ones, and so many that had counted as missing are here.
    Late(u32),
    /// The numbers begin anew.
    Restart,
}

/// The datagrams of a domain that came last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Repeats {
    prints: [u64; REMEMBERED],
    at: usize,
}

impl Repeats {
    /// Whether a datagram came before; `print`, which is not 0, tells datagrams apart.
    pub(crate) fn is_repeated(&mut self, print: u64) -> bool {
        if self.prints.contains(&print) {
            return true;
        }
        self.prints[self.at] = print;
        self.at = (self.at + 1) % REMEMBERED;
        false
    }
}

/// Sequence numbers: those of a domain, or of a data source of sFlow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    next: Option<u32>,
    /// What is missing since the numbers began, and can still come late.
    missing: u64,
}

impl Numbers {
    /// The place of a message with `steps` numbers.
    pub(crate) fn place(&mut self, sequence: u32, steps: u32) -> Place {
        let after = sequence.wrapping_add(steps);
        let Some(next) = self.next else {
            self.next = Some(after);
            return Place::Next;
        };
        let ahead = sequence.wrapping_sub(next);
        if ahead == 0 {
            self.next = Some(after);
            return Place::Next;
        }
        if ahead <= LARGEST_GAP {
            self.missing += u64::from(ahead);
            self.next = Some(after);
            return Place::Gap(ahead);
        }
        let behind = next.wrapping_sub(sequence);
        if steps == 0 {
            // Templates alone have the number of what comes next, and may come late.
            return Place::Next;
        }
        if behind <= LARGEST_GAP && self.missing >= u64::from(steps) {
            self.missing -= u64::from(steps);
            return Place::Late(steps);
        }
        *self = Self {
            next: Some(after),
            missing: 0,
        };
        Place::Restart
    }

    /// So many of the missing ones were only unread. Gives how many of them.
    pub(crate) fn found(&mut self, count: u64) -> u64 {
        let found = self.missing.min(count);
        self.missing -= found;
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_counted_and_taken_back_when_their_datagram_comes() {
        let mut numbers = Numbers::default();
        assert_eq!(numbers.place(u32::MAX - 4, 5), Place::Next);
        assert_eq!(numbers.place(0, 10), Place::Next);
        assert_eq!(numbers.place(40, 10), Place::Gap(30));
        assert_eq!(numbers.place(10, 20), Place::Late(20));
        assert_eq!(numbers.place(50, 1), Place::Next);
        assert_eq!(numbers.place(30, 10), Place::Late(10));
        assert_eq!(
            numbers.place(20, 0),
            Place::Next,
            "templates that come late"
        );
        assert_eq!(numbers.place(51, 1), Place::Next);
        let mut repeats = Repeats::default();
        assert!(!repeats.is_repeated(7) && repeats.is_repeated(7));
    }

    #[test]
    fn numbers_that_go_back_are_another_start() {
        let mut numbers = Numbers::default();
        assert_eq!(numbers.place(1_000, 30), Place::Next);
        assert_eq!(numbers.place(0, 30), Place::Restart);
        assert_eq!(numbers.place(30, 30), Place::Next);
        assert_eq!(numbers.place(1 << 31, 30), Place::Restart);
    }
}
