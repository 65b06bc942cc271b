// SPDX-License-Identifier: Apache-2.0
//! The process: its privileges, how it ends, its memory, and that its answers are reproducible.

use rustix::process::{Pid, Signal, kill_process};
use turboflow_inspect::{FlowKey, InspectConfig, InspectError, Inspection, PacketLimits};
use turboflow_packet::ParserConfig;
use turboflow_testing::{Need, captures_folder, is_missing, until};

use crate::support::{LIBRARY, Texts, config, each_packet, inspect, udp};

fn status(process: u32, name: &str) -> String {
    let path = format!("/proc/{process}/status");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut lines = text.lines().filter_map(|line| line.split_once(":\t"));
    let found = lines.find(|(known, _)| *known == name);
    found.map_or_else(String::new, |(_, value)| value.trim().to_owned())
}

fn signal(process: u32, signal: Signal) {
    let process = Pid::from_raw(process.try_into().unwrap()).unwrap();
    kill_process(process, signal).unwrap();
}

#[test]
fn the_process_has_no_rights() {
    if is_missing(&[LIBRARY]) {
        return;
    }
    let texts = Texts::default();
    let inspection = Inspection::start(config(), &texts).unwrap();
    let process = inspection.process_id().unwrap();
    // The process reports that it is ready after it has dropped its privileges.
    for (name, value) in [
        ("NoNewPrivs", "1"),
        ("Seccomp", "2"),
        ("CapEff", "0000000000000000"),
        ("CapPrm", "0000000000000000"),
        ("CapInh", "0000000000000000"),
        ("CapAmb", "0000000000000000"),
        ("Threads", "1"),
    ] {
        assert_eq!(status(process, name), value, "{name}");
    }
    let user = status(process, "Uid");
    assert!(!user.split_whitespace().any(|id| id == "0"), "{user}");
    let limits = std::fs::read_to_string(format!("/proc/{process}/limits")).unwrap();
    for (name, limit) in [
        ("Max open files", "3"),
        ("Max processes", "0"),
        ("Max file size", "0"),
        ("Max core file size", "0"),
        ("Max address space", "536870912"),
    ] {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        let value = line[name.len()..].split_whitespace().next();
        assert_eq!(value, Some(limit), "{line}");
    }
    assert!(inspection.names().library.starts_with("nDPI "));
    drop(inspection);
    assert_eq!(status(process, "State"), "", "it ends with the inspection");
}

#[test]
fn a_process_that_cannot_work_says_why() {
    if is_missing(&[LIBRARY]) {
        return;
    }
    let texts = Texts::default();
    let start = |config| Inspection::start(config, &texts).err();
    let small = InspectConfig {
        memory_bytes: 1 << 20,
        ..config()
    };
    let said = start(small).unwrap().to_string();
    assert!(
        said.contains("memory") || said.contains("version"),
        "{said}"
    );
    let absent = InspectConfig {
        program: Some("/nonexistent".into()),
        ..config()
    };
    assert!(matches!(start(absent), Some(InspectError::Start(_))));
    let other = InspectConfig {
        program: Some("/bin/true".into()),
        ..config()
    };
    assert!(matches!(start(other), Some(InspectError::Ended)));
}

#[test]
fn a_capture_gives_the_same_verdicts_every_time() {
    if is_missing(&[LIBRARY, Need::Captures]) {
        return;
    }
    let path = captures_folder()
        .unwrap()
        .join("large/ndpi42__netflix.pcap");
    let run = || {
        let texts = Texts::default();
        let parser = ParserConfig::default();
        let inspected = inspect(&path, parser, config(), &texts, |_, _| true);
        let flows = inspected.flows.into_iter().map(|(tuple, totals, verdict)| {
            let verdict = verdict.unwrap();
            let texts = turboflow_inspect::Text::ALL.map(|text| texts.text(verdict.text(text)));
            (tuple, totals, verdict.application, verdict.risk, texts)
        });
        (
            flows.collect::<Vec<_>>(),
            inspected.counters.packets_inspected,
        )
    };
    assert_eq!(run(), run());
}

#[test]
fn a_process_that_is_killed_is_started_again_and_costs_names_alone() {
    const KILLS: u64 = 10;
    if is_missing(&[LIBRARY]) {
        return;
    }
    let texts = Texts::default();
    let live = InspectConfig {
        is_lossless: false,
        ..config()
    };
    let mut inspection = Inspection::start(live, &texts).unwrap();
    let (mut offered, mut now_ns) = (0, 1);
    let mut killed = 0;
    while inspection.counters().restarts < KILLS {
        // A second with 100 packets, each of its own flow.
        let done = inspection.counters().packets_inspected;
        for _ in 0..100 {
            now_ns += 10_000_000;
            let (packet, datagram) = udp((offered as u16, 53), b"no query", now_ns);
            inspection.offer(&packet, || Some(&datagram));
            offered += 1;
        }
        let Some(process) = inspection.process_id() else {
            inspection.poll(now_ns);
            continue;
        };
        until("it looks at packets", || {
            inspection.poll(now_ns);
            inspection.counters().packets_inspected >= done + 100
        });
        if killed < KILLS {
            signal(process, Signal::KILL);
            killed += 1;
            until("its end is seen", || {
                inspection.poll(now_ns);
                inspection.process_id() != Some(process)
            });
        }
    }
    inspection.finish(now_ns);
    let counters = inspection.counters();
    assert_eq!((counters.restarts, counters.taps), (KILLS, offered));
    let sum = counters.packets_inspected + counters.packets_late + counters.taps_lost;
    assert_eq!(sum, offered, "{counters:?}");
    assert!(counters.packets_inspected >= KILLS * 100, "{counters:?}");
}

#[test]
fn a_process_that_hangs_costs_names_and_is_started_again() {
    if is_missing(&[LIBRARY]) {
        return;
    }
    let texts = Texts::default();
    let live = InspectConfig {
        is_lossless: false,
        queue_bytes: 1 << 20,
        ..config()
    };
    let mut inspection = Inspection::start(live, &texts).unwrap();
    let process = inspection.process_id().unwrap();
    signal(process, Signal::STOP);
    // More than the queue and the socket can hold, within a second.
    let mut now_ns = 1_000_000_000_000;
    let payload = [7; 1400];
    for flow in 0..10_000 {
        let (packet, datagram) = udp((flow, 9), &payload, now_ns);
        inspection.offer(&packet, || Some(&datagram));
        now_ns += 100_000;
    }
    inspection.poll(now_ns);
    let lost = inspection.counters().taps_lost;
    assert!((5_000..10_000).contains(&lost), "{lost}");
    // The process continues in time.
    signal(process, Signal::CONT);
    until("it has caught up", || {
        inspection.poll(now_ns);
        let counters = inspection.counters();
        counters.packets_inspected + counters.taps_lost == 10_000
    });
    assert_eq!(inspection.process_id(), Some(process));
    // The process does not continue.
    signal(process, Signal::STOP);
    let (packet, datagram) = udp((1, 10), &payload, now_ns);
    inspection.offer(&packet, || Some(&datagram));
    inspection.poll(now_ns + 9_000_000_000);
    assert_eq!(inspection.process_id(), Some(process));
    inspection.poll(now_ns + 11_000_000_000);
    inspection.poll(now_ns + 12_000_000_000);
    assert_ne!(inspection.process_id(), Some(process));
    let counters = inspection.counters();
    assert_eq!((counters.restarts, counters.taps_lost), (1, lost + 1));
}

#[test]
fn a_flood_of_random_flows_stays_within_its_memory() {
    const FLOWS: u64 = 1_000_000;
    if is_missing(&[LIBRARY]) {
        return;
    }
    let texts = Texts::default();
    let mut inspection = Inspection::start(config(), &texts).unwrap();
    let process = inspection.process_id().unwrap();
    let mut random = 1u64;
    let mut now_ns = 0;
    for flow in 0..FLOWS {
        now_ns += 1_000;
        let mut payload = [0; 18];
        for byte in &mut payload {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            *byte = (random >> 56) as u8;
        }
        let ports = (flow as u16, (flow >> 16) as u16 + 20_000);
        let (packet, datagram) = udp(ports, &payload, now_ns);
        inspection.offer(&packet, || Some(&datagram));
    }
    inspection.wait_until_caught_up(now_ns);
    let peak: u64 = status(process, "VmPeak")
        .split(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    println!("peak of {peak} kB, resident {}", status(process, "VmHWM"));
    assert!(peak * 1024 <= config().memory_bytes);
    inspection.finish(now_ns);
    let counters = inspection.counters();
    assert_eq!(counters.packets_inspected, FLOWS, "{counters:?}");
    assert_eq!((counters.taps_lost, counters.restarts), (0, 0));
    assert_eq!(counters.inspections_opened, FLOWS);
    let ended =
        counters.inspections_dropped + counters.inspections_decided + counters.inspections_gave_up;
    assert_eq!(ended, FLOWS, "{counters:?}");
    println!("{counters:?}");
}

#[test]
fn limits_of_packets_hold() {
    if is_missing(&[LIBRARY]) {
        return;
    }
    let texts = Texts::default();
    let config = InspectConfig {
        packets: PacketLimits {
            udp: 5,
            ..PacketLimits::default()
        },
        ..config()
    };
    let mut inspection = Inspection::start(config, &texts).unwrap();
    let names = inspection.names();
    for number in 0..100 {
        let (packet, datagram) = udp((50_000, 50_001), b"hardly anything", number);
        inspection.offer(&packet, || Some(&datagram));
    }
    inspection.wait_until_caught_up(100);
    let counters = inspection.counters();
    assert_eq!((counters.packets_inspected, counters.taps), (5, 5));
    assert_eq!(counters.inspections_gave_up, 1);
    let (packet, _) = udp((50_000, 50_001), b"", 101);
    let verdict = inspection.verdict(&packet.tuple, 101).unwrap();
    assert_eq!(names.applications[0].1, "Unknown");
    assert_eq!(verdict.application, 0);
}

/// Such an inspection gets no answer, and whatever waits for one must not wait for ever.
#[test]
fn an_inspection_whose_last_packet_is_lost_ends() {
    if is_missing(&[LIBRARY]) {
        return;
    }
    let texts = Texts::default();
    let live = InspectConfig {
        is_lossless: false,
        tells_ends: true,
        ..config()
    };
    let limit = live.packets.udp;
    let mut inspection = Inspection::start(live, &texts).unwrap();
    let process = inspection.process_id().unwrap();
    signal(process, Signal::KILL);
    until("its end is seen", || {
        inspection.poll(1);
        inspection.process_id().is_none()
    });
    let mut ended = Vec::new();
    for number in 1..=u64::from(limit) {
        assert_eq!(ended, []);
        let (packet, datagram) = udp((50_000, 53), b"no query", number);
        inspection.offer(&packet, || Some(&datagram));
        ended = inspection.take_ended();
    }
    let (packet, _) = udp((50_000, 53), b"", 1);
    assert_eq!(ended, [(FlowKey::of(&packet.tuple).0, false)]);
    let counters = inspection.counters();
    assert_eq!(counters.taps_lost, u64::from(limit));
    assert_eq!(counters.inspections_gave_up, 1);
}

#[test]
fn every_packet_of_a_file_reaches_the_process_through_a_small_queue() {
    if is_missing(&[LIBRARY, Need::Captures]) {
        return;
    }
    let texts = Texts::default();
    let config = InspectConfig {
        queue_bytes: 1,
        ..config()
    };
    let mut inspection = Inspection::start(config, &texts).unwrap();
    let path = captures_folder()
        .unwrap()
        .join("large/ndpi42__netflix.pcap");
    each_packet(&path, ParserConfig::default(), |packet, _, datagram| {
        inspection.offer(packet, || datagram);
    });
    inspection.finish(u64::MAX / 2);
    assert_eq!(inspection.counters().taps_lost, 0);
}
