// SPDX-License-Identifier: Apache-2.0
//! Measures records per second of one core, from messages in memory to batches for the aggregator:
//!
//!     cargo bench --package turboflow-engine-collector

#![allow(clippy::unwrap_used, reason = "a measurement ends where it fails")]
#![allow(clippy::disallowed_methods, reason = "a measurement reads a clock")]

#[path = "../src/builder.rs"]
mod builder;

use std::time::Instant;

use builder::{USUAL, Usual, ipfix, netflow5, set, template};
use turboflow_engine::{MicroflowBatch, RemoteEngine};
use turboflow_engine_collector::{
    CollectorConfig, CollectorEngine, Message, MessageSource, Polled, Sender, StreamError,
    TakeMessage,
};
use turboflow_merge::Layout;
use turboflow_record::Definition;

const NOW_S: u32 = 1_700_000_000;
const RECORDS_OF_A_MESSAGE: u32 = 29;
const MESSAGES: u32 = 40_000;
const RUNS: usize = 5;

/// A source of messages in memory.
struct Memory {
    messages: Vec<Vec<u8>>,
    at: usize,
}

impl MessageSource for Memory {
    fn name(&self) -> String {
        "memory".to_owned()
    }

    fn poll(
        &mut self,
        take: &mut TakeMessage<'_>,
        _ended: &mut Vec<Sender>,
    ) -> Result<Polled, StreamError> {
        let end = (self.at + 64).min(self.messages.len());
        for bytes in &self.messages[self.at..end] {
            let _ = take(&Message {
                from: Sender {
                    address: None,
                    session: 0,
                },
                is_datagram: true,
                received_ns: None,
                bytes,
            });
        }
        self.at = end;
        Ok(Polled {
            had_any: true,
            is_over: end == self.messages.len(),
            now_ns: None,
        })
    }
}

fn ipfix_messages() -> Vec<Vec<u8>> {
    let template = set(2, &template(256, USUAL));
    let mut messages = Vec::new();
    for message in 0..MESSAGES {
        let sequence = message * RECORDS_OF_A_MESSAGE;
        let now_s = NOW_S + message / 200;
        let records: Vec<u8> = (0..RECORDS_OF_A_MESSAGE)
            .flat_map(|at| {
                let number = (sequence + at).wrapping_mul(0x9e37_79b1);
                let start_ms = u64::from(now_s) * 1_000 - u64::from(number % 60_000);
                Usual {
                    source: number,
                    port: number as u16,
                    flags: 0x18,
                    packets: 10,
                    bytes: 5_000,
                    start_ms,
                    end_ms: u64::from(now_s) * 1_000,
                }
                .octets()
            })
            .collect();
        let data = set(256, &records);
        let sets = match message % 1_000 {
            0 => vec![template.clone(), data],
            _ => vec![data],
        };
        messages.push(ipfix(1, sequence, now_s, &sets));
    }
    messages
}

fn netflow5_messages() -> Vec<Vec<u8>> {
    (0..MESSAGES)
        .map(|message| {
            let flows = [[10, 5_000, message, message + 1]; 30];
            netflow5(message * 30, NOW_S + message / 200, message + 10, 0, &flows)
        })
        .collect()
}

fn measure(name: &str, messages: &[Vec<u8>]) {
    let layout = Layout::compile(&Definition::default(), false).unwrap();
    let mut best = 0.0f64;
    for _ in 0..RUNS {
        let source = Memory {
            messages: messages.to_vec(),
            at: 0,
        };
        let config = CollectorConfig {
            lag_ns: Some(120_000_000_000),
            most_records: 1 << 20,
            cell_ns: 1_000_000_000,
            window_ns: None,
            icmp_ports: false,
            scales_sampled: false,
            only_microflows: false,
        };
        let mut engine = CollectorEngine::new(Box::new(source), &layout, config);
        let mut batch = MicroflowBatch::default();
        let mut records = 0;
        let start = Instant::now();
        while !engine.has_ended() {
            engine.collect(&mut batch).unwrap();
            records += batch.len();
            batch.clear();
        }
        best = best.max(records as f64 / start.elapsed().as_secs_f64());
        assert_eq!(engine.counts().records_lost, 0);
    }
    println!(
        "{name}: {:.2} M records/s, the best of {RUNS} runs",
        best / 1e6
    );
}

fn main() {
    measure("IPFIX", &ipfix_messages());
    measure("NetFlow v5", &netflow5_messages());
}
