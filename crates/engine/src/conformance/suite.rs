// SPDX-License-Identifier: Apache-2.0
//! Trials: runs a subject, the golden model and the reference meter on the same packets.

use turboflow_record::{Definition, FlowBatch, InputValues, Packet, Schema};

use super::cells::Cells;
use super::laws::{self, Trial};
use super::runs::Flows;
use super::{Arrival, Aspect, Check, Report, Sequence, Setup, Subject, golden, reference, times};
use crate::EngineError;

/// A meter that keeps every packet. It is given a definition, whether directions are joined,
/// packets, and one flow record per key. It reports where these flow records differ from its own.
pub type Reference<'a> =
    &'a dyn Fn(&Definition, bool, &[(Packet, InputValues)], &Schema, &FlowBatch) -> Option<String>;

/// The golden model and the meter that subjects are compared with.
pub struct Suite<'a> {
    golden: &'a mut dyn Subject,
    reference: Reference<'a>,
}

impl<'a> Suite<'a> {
    /// A suite with this golden model and this reference meter.
    #[must_use]
    pub const fn new(golden: &'a mut dyn Subject, reference: Reference<'a>) -> Self {
        Self { golden, reference }
    }

    /// Gives a sequence to a subject and makes all checks. `None` if the subject does not support
    /// the setup.
    ///
    /// # Errors
    /// If an engine fails.
    pub fn trial(
        &mut self,
        subject: &mut dyn Subject,
        setup: &Setup,
        sequence: &Sequence,
    ) -> Result<Option<Report>, EngineError> {
        let abilities = subject.abilities();
        let left_out = subject.left_out().to_vec();
        let stamps_itself = left_out
            .iter()
            .any(|left_out| left_out.what == Aspect::GivenTimes);
        let setup = match stamps_itself {
            true => setup.timed(),
            false => Some(setup.clone()),
        };
        let setup =
            setup.filter(|setup| setup.is_within(&abilities) && subject.takes(&setup.layout));
        let Some(setup) = setup else {
            return Ok(None);
        };
        let given = match stamps_itself {
            true => times::shortened(&setup, &sequence.arrivals),
            false => sequence.arrivals.clone(),
        };
        let observed = subject.observe(&setup, &given)?;
        let flows = Flows::new(&setup, &given, &observed);
        let stamped = match stamps_itself {
            true => times::stamped(&setup, &given, &flows),
            false => given.clone(),
        };
        let golden = self.golden.observe(&setup, &stamped)?;
        let trial = Trial {
            moments: moments(&setup, &stamped),
            setup: &setup,
            arrivals: &stamped,
            observed: &observed,
            flows: &flows,
            left_out: &left_out,
            is_ordered: abilities.ordered,
        };
        let outcome = |check| match check {
            Check::Conservation => laws::conservation(&trial),
            Check::Exactness => laws::exactness(&trial),
            Check::Reference => reference::reference(&trial, self.reference),
            Check::Order => laws::order(&trial),
            Check::BoundedAge => laws::bounded_age(&trial),
            Check::Cuts => laws::cuts(&trial),
            Check::BoundedMemory => laws::bounded_memory(&trial),
            Check::Golden => golden::golden(&trial, &golden),
        };
        Ok(Some(Report {
            outcomes: Check::ALL.map(|check| (check, outcome(check))).to_vec(),
            records: observed.records().count(),
            watermarks: observed.watermarks().count(),
            trial: description(abilities.name, &setup, sequence),
        }))
    }
}

/// The state of the clock at each arrival.
fn moments(setup: &Setup, arrivals: &[Arrival]) -> Vec<super::cells::Moment> {
    let mut cells = Cells::new(setup);
    let moment = |arrival: &Arrival| {
        if let Ok((packet, _)) = &arrival.packet {
            cells.tick(packet.timestamp_ns);
        }
        cells.moment()
    };
    arrivals.iter().map(moment).collect()
}

fn description(name: &str, setup: &Setup, sequence: &Sequence) -> String {
    let Setup {
        slots,
        cell_ns,
        idle_ns,
        ends_cut,
        seed,
        look_every,
        ..
    } = setup;
    let (packets, sequence) = (sequence.arrivals.len(), &sequence.name);
    let biflow = setup.layout.is_biflow();
    format!(
        "{name}: {sequence}, {packets} packets, {slots} slots, cells of {cell_ns} ns, idle timeout {idle_ns} ns, \
         ends cut: {ends_cut}, seed {seed}, looked at every {look_every}, biflow: {biflow}, {:?}",
        setup.definition
    )
}
