// SPDX-License-Identifier: Apache-2.0
use std::collections::HashMap;
use std::net::IpAddr;

use turboflow_record::{FiveTuple, TCP_SYN};

use super::incident::*;
use super::*;
use crate::workloads::{Kind, Workload, WorkloadConfig};

/// A day with a quarter of the usual traffic, so that it takes little time.
fn day(seen_at: SeenAt, seed: u64) -> Workload {
    let kind = Kind::Site(SiteConfig {
        flows_per_second: 1.0,
        ..SiteConfig::new(seen_at)
    });
    let config = WorkloadConfig {
        duration_ns: Some(DAY_NS),
        seed,
        ..WorkloadConfig::new(kind)
    };
    Workload::new(&config).unwrap()
}

fn offset_ns(arrival: &Arrival) -> u64 {
    arrival.timestamp_ns - SITE_START_NS
}

/// Checks the rates, the order of times and the course of the day.
#[test]
fn a_day_has_its_rates_and_its_order() {
    for seen_at in [SeenAt::Headquarters, SeenAt::Branch] {
        let mut day = day(seen_at, 1);
        let mut last_ns = 0;
        let mut by_hour = [0_u64; 24];
        for packet in day.by_ref() {
            assert!(packet.timestamp_ns >= last_ns);
            last_ns = packet.timestamp_ns;
            by_hour[(offset_ns(&packet) / (3_600 * SECOND_NS)) as usize] += 1;
        }
        let (found, asked) = (day.statistics(), day.asked());
        let near = |found: f64, asked: f64| (found / asked - 1.0).abs() < 0.1;
        assert!(near(found.flows_per_second(), asked.flows_per_second));
        assert!(near(found.packets_per_second(), asked.packets_per_second));
        assert!(near(found.mean_packet_bytes(), asked.mean_packet_bytes));
        assert!(by_hour[10] > 4 * by_hour[3], "{by_hour:?}");
        let flows = found.flows;
        assert_eq!(flows.births, flows.deaths + flows.active);
    }
}

/// Packets and TTL of each flow in a range of time, by direction.
fn flows(day: Workload, from_ns: u64, to_ns: u64) -> HashMap<FiveTuple, (u64, u8)> {
    let mut flows = HashMap::new();
    for packet in day {
        if (from_ns..to_ns).contains(&offset_ns(&packet)) {
            let flow = flows.entry(packet.five_tuple()).or_insert((0, 0));
            *flow = (flow.0 + 1, packet.packet().ttl);
        }
    }
    flows
}

/// Both routers see the same packets, except those that the line loses, one hop apart.
#[test]
fn two_routers_see_the_same_packets_but_those_that_the_line_loses() {
    for (from_ns, to_ns, lost) in [
        (0, LOSS_START_NS, false),
        (LOSS_START_NS, LOSS_END_NS, true),
    ] {
        let headquarters = flows(day(SeenAt::Headquarters, 7), from_ns, to_ns);
        let branch = flows(day(SeenAt::Branch, 7), from_ns, to_ns);
        assert!(branch.len() > 500);
        let (mut before, mut behind) = (0, 0);
        for (flow, (at_branch, ttl_at_branch)) in &branch {
            let is_up = matches!(flow.source(), IpAddr::V4(source) if source.octets()[1] == 30);
            let (at_headquarters, ttl) = headquarters.get(flow).copied().unwrap_or_default();
            let (first, second) = match is_up {
                true => (*at_branch, at_headquarters),
                false => (at_headquarters, *at_branch),
            };
            assert!(first >= second, "{flow:?}");
            if second > 0 {
                let (far, near) = if is_up {
                    (*ttl_at_branch, ttl)
                } else {
                    (ttl, *ttl_at_branch)
                };
                assert_eq!(far, near + 1);
            }
            (before, behind) = (before + first, behind + second);
        }
        let share = (before - behind) as f64 / before as f64 * 100.0;
        match lost {
            false => assert_eq!(before, behind),
            true => assert!((share - LOSS_PERCENT as f64).abs() < 0.5, "{share} %"),
        }
    }
}

#[test]
fn the_scan_and_the_exfiltration_are_those_of_the_incident() {
    let (mut probes, mut uploaded, mut answers) = (HashMap::new(), 0_u64, 0);
    for packet in day(SeenAt::Headquarters, 3) {
        let flow = packet.five_tuple();
        let (source, destination) = (flow.source(), flow.destination());
        if source == IpAddr::V4(SCAN_FROM) && packet.tcp_flags == TCP_SYN {
            *probes
                .entry((destination, flow.destination_port()))
                .or_insert(0) += 1;
        }
        answers += u32::from(destination == IpAddr::V4(SCAN_FROM));
        if (source, destination) == (EXFILTRATION_FROM.into(), EXFILTRATION_TO.into()) {
            let slack_ns = 60 * SECOND_NS;
            let when = EXFILTRATION_START_NS..EXFILTRATION_END_NS + slack_ns;
            assert!(when.contains(&offset_ns(&packet)));
            uploaded += u64::from(packet.ip_length_bytes);
        }
    }
    assert_eq!(probes.len(), SCAN_PROBES as usize);
    assert!(probes.values().all(|count| *count == 1));
    // Four hosts answer on twenty ports.
    assert_eq!(answers, 80);
    assert!((200_000_000..230_000_000).contains(&uploaded), "{uploaded}");
}
