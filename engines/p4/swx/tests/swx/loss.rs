// SPDX-License-Identifier: Apache-2.0
//! Reports that are lost on their way from the pipeline are in the ledger, exact to the packet.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use turboflow_engine_p4::{Port, SwxPort};
use turboflow_testing::is_missing;

use crate::support::flows_on_pipeline;
use crate::{SWX, port};

#[test]
fn one_lost_report_in_a_hundred_is_named_to_the_packet() {
    if is_missing(&[SWX]) {
        return;
    }
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../samples/office.pcap");
    let whole = flows_on_pipeline(&sample, port("default"), 64).ledger;
    for every in [1, 3, 100] {
        let lost = Arc::new(Mutex::new(Lost::default()));
        let port = LosesReports {
            port: port("default"),
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

/// What a lossy port has lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lost {
    records: u64,
    /// Packets and bytes in these records.
    packets: u64,
    bytes: u64,
    /// Frames that the pipeline handed up and that were lost.
    frames: u64,
}

/// A port that loses some of the records that the pipeline sends, and some of the frames that it
/// hands up.
struct LosesReports {
    port: SwxPort,
    /// One out of this many is lost.
    every: u64,
    came: u64,
    lost: Arc<Mutex<Lost>>,
}

impl Port for LosesReports {
    fn name(&self) -> &str {
        "lossy swx"
    }

    fn send(&mut self, parts: &[&[u8]]) {
        self.port.send(parts);
    }

    fn exchange(&mut self, wait: bool, take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        const STATUS: u8 = 4;
        const PUNTED: u8 = 5;
        let (every, came) = (self.every, &mut self.came);
        let mut lost = self.lost.lock().unwrap();
        self.port.exchange(wait, &mut |frame| {
            let cause = frame[15];
            *came += u64::from(cause != STATUS);
            if cause == STATUS || !came.is_multiple_of(every) {
                return take(frame);
            }
            if cause == PUNTED {
                lost.frames += 1;
                return;
            }
            let word = |at: usize| u64::from_be_bytes(frame[at..][..8].try_into().unwrap());
            lost.records += 1;
            lost.packets += word(14 + 16 + 40);
            lost.bytes += word(14 + 16 + 48);
        })
    }
}
