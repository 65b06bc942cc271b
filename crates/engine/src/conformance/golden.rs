// SPDX-License-Identifier: Apache-2.0
//! Compares records and counters one by one with those of the golden model.

use super::laws::{Joined, Trial, first_difference};
use super::runs::{Flow, Flows};
use super::{Aspect, Observed, Outcome};

/// Records and counters equal those of the golden model. If the engine maps flows to other slots
/// than the model, a record must end only where a rule or a packet of another flow ends it.
pub(super) fn golden(trial: &Trial<'_>, golden: &Observed) -> Outcome {
    let is_disturbed = trial.setup.look_every < trial.arrivals.len() && !trial.is_of_one_cell();
    if is_disturbed && let Some(why) = trial.why_left_out(Aspect::UndisturbedByLooks) {
        return Outcome::LeftOut(why);
    }
    let has_same_slots = trial.why_left_out(Aspect::SameSlots).is_none();
    if has_same_slots || trial.setup.slots == 1 {
        has_same_records(trial, golden).and_then(|()| has_same_counters(trial, golden))
    } else {
        is_cut_with_reason(trial)
    }
    .into()
}

/// Compares the records of every flow one by one.
fn has_same_records(trial: &Trial<'_>, golden: &Observed) -> Result<(), String> {
    let theirs = Flows::new(trial.setup, trial.arrivals, golden);
    for (key, flow) in &trial.flows.by_key {
        let expected = &theirs.by_key[key].runs;
        if expected.len() != flow.runs.len() {
            let (expected, found) = (expected.len(), flow.runs.len());
            return Err(format!("a flow has {found} records, not {expected}"));
        }
        for (number, (expected, run)) in expected.iter().zip(&flow.runs).enumerate() {
            if let Some(differs) = first_difference(expected.record, run.record) {
                return Err(format!("record {number} of a flow: {differs}"));
            }
        }
    }
    Ok(())
}

/// Compares the numbers of evicted records by cause.
fn has_same_counters(trial: &Trial<'_>, golden: &Observed) -> Result<(), String> {
    let (mut expected, mut found) = (golden.counters.evicted, trial.observed.counters.evicted);
    if trial.why_left_out(Aspect::AgeApartFromFlush).is_some() {
        for evicted in [&mut expected, &mut found] {
            evicted.flush += std::mem::take(&mut evicted.age);
        }
    }
    match expected == found {
        true => Ok(()),
        false => Err(format!("evicted {found:?}, not {expected:?}")),
    }
}

/// Every record ends where a rule ends it, or before a packet of another flow.
fn is_cut_with_reason(trial: &Trial<'_>) -> Result<(), String> {
    for flow in trial.flows.iter() {
        for pair in flow.runs.windows(2) {
            let (Some((first, others)), Some(next)) = (
                flow.arrivals_of(&pair[0]).split_first(),
                flow.arrivals_of(&pair[1]).first(),
            ) else {
                continue;
            };
            let mut joined = Joined::new(trial.packet(*first), trial.moments[*first]);
            others
                .iter()
                .for_each(|number| joined.join(trial.packet(*number)));
            let last = others.last().unwrap_or(first);
            let (packet, moment) = (trial.packet(*next), trial.moments[*next]);
            let by_rule = joined.cut_before(packet, moment, trial.setup.ends_cut);
            if by_rule.is_none() && !comes_between(trial, flow, *last, *next) {
                return Err(format!(
                    "a record ends before packet {next}, with nothing behind packet {last} that ends it"
                ));
            }
        }
    }
    Ok(())
}

/// Whether a packet of another flow in the same table came between two packets.
fn comes_between(trial: &Trial<'_>, flow: &Flow<'_>, last: usize, next: usize) -> bool {
    let others = trial
        .flows
        .iter()
        .filter(|other| other.lane == flow.lane && !std::ptr::eq(*other, flow));
    others
        .flat_map(|other| &other.packets)
        .any(|number| (last + 1..next).contains(number))
}
