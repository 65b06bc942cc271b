// SPDX-License-Identifier: Apache-2.0
//! Which share of the packets is inspected.

use std::path::Path;

use turboflow_inspect::InspectCounters;
use turboflow_packet::ParserConfig;
use turboflow_testing::{Need, captures_folder, is_missing};

use crate::support::{LIBRARY, Texts, captures, config, inspect};

/// The number of packets in a capture, and the counters of their inspection.
fn counted(path: &Path) -> (u64, InspectCounters) {
    let parser = ParserConfig::default();
    let inspected = inspect(path, parser, config(), &Texts::default(), |_, _| true);
    let counters = inspected.counters;
    let taps = counters.packets_inspected + counters.packets_late + counters.taps_lost;
    assert_eq!(taps, counters.taps, "{counters:?}");
    let ended =
        counters.inspections_decided + counters.inspections_gave_up + counters.inspections_dropped;
    assert_eq!(ended, counters.inspections_opened, "{counters:?}");
    assert_eq!((counters.taps_lost, counters.restarts), (0, 0));
    (inspected.packets, counters)
}

#[test]
fn few_packets_are_looked_at() {
    if is_missing(&[LIBRARY, Need::Captures]) {
        return;
    }
    let (mut packets, mut looked_at) = (0, 0);
    for path in captures("l7") {
        let (all, counters) = counted(&path);
        packets += all;
        looked_at += counters.packets_inspected;
    }
    println!("l7: {looked_at} of {packets}");
    assert!(looked_at * 100 <= packets * 30, "{looked_at} of {packets}");
    let large = captures_folder().unwrap().join("large");
    let (all, counters) = counted(&large.join("ndpi42__netflix.pcap"));
    println!("netflix: {counters:?} of {all}");
    let looked_at = counters.packets_inspected;
    assert!(looked_at * 1000 <= all * 65, "{looked_at} of {all}");
}
