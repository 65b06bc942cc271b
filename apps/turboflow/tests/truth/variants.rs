// SPDX-License-Identifier: Apache-2.0
//! The options that must not change the records of a capture.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use turboflow_aggregate::Timeouts;
use turboflow_capture::{CaptureFile, Counters};
use turboflow_engine_software::Sizing;
use turboflow_record::{FlowBatch, Schema, Value};
use turboflow_run::{Ledger, Meter, PipelineConfig};

use crate::ground_truth::{Key, Totals};

const SIZINGS: [Sizing; 4] = [
    Sizing::Fixed(1),
    Sizing::Fixed(7),
    Sizing::Fixed(1_024),
    Sizing::Adaptive,
];
const THREADS: [usize; 2] = [1, 2];
const SEEDS: [u64; 3] = [1, 0x0123_4567_89ab_cdef, u64::MAX];

/// One combination of these options.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variant {
    pub(crate) sizing: Sizing,
    pub(crate) threads: usize,
    pub(crate) seed: u64,
}

impl Variant {
    pub(crate) fn all() -> Vec<Self> {
        let mut variants = Vec::new();
        for sizing in SIZINGS {
            for threads in THREADS {
                variants.extend(SEEDS.map(|seed| Self {
                    sizing,
                    threads,
                    seed,
                }));
            }
        }
        variants
    }

    pub(crate) fn config(self) -> PipelineConfig {
        PipelineConfig {
            timeouts: Timeouts {
                idle_ns: None,
                active_ns: None,
                linger_ns: None,
                align_ns: None,
            },
            sizing: self.sizing,
            threads: self.threads,
            seed: self.seed,
            ..PipelineConfig::default()
        }
    }
}

pub(crate) type Flows = HashMap<Key, Totals>;

/// Sums of records by key.
struct Sums {
    columns: [usize; 12],
    flows: Flows,
}

impl Sums {
    fn new(schema: &Schema) -> Self {
        let at = |name| {
            schema
                .iter()
                .position(|column| column.name == name)
                .unwrap()
        };
        let columns = [
            "src_addr",
            "dst_addr",
            "protocol",
            "src_port",
            "dst_port",
            "packets",
            "bytes",
            "first_ns",
            "last_ns",
            "tcp_flags",
            "min_length",
            "max_length",
        ];
        Self {
            columns: columns.map(at),
            flows: Flows::new(),
        }
    }

    fn add(&mut self, batch: &FlowBatch) {
        for row in 0..batch.rows() {
            let address = |index: usize| match batch.value(row, self.columns[index]) {
                Value::Address(address) => address,
                other => panic!("{other:?} is not an address"),
            };
            let number = |index: usize| match batch.value(row, self.columns[index]) {
                Value::Unsigned(number) => number,
                other => panic!("{other:?} is not a number"),
            };
            let port = |index| number(index) as u16;
            let key = (address(0), address(1), number(2) as u8, port(3), port(4));
            let record = Totals {
                packets: number(5),
                ip_bytes: number(6),
                frame_bytes: 0,
                first_ns: number(7),
                last_ns: number(8),
                tcp_flags: number(9) as u16,
                min_ip_length: number(10) as u32,
                max_ip_length: number(11) as u32,
            };
            merge(&mut self.flows, key, record);
        }
    }
}

pub(crate) fn merge(flows: &mut Flows, key: Key, record: Totals) {
    let empty = Totals {
        packets: 0,
        ip_bytes: 0,
        tcp_flags: 0,
        ..record
    };
    let flow = flows.entry(key).or_insert(empty);
    flow.packets += record.packets;
    flow.ip_bytes += record.ip_bytes;
    flow.first_ns = flow.first_ns.min(record.first_ns);
    flow.last_ns = flow.last_ns.max(record.last_ns);
    flow.tcp_flags |= record.tcp_flags;
    flow.min_ip_length = flow.min_ip_length.min(record.min_ip_length);
    flow.max_ip_length = flow.max_ip_length.max(record.max_ip_length);
}

/// The result of metering a capture with these options.
pub(crate) fn meter(mut file: CaptureFile, variant: Variant) -> (Flows, Ledger, Counters) {
    let config = variant.config();
    let layout = config.compile().unwrap();
    let sums = Arc::new(Mutex::new(Sums::new(layout.schema())));
    let mut meter = Meter::new(&config, |_shard| {
        let sums = Arc::clone(&sums);
        Box::new(move |batch| {
            sums.lock().unwrap().add(batch);
            batch.clear();
        })
    })
    .unwrap();
    // Damage ends the file. Earlier packets count, as in tshark.
    while let Ok(Some(batch)) = file.next_batch(1_024) {
        meter.frames(batch.frames());
    }
    let ledger = meter.finish().ledger;
    let flows = std::mem::take(&mut sums.lock().unwrap().flows);
    (flows, ledger, file.counters())
}
