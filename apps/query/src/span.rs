// SPDX-License-Identifier: Apache-2.0
//! The time span of a record's packets. Each direction of a biflow has its own times.

use turboflow_record::{Column, FlowBatch, Value};

/// The time from a first packet to a last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
}

impl Span {
    /// If the times are reversed, the span is one moment.
    fn new(first_ns: u64, last_ns: Option<u64>) -> Self {
        Self {
            first_ns,
            last_ns: last_ns.unwrap_or(first_ns).max(first_ns),
        }
    }

    /// The part of an amount, spread evenly over the span, in the nanoseconds from `from_ns` to
    /// `to_ns` inclusive. Rounded as a running sum, so that the parts add up to the amount.
    pub(crate) fn part(&self, amount: u64, from_ns: u64, to_ns: u64) -> u64 {
        // The last nanosecond is included, so that a record of one packet has a length.
        let length = u128::from(self.last_ns - self.first_ns) + 1;
        let before = |end_ns: u128| {
            let elapsed = end_ns.saturating_sub(self.first_ns.into()).min(length);
            (u128::from(amount) * elapsed + length / 2) / length
        };
        (before(u128::from(to_ns) + 1) - before(from_ns.into())) as u64
    }
}

/// The direction of the packets that an amount counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The initiator's; all packets, if records have one direction.
    Forward,
    /// The responder's.
    Reverse,
    /// Both, in one number.
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

/// The columns with the times of records, if there are any.
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

    pub(crate) fn times(&self, batch: &FlowBatch, row: usize) -> Times {
        let time = |column: Option<usize>| match batch.value(row, column?) {
            Value::Unsigned(time_ns) => Some(time_ns),
            _ => None,
        };
        let (first, reverse_first) = (time(self.first), time(self.reverse_first));
        let (last, reverse_last) = (time(self.last), time(self.reverse_last));
        Times {
            first_ns: [first, reverse_first].into_iter().flatten().min(),
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
    /// The span of all packets.
    pub(crate) fn whole(&self) -> Option<Span> {
        self.first_ns
            .map(|first_ns| Span::new(first_ns, self.last_ns))
    }

    /// The span of one direction, if known.
    pub(crate) fn of(&self, direction: Direction) -> Option<Span> {
        let own = match direction {
            Direction::Forward => self.forward,
            Direction::Reverse => self.reverse,
            Direction::Both => None,
        };
        own.or_else(|| self.whole())
    }

    /// The duration in nanoseconds; `None` if a time is missing.
    pub(crate) fn duration_ns(&self) -> Option<u64> {
        Some(self.last_ns?.saturating_sub(self.first_ns?))
    }
}
