// SPDX-License-Identifier: Apache-2.0
//! Any bytes from exporters: messages with the state of templates, sequences and samplers kept
//! between them. A run ends, its records are those that it counts, and times never go back.
//!
//! Input: a byte of settings; then messages, each preceded by its sender in a byte and its length
//! in two. A length of 0 ends the input.

#![no_main]

use std::net::SocketAddr;
use std::num::NonZeroU64;

use libfuzzer_sys::fuzz_target;
use turboflow_engine::{MicroflowBatch, RemoteEngine};
use turboflow_engine_collector::{
    CollectorConfig, CollectorEngine, MOST_DOMAINS, MOST_EXPORTERS, Message, MessageSource, Polled,
    Sender, StreamError, TakeMessage,
};
use turboflow_merge::Layout;
use turboflow_record::Definition;

const WIDE: &str = r#"
[key]
fields = ["source_address", "ingress_interface", "vlan"]
[[feature]]
name = "packets"
op = "count"
[[feature]]
name = "egress"
op = "max"
of = "egress_interface"
"#;

struct Input {
    messages: Vec<(u8, Vec<u8>)>,
    received_ns: Option<u64>,
}

impl MessageSource for Input {
    fn name(&self) -> String {
        "fuzzed".to_owned()
    }

    fn poll(
        &mut self,
        take: &mut TakeMessage<'_>,
        _ended: &mut Vec<Sender>,
    ) -> Result<Polled, StreamError> {
        let next = self.messages.pop();
        if let Some((sender, bytes)) = &next {
            let _ = take(&Message {
                from: Sender {
                    address: Some(SocketAddr::from(([192, 0, 2, 1], u16::from(*sender)))),
                    session: 0,
                },
                is_datagram: sender & 1 != 0,
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

fuzz_target!(|bytes: &[u8]| {
    let Some((settings, mut rest)) = bytes.split_first() else {
        return;
    };
    let definition = match settings & 1 {
        0 => Definition::default(),
        _ => Definition::parse(WIDE).expect("the definition is valid"),
    };
    let layout = Layout::compile(&definition, false).expect("the definition compiles");
    let mut messages = Vec::new();
    while let [sender, high, low, behind @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(behind.len());
        if length == 0 {
            break;
        }
        messages.push((*sender, behind[..length].to_vec()));
        rest = &behind[length..];
    }
    messages.reverse();
    let input = Input {
        messages,
        received_ns: (settings & 2 != 0).then_some(1_700_000_000_000_000_000),
    };
    let config = CollectorConfig {
        lag_ns: (settings & 4 != 0).then_some(10_000_000_000),
        most_records: 1_000,
        cell_ns: 1_000_000_000,
        window_ns: NonZeroU64::new(u64::from(settings & 64) * 1_000_000_000),
        icmp_ports: settings & 8 != 0,
        scales_sampled: settings & 16 != 0,
        only_microflows: settings & 32 != 0,
    };
    let mut engine = CollectorEngine::new(Box::new(input), &layout, config);
    let (mut records, mut packets, mut complete_ns) = (0, 0, 0);
    let mut batch = MicroflowBatch::default();
    while !engine.has_ended() {
        let collected = engine.collect(&mut batch).expect("memory is readable");
        records += batch.len() as u64;
        if settings & 1 == 0 {
            packets += batch
                .v4::<0>()
                .map(|record| record.base.packets)
                .sum::<u64>();
            packets += batch
                .v6::<0>()
                .map(|record| record.base.packets)
                .sum::<u64>();
        }
        batch.clear();
        if let Some(now_ns) = collected.complete_ns {
            assert!(now_ns >= complete_ns, "the clock goes back");
            complete_ns = now_ns;
        }
    }
    let counters = engine.counters().expect("it counts");
    assert_eq!(engine.counts().flows + engine.counts().microflows, records);
    assert_eq!(
        counters.evicted.total(),
        records + counters.microflows_dropped
    );
    assert!(settings & 1 != 0 || counters.packets_metered == packets);
    let (exporters, domains) = engine.known();
    assert!(exporters <= MOST_EXPORTERS && domains <= MOST_EXPORTERS * MOST_DOMAINS);
});
