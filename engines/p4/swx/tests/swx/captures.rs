// SPDX-License-Identifier: Apache-2.0
//! Flow records of all captures by the P4 program on DPDK's pipeline, beside those of the software
//! engine: byte by byte the same, whatever the size of the table.

use std::sync::{Arc, Mutex};

use turboflow_testing::{Need, is_missing};

use crate::support::{Run, Shared, captures, flows_in_software, flows_on_pipeline, port};

fn all_captures_with(slots: u32) {
    let swx = Need::Engine("swx", cfg!(feature = "dpdk"));
    if is_missing(&[swx, Need::Captures, Need::Cases]) {
        return;
    }
    let captures = captures();
    let port = Arc::new(Mutex::new(port("default")));
    let (mut packets, mut punted, mut differ) = (0, 0, Vec::new());
    for path in captures {
        let expected = flows_in_software(&path);
        let found = flows_on_pipeline(&path, Shared(Arc::clone(&port)), slots);
        let Run { ledger, .. } = &found;
        assert_eq!(ledger.imbalances_at_the_end(), [], "{}", path.display());
        packets += ledger.packets_recorded;
        punted += ledger.microflows_evicted.bypass;
        if let Some(difference) = expected.difference(&found) {
            differ.push(format!("{}: {difference}", path.display()));
        }
    }
    eprintln!("{slots} slots: {packets} packets, {punted} of them by the receiver's parser");
    assert!(
        differ.is_empty(),
        "{} differ:\n{}",
        differ.len(),
        differ.join("\n")
    );
    assert!(packets > 100_000 && punted > 0 && punted * 10 < packets);
}

#[test]
fn with_64_slots() {
    all_captures_with(64);
}

#[test]
fn with_1024_slots() {
    all_captures_with(1_024);
}

#[test]
fn with_65536_slots() {
    all_captures_with(65_536);
}
