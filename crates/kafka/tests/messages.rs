// SPDX-License-Identifier: Apache-2.0
//! Messages, before they are sent.

use std::collections::HashMap;

use turboflow_kafka::{Encoder, LANES, Totals, partition_of};

use crate::support::{batch, identity, records, schema, target};

/// All messages of two batches: key, bytes and totals.
fn messages(options: &str, batches: &[u64]) -> Vec<(Vec<u8>, Vec<u8>, Totals)> {
    let (schema, identity) = (schema(), identity());
    let target = target(&format!("kafka://a/t?{options}"));
    let mut encoder = Encoder::new(&target, &records(&schema, &identity)).unwrap();
    let mut messages = Vec::new();
    let mut first = 1;
    for rows in batches {
        encoder.encode(&batch(first, *rows), &mut |message| {
            messages.push((message.key.to_vec(), message.bytes.to_vec(), message.totals));
        });
        first += rows;
    }
    encoder.flush(&mut |message| {
        messages.push((message.key.to_vec(), message.bytes.to_vec(), message.totals));
    });
    messages
}

fn sum(messages: &[(Vec<u8>, Vec<u8>, Totals)]) -> Totals {
    let mut sum = Totals::default();
    messages.iter().for_each(|(.., totals)| sum.add(*totals));
    sum
}

#[test]
fn no_record_is_in_no_message_or_in_two() {
    let meant = Totals {
        records: 3_000,
        packets: 3_000 * 3_001 / 2,
        octets: 3_000 * 3_001,
    };
    for (options, most) in [
        ("", 1),
        ("records=100", 100),
        ("format=json&records=7", 7),
        ("format=arrow", 1_000),
        ("format=arrow&records=3", 3),
    ] {
        let all = messages(options, &[2_000, 1_000]);
        assert_eq!(sum(&all), meant, "{options}");
        assert!(all.iter().all(|(.., its)| its.records <= most), "{options}");
        // Each of the 48 lanes has about 42 records of the first batch.
        let is_full = all.iter().any(|(.., its)| its.records == most);
        assert!(is_full || most > 60, "{options}");
    }
}

/// Uses JSON, because it shows which flows a message contains.
#[test]
fn a_partition_has_both_directions_of_a_flow() {
    for options in ["format=json", "format=json&records=50"] {
        let mut partition_of_flow = HashMap::new();
        let mut lines = 0;
        for (key, bytes, _) in messages(options, &[4_000]) {
            for line in std::str::from_utf8(&bytes).unwrap().lines() {
                lines += 1;
                let part = |name: &str| {
                    let (_, rest) = line.split_once(&format!("\"{name}\":")).unwrap();
                    let end = rest.find([',', '}']).unwrap();
                    rest[..end].trim_matches('"').to_owned()
                };
                let mut ends = ["src", "dst"]
                    .map(|end| part(&format!("{end}_addr")) + " " + &part(&format!("{end}_port")));
                ends.sort();
                let partition = partition_of(&key, 6);
                let before = *partition_of_flow.entry(ends).or_insert(partition);
                assert_eq!(before, partition, "{line}");
            }
        }
        assert_eq!(lines, 4_000);
        let used: std::collections::HashSet<_> = partition_of_flow.values().collect();
        assert_eq!(used.len(), 6);
    }
    assert!(LANES.is_multiple_of(6));
}

#[test]
fn what_a_format_cannot_hold_is_refused() {
    let (schema, identity) = (schema(), identity());
    let mut records = records(&schema, &identity);
    records.is_biflow = true;
    let refused = |text: &str| {
        Encoder::new(&target(text), &records)
            .err()
            .map(|e| e.to_string())
    };
    let said = refused("kafka://a/t").unwrap();
    assert!(said.contains("format=arrow"), "{said}");
    assert_eq!(refused("kafka://a/t?format=arrow"), None);
}
