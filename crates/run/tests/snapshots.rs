// SPDX-License-Identifier: Apache-2.0
//! The ledger during a run: what a snapshot counts as resident is exported if the run ends then.

use proptest::prelude::*;
use turboflow_engine_software::Sizing;
use turboflow_record::{InputValues, Packet};
use turboflow_run::{Ledger, Meter, PipelineConfig};
use turboflow_workload::sequences::{SequenceShape, random_packets};

/// Meters packets and finishes. Returns the last snapshot and the final ledger.
fn meter(
    config: &PipelineConfig,
    packets: &[(Packet, InputValues)],
    asked_every: usize,
) -> (Ledger, Ledger) {
    let meter = Meter::new(config, |_shard| Box::new(|_batch| {}));
    let mut meter = meter.expect("the defaults compile");
    for (index, (packet, values)) in packets.iter().enumerate() {
        meter.packet(packet, values);
        if index % asked_every == 0 {
            let snapshot = meter.snapshot();
            assert_eq!(snapshot.imbalances(), []);
            assert_eq!(snapshot.packets_received, index as u64 + 1);
        }
    }
    (meter.snapshot(), meter.finish().ledger)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn resident_packets_are_exported_at_the_end(
        seed in any::<u64>(), packets in 1_usize..3_000, threads in 1_usize..4,
        asked_every in 1_usize..1_000, slots in 1_u32..128,
    ) {
        let mut shape = SequenceShape::random(seed, packets);
        shape.options.biflow = false;
        let packets = random_packets(seed, &shape);
        let config = PipelineConfig {
            threads, seed, sizing: Sizing::Fixed(slots), ..PipelineConfig::default()
        };
        let (snapshot, ended) = meter(&config, &packets, asked_every);
        prop_assert_eq!(snapshot.imbalances(), []);
        prop_assert_eq!(ended.imbalances(), []);
        prop_assert_eq!(
            ended.packets_recorded, snapshot.packets_recorded + snapshot.packets_resident
        );
        prop_assert_eq!(ended.flows_exported.total(), ended.flows_opened);
        let left = (ended.packets_resident, ended.flows_resident, ended.microflows_resident);
        prop_assert_eq!(left, (0, 0, 0));
        // Snapshots do not change any record.
        let (_, unasked) = meter(&config, &packets, usize::MAX);
        prop_assert_eq!(ended.flows_exported, unasked.flows_exported);
    }
}
