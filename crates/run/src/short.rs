// SPDX-License-Identifier: Apache-2.0
//! Flows whose records are short, because an engine lost some of their microflow records: by name, so that nobody takes what is left of
//! them for all there was.

use turboflow_record::{FlowBatch, Schema};

/// Flows that an engine lost records of, and what of each is missing.
#[derive(Clone, Debug, Default)]
pub struct ShortFlows {
    /// The key's columns, `packets_dropped`, `bytes_dropped`, and `end_reason`, which says nothing here.
    pub schema: Schema,
    /// A row for each flow, those that miss most packets first.
    pub flows: FlowBatch,
    /// Microflow records lost of each, in the same order.
    pub microflows: Vec<u64>,
    /// Those of flows that are not named, for there were too many.
    pub microflows_unnamed: u64,
}

#[cfg(all(target_os = "linux", feature = "kernel"))]
mod of_kernel {
    use std::io;

    use turboflow_engine_xdp::{KernelCounters, ShortFlow};
    use turboflow_merge::{Base, KeyWidths, Layout, MicroflowRecord, WORDS_WIDE};
    use turboflow_record::{
        Definition, Feature, FlowBatch, Input, KeyField, Op, WORDS_V4, WORDS_V6,
    };

    use super::ShortFlows;

    impl ShortFlows {
        /// Of keys such as a layout has for these fields.
        ///
        /// # Errors
        /// Where what the flows miss is not what was dropped.
        pub(crate) fn new(
            key: &[KeyField],
            mut flows: Vec<ShortFlow>,
            counters: &KernelCounters,
        ) -> io::Result<Self> {
            let named: u64 = flows.iter().map(|flow| flow.microflows).sum();
            let (known, dropped) = (
                named + counters.microflows_unnamed,
                counters.microflows_dropped,
            );
            if known != dropped {
                return Err(io::Error::other(format!(
                    "the engine in the kernel dropped {dropped} microflow records, and knows of {known} whose they were"
                )));
            }
            let feature = Feature::new;
            let definition = Definition {
                key: key.to_vec(),
                features: vec![
                    feature("packets_dropped", Op::Count, None),
                    feature("bytes_dropped", Op::Sum, Some(Input::IpLength)),
                ],
            };
            let layout = Layout::compile(&definition, false).expect("the run's own key is right");
            flows.sort_by(|a, b| (b.packets, &a.key).cmp(&(a.packets, &b.key)));
            let mut batch = FlowBatch::new(layout.schema());
            for flow in &flows {
                match (layout.key_widths(), flow.key.len()) {
                    (KeyWidths::Wide, _) => {
                        layout.append(&[record::<WORDS_WIDE>(flow)], &mut batch)
                    }
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

    /// A record without further features that holds what is missing.
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
}
