// SPDX-License-Identifier: Apache-2.0
//! The time span of a record's packets. Each direction of a biflow has its own times.

use turboflow_record::{Column, FlowBatch};

use crate::numbers::Numbers;

/// The time from a first packet to a last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
}

impl Span {
    /// If the last time is absent or before the first, the span is a single moment.
    fn new(first_ns: u64, last_ns: Option<u64>) -> Self {
        Self {
            first_ns,
            last_ns: last_ns.unwrap_or(first_ns).max(first_ns),
        }
    }

    /// The part of an amount between `from_ns` and `to_ns`, both inclusive, if it is spread evenly
    /// over the span. The running sum is rounded, not the parts, so that the parts add up to the
    /// amount.
    pub(crate) fn part(&self, amount: u64, from_ns: u64, to_ns: u64) -> u64 {
        // Most spans lie within one interval, and the division is the expensive part.
        if from_ns <= self.first_ns && to_ns >= self.last_ns {
            return amount;
        }
        // The last nanosecond is included, so that a record of one packet has a length.
        let length = u128::from(self.last_ns - self.first_ns) + 1;
        let before = |end_ns: u128| {
            let elapsed = end_ns.saturating_sub(self.first_ns.into()).min(length);
            divided_evenly(amount, elapsed, length)
        };
        before(u128::from(to_ns) + 1) - before(from_ns.into())
    }

    /// Calls `each` with the number of a bucket of `width_ns` and the part of the amount in it,
    /// from the first bucket of the span to the last. The parts equal those of [`Self::part`].
    #[inline]
    pub(crate) fn parts(&self, amount: u64, width_ns: u64, mut each: impl FnMut(u64, u64)) {
        let (first, last) = (self.first_ns / width_ns, self.last_ns / width_ns);
        if first == last {
            return each(first, amount);
        }
        let Some(mut steps) = Steps::new(*self, amount, width_ns) else {
            for bucket in first..=last {
                let start_ns = bucket * width_ns;
                let end_ns = start_ns.saturating_add(width_ns - 1);
                each(bucket, self.part(amount, start_ns, end_ns));
            }
            return;
        };
        let mut rest = amount - steps.before;
        each(first, steps.before);
        for bucket in first + 1..last {
            let part = steps.next();
            rest -= part;
            each(bucket, part);
        }
        each(last, rest);
    }
}

impl Span {
    /// Like [`Self::parts`], but only for the buckets from `from` to `to`.
    pub(crate) fn parts_in(
        &self,
        amount: u64,
        width_ns: u64,
        (from, to): (u64, u64),
        mut each: impl FnMut(u64, u64),
    ) {
        let (first, last) = (self.first_ns / width_ns, self.last_ns / width_ns);
        if from <= first && last <= to {
            return self.parts(amount, width_ns, each);
        }
        for bucket in first.max(from)..=last.min(to) {
            let start_ns = bucket * width_ns;
            let end_ns = start_ns.saturating_add(width_ns - 1);
            each(bucket, self.part(amount, start_ns, end_ns));
        }
    }
}

/// Computes the parts of an amount in whole buckets without a division for each. The running sum is
/// `(amount * elapsed + length / 2) / length`, and every bucket adds the same to its numerator.
struct Steps {
    /// The part in the first bucket of the span.
    before: u64,
    /// The numerator of the running sum, modulo `length`.
    numerator: u64,
    length: u64,
    /// What a whole bucket adds to the running sum; `more` is what it adds to the numerator.
    whole: u64,
    more: u64,
}

impl Steps {
    /// `None` if a product exceeds 64 bits.
    #[inline]
    fn new(span: Span, amount: u64, width_ns: u64) -> Option<Self> {
        let length = (span.last_ns - span.first_ns).checked_add(1)?;
        // The sum of two remainders must fit in 64 bits.
        let length = Some(length).filter(|length| *length <= u64::MAX / 2)?;
        let elapsed = width_ns - span.first_ns % width_ns;
        let numerator = amount.checked_mul(elapsed)?.checked_add(length / 2)?;
        let added = amount.checked_mul(width_ns)?;
        Some(Self {
            before: numerator / length,
            numerator: numerator % length,
            length,
            whole: added / length,
            more: added % length,
        })
    }

    #[inline]
    const fn next(&mut self) -> u64 {
        self.numerator += self.more;
        if self.numerator < self.length {
            return self.whole;
        }
        self.numerator -= self.length;
        self.whole + 1
    }
}

/// `amount * elapsed / length`, rounded to the nearest; `elapsed` is at most `length`.
fn divided_evenly(amount: u64, elapsed: u128, length: u128) -> u64 {
    let (Ok(short), Ok(long)) = (u64::try_from(elapsed), u64::try_from(length)) else {
        return ((u128::from(amount) * elapsed + length / 2) / length) as u64;
    };
    match amount
        .checked_mul(short)
        .and_then(|it| it.checked_add(long / 2))
    {
        // Several times as fast as a 128-bit division.
        Some(product) => product / long,
        None => ((u128::from(amount) * elapsed + length / 2) / length) as u64,
    }
}

/// The direction of the packets that an amount counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Packets of the initiator; all packets, if records have one direction.
    Forward,
    /// Packets of the responder.
    Reverse,
    /// Packets of both, in one number.
    Both,
}

impl Direction {
    /// The direction of a column: a column with a `reverse_` twin is the initiator's.
    pub(crate) fn of(name: &str, schema: &[Column]) -> Self {
        let is_column = |wanted: &str| schema.iter().any(|column| column.name == wanted);
        if name.starts_with("reverse_") {
            Self::Reverse
        } else if is_column(&format!("reverse_{name}")) {
            Self::Forward
        } else {
            Self::Both
        }
    }
}

/// The columns that hold the times of records, as far as they exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimeColumns {
    first: Option<usize>,
    last: Option<usize>,
    reverse_first: Option<usize>,
    reverse_last: Option<usize>,
}

impl TimeColumns {
    pub(crate) fn of(schema: &[Column]) -> Self {
        let column = |name: &str| schema.iter().position(|column| column.name == name);
        Self {
            first: column("first_ns"),
            last: column("last_ns"),
            reverse_first: column("reverse_first_ns"),
            reverse_last: column("reverse_last_ns"),
        }
    }

    /// Whether the duration of records is known.
    pub(crate) const fn have_duration(&self) -> bool {
        self.first.is_some() && self.last.is_some()
    }

    /// The columns that exist.
    pub(crate) fn columns(&self) -> impl Iterator<Item = usize> {
        let columns = [self.first, self.last, self.reverse_first, self.reverse_last];
        columns.into_iter().flatten()
    }

    pub(crate) fn times(&self, batch: &FlowBatch, row: usize) -> Times {
        self.of_batch(batch).times(row)
    }

    pub(crate) fn of_batch<'a>(&self, batch: &'a FlowBatch) -> BatchTimes<'a> {
        let numbers = |column: Option<usize>| {
            column.map_or(Numbers::none(), |its| Numbers::of_column(batch.column(its)))
        };
        BatchTimes {
            first: numbers(self.first),
            last: numbers(self.last),
            reverse_first: numbers(self.reverse_first),
            reverse_last: numbers(self.reverse_last),
        }
    }
}

/// The times of the records of a batch.
pub(crate) struct BatchTimes<'a> {
    first: Numbers<'a>,
    last: Numbers<'a>,
    reverse_first: Numbers<'a>,
    reverse_last: Numbers<'a>,
}

impl BatchTimes<'_> {
    /// Whether no record has a time.
    pub(crate) fn are_none(&self) -> bool {
        let all = [
            &self.first,
            &self.last,
            &self.reverse_first,
            &self.reverse_last,
        ];
        all.iter().all(|numbers| numbers.values().is_empty())
    }

    #[inline]
    pub(crate) fn times(&self, row: usize) -> Times {
        let (first, reverse_first) = (self.first.get(row), self.reverse_first.get(row));
        let (last, reverse_last) = (self.last.get(row), self.reverse_last.get(row));
        Times {
            first_ns: match (first, reverse_first) {
                (Some(first), Some(reverse)) => Some(first.min(reverse)),
                (first, reverse) => first.or(reverse),
            },
            last_ns: last.max(reverse_last),
            forward: first.map(|first_ns| Span::new(first_ns, last)),
            reverse: reverse_first.map(|first_ns| Span::new(first_ns, reverse_last)),
        }
    }
}

/// Times of a record's first and last packet, overall and per direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) first_ns: Option<u64>,
    pub(crate) last_ns: Option<u64>,
    forward: Option<Span>,
    reverse: Option<Span>,
}

impl Times {
    /// The span of all packets, which contains those of both directions. A direction whose last
    /// time is absent or before its first time is a single moment.
    pub(crate) fn whole(&self) -> Option<Span> {
        let whole = Span::new(self.first_ns?, self.last_ns);
        let directions = [self.forward, self.reverse].into_iter().flatten();
        Some(directions.fold(whole, |whole, its| Span {
            last_ns: whole.last_ns.max(its.last_ns),
            ..whole
        }))
    }

    /// The spans of the directions that are known.
    pub(crate) fn directions(&self) -> impl Iterator<Item = Span> {
        [self.forward, self.reverse].into_iter().flatten()
    }

    /// The span of one direction; the whole span if the direction has none of its own.
    pub(crate) fn of(&self, direction: Direction) -> Option<Span> {
        let own = match direction {
            Direction::Forward => self.forward,
            Direction::Reverse => self.reverse,
            Direction::Both => None,
        };
        own.or_else(|| self.whole())
    }

    /// The first and last time of the record, limited to a range of time that it overlaps. Both
    /// ends of the range are inclusive.
    pub(crate) fn clipped(&self, (from_ns, to_ns): (u64, u64)) -> (Option<u64>, Option<u64>) {
        let whole = self.whole();
        let first_ns = whole.map(|whole| whole.first_ns.max(from_ns));
        (first_ns, whole.map(|whole| whole.last_ns.min(to_ns)))
    }

    /// Whether the record begins in a range of time, both ends inclusive.
    pub(crate) fn begin_in(&self, (from_ns, to_ns): (u64, u64)) -> bool {
        let whole = self.whole();
        whole.is_some_and(|whole| (from_ns..=to_ns).contains(&whole.first_ns))
    }

    /// The duration in nanoseconds; `None` if a time is missing.
    pub(crate) fn duration_ns(&self) -> Option<u64> {
        Some(self.last_ns?.saturating_sub(self.first_ns?))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn time() -> impl Strategy<Value = Option<u64>> {
        prop_oneof![
            Just(None),
            (0..100u64).prop_map(Some),
            any::<u64>().prop_map(Some)
        ]
    }

    proptest! {
        /// The buckets of the whole record include those of its directions.
        #[test]
        fn the_whole_holds_both_directions(
            (first, last, reverse_first, reverse_last) in (time(), time(), time(), time()),
        ) {
            let numbers = |time: Option<u64>| Numbers::collect(std::iter::once(time));
            let times = BatchTimes {
                first: numbers(first),
                last: numbers(last),
                reverse_first: numbers(reverse_first),
                reverse_last: numbers(reverse_last),
            };
            let times = times.times(0);
            for direction in [Direction::Forward, Direction::Reverse, Direction::Both] {
                let (whole, its) = (times.whole(), times.of(direction));
                prop_assert_eq!(whole.is_some(), its.is_some());
                if let (Some(whole), Some(its)) = (whole, its) {
                    prop_assert!(whole.first_ns <= its.first_ns && its.last_ns <= whole.last_ns);
                }
            }
        }

        /// Both ways of dividing round alike, and the parts of an amount add up to it.
        #[test]
        fn parts_add_up(
            amount in prop_oneof![0..10_000u64, any::<u64>()],
            first_ns in any::<u64>(),
            lasts_ns in prop_oneof![0..1_000u64, any::<u64>()],
            width_ns in 1u64..,
        ) {
            let last_ns = first_ns.saturating_add(lasts_ns);
            let span = Span { first_ns, last_ns };
            let length = u128::from(last_ns - first_ns) + 1;
            let width_ns = width_ns.max((last_ns - first_ns) / 20 + 1);
            let (mut from_ns, mut sum, mut elapsed) = (first_ns, 0, 0);
            loop {
                let to_ns = from_ns.saturating_add(width_ns - 1).min(last_ns);
                sum += u128::from(span.part(amount, from_ns, to_ns));
                elapsed += u128::from(to_ns - from_ns) + 1;
                // The product exceeds 128 bits, so it is computed in two halves.
                let [high, low] = [amount >> 32, amount & 0xffff_ffff].map(u128::from);
                let (whole, rest) = (high * elapsed / length, high * elapsed % length);
                let expected = (whole << 32) + ((rest << 32) + low * elapsed + length / 2) / length;
                prop_assert_eq!(sum, expected);
                if to_ns == last_ns {
                    break;
                }
                from_ns = to_ns + 1;
            }
            prop_assert_eq!(sum, u128::from(amount));
        }

        /// Parts in buckets equal the parts of the corresponding intervals.
        #[test]
        fn parts_in_buckets_are_parts(
            amount in prop_oneof![0..10_000u64, any::<u64>()],
            first_ns in prop_oneof![0..10_000u64, any::<u64>()],
            lasts_ns in prop_oneof![0..1_000u64, 0..10_000_000_000u64, any::<u64>()],
            width_ns in prop_oneof![1..100u64, 1..10_000_000u64, 1u64..],
        ) {
            let last_ns = first_ns.saturating_add(lasts_ns);
            let span = Span { first_ns, last_ns };
            let width_ns = width_ns.max((last_ns - first_ns) / 50 + 1);
            let mut next = first_ns / width_ns;
            let mut sum = 0;
            let mut differ = Vec::new();
            span.parts(amount, width_ns, |bucket, part| {
                let start_ns = bucket * width_ns;
                let expected = span.part(amount, start_ns, start_ns.saturating_add(width_ns - 1));
                if (bucket, part) != (next, expected) {
                    differ.push((bucket, part, next, expected));
                }
                sum += u128::from(part);
                next = bucket.saturating_add(1);
            });
            prop_assert_eq!(differ, vec![]);
            prop_assert_eq!(sum, u128::from(amount));
        }
    }
}
