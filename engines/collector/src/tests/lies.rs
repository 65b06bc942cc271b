// SPDX-License-Identifier: Apache-2.0
//! One exporter that lies costs a bounded amount of memory, and a counter.

use super::*;
use crate::builder::{netflow5, netflow9};
use crate::{MOST_DOMAINS, MOST_EXPORTERS};

#[test]
fn times_in_the_future_are_cut_to_the_export() {
    let future = Usual {
        start_ms: NOW_MS + 86_400_000,
        end_ms: NOW_MS + 86_500_000,
        ..flow(1, 3, 0)
    };
    let outcome = run(vec![message(0, &[future, flow(2, 1, 10)])]);
    assert_eq!(outcome.sums().1, 4);
    assert_eq!(outcome.counts.times_in_future, 1);
    let latest_ns = outcome.records.iter().map(|base| base.last_ns).max();
    assert_eq!(latest_ns, Some(NOW_MS * 1_000_000));
}

#[test]
fn a_clock_that_is_ahead_is_shifted() {
    let received_ns = (NOW_MS - 3_600_000) * 1_000_000;
    let outcome = run_with(
        vec![message(0, &[flow(1, 3, 4_000)])],
        CONFIG,
        Some(received_ns),
    );
    assert_eq!(outcome.counts.clocks_ahead, 1);
    assert_eq!(outcome.records[0].first_ns, received_ns - 4_000_000_000);
    assert_eq!(outcome.records[0].last_ns, received_ns - 2_000_000_000);
}

#[test]
fn records_that_end_before_they_begin_have_their_end() {
    let turned = Usual {
        start_ms: NOW_MS,
        end_ms: NOW_MS - 5_000,
        ..flow(1, 3, 0)
    };
    let timeless = Usual {
        start_ms: 0,
        end_ms: 0,
        ..flow(2, 3, 0)
    };
    let since_1970 = Usual {
        start_ms: 1,
        ..flow(3, 3, 0)
    };
    let outcome = run(vec![message(0, &[turned, timeless, since_1970])]);
    assert_eq!((outcome.sums().1, outcome.counts.times_wrong), (9, 3));
    assert!(
        outcome
            .records
            .iter()
            .all(|base| base.first_ns == base.last_ns)
    );
}

#[test]
fn sequence_numbers_that_go_back_are_no_loss() {
    let one = |sequence, number| message(sequence, &[flow(number, 1, 10)]);
    let outcome = run(vec![
        one(1_000_000, 1),
        one(5, 2),
        one(6, 3),
        one(3_000_000_000, 4),
    ]);
    assert_eq!((outcome.sums().0, outcome.dropped), (4, 0));
    assert_eq!(outcome.counts.sequence_restarts, 2);
}

#[test]
fn a_flood_of_templates_is_refused() {
    let mut sent = Vec::new();
    for first in 0..650u16 {
        let templates: Vec<u8> = (0..100)
            .flat_map(|at| template(256 + first * 100 + at, &[(8, 4), (500, 2), (2, 4)]))
            .collect();
        sent.push((1, ipfix(7, 0, NOW_S, &[set(2, &templates)])));
    }
    sent.push((2, message(0, &[flow(1, 1, 10)]).1));
    let outcome = run(sent);
    assert!(
        outcome.counts.templates_refused > 50_000,
        "{:?}",
        outcome.counts
    );
    assert_eq!(outcome.sums().0, 1, "others are not touched");
}

#[test]
fn templates_without_length_and_of_many_fields_are_refused() {
    let empty = set(2, &template(256, &[(8, 0), (12, 0)]));
    let long = set(2, &template(257, &[(8, 4); 3_000]));
    let data = set(256, &[1; 400]);
    let outcome = run(vec![(1, ipfix(7, 0, NOW_S, &[empty, long, data]))]);
    assert_eq!(outcome.counts.templates_refused, 2);
    assert_eq!(outcome.counts.sets_waiting_lost, 1);
}

#[test]
fn a_hundred_thousand_domains_keep_the_memory_of_a_few() {
    let template = usual_template();
    let domains = (0..100_000)
        .map(|domain| (1, ipfix(domain, 0, NOW_S, std::slice::from_ref(&template))))
        .collect();
    let outcome = run(domains);
    assert_eq!(outcome.known, (1, MOST_DOMAINS));
    assert_eq!(
        outcome.counts.domains_forgotten,
        100_000 - MOST_DOMAINS as u64
    );
    let exporters = (0..60_000)
        .map(|port| (port, ipfix(1, 0, NOW_S, std::slice::from_ref(&template))))
        .collect();
    let outcome = run(exporters);
    assert_eq!(outcome.known.0, MOST_EXPORTERS);
    assert_eq!(
        outcome.counts.exporters_forgotten,
        60_000 - MOST_EXPORTERS as u64
    );
}

#[test]
fn sets_without_a_template_wait_in_a_bounded_room() {
    let sent = (0..1_000)
        .map(|at| (1, ipfix(7, at, NOW_S, &[set(999, &[7; 1_000])])))
        .collect();
    let outcome = run(sent);
    // All are lost in the end: 65 of them waited, the others found no room.
    assert_eq!(outcome.counts.sets_waiting_lost, 1_000);
    assert_eq!(outcome.sums().0, 0);
}

#[test]
fn lengths_beyond_the_packet_end_the_message() {
    let (_, good) = message(0, &[flow(1, 1, 10)]);
    // A set that claims more than the message.
    let mut long_set = good.clone();
    let at = good.len() - records(&[flow(1, 1, 10)]).len() + 2;
    long_set[at] = 0xff;
    // A message that claims more than the datagram.
    let mut long_message = good.clone();
    long_message[2] = 0xff;
    let v5 = netflow5(0, NOW_S, 5, 0, &[[1, 1, 1, 1]])[..60].to_vec();
    let v9 = netflow9(1, 0, NOW_S, 5, &[])[..18].to_vec();
    let sent = vec![
        (1, long_set),
        (1, long_message),
        (1, v5),
        (1, v9),
        (1, vec![0]),
        (1, vec![]),
    ];
    let outcome = run(sent);
    assert_eq!(
        (outcome.counts.messages_malformed, outcome.sums().0),
        (6, 0)
    );
    // A value of variable length that claims more than its set.
    let fields = [(8, 4), (12, 4), (2, 4), (82, 65_535)];
    let mut record = vec![10, 0, 0, 1, 10, 0, 0, 2, 0, 0, 0, 1];
    record.extend([255, 255, 255, 1, 2, 3]);
    let sets = [set(2, &template(256, &fields)), set(256, &record)];
    let outcome = run(vec![(1, ipfix(7, 0, NOW_S, &sets))]);
    assert_eq!(outcome.sums().0, 0);
}

#[test]
fn packets_and_bytes_beyond_any_link_are_left_out() {
    let lie = Usual {
        packets: u64::MAX,
        bytes: u64::MAX,
        ..flow(1, 1, 10)
    };
    let nothing = Usual {
        packets: 0,
        ..flow(2, 1, 10)
    };
    let outcome = run(vec![message(0, &[lie, nothing, flow(3, 2, 10)])]);
    assert_eq!(outcome.sums(), (1, 2, 200));
    assert_eq!(outcome.counts.records_implausible, 1);
    assert_eq!(outcome.counts.records_not_flows, 1);
}

/// False claims of one exporter leave room in the sums for others, however many there are.
#[test]
fn an_exporter_that_claims_much_shuts_no_other_out() {
    for bytes in [1 << 52, (1 << 57) - 1, 1 << 45] {
        let lie = Usual {
            packets: 1 << 40,
            bytes,
            ..flow(1, 1, 10)
        };
        let mut sent: Vec<Sent> = (0..1_200).map(|at| message(at, &[lie])).collect();
        sent.push((2, message(0, &[flow(2, 2, 10)]).1));
        let outcome = run(sent);
        let honest = outcome.records.iter().filter(|base| base.packets == 2);
        assert_eq!(honest.count(), 1, "{bytes}");
    }
}

#[test]
fn an_exporter_that_starts_again_takes_no_loss_back() {
    let one = |sequence| message(sequence, &[flow(1, 1, 10)]);
    let sent = [1_000, 1_101, 7, 8, 9].map(one);
    let outcome = run(sent.into());
    assert_eq!((outcome.sums().0, outcome.dropped), (5, 100));
    assert_eq!(outcome.counts.sequence_restarts, 1);
}

#[test]
fn a_full_buffer_lets_the_oldest_go() {
    let flows: Vec<Usual> = (1..=20)
        .map(|at| flow(at, 1, u64::from(at) * 1_000))
        .collect();
    let sent: Vec<Sent> = (0..50).map(|at| message(at * 20, &flows)).collect();
    let config = CollectorConfig {
        lag_ns: Some(600_000_000_000),
        most_records: 100,
        ..CONFIG
    };
    let outcome = run_with(sent, config, None);
    assert_eq!(outcome.sums().0, 1_000);
    assert!(outcome.counts.released_early > 0);
    assert!(outcome.counts.records_late > 0);
}
