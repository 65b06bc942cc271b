// SPDX-License-Identifier: Apache-2.0
//! Sequence numbers of a domain of an exporter: what is missing, late, repeated, or restarted.
//!
//! They count records in NetFlow v5 and IPFIX, messages in NetFlow v9, and samples of a data source
//! in sFlow, modulo 2^32. The number of an IPFIX message is that of the records before it (RFC
//! 7011, section 3.1). Some exporters count differently: [`RecordNumbers`] finds out which.

/// A larger gap is a restart, not a loss: it would be about seven seconds at ten million records a
/// second.
pub(crate) const LARGEST_GAP: u32 = 1 << 26;
/// How many datagrams are remembered, to tell a repeated datagram from an exporter that restarted.
const REMEMBERED: usize = 16;

/// The meaning of a message's sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It follows the last number, or is the first.
    Next,
    /// This many numbers are missing before it.
    Gap(u32),
    /// It came after later messages. This many numbers that had counted as missing came with it.
    Late(u32),
    /// The numbers start again.
    Restart,
}

impl Place {
    /// The number of losses after such a message, if there were `lost` before.
    pub(crate) fn adds_to(self, lost: u64) -> u64 {
        match self {
            Self::Next | Self::Restart => lost,
            Self::Gap(missing) => lost + u64::from(missing),
            Self::Late(found) => lost.saturating_sub(u64::from(found)),
        }
    }
}

/// The last datagrams of a domain.
#[derive(Clone, Debug, Default)]
pub(crate) struct Repeats {
    prints: [u64; REMEMBERED],
    at: usize,
}

impl Repeats {
    /// Whether a datagram came before; `print` is its fingerprint, never 0.
    pub(crate) fn is_repeated(&mut self, print: u64) -> bool {
        if self.prints.contains(&print) {
            return true;
        }
        self.prints[self.at] = print;
        self.at = (self.at + 1) % REMEMBERED;
        false
    }
}

/// Sequence numbers of a domain, or of a data source of sFlow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    next: Option<u32>,
    /// How many numbers are missing since the last restart, and may still come late.
    missing: u64,
    /// The oldest missing number: smaller numbers cannot be late.
    oldest: u32,
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
            let is_oldest_gone = next.wrapping_sub(self.oldest) > LARGEST_GAP;
            if self.missing == 0 || is_oldest_gone {
                (self.missing, self.oldest) = (0, next);
            }
            self.missing += u64::from(ahead);
            self.next = Some(after);
            return Place::Gap(ahead);
        }
        let behind = next.wrapping_sub(sequence);
        if steps == 0 {
            // A message with only templates has the number of the next record, and may be late.
            return Place::Next;
        }
        let oldest_behind = next.wrapping_sub(self.oldest).min(LARGEST_GAP);
        if behind <= oldest_behind && self.missing >= u64::from(steps) {
            self.missing -= u64::from(steps);
            return Place::Late(steps);
        }
        *self = Self {
            next: Some(after),
            ..Self::default()
        };
        Place::Restart
    }

    /// Takes back up to `count` records that were counted as missing: they came before, and are
    /// read only now. Returns how many were taken back.
    pub(crate) fn found(&mut self, count: u64) -> u64 {
        let found = self.missing.min(count);
        self.missing -= found;
        found
    }
}

/// What the numbers of IPFIX messages count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Counted {
    /// Both are possible so far.
    #[default]
    Unknown,
    /// The data records before a message (RFC 7011, section 3.1).
    Before,
    /// The flow records before and in a message, without those of options. softflowd 1.1.0 does so.
    Through,
}

/// The last message that was not late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Last {
    sequence: u32,
    records: u32,
    flows: u32,
}

/// Sequence numbers of an IPFIX domain, which count either the records before a message, or those
/// through its end.
///
/// Both interpretations are followed until one of them is impossible. If numbers grow by less than
/// the flow records of the earlier message, they cannot count the records before a message,
/// whatever was lost. If they grow by less than the flow records of the later message, they cannot
/// count through its end. While all messages have the same number of records, both give the same
/// losses.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordNumbers {
    before: Numbers,
    through: Numbers,
    counted: Counted,
    /// Whether `through` is used while both are possible: the first sequence number was the number
    /// of flow records in the first message.
    is_through_likely: bool,
    last: Option<Last>,
}

/// The meaning of an IPFIX message's sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordPlace {
    pub(crate) place: Place,
    /// How many more records are missing than were reported before, because the other
    /// interpretation is used from now on.
    pub(crate) correction: i64,
    /// Whether it became certain that numbers count through the end of messages.
    pub(crate) is_found_through: bool,
}

impl RecordNumbers {
    /// The place of a message with `records` data records, of which `flows` are flow records.
    pub(crate) fn place(&mut self, sequence: u32, records: u32, flows: u32) -> RecordPlace {
        let before = self.missing();
        let is_found_through = self.judge(sequence, flows);
        let correction = self.missing() - before;
        let place = self.step(sequence, records, flows);
        let is_later = |last: Last| sequence.wrapping_sub(last.sequence) <= LARGEST_GAP;
        let this = Last {
            sequence,
            records,
            flows,
        };
        if place == Place::Restart {
            *self = Self::default();
            self.judge(sequence, flows);
            self.step(sequence, records, flows);
            self.last = Some(this);
        } else if self.last.is_none_or(is_later) {
            self.last = Some(this);
        }
        RecordPlace {
            place,
            correction,
            is_found_through,
        }
    }

    /// Takes back up to `count` records that were counted as missing: they came before, and are
    /// read only now. Returns how many were taken back.
    pub(crate) fn found(&mut self, count: u64) -> u64 {
        let (before, through) = (self.before.found(count), self.through.found(count));
        if self.is_through() { through } else { before }
    }

    fn is_through(&self) -> bool {
        match self.counted {
            Counted::Unknown => self.is_through_likely,
            counted => counted == Counted::Through,
        }
    }

    /// How many records were counted as missing since the last restart.
    fn missing(&self) -> i64 {
        let meant = match self.is_through() {
            true => &self.through,
            false => &self.before,
        };
        i64::try_from(meant.missing).unwrap_or(i64::MAX)
    }

    /// Gives up an interpretation that a message makes impossible. Returns whether it is certain
    /// now that numbers count through the end of messages.
    fn judge(&mut self, sequence: u32, flows: u32) -> bool {
        if self.counted != Counted::Unknown || flows == 0 {
            return false;
        }
        let is_first = self.last.is_none_or(|last| last == Last::default());
        if is_first && sequence == 0 {
            self.counted = Counted::Before;
        } else if is_first {
            self.is_through_likely = sequence == flows;
        }
        let Some(last) = self.last else {
            return false;
        };
        let grown = sequence.wrapping_sub(last.sequence);
        if grown == 0 || grown > LARGEST_GAP {
            return false;
        }
        match (grown < last.flows, grown < flows) {
            (true, false) => self.counted = Counted::Through,
            (false, true) => self.counted = Counted::Before,
            // A restart or numbers of another kind (true, true), or no evidence (false, false).
            (true, true) | (false, false) => {}
        }
        self.counted == Counted::Through
    }

    fn step(&mut self, sequence: u32, records: u32, flows: u32) -> Place {
        let begins = sequence.wrapping_sub(flows);
        match self.counted {
            Counted::Before => return self.before.place(sequence, records),
            Counted::Through => return self.through.place(begins, flows),
            Counted::Unknown => {}
        }
        let skips_options = |last: Last| {
            let grown = sequence.wrapping_sub(last.sequence);
            grown >= last.flows && grown < last.records
        };
        if self.last.is_some_and(skips_options) {
            // Records of options have no numbers, so this is not a step back.
            self.before.next = Some(sequence);
        }
        let (its, others) = ((sequence, records), (begins, flows));
        let (meant, its, other, others) = match self.is_through_likely {
            true => (&mut self.through, others, &mut self.before, its),
            false => (&mut self.before, its, &mut self.through, others),
        };
        let place = meant.place(its.0, its.1);
        match place {
            Place::Next | Place::Gap(_) => {
                other.place(others.0, others.1);
            }
            Place::Late(found) => {
                other.found(u64::from(found));
            }
            Place::Restart => {}
        }
        place
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

    #[test]
    fn numbers_older_than_the_oldest_gap_are_another_start_and_take_no_loss_back() {
        let mut numbers = Numbers::default();
        assert_eq!(numbers.place(1_000, 30), Place::Next);
        assert_eq!(numbers.place(1_130, 30), Place::Gap(100));
        assert_eq!(numbers.place(970, 30), Place::Restart);
        assert_eq!(numbers.place(1_000, 30), Place::Next);
        // The gap before the restart does not belong to these numbers.
        assert_eq!(numbers.place(1_060, 30), Place::Gap(30));
        assert_eq!(numbers.place(1_030, 30), Place::Late(30));
        // Everything missing has arrived: no message can be late any more.
        assert_eq!(numbers.place(1_030, 30), Place::Restart);
        // The numbers wrap.
        let mut numbers = Numbers::default();
        assert_eq!(numbers.place(u32::MAX - 9, 5), Place::Next);
        assert_eq!(numbers.place(15, 5), Place::Gap(20));
        assert_eq!(numbers.place(u32::MAX - 4, 10), Place::Late(10));
        assert_eq!(numbers.place(u32::MAX - 40, 10), Place::Restart);
    }

    /// Sends messages with these numbers of options records and flow records. Returns how many
    /// records are missing at the end, and whether the numbers were found to count through the end
    /// of messages.
    fn missing(
        counts: &[(u32, u32)],
        is_lost: impl Fn(usize) -> bool,
        is_through: bool,
    ) -> (i64, bool) {
        let (mut numbers, mut sequence) = (RecordNumbers::default(), 0);
        let (mut missing, mut is_found) = (0, false);
        for (at, &(options, flows)) in counts.iter().enumerate() {
            let after = sequence + if is_through { flows } else { options + flows };
            let number = if is_through { after } else { sequence };
            sequence = after;
            if is_lost(at) {
                continue;
            }
            let found = numbers.place(number, options + flows, flows);
            is_found |= found.is_found_through;
            missing += found.correction;
            missing += match found.place {
                Place::Next => 0,
                Place::Gap(gap) => i64::from(gap),
                other => panic!("{other:?} at {at}"),
            };
        }
        (missing, is_found)
    }

    /// The messages that softflowd 1.1.0 sent for a sample: numbers of options records and flow
    /// records.
    fn softflowd() -> Vec<(u32, u32)> {
        let flows = [
            23, 30, 27, 21, 30, 32, 32, 32, 32, 32, 32, 24, 24, 24, 26, 32, 24, 32, 22, 20, 20, 20,
            22, 20, 22, 28, 25,
        ];
        let counts = flows.into_iter().enumerate();
        let counts = counts.map(|(at, flows)| (u32::from(at % 16 == 0), flows));
        counts.collect()
    }

    #[test]
    fn numbers_through_the_end_of_messages_are_no_loss_and_losses_are_found() {
        let sent = softflowd();
        assert_eq!(missing(&sent, |_| false, true), (0, true));
        assert_eq!(missing(&sent, |_| false, false), (0, false));
        let mut certain = 0;
        // Wherever the collector begins to listen, and whichever message is lost.
        for begin in 0..sent.len() {
            for lost in begin + 1..sent.len() - 1 {
                let is_lost = |at| at < begin || at == lost;
                let (options, flows) = sent[lost];
                let (missed, is_found) = missing(&sent, is_lost, true);
                assert!(
                    begin > 0 && !is_found || missed == i64::from(flows),
                    "{begin}, {lost}: {missed}, not {flows}"
                );
                certain += u32::from(is_found);
                let by_the_book = missing(&sent, is_lost, false);
                assert_eq!(by_the_book, (i64::from(options + flows), false));
            }
        }
        assert!(certain > 290, "{certain}");
    }

    #[test]
    fn messages_of_one_size_say_the_same_in_both_readings() {
        for is_through in [false, true] {
            let found = missing(&[(0, 30); 9], |at| at == 3 || at == 5, is_through);
            assert_eq!(found, (60, false));
        }
    }

    #[test]
    fn an_exporter_that_starts_again_may_number_in_the_other_way() {
        let mut numbers = RecordNumbers::default();
        let mut place = |sequence, flows| {
            let found = numbers.place(sequence, flows, flows);
            (found.place, found.is_found_through)
        };
        assert_eq!(place(1_000_030, 30), (Place::Next, false));
        assert_eq!(place(1_000_050, 20), (Place::Next, true));
        assert_eq!(place(0, 20), (Place::Restart, false));
        assert_eq!(place(20, 30), (Place::Next, false));
        assert_eq!(place(60, 20), (Place::Gap(10), false));
        assert_eq!((numbers.found(4), numbers.missing()), (4, 6));
    }
}
