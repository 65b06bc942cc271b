// SPDX-License-Identifier: Apache-2.0
//! What honest exporters send.

use std::num::NonZeroU64;

use super::*;
use crate::builder::{netflow5, netflow9, options_template};

#[test]
fn records_have_what_the_exporter_sent() {
    let outcome = run(vec![message(0, &[flow(1, 10, 4_000), flow(2, 5, 2_000)])]);
    assert_eq!(outcome.sums(), (2, 15, 1_500));
    let base = outcome.records[0];
    assert_eq!(base.first_ns, (NOW_MS - 4_000) * 1_000_000);
    assert_eq!(base.last_ns, (NOW_MS - 2_000) * 1_000_000);
    assert_eq!(outcome.counts.flows, 2);
    assert_eq!(
        outcome.counts.times_wrong + outcome.counts.times_in_future,
        0
    );
}

#[test]
fn records_come_in_the_order_of_time() {
    let flows: Vec<Usual> = (1..50)
        .map(|at| flow(at, 1, u64::from(at * 37 % 50) * 1_000))
        .collect();
    let outcome = run(vec![message(0, &flows)]);
    assert_eq!(outcome.records.len(), 49);
    let seconds = outcome
        .records
        .iter()
        .map(|base| base.first_ns / 1_000_000_000);
    assert!(seconds.is_sorted());
}

#[test]
fn sets_wait_for_their_template() {
    let early = (
        1,
        ipfix(7, 0, NOW_S, &[records(&[flow(1, 10, 10), flow(2, 1, 10)])]),
    );
    let outcome = run(vec![early.clone(), message(2, &[flow(3, 1, 10)])]);
    assert_eq!(outcome.sums().1, 12);
    assert_eq!((outcome.dropped, outcome.counts.sets_waiting_lost), (0, 0));
    // The template never arrives: the gap in the numbers tells how many records were lost.
    let other = (1, ipfix(7, 2, NOW_S, &[set(300, &[0; 8])]));
    let outcome = run(vec![early.clone(), other]);
    assert_eq!((outcome.sums().0, outcome.dropped), (0, 2));
    assert_eq!(outcome.counts.sets_waiting_lost, 2);
    assert_eq!(outcome.counts.records_unread, 2);
    // A gap between other messages has another cause.
    let flows = [flow(3, 1, 10)];
    let sent = vec![
        early,
        message(2, &flows),
        message(3, &flows),
        message(9, &flows),
    ];
    let outcome = run(sent);
    assert_eq!((outcome.dropped, outcome.counts.records_unread), (5, 0));
}

#[test]
fn gaps_in_the_numbers_are_losses() {
    let one = |sequence| message(sequence, &[flow(sequence + 1, 1, 10)]);
    let outcome = run(vec![one(0), one(1), one(5), one(6), one(3)]);
    assert_eq!((outcome.sums().0, outcome.dropped), (5, 2));
    assert_eq!(outcome.counts.messages_late, 1);
    let outcome = run(vec![one(0), one(1), one(1)]);
    assert_eq!((outcome.sums().0, outcome.counts.messages_repeated), (2, 1));
    // NetFlow v9 counts messages, so the number of lost records is unknown.
    let v9 = |sequence| {
        let sets = [
            set(0, &template(256, USUAL)),
            records(&[flow(sequence + 1, 1, 10)]),
        ];
        (1, netflow9(3, sequence, NOW_S, 5_000, &sets))
    };
    let outcome = run(vec![v9(10), v9(11), v9(14)]);
    assert_eq!((outcome.dropped, outcome.counts.messages_lost), (0, 2));
    // NetFlow v5 counts flows.
    let v5 = |sequence| {
        (
            1,
            netflow5(sequence, NOW_S, 5_000, 0, &[[1, 40, 4_000, 4_000]; 3]),
        )
    };
    let outcome = run(vec![v5(0), v5(3), v5(9)]);
    assert_eq!((outcome.sums().0, outcome.dropped), (9, 3));
}

/// softflowd 1.1.0 numbers its messages by the flow records through their end, and does not count
/// records of options.
#[test]
fn numbers_through_the_end_of_messages_are_no_losses() {
    let counts = [23, 30, 27, 21, 24, 25];
    let mut sequence = 0;
    let sent = counts.map(|count| {
        sequence += count;
        let mut sets = vec![usual_template()];
        if matches!(count, 23 | 24) {
            let options = options_template(300, &[(302, 4), (305, 4), (306, 4)]);
            sets.push(set(3, &options));
            sets.push(set(300, &[0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0]));
        }
        let flows = (0..count).map(|at| flow(sequence + at, 1, 10));
        sets.push(records(&flows.collect::<Vec<_>>()));
        (1, ipfix(7, sequence, NOW_S, &sets))
    });
    let outcome = run(sent.to_vec());
    assert_eq!((outcome.sums().0, outcome.dropped), (150, 0));
    assert_eq!(outcome.counts.numbered_through, 1);
    assert_eq!(outcome.counts.sequence_restarts, 0);
    // Not the first or the last message: a gap before or after these cannot be seen.
    let inner = counts.into_iter().enumerate().take(5).skip(1);
    for (lost, count) in inner {
        let mut rest = sent.to_vec();
        rest.remove(lost);
        assert_eq!(run(rest).dropped, u64::from(count), "{lost}");
    }
}

#[test]
fn uptimes_become_times_also_across_their_wrap() {
    let flows = [[2, 80, u32::MAX - 1_999, 1_000]];
    let outcome = run(vec![(1, netflow5(0, NOW_S, 3_000, 0, &flows))]);
    let base = outcome.records[0];
    assert_eq!(base.first_ns, (NOW_MS - 5_000) * 1_000_000);
    assert_eq!(base.last_ns, (NOW_MS - 2_000) * 1_000_000);
    assert_eq!(outcome.counts.times_wrong, 0);
}

#[test]
fn both_directions_of_a_biflow_are_records() {
    let reverse = |id: u16| 0x8000 | id;
    let fields = [
        (8, 4),
        (12, 4),
        (7, 2),
        (11, 2),
        (4, 1),
        (2, 4),
        (1, 4),
        (reverse(2), 4),
        (reverse(1), 4),
        (152, 8),
        (153, 8),
    ];
    let mut record = vec![10, 0, 0, 1, 10, 0, 0, 2, 0, 9, 0, 80, 6];
    for number in [3u32, 300, 5, 5_000] {
        record.extend(number.to_be_bytes());
    }
    record.extend((NOW_MS - 10).to_be_bytes());
    record.extend(NOW_MS.to_be_bytes());
    let sets = [set(2, &template(256, &fields)), set(256, &record)];
    let outcome = run(vec![(1, ipfix(0, 0, NOW_S, &sets))]);
    assert_eq!(outcome.sums(), (2, 8, 5_300));
    assert_eq!(outcome.dropped, 0, "a biflow is one record of the sequence");
}

#[test]
fn sampled_records_are_counted_and_scaled_only_when_asked() {
    // A router that samples one packet of 100, and says so by an options template.
    let options = [
        set(3, &options_template(300, &[(302, 4), (305, 4), (306, 4)])),
        set(300, &[0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 99]),
    ];
    let sent = vec![
        (1, ipfix(7, 0, NOW_S, &options)),
        message(1, &[flow(1, 10, 10), flow(2, 3, 10)]),
    ];
    let outcome = run(sent.clone());
    assert_eq!(outcome.sums(), (2, 13, 1_300));
    assert_eq!(
        (
            outcome.counts.records_sampled,
            outcome.counts.records_scaled
        ),
        (2, 0)
    );
    let scaling = CollectorConfig {
        scales_sampled: true,
        ..CONFIG
    };
    let outcome = run_with(sent, scaling, None);
    assert_eq!(outcome.sums(), (2, 1_300, 130_000));
    assert_eq!(outcome.counts.records_scaled, 2);
    // A v5 header contains the interval, after two bits for the mode.
    let sampled = netflow5(0, NOW_S, 5_000, 0x4000 | 10, &[[7, 700, 1_000, 2_000]]);
    let outcome = run_with(vec![(1, sampled)], scaling, None);
    assert_eq!(outcome.sums(), (1, 70, 7_000));
}

#[test]
fn seven_days_of_a_sampled_router_add_up() {
    // One in 512 of a link with the same traffic every minute, exported each minute in v9.
    let minutes = 7 * 24 * 60;
    let scope = [0u8, 1, 0, 4, 0, 34, 0, 4, 0, 35, 0, 1];
    let mut options = vec![1, 44, 0, 4, 0, 8];
    options.extend(scope);
    let started_s = NOW_S - minutes * 60;
    let mut sent = Vec::new();
    for minute in 0..minutes {
        let now_s = started_s + minute * 60;
        let mut sets = vec![set(0, &template(256, USUAL))];
        if minute == 0 {
            sets.push(set(1, &options));
            sets.push(set(300, &[0, 0, 0, 0, 0, 0, 2, 0, 1]));
        }
        let sampled: Vec<Usual> = (1..=5)
            .map(|number| Usual {
                start_ms: u64::from(now_s - 59) * 1_000,
                end_ms: u64::from(now_s) * 1_000,
                ..flow(number, u64::from(number), 0)
            })
            .collect();
        sets.push(records(&sampled));
        sent.push((1, netflow9(1, minute, now_s, minute * 60_000, &sets)));
    }
    let config = CollectorConfig {
        scales_sampled: true,
        lag_ns: Some(120_000_000_000),
        ..CONFIG
    };
    let outcome = run_with(sent, config, None);
    let packets = u64::from(minutes) * 15 * 512;
    assert_eq!(
        outcome.sums(),
        (minutes as usize * 5, packets, packets * 100)
    );
    let counts = outcome.counts;
    assert_eq!(
        (
            counts.records_late,
            counts.released_early,
            counts.messages_lost
        ),
        (0, 0, 0)
    );
}

#[test]
fn records_with_packets_of_two_windows_are_counted() {
    // The first record lasts from 3 s to 1 s before a multiple of a minute, the second past it.
    let boundary_ms = u64::from(NOW_S / 60 * 60) * 1_000;
    let [before, across] = [1_000, 0].map(|early_ms| Usual {
        start_ms: boundary_ms - 3_000,
        end_ms: boundary_ms - early_ms,
        ..flow(1, 1, 0)
    });
    let sets = [usual_template(), records(&[before, across])];
    let sent = vec![(1, ipfix(7, 0, NOW_S, &sets))];
    for (minutes, counted) in [(None, 0), (Some(1), 1)] {
        let config = CollectorConfig {
            window_ns: minutes.and_then(|its| NonZeroU64::new(its * 60_000_000_000)),
            ..CONFIG
        };
        let outcome = run_with(sent.clone(), config, None);
        assert_eq!(outcome.counts.records_across_windows, counted);
    }
}

#[test]
fn late_records_are_merged_and_counted() {
    let config = CollectorConfig {
        lag_ns: Some(10_000_000_000),
        ..CONFIG
    };
    let later = |sequence: u32, export_s, ago_ms| {
        let sets = [usual_template(), records(&[flow(sequence + 1, 1, ago_ms)])];
        (1, ipfix(7, sequence, export_s, &sets))
    };
    let sent = vec![
        later(0, NOW_S, 1_000),
        later(1, NOW_S + 60, 0),
        later(2, NOW_S + 60, 30_000),
    ];
    // The clock passes while the exporter is silent: the second message comes a minute later.
    let outcome = run_with(sent, config, None);
    assert_eq!(outcome.sums().0, 3);
    assert_eq!(outcome.counts.records_late, 1);
}
