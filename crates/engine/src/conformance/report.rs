// SPDX-License-Identifier: Apache-2.0
//! The results of a trial.

use std::fmt;

/// A property that the suite checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// Law 1.
    Conservation,
    /// Law 2, checked with the aggregator's merge.
    Exactness,
    /// Law 2, checked against a meter that shares no code with engines.
    Reference,
    /// Law 3.
    Order,
    /// Law 4.
    BoundedAge,
    /// Law 5.
    Cuts,
    /// Law 6.
    BoundedMemory,
    /// Records and counters equal those of the golden model.
    Golden,
}

impl Check {
    /// All checks.
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

    /// The property, in words.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Conservation => {
                "every frame is counted, and every packet and its bytes are in one record, or counted as dropped"
            }
            Self::Exactness => {
                "a record equals the result of one pass over its packets, and so do the merged records of a flow"
            }
            Self::Reference => {
                "the merged records of every flow equal those of a meter that keeps every packet"
            }
            Self::Order => "the records of a flow are handed over in time order",
            Self::BoundedAge => {
                "a watermark is the end of a cell; no packet from before it is handed over after it, and none from after it before"
            }
            Self::Cuts => {
                "a record never joins packets of two cells, a late packet, a SYN without ACK behind another packet, or, where FIN and RST end a record, a packet after either"
            }
            Self::BoundedMemory => "a table never has more records than slots",
            Self::Golden => {
                "records and counters equal those of the golden model; if the engine maps flows to other slots, a record ends only where a rule or a packet of another flow ends it"
            }
        }
    }
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The property does not hold. The text says where it fails.
    Broken(String),
    /// The property holds.
    Held,
    /// The check was skipped. The text says why.
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

/// The results of a trial.
#[derive(Clone, Debug)]
pub struct Report {
    /// Description of the trial.
    pub trial: String,
    /// The result of every check.
    pub outcomes: Vec<(Check, Outcome)>,
    /// How many records the subject handed over.
    pub records: usize,
    /// How many watermarks the subject sent.
    pub watermarks: usize,
}

impl Report {
    /// The checks that failed.
    #[must_use]
    pub fn broken(&self) -> Vec<Check> {
        let broken = self.outcomes.iter();
        broken
            .filter(|(_, outcome)| matches!(outcome, Outcome::Broken(_)))
            .map(|(check, _)| *check)
            .collect()
    }

    /// Whether a check was made and holds.
    #[must_use]
    pub fn holds(&self, check: Check) -> bool {
        self.outcomes.contains(&(check, Outcome::Held))
    }

    /// # Panics
    /// If a check failed.
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
