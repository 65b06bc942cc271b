// SPDX-License-Identifier: Apache-2.0
//! The range of time that a question is about.

use crate::literal;
use crate::query::misread;
use crate::span::{TimeColumns, Times};
use crate::{Part, QueryError};

/// A range of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Within {
    /// First nanosecond. The last one, `last_ns`, is inclusive.
    from_ns: u64,
    last_ns: u64,
    pub(crate) counts_from_now: bool,
}

impl Within {
    /// Parses `FROM..TO`. FROM is inclusive, TO is exclusive, and one of them may be absent.
    pub(crate) fn parse(
        text: &str,
        times: TimeColumns,
        now_ns: Option<u64>,
    ) -> Result<Self, QueryError> {
        let wrong = |reason: &str| misread(Part::Time, text, reason.to_owned());
        if times.columns().next().is_none() {
            return Err(wrong("these records have no times"));
        }
        let usual = "write 2024-03-01T12:30..2024-03-01T13:00, or only one of them with the dots";
        let (from, to) = text.split_once("..").ok_or_else(|| wrong(usual))?;
        let (from, to) = (from.trim(), to.trim());
        if from.is_empty() && to.is_empty() {
            return Err(wrong(usual));
        }
        let mut counts_from_now = false;
        let mut moment = |text: &str| match literal::before_now_ns(text) {
            Some(before_ns) => {
                counts_from_now = true;
                let now_ns = now_ns.ok_or_else(|| wrong("now is not defined here"))?;
                Ok(now_ns.saturating_sub(before_ns))
            }
            None => literal::time_ns(text).ok_or_else(|| wrong(usual)),
        };
        let from_ns = match from {
            "" => 0,
            from => moment(from)?,
        };
        let last_ns = match to {
            "" => u64::MAX,
            to => {
                let before_ns = moment(to)?;
                let last_ns = before_ns
                    .checked_sub(1)
                    .filter(|last_ns| *last_ns >= from_ns);
                last_ns.ok_or_else(|| wrong("this time ends before it begins"))?
            }
        };
        Ok(Self {
            from_ns,
            last_ns,
            counts_from_now,
        })
    }

    /// Whether a direction of a record may have packets in the range, judging by its first and last
    /// time.
    pub(crate) fn has(&self, times: &Times) -> bool {
        let overlaps =
            |span: crate::span::Span| span.first_ns <= self.last_ns && span.last_ns >= self.from_ns;
        times.directions().any(overlaps)
    }

    /// The first and last nanosecond, both inclusive.
    pub(crate) const fn ends_ns(&self) -> (u64, u64) {
        (self.from_ns, self.last_ns)
    }

    /// The numbers of the first and last time bucket of that width.
    pub(crate) const fn buckets(&self, width_ns: u64) -> (u64, u64) {
        (self.from_ns / width_ns, self.last_ns / width_ns)
    }
}
