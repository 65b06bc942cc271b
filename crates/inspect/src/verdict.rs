// SPDX-License-Identifier: Apache-2.0
//! What is known about flows, for the threads that add it to records.

use std::num::NonZeroU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

use turboflow_record::FiveTuple;

use crate::flow_table::{FlowTable, Found};
use crate::{Confidence, FlowKey, Progress, Text};

/// What is known about a flow. Texts are handles in the run's table of texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The time of the first inspected packet, in nanoseconds since 1970. Records that end before
    /// it belong to an earlier flow with the same key.
    pub since_ns: u64,
    /// `master << 16 | application` in the library's numbers; 0 if unknown.
    pub application: u32,
    /// The library's number of the category.
    pub category: u8,
    /// How the application was recognised.
    pub confidence: Confidence,
    /// The library's set of risks.
    pub risk: u64,
    /// How far the inspection has come. Until it is [known](Progress::Known), all of this is a
    /// guess.
    pub progress: Progress,
    pub(crate) texts: [Option<NonZeroU64>; Text::ALL.len()],
}

impl Verdict {
    /// The handle of a text, if it is known.
    #[must_use]
    pub fn text(&self, text: Text) -> Option<u64> {
        self.texts[text as usize].map(NonZeroU64::get)
    }

    /// Whether the inspection ended without learning the application from the payload.
    #[must_use]
    pub fn has_given_up(&self) -> bool {
        self.progress == Progress::Complete && self.confidence <= Confidence::Address
    }

    /// Sets the handle of a text; 0 means none.
    pub fn set_text(&mut self, text: Text, handle: u64) {
        self.texts[text as usize] = NonZeroU64::new(handle);
    }
}

/// The verdicts of one inspection, shared between threads. A lock is held for a whole batch of
/// records or verdicts, never for a single one.
pub struct Verdicts {
    tables: Mutex<Tables>,
}

/// For this many flows there is one place for a former flow, whose key is now used by another flow.
const FLOWS_FOR_ONE_FORMER: usize = 8;

struct Tables {
    flows: FlowTable<Verdict>,
    /// Flows whose keys are now used by others: their records may not have been written yet.
    former: FlowTable<Verdict>,
}

/// The verdicts, locked for access.
pub struct LockedVerdicts<'a> {
    tables: MutexGuard<'a, Tables>,
}

impl Verdicts {
    pub(crate) fn new(places: usize, seed: u64) -> Self {
        Self {
            tables: Mutex::new(Tables {
                flows: FlowTable::new(places, seed, Verdict::default()),
                former: FlowTable::new(
                    places.div_ceil(FLOWS_FOR_ONE_FORMER),
                    seed,
                    Verdict::default(),
                ),
            }),
        }
    }

    pub(crate) fn memory_bytes(places: usize) -> usize {
        let former = places.div_ceil(FLOWS_FOR_ONE_FORMER);
        FlowTable::<Verdict>::memory_bytes(places) + FlowTable::<Verdict>::memory_bytes(former)
    }

    /// Locks the verdicts for a batch.
    #[must_use]
    pub fn lock(&self) -> LockedVerdicts<'_> {
        LockedVerdicts {
            // The tables are valid even if another thread panicked while it held the lock.
            tables: self.tables.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }
}

impl LockedVerdicts<'_> {
    /// What is known about the flow of a record whose last packet was at `last_ns`.
    pub fn get(&mut self, tuple: &FiveTuple, last_ns: u64) -> Option<&Verdict> {
        let (key, _) = FlowKey::of(tuple);
        let Tables { flows, former } = &mut *self.tables;
        let spot = flows.find(&key)?;
        flows.touch(spot, last_ns);
        let verdict = flows.get(spot);
        if verdict.since_ns <= last_ns {
            return Some(verdict);
        }
        let verdict = former.get(former.find(&key)?);
        (verdict.since_ns <= last_ns).then_some(verdict)
    }

    /// Stores a verdict. A guess does not replace what the payload revealed about an earlier part
    /// of the flow.
    pub(crate) fn keep(&mut self, key: &FlowKey, now_ns: u64, verdict: Verdict) {
        let flows = &mut self.tables.flows;
        if let Found::Known(spot) = flows.find_or_insert(key, now_ns, verdict) {
            let kept = flows.get_mut(spot);
            let is_guess = verdict.confidence <= Confidence::Address;
            if !is_guess || kept.confidence <= Confidence::Address {
                *kept = verdict;
            } else {
                kept.progress = kept.progress.max(verdict.progress);
            }
        }
    }

    /// Another flow has this key from now on. Records of the previous flow may still follow.
    pub(crate) fn forget(&mut self, key: &FlowKey) {
        let Tables { flows, former } = &mut *self.tables;
        let Some(spot) = flows.find(key) else {
            return;
        };
        let (seen_ns, last) = (flows.seen_ns(spot), *flows.get(spot));
        if last.since_ns < u64::MAX
            && let Found::Known(spot) = former.find_or_insert(key, seen_ns, last)
        {
            *former.get_mut(spot) = last;
        }
        *flows.get_mut(spot) = Verdict {
            // Later than any packet.
            since_ns: u64::MAX,
            ..Verdict::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn verdict(application: u32, confidence: Confidence) -> Verdict {
        Verdict {
            since_ns: 10,
            application,
            confidence,
            ..Verdict::default()
        }
    }

    #[test]
    fn a_guess_does_not_replace_what_the_payload_said() {
        let verdicts = Verdicts::new(64, 3);
        let [a, b] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
        let tuple = FiveTuple::new(a, b, 1000, 443, 6);
        let (key, _) = FlowKey::of(&tuple);
        let mut locked = verdicts.lock();
        assert_eq!(locked.get(&tuple, 50), None);
        for (given, expected) in [
            (verdict(7, Confidence::Port), 7),
            (verdict(8, Confidence::Address), 8),
            (verdict(91, Confidence::Payload), 91),
            (verdict(7, Confidence::Port), 91),
            (verdict(92, Confidence::Payload), 92),
        ] {
            locked.keep(&key, 20, given);
            let answer = FiveTuple::new(b, a, 443, 1000, 6);
            assert_eq!(locked.get(&answer, 50).unwrap().application, expected);
        }
        // A record that ended before the inspection began belongs to an earlier flow.
        assert_eq!(locked.get(&tuple, 9), None);
        // A guess does not replace the application, but it may end the inspection.
        let end = Verdict {
            progress: Progress::Complete,
            ..verdict(7, Confidence::Port)
        };
        assert!(end.has_given_up());
        locked.keep(&key, 20, end);
        let kept = *locked.get(&tuple, 50).unwrap();
        assert_eq!((kept.application, kept.progress), (92, Progress::Complete));
        assert!(!kept.has_given_up());
        // Another flow with the same key begins before the record of the first flow is written.
        locked.forget(&key);
        assert_eq!(locked.get(&tuple, 50).unwrap().application, 92);
        let since_ns = 60;
        let next = Verdict {
            since_ns,
            ..verdict(5, Confidence::Port)
        };
        locked.keep(&key, 60, next);
        assert_eq!(locked.get(&tuple, 60).unwrap().application, 5);
        assert_eq!(locked.get(&tuple, 50).unwrap().application, 92);
        assert_eq!(locked.get(&tuple, 9), None);
    }

    #[test]
    fn texts_are_handles() {
        let mut verdict = Verdict::default();
        verdict.set_text(Text::Ja4, 12);
        assert_eq!(verdict.text(Text::Ja4), Some(12));
        assert_eq!(verdict.text(Text::Ja3), None);
    }
}
