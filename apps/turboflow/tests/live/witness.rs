// SPDX-License-Identifier: Apache-2.0
//! Independent witnesses of the packets that the XDP engine metered: a capture behind it, and the
//! driver before it.

use std::collections::BTreeMap;

#[cfg(feature = "kernel")]
use turboflow_engine_xdp::{
    Clock, KernelConfig, KernelEngine, Tables, Tested, TestedProgram, interface_index,
};

use crate::exact::NO_TIMEOUTS;
use crate::kernel::{OFFICE_PACKETS, XDP};
use crate::link::{Ended, FAR, Link, NEAR};
#[cfg(feature = "kernel")]
use crate::support::udp_frame;
use crate::support::{Folder, office};

/// How far the times of engine and capture may be apart. Normally they differ by microseconds, but
/// a busy machine may run other work in between.
const MOST_APART_NS: u64 = 50_000_000;

/// First and last times of each flow, by the five columns of its key and its packets and bytes.
fn times(ended: &Ended) -> BTreeMap<String, [u64; 2]> {
    let csv = ended.folder.read("live.csv");
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let place = |name| header.iter().position(|column| *column == name).unwrap();
    let (first, last) = (place("first_ns"), place("last_ns"));
    let flow = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let times = [first, last].map(|place| cells[place].parse().unwrap());
        (cells[..7].join(","), times)
    };
    lines.map(flow).collect()
}

/// Passed packets reach a capture on the interface, with the times that the engine has. Dropped
/// packets do not.
#[test]
fn packets_pass_or_drop_as_requested_with_the_times_of_a_capture() {
    let Some(link) = Link::for_xdp() else { return };
    for (options, mode, passed) in [
        (&["--xdp-mode", "native"][..], "native", 13_035),
        (
            &["--xdp-mode", "generic", "--table", "row-lock"],
            "generic",
            13_035,
        ),
        (&["--xdp-drop"], "native", 0),
        (&["--xdp-drop", "--xdp-mode", "generic"], "generic", 0),
    ] {
        let fixed = ["-w", "live.csv"];
        let behind = link.record(&[FAR], &[&fixed, &NO_TIMEOUTS[..]].concat());
        let options = [
            &fixed,
            &XDP[..],
            &NO_TIMEOUTS,
            &["--packets", OFFICE_PACKETS],
            options,
        ]
        .concat();
        let engine = link.record(&[FAR], &options);
        assert!(
            engine.said().contains(&format!("{mode} mode")),
            "{}",
            engine.said()
        );
        assert!(link.replay(&office(), &["--pps", "10000"]));
        let engine = engine.end().balanced(0);
        let behind = behind.interrupt().balanced(0);
        assert_eq!(engine.count("source_seen"), 13_035);
        assert_eq!(behind.count("source_seen"), passed, "{options:?}");
        if passed == 0 {
            continue;
        }
        let (engine, behind) = (times(&engine), times(&behind));
        assert_eq!(engine.len(), behind.len());
        for (flow, times) in &engine {
            let apart = times.iter().zip(behind[flow]).map(|(a, b)| a.abs_diff(b));
            let apart = apart.max().unwrap();
            assert!(apart < MOST_APART_NS, "{flow}: {apart} ns");
        }
    }
}

/// The driver's count of packets per queue has to agree with the feature.
#[test]
fn receive_queues_agree_with_the_driver() {
    let Some(link) = Link::for_xdp() else { return };
    link.ip(&["link", "del", NEAR]);
    let queues = ["numrxqueues", "4", "numtxqueues", "4"];
    let near = [
        &["link", "add", NEAR][..],
        &queues,
        &["type", "veth", "peer", "name", FAR],
        &queues,
    ];
    link.ip(&near.concat());
    link.shell("for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 1 > $f; done");
    for end in [NEAR, FAR] {
        link.ip(&["link", "set", end, "up"]);
    }
    let folder = Folder::new();
    let text = "[key]\nfields = [\"protocol\"]\n\
                [[feature]]\nname = \"packets\"\nop = \"count\"\n\
                [[feature]]\nname = \"queues\"\nop = \"histogram\"\nof = \"receive_queue\"\nedges = [1, 2, 3]\n";
    let definition = folder.write("queues.toml", text);
    let options = [
        &[
            "-w",
            "live.csv",
            "--definition",
            &definition,
            "--packets",
            "1000",
        ],
        &XDP[..],
    ]
    .concat();
    let recording = link.record(&[FAR], &options);
    assert!(link.replay(&office(), &["--pps", "10000", "--limit", "1000"]));
    let counted = "ethtool -S vb | awk '/rx_queue_[0-9]+_xdp_packets/ { print $2 }'";
    let counted = link.inside("bash").args(["-c", counted]).output().unwrap();
    let by_driver: Vec<u64> = String::from_utf8(counted.stdout)
        .unwrap()
        .lines()
        .map(|line| line.parse().unwrap())
        .collect();
    let ended = recording.end().balanced(0);
    let non_ip = ended.count("packets_non_ip");
    let csv = ended.folder.read("live.csv");
    let mut by_engine = [0; 4];
    for line in csv.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let bins = cells[2].split(|byte: char| !byte.is_ascii_digit());
        let bins: Vec<u64> = bins.filter_map(|bin| bin.parse().ok()).collect();
        assert_eq!(bins.len(), 4, "{csv}");
        by_engine
            .iter_mut()
            .zip(bins)
            .for_each(|(sum, bin)| *sum += bin);
    }
    assert_eq!(by_driver.iter().sum::<u64>(), 1_000);
    let apart = by_driver
        .iter()
        .zip(by_engine)
        .map(|(driver, engine)| driver.checked_sub(engine).unwrap());
    assert_eq!(apart.sum::<u64>(), non_ip);
    let used = by_engine.iter().filter(|packets| **packets > 0).count();
    assert!(used > 1, "{by_driver:?}");
}

/// A frame longer than any on a wire is several merged packets. The program warns at the start,
/// counts them, and reports them at the end.
#[test]
fn merged_packets_are_reported_and_counted() {
    let Some(link) = Link::for_xdp() else { return };
    link.ip(&["link", "set", FAR, "mtu", "100"]);
    let options = [
        &[
            "-w",
            "live.csv",
            "--packets",
            OFFICE_PACKETS,
            "--xdp-mode",
            "generic",
        ],
        &XDP[..],
    ]
    .concat();
    let recording = link.record(&[FAR], &options);
    assert!(
        recording.said().contains("in generic mode"),
        "{}",
        recording.said()
    );
    // Such frames can now arrive.
    link.ip(&["link", "set", FAR, "mtu", "65535"]);
    assert!(link.replay(&office(), &["--pps", "10000"]));
    let ended = recording.end().balanced(0);
    let long = "tshark -r \"$0\" -Y 'frame.cap_len > 122' -T fields -e frame.number | wc -l";
    let counted = link
        .inside("bash")
        .args(["-c", long, &office()])
        .output()
        .unwrap();
    let counted: u64 = String::from_utf8(counted.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!(counted > 1_000);
    assert_eq!(ended.ledger["interfaces"][0]["packets_merged"], counted);
    assert!(
        ended.said.contains("were merged from several on the wire"),
        "{}",
        ended.said
    );
}

#[cfg(feature = "kernel")]
/// Sends that many packets of 1,000 flows from the near end with the kernel's generator, as fast as
/// it can.
fn send_by_the_kernel(link: &Link, packets: u32) {
    link.open(move || {
        let tested = Tested {
            flows: 1_000,
            is_skewed: true,
            interface: interface_index(NEAR).unwrap(),
            ..Tested::default()
        };
        let config = KernelConfig {
            is_bound: false,
            interfaces: Vec::new(),
            layout: None,
            tables: Tables::PerCpu,
            slots: 1_024,
            ring_bytes: 1 << 16,
            cell_ns: 1_000_000_000,
            evict_after: 0,
            clock: Clock::Precise,
            wall_ns: || 0,
            drops: false,
            longest_frame_bytes: 1_522,
            hand_up: None,
            offload: None,
            tested: Some(tested),
            hash_keys: std::array::from_fn(|at| at as u64 + 1),
        };
        let sender = KernelEngine::load(&config).unwrap().tester();
        let frame = udp_frame(7);
        sender.run(TestedProgram::Send, &frame, packets).unwrap();
    });
}

/// Packets from the kernel's own generator at full speed: every packet that arrived is accounted
/// for.
#[cfg(feature = "kernel")]
#[test]
fn packets_of_the_kernels_own_generator_are_all_accounted_for() {
    let Some(link) = Link::for_xdp() else { return };
    for table in ["per-cpu", "row-lock"] {
        let options = [
            &["-w", "live.csv", "--xdp-drop", "--table", table],
            &XDP[..],
        ]
        .concat();
        let recording = link.record(&[FAR], &options);
        send_by_the_kernel(&link, 300_000);
        let ended = recording.interrupt().balanced(0);
        let seen = ended.count("source_seen");
        // Packets that find the link's queue full are lost before they arrive.
        assert!((1_000..=400_000).contains(&seen), "{seen}");
        assert_eq!(ended.count("packets_recorded"), seen);
    }
}
