// SPDX-License-Identifier: Apache-2.0
//! `--engine offload`: its records are those of the engine in the kernel, whatever the verdicts
//! are.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use turboflow_testing::{Need, captures_folder, is_missing, until};

use crate::exact::{NO_TIMEOUTS, equal, of_file, untimed};
use crate::kernel::{BY_SIZE, OFFICE_PACKETS};
use crate::link::{Ended, FAR, Link, NEAR};
use crate::service::{metrics, serve};
use crate::support::{Folder, office, pcap_header, pcap_packet, turboflow};

const OFFLOAD: [&str; 2] = ["--engine", "offload"];
const PACKETS: u64 = 13_035;
const PACKETS_NON_IP: u64 = 31;

/// A counter of the engine.
fn own(ended: &Ended, name: &str) -> u64 {
    let counts = &ended.ledger["engine_counts"];
    counts[format!("offload_{name}")]
        .as_u64()
        .unwrap_or_else(|| panic!("{name}: {counts:#}"))
}

/// Checks that all packets and rows of a replay of the office sample are accounted for.
fn accounted(ended: &Ended) {
    accounted_of(ended, 1);
}

/// Checks that all packets and rows of several replays in one run are accounted for.
fn accounted_of(ended: &Ended, replays: u64) {
    assert_eq!(ended.count("source_seen"), replays * PACKETS);
    assert_eq!(ended.count("packets_non_ip"), replays * PACKETS_NON_IP);
    let metered = own(ended, "hits") + own(ended, "misses");
    assert_eq!(metered, replays * (PACKETS - PACKETS_NON_IP));
    assert_eq!(own(ended, "taps"), own(ended, "taps_read"));
    let ended_rows = own(ended, "rows_idle") + own(ended, "rows_removed");
    assert_eq!(
        own(ended, "rows_begun"),
        ended_rows + own(ended, "rows_open")
    );
    assert_eq!(own(ended, "packets_dropped"), 0);
    assert_eq!(own(ended, "refused_failed"), 0);
}

/// Replays the office sample to a program with these options.
fn replayed(link: &Link, options: &[&str]) -> Ended {
    replayed_at("10000", link, options)
}

/// Replays the sample at this many packets per second.
fn replayed_at(pps: &str, link: &Link, options: &[&str]) -> Ended {
    let fixed = ["-w", "live.csv", "--packets", OFFICE_PACKETS];
    let options = [&fixed, &OFFLOAD[..], &NO_TIMEOUTS, options].concat();
    let recording = link.record(&[FAR], &options);
    assert!(link.replay(&office(), &["--pps", pps]));
    recording.end().balanced(0)
}

/// Whether a row counts packets in time depends on the load of the machine, so the replay becomes
/// slower until one does.
#[test]
fn a_replay_gives_the_records_of_its_file() {
    let Some(link) = Link::for_xdp() else { return };
    let expected = of_file(&office(), &[]).1;
    for options in [
        "--threads 1",
        "--threads 2 --table row-lock --row-idle 100ms",
        "--xdp-mode generic --microflow-slots 7 --offload-rows 1",
        "--xdp-mode native --microflow-slots 1 --offload-rows 100 --tap-packets 1",
    ] {
        let options: Vec<&str> = options.split(' ').collect();
        let has_hits = |pps: &str| {
            let ended = replayed_at(pps, &link, &options);
            equal(&ended, &expected);
            accounted(&ended);
            own(&ended, "hits") > 0
        };
        assert!(
            ["10000", "3000", "1000"].into_iter().any(has_hits),
            "{options:?}"
        );
    }
}

#[test]
fn a_definition_gives_the_records_of_its_file() {
    let Some(link) = Link::for_xdp() else { return };
    let folder = Folder::new();
    let definition = folder.write("by-size.toml", BY_SIZE);
    let definition = ["--definition", &definition];
    let expected = of_file(&office(), &definition).1;
    let ended = replayed(&link, &definition);
    equal(&ended, &expected);
    accounted(&ended);
}

#[test]
fn a_full_table_is_named() {
    let Some(link) = Link::for_xdp() else { return };
    let ended = replayed(&link, &["--offload-rows", "3"]);
    accounted(&ended);
    assert_eq!(own(&ended, "rows_begun"), 6, "3 of each family");
    assert!(own(&ended, "refused_full") > 10);
    assert!(ended.said.contains("--offload-rows"), "{}", ended.said);
}

/// A stopped program reads no copies, so the ring fills up.
#[test]
fn a_full_ring_of_copies_is_named_and_costs_no_packet() {
    let Some(link) = Link::for_xdp() else { return };
    let expected = of_file(&office(), &[]).1;
    let fixed = ["-w", "live.csv", "--tap-ring", "4KiB"];
    let options = [&fixed, &OFFLOAD[..], &NO_TIMEOUTS].concat();
    let recording = link.record(&[FAR], &options);
    recording.signal("STOP");
    assert!(link.replay(&office(), &["--topspeed"]));
    recording.signal("CONT");
    let ended = recording.interrupt().balanced(0);
    equal(&ended, &expected);
    accounted(&ended);
    assert!(own(&ended, "taps_lost") > 100);
    assert!(ended.said.contains("--tap-ring"), "{}", ended.said);
}

/// Once attached, the program needs no root: verdicts are still written.
#[test]
fn privileges_can_be_dropped() {
    let Some(link) = Link::for_xdp() else { return };
    let folder = Folder::new();
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(folder.path(), everybody).unwrap();
    let args = "record -w live.csv --ledger ledger.json --user daemon -i";
    let mut args: Vec<&str> = args.split(' ').collect();
    args.extend([FAR].iter().chain(&OFFLOAD));
    let recording = link.start(folder, &args, &[]);
    assert!(link.replay(&office(), &["--pps", "5000"]));
    let ended = recording.interrupt().balanced(0);
    accounted(&ended);
    assert!(own(&ended, "rows_begun") > 100);
    assert!(own(&ended, "hits") > PACKETS / 4);
}

#[test]
fn metrics_have_the_engines_counters() {
    let Some(link) = Link::for_xdp() else { return };
    let recording = serve(&link, "engine = \"offload\"\n");
    assert!(link.replay(&office(), &["--pps", "20000"]));
    turboflow_testing::until("all packets are counted", || {
        let counted = metrics(&link);
        let of = |name: &str| counted[&format!("offload_{name}")];
        of("hits_total") + of("misses_total") == PACKETS - PACKETS_NON_IP
    });
    recording.signal("TERM");
    assert_eq!(recording.end().code, Some(0));
}

/// Copied packets reveal the applications. The counts do not depend on inspection.
#[test]
fn applications_are_named() {
    let library = Need::Library("libndpi", cfg!(feature = "dpi"));
    if is_missing(&[library]) {
        return;
    }
    let Some(link) = Link::for_xdp() else { return };
    let (_, with_names) = of_file(&office(), &["--dpi"]);
    let ended = replayed(&link, &["--dpi"]);
    accounted(&ended);
    let live = untimed(&ended.folder.read("live.csv"));
    assert_eq!(live.len(), with_names.len());
    // The columns of applications come last.
    let counts = |rows: &[String]| -> Vec<String> {
        let columns = rows.iter().map(|row| row.rsplitn(5, ',').last().unwrap());
        let mut rows: Vec<String> = columns.map(str::to_owned).collect();
        rows.sort();
        rows
    };
    assert_eq!(counts(&live), counts(&with_names));
    let equal = live.iter().filter(|row| with_names.contains(row)).count();
    assert!(
        equal * 10 >= live.len() * 9,
        "{equal} of {} records are named as in the file",
        live.len()
    );
    let inspection = &ended.ledger["inspection"];
    assert!(
        inspection["records_named"].as_u64().unwrap() > 100,
        "{inspection:#}"
    );
    assert_eq!(inspection["packets_lost"], 0);
    assert!(own(&ended, "flows_decided") > 50);
    assert!(own(&ended, "taps") < PACKETS * 8 / 10);
}

/// A capture in VLAN 10. Each frame has a copy in VLAN 20 without any payload to recognise.
fn in_two_vlans(sample: &[u8]) -> Vec<u8> {
    const HEADERS: usize = 24;
    const RECORD: usize = 16;
    let word = |at: usize| u32::from_le_bytes(sample[at..at + 4].try_into().unwrap());
    assert_eq!(word(0), 0xa1b2_c3d4, "microseconds");
    let mut capture = pcap_header(1);
    let mut at = HEADERS;
    while at < sample.len() {
        let microseconds = u64::from(word(at)) * 1_000_000 + u64::from(word(at + 4));
        let length = word(at + 8) as usize;
        let frame = &sample[at + RECORD..at + RECORD + length];
        for vlan in [10_u16, 20] {
            let mut tagged = frame.to_vec();
            if vlan == 20 && frame[12..14] == [8, 0] {
                // After the headers of TCP and UDP.
                tagged.iter_mut().skip(54).for_each(|byte| *byte = 0);
            }
            tagged.splice(12..12, [[0x81, 0], vlan.to_be_bytes()].concat());
            capture.extend(pcap_packet(microseconds, &tagged));
        }
        at += RECORD + length;
    }
    capture
}

/// Two customers use the same addresses. If the records distinguish VLANs, each flow is inspected
/// in its own VLAN.
#[test]
fn applications_are_those_of_each_vlan() {
    const BY_VLAN: &str = r#"
[key]
fields = ["vlan", "source_address", "destination_address", "source_port", "destination_port", "protocol"]
[[feature]]
name = "packets"
op = "count"
"#;
    let library = Need::Library("libndpi", cfg!(feature = "dpi"));
    if is_missing(&[library, Need::Captures]) {
        return;
    }
    let Some(link) = Link::for_xdp() else { return };
    for end in [NEAR, FAR] {
        link.shell(&format!("ethtool -K {end} rxvlan off txvlan off"));
    }
    let folder = Folder::new();
    let definition = folder.write("by-vlan.toml", BY_VLAN);
    let sample = captures_folder()
        .unwrap()
        .join("large/ndpi42__netflix.pcap");
    let frames = in_two_vlans(&fs::read(&sample).unwrap());
    let capture = folder.write("vlans.pcap", frames);
    let names = |csv: &str, vlan: Option<&str>| -> BTreeMap<String, String> {
        let mut lines = csv.lines();
        let header: Vec<&str> = lines.next().unwrap().split(',').collect();
        let place = |name: &str| header.iter().position(|its| *its == name).unwrap();
        let key = ["src_addr", "dst_addr", "src_port", "dst_port", "protocol"].map(place);
        let rows = lines.map(|line| line.split(',').collect::<Vec<_>>());
        let rows = rows.filter(|row| vlan.is_none_or(|vlan| row[place("vlan")] == vlan));
        rows.map(|row| {
            let key = key.map(|at| row[at]).join(" ");
            (key, row[place("application")].to_owned())
        })
        .collect()
    };
    let (sample, file) = (sample.to_str().unwrap(), folder.file("file.csv"));
    let of_file = ["record", "-q", "--dpi", "-r", sample, "-w", &file];
    turboflow(of_file.iter().chain(&NO_TIMEOUTS)).exits(0);
    let expected = names(&folder.read("file.csv"), None);
    let options = ["-w", "live.csv", "--dpi", "--packets", "13998"];
    let by_vlan = ["--definition", &definition];
    let options = [&options[..], &OFFLOAD, &NO_TIMEOUTS, &by_vlan].concat();
    let recording = link.record(&[FAR], &options);
    assert!(link.replay(&capture, &["--pps", "10000"]));
    let ended = recording.end().balanced(0);
    let csv = ended.folder.read("live.csv");
    let [first, second] = ["10", "20"].map(|vlan| names(&csv, Some(vlan)));
    assert_eq!(first.len(), expected.len());
    assert_eq!(second.len(), expected.len());
    let equal = |found: &BTreeMap<String, String>| {
        let named = expected.iter().filter(|(_, name)| !name.is_empty());
        named.filter(|(key, name)| found[*key] == **name).count()
    };
    let (first, second) = (equal(&first), equal(&second));
    eprintln!(
        "{first} and {second} of {} are named as in the file",
        expected.len()
    );
    assert!(first * 10 >= expected.len() * 9, "{first}");
    assert!(second * 2 <= first, "{second}");
}

/// The inspection process of the program with this process id.
fn inspector_of(program: u32) -> Option<u32> {
    let is_its = |process: &u32| {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:\t"));
        // A killed process remains as a zombie until its parent has noticed.
        parent == Some(&program.to_string()) && !status.contains("State:\tZ")
    };
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut numbers = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    numbers.find(is_its)
}

/// The inspector is killed each time that it works. Packets pass and verdicts stay in force.
#[test]
fn an_inspector_that_is_killed_ten_times_costs_names_alone() {
    const KILLS: u64 = 10;
    if is_missing(&[Need::Library("libndpi", cfg!(feature = "dpi"))]) {
        return;
    }
    let Some(link) = Link::for_xdp() else { return };
    let recording = serve(
        &link,
        "engine = \"offload\"\ndpi = true\nlinger = \"100ms\"\n",
    );
    let is_over = AtomicBool::new(false);
    let replays = thread::scope(|scope| {
        let replaying = scope.spawn(|| {
            let mut replays = 0;
            while !is_over.load(Ordering::Relaxed) {
                assert!(link.replay(&office(), &["--pps", "10000"]));
                replays += 1;
            }
            replays
        });
        let (mut dead, mut decided) = (None, 0);
        for kills in 0..KILLS {
            let mut inspector = None;
            until("the inspector decides about flows", || {
                inspector = inspector_of(recording.id()).filter(|new| Some(*new) != dead);
                let metrics = metrics(&link);
                let now = metrics["offload_flows_decided_total"];
                let works = inspector.is_some()
                    && metrics["inspection_restarts_total"] == kills
                    && now > decided + 20;
                if works {
                    decided = now;
                }
                works
            });
            let number = inspector.unwrap().to_string();
            assert!(
                Command::new("kill")
                    .args(["-KILL", &number])
                    .status()
                    .unwrap()
                    .success()
            );
            dead = inspector;
        }
        until("it is started for the last time", || {
            metrics(&link)["inspection_restarts_total"] == KILLS
        });
        is_over.store(true, Ordering::Relaxed);
        replaying.join().unwrap()
    });
    until("all packets are counted", || {
        let counted = metrics(&link);
        let of = |name: &str| counted[&format!("offload_{name}")];
        of("hits_total") + of("misses_total") == replays * (PACKETS - PACKETS_NON_IP)
    });
    recording.signal("TERM");
    let ended = recording.end().balanced(0);
    accounted_of(&ended, replays);
    assert_eq!(ended.ledger["inspection"]["inspector_restarts"], KILLS);
    assert!(own(&ended, "flows_decided") > KILLS * 20);
    assert_eq!(own(&ended, "decider_gone"), 0);
}
