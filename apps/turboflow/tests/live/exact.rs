// SPDX-License-Identifier: Apache-2.0
//! Live capture is exact: a replay gives the records of its file.

use turboflow_testing::{Need, is_missing};

use crate::link::{Ended, FAR, Link, NEAR};
use crate::support::{Folder, office, turboflow};

/// With timeouts, the times of the replay would split flows differently.
pub(crate) const NO_TIMEOUTS: [&str; 6] = [
    "--idle-timeout",
    "none",
    "--active-timeout",
    "none",
    "--linger",
    "none",
];
const OFFICE_PACKETS: &str = "13035";
const LIBRARY: Need<'static> = Need::Engine("libndpi", cfg!(feature = "dpi"));
/// Captured bytes of the sample, which is what tcpreplay sends.
const OFFICE_BYTES: u64 = 1_662_901;
/// Frames with an 802.1Q or 802.1ad tag.
const OFFICE_TAGGED: u64 = 690;

/// The records of a CSV without their times and end reasons, sorted.
pub(crate) fn untimed(csv: &str) -> Vec<String> {
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let kept = |line: &str| {
        let cells = header.iter().zip(line.split(','));
        let cells = cells.filter(|(name, _)| !name.ends_with("_ns") && **name != "end_reason");
        cells.map(|(_, cell)| cell).collect::<Vec<_>>().join(",")
    };
    let mut rows: Vec<String> = lines.map(kept).collect();
    rows.sort();
    rows
}

/// The number of packets in a file, and its records.
pub(crate) fn of_file(capture: &str, options: &[&str]) -> (u64, Vec<String>) {
    let folder = Folder::new();
    let (output, ledger) = (folder.file("file.csv"), folder.file("ledger.json"));
    let fixed = [
        "record", "-q", "-r", capture, "-w", &output, "--ledger", &ledger,
    ];
    turboflow(fixed.iter().chain(&NO_TIMEOUTS).chain(options));
    let ledger: serde_json::Value = serde_json::from_str(&folder.read("ledger.json")).unwrap();
    let packets = ledger["packets_received"].as_u64().unwrap();
    (packets, untimed(&folder.read("file.csv")))
}

/// The result of replaying the sample.
fn of_replay(link: &Link, options: &[&str]) -> Ended {
    let fixed = ["-w", "live.csv", "--packets", OFFICE_PACKETS];
    let options: Vec<&str> = fixed
        .iter()
        .chain(&NO_TIMEOUTS)
        .chain(options)
        .copied()
        .collect();
    let recording = link.record(&[FAR], &options);
    assert!(link.replay(&office(), &["--pps", "10000"]));
    recording.end().balanced(0)
}

#[track_caller]
pub(crate) fn equal(live: &Ended, of_file: &[String]) {
    let live = untimed(&live.folder.read("live.csv"));
    let unequal = live.iter().zip(of_file).find(|(live, file)| live != file);
    assert_eq!((unequal, live.len()), (None, of_file.len()));
}

#[test]
fn a_replay_gives_the_records_of_its_file() {
    let Some(link) = Link::new() else { return };
    for options in [
        "--threads 1",
        "--threads 3",
        "--biflow",
        "--readers 2",
        "--readers 2 --threads 3",
        "--readers 5 --biflow",
        "--readers 2 --reassemble-flows",
    ] {
        let options: Vec<&str> = options.split(' ').collect();
        let ended = of_replay(&link, &options);
        assert_eq!(ended.count("source_seen"), 13_035, "{options:?}");
        assert_eq!(ended.count("packets_non_ip"), 31);
        assert_eq!(ended.count("bytes_received"), OFFICE_BYTES);
        let is_live = |at: usize| at > 0 && options[at - 1] == "--readers";
        let of_files = (0..options.len()).filter(|at| options[*at] != "--readers" && !is_live(*at));
        let of_files: Vec<&str> = of_files.map(|at| options[at]).collect();
        equal(&ended, &of_file(&office(), &of_files).1);
    }
}

/// Each reader has an inspection process of its own, and the kernel sends both directions of a flow
/// to one reader.
#[test]
fn applications_are_those_of_the_file() {
    let Some(link) = Link::new() else { return };
    if is_missing(&[LIBRARY]) {
        return;
    }
    let expected = of_file(&office(), &["--dpi"]).1;
    for options in ["--readers 1", "--readers 3", "--readers 2 --threads 2"] {
        let mut options: Vec<&str> = options.split(' ').collect();
        options.push("--dpi");
        let ended = of_replay(&link, &options);
        let inspection = &ended.ledger["inspection"];
        assert_eq!(inspection["packets_lost"], 0, "{options:?}: {inspection:#}");
        equal(&ended, &expected);
    }
}

const BY_TAG: &str = "\
[key]
fields = [\"source_address\", \"destination_address\", \"vlan\", \"inner_vlan\"]
[[feature]]
name = \"packets\"
op = \"count\"
";

#[test]
fn tags_are_in_the_frames_as_on_the_wire() {
    let Some(link) = Link::new() else { return };
    let folder = Folder::new();
    let definition = folder.write("by-tag.toml", BY_TAG);
    let options = ["--definition", &definition];
    let (_, expected) = of_file(&office(), &options);
    for offload in ["on", "off"] {
        for end in [NEAR, FAR] {
            let switch = format!("ethtool -K {end} rxvlan {offload} txvlan {offload}");
            link.shell(&switch);
        }
        let ended = of_replay(&link, &options);
        assert_eq!(ended.count("bytes_received"), OFFICE_BYTES, "{offload}");
        equal(&ended, &expected);
    }
}

#[test]
fn the_kernel_runs_the_filter() {
    let Some(link) = Link::new() else { return };
    for (filter, packets) in [
        (&["vlan"][..], OFFICE_TAGGED),
        (&["tcp", "port", "22"], 2_083),
    ] {
        let wanted = packets.to_string();
        let options = [&["-w", "live.csv", "--packets", &wanted][..], filter].concat();
        let recording = link.record(&[FAR], &options);
        assert!(link.replay(&office(), &["--pps", "10000"]));
        let ended = recording.end().balanced(0);
        assert_eq!(ended.count("packets_received"), packets, "{filter:?}");
        assert_eq!(ended.count("source_unread"), 0, "{filter:?}");
    }
}

#[test]
fn every_interface_is_metered_and_short_snaps_lose_no_length() {
    let Some(link) = Link::new() else { return };
    let options = ["-w", "live.csv", "--packets", "400", "--snap-length", "96"];
    let recording = link.record(&[NEAR, FAR], &options);
    assert!(link.replay(&office(), &["--pps", "10000", "--limit", "200"]));
    let ended = recording.end().balanced(0);
    let interfaces = ended.ledger["interfaces"].as_array().unwrap();
    for interface in interfaces {
        assert_eq!(interface["packets_delivered"], 200, "{interface}");
    }
    // Both captured the same bytes on the wire, which exceed the snap length.
    assert!(ended.count("bytes_received") > 400 * 96);
    assert_eq!(ended.count("bytes_received") % 2, 0);
}

#[test]
fn loopback_shows_every_packet_once() {
    let Some(link) = Link::new() else { return };
    for readers in ["1", "2"] {
        let fixed = ["-w", "live.csv", "--packets", "5", "--readers"];
        let options = [&fixed[..], &[readers, "udp"]].concat();
        let recording = link.record(&["lo"], &options);
        link.shell("for i in 1 2 3 4 5; do echo $i > /dev/udp/127.0.0.1/9; done");
        let ended = recording.end().balanced(0);
        assert_eq!(
            (ended.count("packets_recorded"), ended.count("source_seen")),
            (5, 5)
        );
    }
}

#[test]
fn a_limit_of_packets_covers_all_readers() {
    let Some(link) = Link::new() else { return };
    let options = ["-w", "live.csv", "--packets", "5000", "--readers", "2"];
    let recording = link.record(&[NEAR, FAR], &options);
    assert!(link.replay(&office(), &["--pps", "10000"]));
    let ended = recording.end().balanced(0);
    assert_eq!(ended.count("packets_received"), 5_000);
    assert_eq!(ended.ledger["readers"], 2);
    assert_eq!(ended.ledger["interfaces"].as_array().unwrap().len(), 2);
}
