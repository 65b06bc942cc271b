// SPDX-License-Identifier: Apache-2.0
//! Flows whose records are incomplete because an engine lost some of their microflow records. Each
//! affected flow is listed, so that a partial record is not mistaken for a complete one.

use std::io;

use turboflow_engine::{EngineCounters, ShortFlow};
use turboflow_merge::{Base, KeyWidths, Layout, MicroflowRecord, WORDS_WIDE};
use turboflow_record::{
    Definition, Feature, FlowBatch, Input, KeyField, Op, Schema, WORDS_V4, WORDS_V6,
};

/// Flows with lost microflow records, and what each of them lacks.
#[derive(Clone, Debug, Default)]
pub struct ShortFlows {
    /// The columns of the key, `packets_dropped`, `bytes_dropped`, and `end_reason`, which is
    /// meaningless here.
    pub schema: Schema,
    /// One row per flow, in descending order of lost packets.
    pub flows: FlowBatch,
    /// The number of lost microflow records of each flow, in the order of `flows`.
    pub microflows: Vec<u64>,
    /// The number of lost microflow records of flows that are not listed, because there were too
    /// many.
    pub microflows_unnamed: u64,
}

impl ShortFlows {
    /// The listed flows, in the layout of these key fields.
    ///
    /// # Errors
    /// If the records lost by flow do not add up to the records that the engine dropped.
    pub(crate) fn new(
        key: &[KeyField],
        mut flows: Vec<ShortFlow>,
        counters: &EngineCounters,
    ) -> io::Result<Self> {
        let named: u64 = flows.iter().map(|flow| flow.microflows).sum();
        let known = named + counters.microflows_unnamed;
        let dropped = counters.microflows_dropped;
        if known != dropped {
            return Err(io::Error::other(format!(
                "the engine dropped {dropped} microflow records but attributed only {known} to flows"
            )));
        }
        let definition = Definition {
            key: key.to_vec(),
            features: vec![
                Feature::new("packets_dropped", Op::Count, None),
                Feature::new("bytes_dropped", Op::Sum, Some(Input::IpLength)),
            ],
        };
        let layout = Layout::compile(&definition, false).expect("the key of the run is valid");
        flows.sort_by(|a, b| (b.packets, &a.key).cmp(&(a.packets, &b.key)));
        let mut batch = FlowBatch::new(layout.schema());
        for flow in &flows {
            match (layout.key_widths(), flow.key.len()) {
                (KeyWidths::Wide, _) => layout.append(&[record::<WORDS_WIDE>(flow)], &mut batch),
                (_, WORDS_V4) => layout.append(&[record::<WORDS_V4>(flow)], &mut batch),
                _ => layout.append(&[record::<WORDS_V6>(flow)], &mut batch),
            }
        }
        Ok(Self {
            schema: layout.schema().clone(),
            flows: batch,
            microflows: flows.iter().map(|flow| flow.microflows).collect(),
            microflows_unnamed: counters.microflows_unnamed,
        })
    }
}

/// A record without features of its own that holds the lost packets and bytes of a flow.
fn record<const K: usize>(flow: &ShortFlow) -> MicroflowRecord<K, 0> {
    let mut key = [0; K];
    key[..flow.key.len()].copy_from_slice(&flow.key);
    let base = Base {
        packets: flow.packets,
        bytes: flow.bytes,
        ..Base::default()
    };
    MicroflowRecord {
        key,
        base,
        state: [],
    }
}
