// SPDX-License-Identifier: Apache-2.0
//! Reports that are lost on their way from the pipeline are in the ledger, to the packet.

use std::path::Path;
use std::sync::{Arc, Mutex};

use turboflow_testing::{Need, is_missing};

use crate::support::{LosesReports, Lost, Shared, flows_on_pipeline, port};

#[test]
fn one_lost_report_in_a_hundred_is_named_to_the_packet() {
    if is_missing(&[Need::Engine("swx", cfg!(feature = "dpdk"))]) {
        return;
    }
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../samples/office.pcap");
    let whole = flows_on_pipeline(&sample, port("default"), 64).ledger;
    for every in [1, 3, 100] {
        let lost = Arc::new(Mutex::new(Lost::default()));
        let port = LosesReports {
            port: Shared(Arc::new(Mutex::new(port("default")))),
            every,
            came: 0,
            lost: Arc::clone(&lost),
        };
        let ledger = flows_on_pipeline(&sample, port, 64).ledger;
        let lost = *lost.lock().unwrap();
        assert!(lost.records > 0, "{lost:?}");
        assert_eq!(ledger.microflows_dropped, lost.records);
        assert_eq!(ledger.source_dropped, lost.packets + lost.frames);
        assert_eq!(
            ledger.packets_recorded,
            whole.packets_recorded - lost.packets
        );
        assert_eq!(ledger.bytes_recorded, whole.bytes_recorded - lost.bytes);
        assert_eq!(ledger.imbalances_at_the_end(), [], "every {every}");
    }
}
