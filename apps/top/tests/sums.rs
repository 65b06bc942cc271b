// SPDX-License-Identifier: Apache-2.0
//! Compares the screen with plain sums of the records.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use crate::support::{Delta, batch, key, named_batch, schema, schema_with_applications};
use proptest::prelude::*;
use turboflow_formats::FlowWriter;
use turboflow_top::{
    BIN_NS, BINS_A_SECOND, FlowFilter, FlowKey, Picture, Screen, Sums, Traffic, TrafficWriter,
};

/// A time in the middle of a day.
const START_NS: u64 = 1_700_000_000 * 1_000_000_000;

fn deltas() -> impl Strategy<Value = Vec<Delta>> {
    let one = (0u8..6, 0u8..6, 0u16..3, 0u64..4, 0u64..2, 1u64..2_000);
    proptest::collection::vec(one, 1..150).prop_map(|drawn| {
        let mut bin = START_NS / BIN_NS;
        let delta = |(from, to, port, step, late, bytes): (u8, u8, u16, u64, u64, u64)| {
            bin += step / 3;
            let first_ns = (bin - late) * BIN_NS;
            let host = |number| IpAddr::V4(Ipv4Addr::new(10, 0, 0, number));
            Delta {
                key: FlowKey {
                    source: host(from),
                    destination: host(to),
                    source_port: 1_000 + port,
                    destination_port: port,
                    protocol: if port == 0 { 1 } else { 6 },
                },
                sums: Sums {
                    bytes,
                    packets: 1 + bytes / 1_000,
                },
                first_ns,
                last_ns: first_ns + BIN_NS - 1,
            }
        };
        drawn.into_iter().map(delta).collect()
    })
}

fn plain<K: Ord>(deltas: &[Delta], key: impl Fn(&Delta) -> K) -> BTreeMap<K, Sums> {
    let mut sums: BTreeMap<K, Sums> = BTreeMap::new();
    for delta in deltas {
        let known = sums.entry(key(delta)).or_default();
        *known = known.plus(delta.sums);
    }
    sums
}

fn shown(deltas: &[Delta]) -> (Traffic, Picture) {
    let mut traffic = Traffic::new(&schema());
    for part in deltas.chunks(7) {
        traffic.add(&batch(part));
    }
    let picture = traffic.picture(traffic.window(None, BINS_A_SECOND));
    (traffic, picture)
}

proptest! {
    #[test]
    fn totals_equal_plain_sums(deltas in deltas()) {
        let (_, picture) = shown(&deltas);
        let flows = picture.flows.iter().map(|row| (row.key, row.measured.total));
        prop_assert_eq!(flows.collect::<BTreeMap<_, _>>(), plain(&deltas, |delta| delta.key));
        let sent = picture.hosts.iter().map(|row| (row.address, row.sent.total));
        let sent = sent.filter(|(_, sums)| sums.packets > 0);
        prop_assert_eq!(sent.collect::<BTreeMap<_, _>>(), plain(&deltas, |delta| delta.key.source));
        let got = picture.hosts.iter().map(|row| (row.address, row.received.total));
        let got = got.filter(|(_, sums)| sums.packets > 0);
        let expected = plain(&deltas, |delta| delta.key.destination);
        prop_assert_eq!(got.collect::<BTreeMap<_, _>>(), expected);
        let protocols = picture.protocols.iter().map(|row| (row.protocol, row.measured.total));
        let expected = plain(&deltas, |delta| delta.key.protocol);
        prop_assert_eq!(protocols.collect::<BTreeMap<_, _>>(), expected);
        prop_assert_eq!(picture.all.total, plain(&deltas, |_| ())[&()]);
    }

    #[test]
    fn rates_equal_plain_sums_of_settled_bins(deltas in deltas(), back in 0u64..5, bins in 1u64..=20) {
        let (traffic, end) = shown(&deltas);
        let clock_ns = end.end_ns + back * BIN_NS;
        let window = traffic.window(Some(clock_ns), bins);
        prop_assert_eq!(window.end, clock_ns / BIN_NS - 2);
        let from = window.end - window.interval;
        let within = |delta: &&Delta| (from..window.end).contains(&(delta.last_ns / BIN_NS));
        let bytes: u64 = deltas.iter().filter(within).map(|delta| delta.sums.bytes).sum();
        let picture = traffic.picture(window);
        prop_assert_eq!(picture.all.now.bits, bytes * 8 * BINS_A_SECOND / window.interval);
        // Each row is rounded down.
        let flows: u64 = picture.flows.iter().map(|row| row.measured.now.bits).sum();
        prop_assert!(flows <= picture.all.now.bits);
        prop_assert!(picture.all.now.bits - flows <= picture.flows.len() as u64);
    }

    /// It does not matter when a flow's application is recognised, or whether it changes later.
    #[test]
    fn applications_are_the_sums_of_their_flows(
        deltas in deltas(),
        names in proptest::collection::vec(0usize..4, 150),
    ) {
        let known = [None, None, Some("TLS"), Some("DNS")];
        let names = names.into_iter().map(|name| known[name]);
        let named: Vec<_> = deltas.iter().copied().zip(names).collect();
        let mut traffic = Traffic::new(&schema_with_applications());
        for part in named.chunks(7) {
            traffic.add(&named_batch(part));
        }
        let mut last = BTreeMap::new();
        for (delta, name) in &named {
            let known = last.entry(delta.key).or_insert("(not known yet)");
            *known = name.unwrap_or(known);
        }
        // An interval in which rates are whole numbers.
        let picture = traffic.picture(traffic.window(None, BINS_A_SECOND));
        let mut expected: BTreeMap<&str, (Sums, u64, u64)> = BTreeMap::new();
        for flow in &picture.flows {
            let (total, bits, flows) = expected.entry(last[&flow.key]).or_default();
            *total = total.plus(flow.measured.total);
            *bits += flow.measured.now.bits;
            *flows += 1;
        }
        let shown = picture.applications.iter();
        let shown = shown.map(|row| (&*row.name, (row.measured.total, row.measured.now.bits, row.flows)));
        prop_assert_eq!(shown.collect::<BTreeMap<_, _>>(), expected);
    }

    #[test]
    fn a_filter_that_every_flow_passes_changes_no_sum(deltas in deltas()) {
        let (_, picture) = shown(&deltas);
        let mut all = Screen::default();
        all.set_filter("packets >= 0").unwrap();
        let (filtered, plain) = (all.arrange(&picture), Screen::default().arrange(&picture));
        prop_assert_eq!(&filtered.flows, &plain.flows);
        prop_assert_eq!(filtered.all.total, plain.all.total);
        let totals = |picture: &Picture| -> BTreeSet<_> {
            let hosts = picture.hosts.iter();
            hosts.map(|row| (row.address, row.sent.total, row.received.total, row.flows)).collect()
        };
        prop_assert_eq!(totals(&filtered), totals(&plain));
        let ports = |picture: &Picture| -> BTreeSet<_> {
            let rows = picture.ports.iter();
            rows.map(|row| (row.protocol, row.port, row.measured.total)).collect()
        };
        prop_assert_eq!(ports(&filtered), ports(&plain));
    }

    #[test]
    fn full_tables_keep_their_limits_and_the_sum(deltas in deltas()) {
        let mut traffic = Traffic::with_limits(&schema(), 8, 4, 4);
        traffic.add(&batch(&deltas));
        let picture = traffic.picture(traffic.window(None, BINS_A_SECOND));
        prop_assert!(picture.flows.len() <= 8 && picture.hosts.len() <= 4);
        prop_assert_eq!(picture.all.total, plain(&deltas, |_| ())[&()]);
        let distinct: BTreeSet<_> = deltas.iter().map(|delta| delta.key).collect();
        let has_left = picture.left.iter().any(|left| left.what == "flows");
        prop_assert_eq!(has_left, distinct.len() > 8);
    }
}

#[test]
fn a_large_flow_survives_a_flood_of_small_ones() {
    let large = key("10.0.0.1:1 > 10.0.0.2:80/6");
    let delta = |key, bytes, second: u64| Delta {
        key,
        sums: Sums { bytes, packets: 1 },
        first_ns: START_NS + second * 2 * BIN_NS,
        last_ns: START_NS + second * 2 * BIN_NS,
    };
    let mut traffic = Traffic::with_limits(&schema(), 100, 100, 100);
    for second in 0..20 {
        let small = |port: u16| FlowKey {
            destination_port: port + 1_000 * second as u16,
            ..key("10.0.0.3:9 > 10.0.0.4:0/17")
        };
        let mut deltas = vec![delta(large, 10_000, second)];
        deltas.extend((1..1_000).map(|port| delta(small(port), 40, second)));
        traffic.add(&batch(&deltas));
    }
    let picture = traffic.picture(traffic.window(None, BINS_A_SECOND));
    let first = &Screen::default().arrange(&picture).flows[0];
    assert_eq!((first.key, first.measured.total.bytes), (large, 200_000));
    assert!(picture.left.iter().any(|left| left.entries > 19_000));
}

#[test]
fn a_meter_never_waits_for_the_screen() {
    let delta = |port: u16| Delta {
        key: FlowKey {
            source_port: port,
            ..key("10.0.0.1:1 > 10.0.0.2:80/6")
        },
        sums: Sums {
            bytes: 100,
            packets: 1,
        },
        first_ns: START_NS,
        last_ns: START_NS,
    };
    let traffic = Arc::new(Mutex::new(Traffic::new(&schema())));
    let mut writer = Box::new(TrafficWriter::prompt(Arc::clone(&traffic)).unwrap());
    // While the screen holds the lock, for however long, no records can be added.
    let looking = traffic.lock().unwrap();
    for port in 1..=1_000 {
        writer.write(&batch(&[delta(port)])).unwrap();
    }
    drop(looking);
    assert_eq!(writer.finish().unwrap().records, 1_000);
    let traffic = traffic.lock().unwrap();
    let picture = traffic.picture(traffic.window(None, BINS_A_SECOND));
    let expected = Sums {
        bytes: 100_000,
        packets: 1_000,
    };
    assert_eq!(picture.all.total, expected);
    assert_eq!(picture.all.now.packets, 2_000);
    assert!((900..1_000).contains(&picture.skipped_records));
    assert_eq!(picture.flows.len() as u64 + picture.skipped_records, 1_000);
}

#[test]
fn filters_select_flows() {
    let flows = [
        ("10.0.0.1:1234 > 10.0.0.2:80/6", 5_000),
        ("10.0.0.2:80 > 10.0.0.1:1234/6", 500_000),
        ("10.0.0.3:53 > 10.9.0.1:5353/17", 100),
    ];
    let delta = |(text, bytes)| Delta {
        key: key(text),
        sums: Sums { bytes, packets: 1 },
        first_ns: START_NS,
        last_ns: START_NS,
    };
    let (_, picture) = shown(&flows.map(delta));
    for (text, passing) in [
        ("tcp", 2),
        ("port 53", 1),
        ("net 10.9.0.0/16 or host 10.0.0.1", 3),
        ("bps > 1M", 1),
        ("bytes < 6k and not udp", 1),
        ("src_addr in 10.0.0.2 and dst_port == 1234", 1),
    ] {
        let filter = FlowFilter::parse(text).unwrap();
        assert_eq!(picture.filtered(&filter).flows.len(), passing, "{text}");
    }
    let mut screen = Screen::default();
    let reason = screen.set_filter("bsp > 1").unwrap_err();
    assert!(
        reason.contains("unknown field") && !reason.contains('\n'),
        "{reason}"
    );
}
