// SPDX-License-Identifier: Apache-2.0
//! The merged records of every flow in columns, for comparison with a meter that keeps every
//! packet.

use turboflow_merge::MicroflowRecord;
use turboflow_record::{EndReason, FlowBatch, InputValues, Packet, WORDS_V4, WORDS_V6};

use super::laws::Trial;
use super::suite::Reference;
use super::{Lane, Outcome, Record};

/// The merged records of every flow equal those of a meter that keeps every packet.
pub(super) fn reference(trial: &Trial<'_>, reference: Reference<'_>) -> Outcome {
    let packets = trial
        .arrivals
        .iter()
        .filter_map(|arrival| arrival.packet.as_ref().ok());
    let packets: Vec<(Packet, InputValues)> = packets.cloned().collect();
    let flows = with_state_words!(trial.setup.layout.state_words(), N => columns::<N>(trial));
    let (definition, layout) = (&trial.setup.definition, &trial.setup.layout);
    let (biflow, schema) = (layout.is_biflow(), layout.schema());
    let difference = reference(definition, biflow, &packets, schema, &flows);
    difference.map_or(Outcome::Held, Outcome::Broken)
}

fn columns<const N: usize>(trial: &Trial<'_>) -> FlowBatch {
    let layout = &trial.setup.layout;
    let mut batch = FlowBatch::new(layout.schema());
    for flow in trial.flows.iter() {
        let Some(mut record) = trial.merged(flow) else {
            continue;
        };
        record.base.end_reason = EndReason::ForcedEnd as u8;
        match flow.lane {
            Lane::V4 => layout.append(&[narrowed::<WORDS_V4, N>(&record)], &mut batch),
            Lane::V6 => layout.append(&[narrowed::<WORDS_V6, N>(&record)], &mut batch),
            Lane::Wide => layout.append(&[narrowed::<16, N>(&record)], &mut batch),
        }
    }
    batch
}

fn narrowed<const K: usize, const N: usize>(record: &Record) -> MicroflowRecord<K, N> {
    MicroflowRecord {
        key: std::array::from_fn(|word| record.key[word]),
        base: record.base,
        state: std::array::from_fn(|word| record.state[word]),
    }
}
