// SPDX-License-Identifier: Apache-2.0
use std::collections::HashMap;

use proptest::prelude::*;
use turboflow_packet::{Parser, ParserConfig};
use turboflow_record::{TCP_FIN, TCP_SYN};

use super::*;

const SECOND_NS: u64 = 1_000_000_000;

fn workload(kind: Kind, duration_ns: u64, seed: u64) -> Workload {
    let config = WorkloadConfig {
        duration_ns: Some(duration_ns),
        seed,
        ..WorkloadConfig::new(kind)
    };
    Workload::new(&config).unwrap()
}

fn internet() -> Kind {
    Kind::Internet(InternetConfig::default())
}

fn data_center(switch: Switch) -> Kind {
    Kind::DataCenter(DataCenterConfig::new(switch))
}

/// The kinds of traffic, with durations in which tens of thousands of flows begin.
fn kinds() -> [(Kind, u64); 3] {
    [
        (internet(), 2 * SECOND_NS),
        (data_center(Switch::TopOfRack), SECOND_NS / 20),
        (data_center(Switch::Aggregation), SECOND_NS / 20),
    ]
}

#[track_caller]
fn within(percent: f64, found: f64, asked: f64) {
    let off = 100.0 * (found / asked - 1.0);
    assert!(
        off.abs() <= percent,
        "{found} instead of {asked}: {off:.1} %"
    );
}

#[test]
fn rates_meet_table_6_within_a_tenth() {
    for seed in 1..4 {
        for (kind, duration_ns) in kinds() {
            let mut workload = workload(kind, duration_ns, seed);
            workload.by_ref().for_each(drop);
            let (hit, asked) = (workload.statistics(), workload.asked());
            within(10.0, hit.packets_per_second(), asked.packets_per_second);
            within(10.0, hit.flows_per_second(), asked.flows_per_second);
            within(10.0, hit.bits_per_second(), asked.bits_per_second());
            within(10.0, hit.mean_flow_packets(), asked.mean_flow_packets());
        }
    }
}

#[test]
fn an_internet_link_has_the_requested_rates_over_the_whole_range_of_table_6() {
    for (packets_per_second, flows_per_second) in [(250e3, 5e3), (600e3, 40e3), (250e3, 40e3)] {
        let kind = Kind::Internet(InternetConfig {
            packets_per_second,
            flows_per_second,
            ..InternetConfig::default()
        });
        let mut workload = workload(kind, 4 * SECOND_NS, 1);
        workload.by_ref().for_each(drop);
        let hit = workload.statistics();
        within(5.0, hit.packets_per_second(), packets_per_second);
        within(5.0, hit.flows_per_second(), flows_per_second);
    }
}

/// A link that starts empty would take minutes to reach its rate.
#[test]
fn an_internet_link_begins_in_its_steady_state() {
    let mut workload = workload(internet(), 10 * SECOND_NS, 1);
    let began = workload.statistics().flows.active;
    assert!(began > 100_000);
    let mut packets = [0_u64; 10];
    let start_ns = workload.statistics().start_ns;
    for packet in &mut workload {
        packets[((packet.timestamp_ns - start_ns) / SECOND_NS) as usize] += 1;
    }
    for packets in packets {
        within(10.0, packets as f64, 450e3);
    }
    within(5.0, workload.statistics().flows.active as f64, began as f64);
}

/// Packets per flow, and whether the flow began and ended.
fn flows_of(workload: &mut Workload) -> HashMap<u64, (u64, bool, bool)> {
    let mut flows = HashMap::new();
    for packet in workload {
        let flow: &mut (u64, bool, bool) = flows.entry(packet.flow).or_default();
        flow.0 += 1;
        flow.1 |= packet.tcp_flags & TCP_SYN != 0;
        flow.2 |= packet.tcp_flags & TCP_FIN != 0;
    }
    flows
}

#[test]
fn births_are_the_flows_that_appear() {
    const AT_THE_EDGES: u64 = 32;
    for (kind, duration_ns) in kinds() {
        let mut workload = workload(kind, duration_ns, 1);
        let before = workload.statistics().flows.active;
        let flows = flows_of(&mut workload);
        let counts = workload.statistics().flows;
        let seen = flows.len() as u64;
        assert_eq!(counts.seen, seen);
        // Some flows that are active at the first packet send nothing in this time. A few have
        // ended, and only their acknowledgements cross the switch.
        assert!(seen + AT_THE_EDGES >= counts.births, "{counts:?} {seen}");
        assert!(
            seen <= counts.births + before + AT_THE_EDGES,
            "{counts:?} {seen}"
        );
        assert_eq!(before + counts.births, counts.active + counts.deaths);
        assert!(flows.values().all(|&(packets, ..)| packets > 0));
    }
}

#[test]
fn flows_open_with_syn_and_close_with_fin() {
    let mut workload = workload(data_center(Switch::TopOfRack), SECOND_NS / 100, 1);
    let flows = flows_of(&mut workload);
    let large = flows.values().filter(|&&(packets, ..)| packets > 2);
    let (whole, all) = large.fold((0, 0), |(whole, all), &(_, opened, closed)| {
        (whole + u64::from(opened && closed), all + 1)
    });
    assert!(whole * 100 > all * 98, "{whole} of {all}");
}

#[test]
fn data_center_flows_have_the_published_sizes() {
    let mut workload = workload(data_center(Switch::TopOfRack), SECOND_NS / 10, 1);
    let flows = flows_of(&mut workload);
    let all = flows.len() as f64;
    for (packets, up_to) in FLOW_PACKETS {
        // Each packet has an acknowledgement.
        let held = flows
            .values()
            .filter(|&&(count, ..)| count as f64 <= 2.0 * packets)
            .count();
        assert!((held as f64 / all - up_to).abs() < 0.01, "{packets}");
    }
}

#[test]
fn internet_flows_have_a_heavy_tail() {
    let mut workload = workload(internet(), 4 * SECOND_NS, 1);
    let mut sizes: Vec<u64> = flows_of(&mut workload)
        .values()
        .map(|flow| flow.0)
        .collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let packets: u64 = sizes.iter().sum();
    let head: u64 = sizes[..sizes.len() / 100].iter().sum();
    assert!(head * 10 > packets * 3, "{head} of {packets}");
    let singles = sizes.iter().filter(|&&size| size == 1).count();
    assert!(singles * 10 > sizes.len());
}

#[test]
fn no_two_flows_share_a_key() {
    for (kind, duration_ns) in kinds() {
        let mut keys = HashMap::new();
        for packet in workload(kind, duration_ns / 5, 1) {
            let of_key = *keys.entry(packet.five_tuple()).or_insert(packet.flow);
            assert_eq!(of_key, packet.flow);
        }
    }
}

#[test]
fn rates_beyond_time_resolution_or_memory_are_refused() {
    let check = |packets_per_second, flows_per_second| {
        let config = InternetConfig {
            packets_per_second,
            flows_per_second,
            ipv6_share: 0.0,
        };
        config.check()
    };
    let refused = |outcome| matches!(outcome, Err(WorkloadError::PacketRate { .. }));
    assert!(refused(check(1e12, 1e12)) && refused(check(f64::NAN, 1.0)));
    let outcome = check(1e9, 2e7);
    assert!(
        matches!(outcome, Err(WorkloadError::ActiveFlows { .. })),
        "{outcome:?}"
    );
    check(100e6, 2e6).unwrap();
}

/// Gaps between births are rounded to nanoseconds without a drift of the rate.
#[test]
fn close_births_keep_the_requested_rate() {
    let config = InternetConfig {
        packets_per_second: 1e9,
        flows_per_second: 1e9,
        ipv6_share: 0.0,
    };
    let mut workload = workload(Kind::Internet(config), SECOND_NS / 1_000, 1);
    while workload.next_packet().is_some() {}
    let births = workload.statistics().flows.births as f64;
    assert!((births / 1e6 - 1.0).abs() < 0.01, "{births}");
}

/// At such a low rate, the timestamps may end before all requested packets have come.
#[test]
fn a_workload_ends_with_the_last_timestamp() {
    for seed in 0..100 {
        let config = InternetConfig {
            packets_per_second: 3e-10,
            flows_per_second: 3e-10,
            ipv6_share: 0.0,
        };
        let config = WorkloadConfig {
            packets: Some(4),
            seed,
            ..WorkloadConfig::new(Kind::Internet(config))
        };
        let mut workload = Workload::new(&config).unwrap();
        let mut count = 0;
        while workload.next_packet().is_some() {
            count += 1;
        }
        assert!((1..=4).contains(&count), "{count}");
    }
}

#[test]
fn frames_match_the_packets() {
    let of_both_families = InternetConfig {
        ipv6_share: 0.5,
        ..InternetConfig::default()
    };
    let of_both_families = Kind::Internet(of_both_families);
    let kinds = kinds().into_iter().map(|(kind, _)| kind);
    for kind in kinds.chain([of_both_families]) {
        let config = WorkloadConfig {
            packets: Some(20_000),
            snap_length_bytes: Some(80),
            ..WorkloadConfig::new(kind)
        };
        let (mut by_frame, mut by_packet) = (
            Workload::new(&config).unwrap(),
            Workload::new(&config).unwrap(),
        );
        let mut parser = Parser::new(ParserConfig::default());
        let mut buffer = FrameBuffer::with_capacity(300, 64);
        while by_frame.fill(&mut buffer, 300) > 0 {
            for frame in buffer.frames() {
                let packet = by_packet.next_packet().unwrap();
                let parsed = parser.parse(&frame).unwrap();
                assert_eq!(parsed, packet.packet());
            }
        }
        assert!(by_packet.next_packet().is_none());
        let (mut by_frame, by_packet) = (by_frame.statistics(), by_packet.statistics());
        assert!((1..=80 * 20_000).contains(&by_frame.captured_bytes));
        by_frame.captured_bytes = 0;
        assert_eq!(by_frame, by_packet);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn time_never_runs_back_and_a_seed_repeats_a_workload(
        seed: u64,
        which in 0..3_usize,
        load in 0.01..0.95,
        flows_per_second in 1e3..40e3,
    ) {
        let kind = match kinds()[which].0 {
            Kind::DataCenter(config) => Kind::DataCenter(DataCenterConfig { load, ..config }),
            Kind::Internet(config) => Kind::Internet(InternetConfig { flows_per_second, ..config }),
            other => other,
        };
        let config = WorkloadConfig { packets: Some(3_000), seed, ..WorkloadConfig::new(kind) };
        let packets: Vec<_> = Workload::new(&config).unwrap().collect();
        prop_assert_eq!(packets.len(), 3_000);
        let in_order = |pair: &[Arrival]| pair[0].timestamp_ns <= pair[1].timestamp_ns;
        prop_assert!(packets.windows(2).all(in_order));
        prop_assert!(packets[0].timestamp_ns >= config.start_ns);
        prop_assert!(Workload::new(&config).unwrap().eq(packets));
    }
}

#[test]
fn one_packet_per_century_is_possible() {
    let kind = Kind::Internet(InternetConfig {
        packets_per_second: 3e-10,
        flows_per_second: 3e-10,
        ipv6_share: 0.0,
    });
    let century_ns = 100 * 365 * 86_400 * SECOND_NS;
    let mut workload = workload(kind, 4 * century_ns, 1);
    assert!((1..20).contains(&workload.by_ref().count()));
    assert!(workload.statistics().last_ns < workload.statistics().start_ns + 4 * century_ns);
}

#[test]
fn impossible_configurations_are_refused() {
    let rates = |packets_per_second, flows_per_second| {
        Kind::Internet(InternetConfig {
            packets_per_second,
            flows_per_second,
            ..InternetConfig::default()
        })
    };
    for (kind, words) in [
        (
            rates(10.0, 20.0),
            "20 new flows per second cannot come from 10",
        ),
        (rates(0.0, 1.0), "0 packets per second"),
        (rates(f64::NAN, 1.0), "NaN packets per second"),
        (rates(1.0, 0.0), "0 new flows per second"),
        (rates(1e9, 1.0), "flows of 1000000000.0 packets"),
        (
            Kind::Internet(InternetConfig {
                ipv6_share: 1.1,
                ..InternetConfig::default()
            }),
            "share of IPv6 1.1",
        ),
        (
            Kind::DataCenter(DataCenterConfig {
                switch: Switch::TopOfRack,
                load: 1.0,
            }),
            "load 1",
        ),
    ] {
        let error = WorkloadConfig::new(kind).check().unwrap_err().to_string();
        assert!(error.starts_with(words), "{error}");
    }
    let config = WorkloadConfig::new(internet());
    for (config, words) in [
        (
            WorkloadConfig {
                packets: Some(0),
                ..config
            },
            "0 packets",
        ),
        (
            WorkloadConfig {
                duration_ns: Some(0),
                ..config
            },
            "0 packets",
        ),
        (
            WorkloadConfig {
                snap_length_bytes: Some(63),
                ..config
            },
            "snap length 63",
        ),
        (
            WorkloadConfig {
                packets: Some(30),
                ..WorkloadConfig::new(rates(1e-9, 1e-9))
            },
            "traffic that ends after the year 2495",
        ),
        (
            WorkloadConfig {
                duration_ns: Some(u64::MAX),
                ..config
            },
            "traffic that ends after the year 2495",
        ),
    ] {
        let error = config.check().unwrap_err().to_string();
        assert!(error.starts_with(words), "{error}");
    }
}
