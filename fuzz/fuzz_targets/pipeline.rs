// SPDX-License-Identifier: Apache-2.0
//! Conservation for any capture and any configuration: every packet and byte is in a flow record or
//! in a counter with a reason. Records do not depend on the microflow table: a table of one slot
//! with another seed ends the same flows for the same reasons.
//!
//! Input: a capture file, then [`CHOICES`] bytes that choose the configuration. They come last, so
//! that real captures are valid inputs.

#![no_main]

use std::sync::{Arc, Mutex};

use libfuzzer_sys::fuzz_target;
use turboflow_aggregate::Timeouts;
use turboflow_capture::CaptureFile;
use turboflow_engine_software::Sizing;
use turboflow_packet::{ReassemblyConfig, Tunnel, TunnelSet};
use turboflow_record::{Definition, Value};
use turboflow_run::{DeliverRecords, Ledger, Meter, PipelineConfig};

/// Bytes of the input that choose the configuration.
const CHOICES: usize = 10;

/// Another key, and an op of every kind.
const RICH: &str = r#"
key = { fields = ["source_address", "destination_address", "protocol", "vlan", "vni"] }
feature = [
    { name = "packets", op = "count" },
    { name = "bytes", op = "sum", of = "ip_length" },
    { name = "spread", op = "variance", of = "frame_length" },
    { name = "lowest_ttl", op = "min", of = "ttl" },
    { name = "flags", op = "bit_or", of = "tcp_flags" },
    { name = "first_window", op = "first", of = "tcp_window" },
    { name = "jitter", op = "gap_variance" },
    { name = "lengths", op = "list", of = "ip_length", k = 3 },
    { name = "gaps", op = "histogram", of = "gap", edges = [1000, 1000000] },
    { name = "speed", op = "rate", of = "ip_length" },
]
"#;

fuzz_target!(|input: &[u8]| {
    let Some((capture, choices)) = input.split_last_chunk::<CHOICES>() else {
        return;
    };
    let config = configuration(choices);
    let Some((ledger, delivered)) = meter(&config, capture) else {
        return;
    };
    assert_eq!(ledger.imbalances(), []);
    assert_eq!(
        delivered,
        (ledger.flows_exported.total(), ledger.packets_recorded)
    );

    let other = PipelineConfig {
        sizing: Sizing::Fixed(1),
        seed: config.seed + 1,
        threads: 1,
        meters_apart: false,
        ..config
    };
    let (again, _) = meter(&other, capture).expect("the capture is valid");
    assert_eq!(again.imbalances(), []);
    assert_eq!(again.packets_recorded, ledger.packets_recorded);
    assert_eq!(again.bytes_recorded, ledger.bytes_recorded);
    assert_eq!(again.rejected, ledger.rejected);
    // In a full cache, the choice of flows to expire early depends on the seed.
    if again.flows_exported.lack_of_resources + ledger.flows_exported.lack_of_resources == 0 {
        assert_eq!(again.flows_exported, ledger.flows_exported);
    }
});

fn configuration(choices: &[u8; CHOICES]) -> PipelineConfig {
    let [
        bits,
        idle,
        active,
        linger,
        slots,
        flows,
        tunnels,
        seed,
        age,
        datagrams,
    ] = *choices;
    let set = |bit: u8| bits >> bit & 1 == 1;
    // Disabled, or from nanoseconds to hours.
    let time = |byte: u8| (byte != 0).then(|| u64::from(byte & 15) << (byte >> 4) * 3);
    let reassembly = ReassemblyConfig {
        max_datagrams: usize::from(datagrams % 8) + 1,
        timeout_ns: 1 << (datagrams >> 3),
    };
    PipelineConfig {
        definition: if set(0) {
            Definition::parse(RICH).expect("the definition is valid")
        } else {
            Definition::default()
        },
        biflow: set(1),
        timeouts: Timeouts {
            idle_ns: time(idle).filter(|&ns| ns > 0),
            active_ns: time(active).filter(|&ns| ns > 0),
            linger_ns: time(linger),
            align_ns: None,
        },
        max_age_ns: 1 << (age % 40),
        sizing: match slots {
            0 => Sizing::Adaptive,
            1 => Sizing::Off,
            _ => Sizing::Fixed(slots.into()),
        },
        max_flows: usize::from(flows) + 1,
        threads: if set(2) && set(3) { 2 } else { 1 },
        meters_apart: set(2) && !set(3),
        seed: seed.into(),
        decapsulate: Tunnel::ALL
            .into_iter()
            .filter(|&tunnel| tunnels >> tunnel as u8 & 1 == 1)
            .collect::<TunnelSet>(),
        icmp_ports: set(4),
        prompt: set(7),
        reassemble_flows: set(5).then_some(reassembly),
        sweep_ns: if set(6) { 1 } else { 10_000_000_000 },
        ..PipelineConfig::default()
    }
}

/// The ledger, and the numbers of delivered records and of their packets; `None` if the bytes are
/// not a capture.
fn meter(config: &PipelineConfig, capture: &[u8]) -> Option<(Ledger, (u64, u64))> {
    let mut file = CaptureFile::from_bytes("fuzz".to_owned(), capture.to_vec()).ok()?;
    let layout = config.compile().expect("every configuration is in range");
    let packets = layout
        .schema()
        .iter()
        .position(|column| column.name == "packets");
    let reverse = layout
        .schema()
        .iter()
        .position(|column| column.name == "reverse_packets");
    let delivered = Arc::new(Mutex::new((0, 0)));
    let mut meter = Meter::new(config, |_shard| -> DeliverRecords {
        let delivered = Arc::clone(&delivered);
        Box::new(move |batch| {
            let mut delivered = delivered.lock().expect("the holder does not panic");
            delivered.0 += batch.rows() as u64;
            for column in packets.into_iter().chain(reverse) {
                for row in 0..batch.rows() {
                    if let Value::Unsigned(count) = batch.value(row, column) {
                        delivered.1 += count;
                    }
                }
            }
            batch.clear();
        })
    })
    .expect("every configuration is in range");
    while let Ok(Some(batch)) = file.next_batch(7) {
        meter.frames(batch.frames());
    }
    let ledger = meter.finish().ledger;
    let delivered = *delivered.lock().expect("the holder does not panic");
    Some((ledger, delivered))
}
