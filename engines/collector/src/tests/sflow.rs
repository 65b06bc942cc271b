// SPDX-License-Identifier: Apache-2.0
//! Packets sampled by a switch.

use turboflow_record::Input;

use super::*;
use crate::builder::{FlowSample, first_bytes, of_format, sflow, words};

const NOW_NS: u64 = NOW_MS * 1_000_000;
const SAMPLE: FlowSample = FlowSample {
    sequence: 1,
    one_of: 1,
    dropped: 0,
    is_expanded: false,
};
/// An Ethernet frame with tag 33 and a TCP SYN of 60 bytes from 10.0.0.1:1024 to 10.0.0.2:443.
const FRAME: [u8; 58] = [
    2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0, 33, 8, 0, //
    0x45, 0x20, 0, 60, 0, 0, 0, 0, 61, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, //
    4, 0, 1, 187, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0,
];

fn frame() -> Vec<u8> {
    first_bytes(&FRAME, 78)
}

fn received(datagrams: Vec<Vec<u8>>, config: CollectorConfig) -> Outcome {
    let sent = datagrams.into_iter().map(|datagram| (1, datagram));
    run_with(sent.collect(), config, Some(NOW_NS))
}

/// One datagram with one sample.
fn one(sample: FlowSample, described: &[Vec<u8>]) -> Outcome {
    received(vec![sflow(1, &[sample.octets(described)])], CONFIG)
}

#[test]
fn a_sample_is_a_record_of_one_packet_at_the_time_it_came() {
    for is_expanded in [false, true] {
        let sample = FlowSample {
            is_expanded,
            ..SAMPLE
        };
        let outcome = one(sample, &[frame()]);
        assert_eq!(outcome.sums(), (1, 1, 60));
        let base = outcome.records[0];
        assert_eq!((base.first_ns, base.last_ns), (NOW_NS, NOW_NS));
        assert_eq!((base.tcp_flags, base.tos, base.max_ttl), (2, 0x20, 61));
        assert_eq!(base.max_length_bytes, 60);
        let counts = outcome.counts;
        assert_eq!((counts.flows, counts.records_sampled), (1, 0));
        assert_eq!(counts.messages_malformed, 0);
    }
}

#[test]
fn header_fields_stand_for_a_frame_that_is_not_there() {
    let v4 = [&words(&[60, 17]), &[10, 0, 0, 1][..], &[10, 0, 0, 2]].concat();
    let v4 = of_format(3, &[v4, words(&[1_024, 53, 0, 8])].concat());
    let outcome = one(SAMPLE, std::slice::from_ref(&v4));
    assert_eq!(outcome.sums(), (1, 1, 60));
    assert_eq!(outcome.records[0].tos, 8);
    let v6 = [words(&[1_280, 6]), vec![1; 16], vec![2; 16]].concat();
    let v6 = of_format(4, &[v6, words(&[1_024, 443, 0x12, 8])].concat());
    let outcome = one(SAMPLE, &[v6]);
    assert_eq!(outcome.sums(), (1, 1, 1_280));
    assert_eq!(outcome.records[0].tcp_flags, 0x12);
    // Both describe one packet, in any order.
    assert_eq!(one(SAMPLE, &[frame(), v4.clone()]).sums(), (1, 1, 60));
    let outcome = one(SAMPLE, &[v4.clone(), frame()]);
    assert_eq!(outcome.records[0].tcp_flags, 2);
    // A frame that cannot be read does not spoil the other description.
    let outcome = one(SAMPLE, &[v4, first_bytes(&[0; 6], 64)]);
    assert_eq!((outcome.sums(), outcome.records[0].tos), ((1, 1, 60), 8));
    // Counter samples and structures of other enterprises are not packets.
    let others = [
        of_format(2, &[0; 88]),
        of_format(4_242 << 12 | 1, &[0; 12]),
        SAMPLE.octets(&[of_format(1_005, &[0; 16]), frame()]),
    ];
    assert_eq!(received(vec![sflow(1, &others)], CONFIG).sums(), (1, 1, 60));
    let arp = [&FRAME[..12], &[8, 6], &[0; 28]].concat();
    let outcome = one(SAMPLE, &[first_bytes(&arp, 64)]);
    assert_eq!((outcome.sums().0, outcome.counts.records_not_flows), (0, 1));
}

#[test]
fn sampled_packets_are_counted_and_scaled_only_when_asked() {
    let sample = FlowSample {
        one_of: 512,
        ..SAMPLE
    };
    let datagram = sflow(1, &[sample.octets(&[frame()])]);
    let outcome = received(vec![datagram.clone()], CONFIG);
    assert_eq!(outcome.sums(), (1, 1, 60));
    assert_eq!(outcome.counts.records_sampled, 1);
    let scaling = CollectorConfig {
        scales_sampled: true,
        ..CONFIG
    };
    let outcome = received(vec![datagram], scaling);
    assert_eq!(outcome.sums(), (1, 512, 512 * 60));
}

#[test]
fn samples_that_are_missing_or_were_not_taken_are_losses() {
    let at = |sequence, dropped| {
        let sample = FlowSample {
            sequence,
            dropped,
            ..SAMPLE
        };
        sflow(sequence, &[sample.octets(&[frame()])])
    };
    let outcome = received(vec![at(1, 10), at(2, 10), at(6, 13), at(4, 11)], CONFIG);
    assert_eq!((outcome.sums().0, outcome.dropped), (4, 2));
    assert_eq!(outcome.counts.samples_dropped, 3);
    let outcome = received(vec![at(9_000, 90), at(1, 0), at(2, 1)], CONFIG);
    let counts = outcome.counts;
    assert_eq!((outcome.dropped, counts.sequence_restarts), (0, 1));
    assert_eq!(counts.samples_dropped, 1);
    // A count of drops that decreases has restarted.
    let outcome = received(vec![at(1, 90), at(2, 3), at(3, 5)], CONFIG);
    assert_eq!(outcome.counts.samples_dropped, 2);
    let twice = received(vec![at(1, 0), at(1, 0)], CONFIG);
    assert_eq!((twice.sums().0, twice.counts.messages_repeated), (1, 1));
}

#[test]
fn interfaces_and_tags_are_those_of_the_switch() {
    let definition = Definition::parse(
        "[key]\nfields = [\"source_address\", \"vlan\", \"ingress_interface\"]\n[[feature]]\n\
         name = \"out\"\nop = \"max\"\nof = \"egress_interface\"\n",
    )
    .expect("a definition");
    let layout = Layout::compile(&definition, false).expect("it compiles");
    let key_of = |described: &[Vec<u8>]| {
        let source = Sends {
            messages: [(1, sflow(1, &[SAMPLE.octets(described)]))].into(),
            received_ns: Some(NOW_NS),
        };
        let mut engine = CollectorEngine::new(Box::new(source), &layout, CONFIG);
        let mut words = Vec::new();
        while !engine.has_ended() {
            let mut batch = MicroflowBatch::default();
            engine.collect(&mut batch).expect("memory is readable");
            words.extend(batch.wide::<1>().flat_map(|record| record.key));
        }
        words
    };
    let tagged = key_of(&[frame()]);
    assert!(tagged.iter().any(|word| *word != 0));
    let mut untagged = FRAME.to_vec();
    untagged.drain(12..16);
    let untagged = first_bytes(&untagged, 74);
    let switch = |vlan| of_format(1_001, &words(&[vlan, 0, 44, 0]));
    assert_eq!(key_of(&[untagged.clone(), switch(33)]), tagged);
    assert_ne!(key_of(&[untagged.clone(), switch(34)]), tagged);
    assert_ne!(key_of(std::slice::from_ref(&untagged)), tagged);
    // The frame itself takes precedence.
    assert_eq!(key_of(&[frame(), switch(34)]), tagged);
    assert!(layout.needs().contains(Input::Vlan));
}

#[test]
fn datagrams_that_end_early_are_malformed_and_cost_nothing_before() {
    let samples = [1, 2].map(|sequence| {
        let sample = FlowSample { sequence, ..SAMPLE };
        sample.octets(&[frame()])
    });
    let whole = sflow(1, &samples);
    for length in 4..whole.len() {
        let outcome = received(vec![whole[..length].to_vec()], CONFIG);
        assert_eq!(outcome.counts.messages_malformed, 1, "{length} bytes");
        assert!(outcome.sums().0 < 2, "{length} bytes");
    }
    assert_eq!(received(vec![whole.clone()], CONFIG).sums().0, 2);
    // Without a time of arrival a datagram has no time; and lengths may be false.
    let outcome = run_with(vec![(1, whole.clone())], CONFIG, None);
    assert_eq!(outcome.counts.messages_malformed, 1);
    for at in (28..whole.len() - 3).step_by(4) {
        let mut lying = whole.clone();
        lying[at..at + 4].copy_from_slice(&u32::MAX.to_be_bytes());
        assert!(received(vec![lying], CONFIG).sums().0 <= 2);
    }
}

/// Samples of this many data sources for each of this many agents.
fn of_sources(agents: u32, sources: u32) -> Vec<Vec<u8>> {
    let samples: Vec<Vec<u8>> = (0..sources)
        .map(|source| {
            let mut sample = SAMPLE.octets(&[frame()]);
            sample[12..16].copy_from_slice(&source.to_be_bytes());
            sample
        })
        .collect();
    let of_agent = |agent: u32| {
        let mut datagram = sflow(1, &samples);
        datagram[12..16].copy_from_slice(&agent.to_be_bytes());
        datagram
    };
    (0..agents).map(of_agent).collect()
}

#[test]
fn data_sources_beyond_the_limits_are_counted() {
    let outcome = received(of_sources(1, 5_000), CONFIG);
    assert_eq!(outcome.sums().0, 5_000);
    assert_eq!(outcome.counts.samples_unchecked, 5_000 - 4_096);
    // The limit holds for all agents together; forgotten sources make room again.
    let outcome = received(of_sources(20, 4_000), CONFIG);
    assert_eq!(outcome.sums().0, 80_000);
    assert_eq!(outcome.counts.samples_unchecked, 80_000 - 65_536);
    let outcome = received(of_sources(600, 200), CONFIG);
    assert_eq!(outcome.counts.domains_forgotten, 600 - 256);
    assert_eq!(outcome.counts.samples_unchecked, 0);
}
