// SPDX-License-Identifier: Apache-2.0
//! What the suite says of a trial.

use std::fmt;

/// One thing that is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// Law 1.
    Conservation,
    /// Law 2, with the merge that the aggregator has.
    Exactness,
    /// Law 2, against a meter that shares no code with engines.
    Reference,
    /// Law 3.
    Order,
    /// Law 4.
    BoundedAge,
    /// Law 5.
    Cuts,
    /// Law 6.
    BoundedMemory,
    /// Record by record and counter by counter.
    Golden,
}

impl Check {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Conservation,
        Self::Exactness,
        Self::Reference,
        Self::Order,
        Self::BoundedAge,
        Self::Cuts,
        Self::BoundedMemory,
        Self::Golden,
    ];

    /// What has to be.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Conservation => {
                "every frame is counted, and every packet with its bytes is in one record, or counted as dropped"
            }
            Self::Exactness => {
                "a record is what one pass over its packets gives, and so are the merged records of a flow"
            }
            Self::Reference => {
                "the merged records of a flow say what a meter says that keeps every packet"
            }
            Self::Order => "the records of a flow are handed over in the order of time",
            Self::BoundedAge => {
                "once all packets before the end of a cell are said to be handed over, none of them comes, and none of later ones came before"
            }
            Self::Cuts => {
                "no record has packets of two cells, a packet behind a later one, a SYN that may begin a connection, or where ends cut, one behind an end"
            }
            Self::BoundedMemory => "no table has more records than slots",
            Self::Golden => {
                "records and counters are those of the golden model; where flows have other slots, a record ends only by a rule or by a packet of another flow"
            }
        }
    }
}

/// What became of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It does not hold, and where.
    Broken(String),
    /// It holds.
    Held,
    /// It was not checked, and why.
    LeftOut(&'static str),
}

impl From<Result<(), String>> for Outcome {
    fn from(result: Result<(), String>) -> Self {
        match result {
            Ok(()) => Self::Held,
            Err(place) => Self::Broken(place),
        }
    }
}

/// What the suite says of a trial.
#[derive(Clone, Debug)]
pub struct Report {
    /// The trial, for a person.
    pub trial: String,
    /// Every check.
    pub outcomes: Vec<(Check, Outcome)>,
    /// How many records the subject handed over.
    pub records: usize,
    /// How many times it said that all packets before the end of a cell had been handed over.
    pub watermarks: usize,
}

impl Report {
    /// The checks that do not hold.
    #[must_use]
    pub fn broken(&self) -> Vec<Check> {
        let broken = self.outcomes.iter();
        broken
            .filter(|(_, outcome)| matches!(outcome, Outcome::Broken(_)))
            .map(|(check, _)| *check)
            .collect()
    }

    /// Whether a check holds; not if it was left out.
    #[must_use]
    pub fn holds(&self, check: Check) -> bool {
        self.outcomes.contains(&(check, Outcome::Held))
    }

    /// # Panics
    /// When something does not hold.
    #[track_caller]
    pub fn assert_held(&self) {
        assert!(self.broken().is_empty(), "{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.trial)?;
        for (check, outcome) in &self.outcomes {
            match outcome {
                Outcome::Held => {}
                Outcome::LeftOut(why) => writeln!(f, "  {check:?} left out: {why}")?,
                Outcome::Broken(place) => {
                    writeln!(f, "  {check:?} BROKEN: {}: {place}", check.sentence())?;
                }
            }
        }
        Ok(())
    }
}
