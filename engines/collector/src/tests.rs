// SPDX-License-Identifier: Apache-2.0
//! The engine over messages in memory: sums, times, losses, and the cost of each false claim.

mod heard;
mod lies;
mod microflows;
mod properties;
mod senders;
mod sflow;

use std::collections::VecDeque;
use std::net::SocketAddr;

use turboflow_engine::{MicroflowBatch, RemoteEngine};
use turboflow_merge::{Base, Layout};
use turboflow_record::Definition;

use crate::builder::{USUAL, Usual, ipfix, set, template};
use crate::{
    CollectorConfig, CollectorEngine, Counts, Message, MessageSource, Polled, Sender, StreamError,
    TakeMessage,
};

/// Export time of messages in tests, in seconds since 1970.
const NOW_S: u32 = 1_700_000_000;
const NOW_MS: u64 = NOW_S as u64 * 1_000;

/// A message of a test: from which port, and its bytes.
type Sent = (u16, Vec<u8>);

struct Sends {
    messages: VecDeque<Sent>,
    received_ns: Option<u64>,
}

impl MessageSource for Sends {
    fn name(&self) -> String {
        "a test".to_owned()
    }

    fn since_ns(&self) -> Option<u64> {
        self.received_ns
    }

    fn poll(
        &mut self,
        take: &mut TakeMessage<'_>,
        _ended: &mut Vec<Sender>,
    ) -> Result<Polled, StreamError> {
        let next = self.messages.pop_front();
        if let Some((port, bytes)) = &next {
            // Refused messages are counted.
            let _ = take(&Message {
                from: Sender {
                    address: Some(SocketAddr::from(([192, 0, 2, 1], *port))),
                    session: 0,
                },
                is_datagram: true,
                received_ns: self.received_ns,
                bytes,
            });
        }
        Ok(Polled {
            had_any: next.is_some(),
            is_over: self.messages.is_empty(),
            now_ns: self.received_ns,
        })
    }
}

const CONFIG: CollectorConfig = CollectorConfig {
    lag_ns: None,
    most_records: 1 << 16,
    cell_ns: 1_000_000_000,
    window_ns: None,
    icmp_ports: false,
    scales_sampled: false,
    only_microflows: false,
};

/// The result of some messages.
struct Outcome {
    records: Vec<Base>,
    counts: Counts,
    known: (usize, usize),
    dropped: u64,
}

impl Outcome {
    /// Records, packets and bytes.
    fn sums(&self) -> (usize, u64, u64) {
        let records = self.records.iter();
        let packets = records.clone().map(|base| base.packets).sum();
        (
            self.records.len(),
            packets,
            records.map(|base| base.bytes).sum(),
        )
    }
}

fn run(messages: Vec<Sent>) -> Outcome {
    run_with(messages, CONFIG, None)
}

fn run_with(messages: Vec<Sent>, config: CollectorConfig, received_ns: Option<u64>) -> Outcome {
    let layout = Layout::compile(&Definition::default(), false).expect("the default compiles");
    let source = Sends {
        messages: messages.into(),
        received_ns,
    };
    let mut engine = CollectorEngine::new(Box::new(source), &layout, config);
    let mut records = Vec::new();
    let mut complete_ns = 0;
    while !engine.has_ended() {
        let mut batch = MicroflowBatch::default();
        let collected = engine.collect(&mut batch).expect("memory is readable");
        records.extend(batch.v4::<0>().map(|record| record.base));
        records.extend(batch.v6::<0>().map(|record| record.base));
        if let Some(now_ns) = collected.complete_ns {
            assert!(now_ns >= complete_ns, "the clock goes back");
            complete_ns = now_ns;
        }
    }
    let counters = engine.counters().expect("it counts");
    let packets: u64 = records.iter().map(|base| base.packets).sum();
    assert_eq!(counters.packets_metered, packets);
    let evicted = records.len() as u64 + counters.microflows_dropped;
    assert_eq!(counters.evicted.total(), evicted);
    Outcome {
        records,
        counts: engine.counts(),
        known: engine.known(),
        dropped: counters.microflows_dropped,
    }
}

/// A flow of this many packets, which began `ago_ms` milliseconds before its export.
fn flow(number: u32, packets: u64, ago_ms: u64) -> Usual {
    Usual {
        source: 0x0a00_0000 + number,
        port: 1_000,
        flags: 0,
        packets,
        bytes: packets * 100,
        start_ms: NOW_MS - ago_ms,
        end_ms: NOW_MS - ago_ms / 2,
    }
}

fn usual_template() -> Vec<u8> {
    set(2, &template(256, USUAL))
}

fn records(flows: &[Usual]) -> Vec<u8> {
    let octets: Vec<u8> = flows.iter().flat_map(Usual::octets).collect();
    set(256, &octets)
}

/// An IPFIX message with its template.
fn message(sequence: u32, flows: &[Usual]) -> Sent {
    (
        1,
        ipfix(7, sequence, NOW_S, &[usual_template(), records(flows)]),
    )
}
