// SPDX-License-Identifier: Apache-2.0
//! Rates are shown when they are final: they include every packet before the end of the screen,
//! although the meter still holds open flows.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

use std::sync::{Arc, Mutex};

use crate::support::schema;
use proptest::prelude::*;
use turboflow_record::{FiveTuple, InputValues, Packet, TCP_ACK, TCP_FIN, TCP_SYN};
use turboflow_run::{Meter, PipelineConfig};
use turboflow_top::{BIN_NS, BINS_A_SECOND, Sums, Traffic};

const START_NS: u64 = 1_700_000_000 * 1_000_000_000;

/// The meter's configuration in `turboflow top`.
fn config(threads: usize, seed: u64) -> PipelineConfig {
    let mut config = PipelineConfig {
        threads,
        seed,
        ..PipelineConfig::default()
    };
    config.timeouts.active_ns = Some(BIN_NS);
    PipelineConfig {
        sweep_ns: BIN_NS,
        ..config.live()
    }
}

fn packet(flow: u8, timestamp_ns: u64, ip_length_bytes: u32) -> Packet {
    Packet {
        tuple: FiveTuple::v4([10, 0, 0, flow, 10, 0, 1, 1], [0, 9, 0, 80], 6),
        timestamp_ns,
        ip_length_bytes,
        frame_length_bytes: ip_length_bytes + 14,
        tcp_flags: [TCP_ACK, TCP_ACK, TCP_SYN, TCP_FIN | TCP_ACK][ip_length_bytes as usize % 4],
        ttl: 64,
        tos: 0,
        is_echo_reply: false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_record_arrives_for_the_bins_shown(
        steps in proptest::collection::vec((0u64..500, any::<u8>(), 40u32..1_500), 1..300),
        threads in 1usize..3, seed in any::<u64>(), phase_ms in 0u64..500,
    ) {
        let traffic = Arc::new(Mutex::new(Traffic::new(&schema())));
        let meter = Meter::new(&config(threads, seed), |_shard| {
            let traffic = Arc::clone(&traffic);
            Box::new(move |batch| {
                traffic.lock().unwrap().add(batch);
                batch.clear();
            })
        });
        let (mut meter, mut clock_ns) = (meter.unwrap(), START_NS + phase_ms * 1_000_000);
        let mut plain: Vec<(u64, u64)> = Vec::new();
        for (step_ms, flow, bytes) in steps {
            clock_ns += step_ms * 1_000_000;
            match flow % 8 {
                // Silence: the source reports only the time.
                0 => meter.advance(clock_ns),
                _ => {
                    let values = InputValues::default();
                    meter.packet(&packet(flow, clock_ns, bytes), &values);
                    plain.push((clock_ns, bytes.into()));
                }
            }
            // Then all threads have reached the same time, as when the screen is refreshed.
            let ledger = meter.snapshot();
            prop_assert_eq!(ledger.imbalances(), []);
            let traffic = traffic.lock().unwrap();
            let window = traffic.window(Some(clock_ns), BINS_A_SECOND);
            let from = (window.end - window.interval) * BIN_NS;
            let shown = traffic.picture(window).all.now;
            let within = plain.iter().filter(|(at, _)| (from..window.end * BIN_NS).contains(at));
            let expected: u64 = within.clone().map(|(_, bytes)| bytes).sum();
            prop_assert_eq!(shown.bits, expected * 8 * BINS_A_SECOND / window.interval);
            let packets = within.count() as u64;
            prop_assert_eq!(shown.packets, packets * BINS_A_SECOND / window.interval);
        }
        let ledger = meter.finish().ledger;
        let traffic = traffic.lock().unwrap();
        let total = traffic.picture(traffic.window(None, BINS_A_SECOND)).all.total;
        let expected = Sums { bytes: ledger.bytes_recorded, packets: plain.len() as u64 };
        prop_assert_eq!(total, expected);
    }
}
