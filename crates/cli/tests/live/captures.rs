// SPDX-License-Identifier: Apache-2.0
//! Real captures, replayed: the records of the file, one by one. They are no part of the project
//! (licences differ); where `shared/captures` is not beside the checkout the test says so.

use std::fs;
use std::path::{Path, PathBuf};

use crate::exact::{NO_TIMEOUTS, equal, of_file};
use crate::link::{FAR, Link};
use crate::support::project;

/// Where headers are of every kind.
const FOLDERS: [&str; 5] = ["fragments", "ipv4", "ipv6", "tunnels", "vlan-mpls"];
const MOST_BYTES: u64 = 1 << 20;
/// Little-endian pcap of microseconds or nanoseconds, of Ethernet.
const MAGICS: [[u8; 4]; 2] = [[0xd4, 0xc3, 0xb2, 0xa1], [0x4d, 0x3c, 0xb2, 0xa1]];

fn captures() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in FOLDERS {
        let folder = project(&format!("../shared/captures/{folder}"));
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let small = entry.metadata().unwrap().len() <= MOST_BYTES;
            if small && is_ethernet(&entry.path()) {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

fn is_ethernet(path: &Path) -> bool {
    let bytes = fs::read(path).unwrap_or_default();
    let is_pcap = MAGICS.iter().any(|magic| bytes.starts_with(magic));
    is_pcap && bytes.get(20..22) == Some(&[1, 0])
}

#[test]
fn real_captures_give_the_records_of_their_files() {
    replayed(&["--readers", "1"]);
}

#[test]
fn several_readers_give_the_records_of_one() {
    replayed(&["--readers", "3"]);
}

/// Replays all of them to a program with these options.
pub(crate) fn replayed(options: &[&str]) {
    let Some(link) = Link::new() else { return };
    let captures = captures();
    if captures.is_empty() {
        eprintln!("############ NOT TESTED: no real captures at ../shared/captures ############");
    }
    let (mut compared, mut packets_compared) = (0, 0);
    let are_here = !captures.is_empty();
    for capture in captures {
        let capture = capture.display().to_string();
        let (packets, expected) = of_file(&capture, &[]);
        let wanted = packets.to_string();
        let fixed = ["-w", "live.csv", "--packets", &wanted];
        let recording = link.record(&[FAR], &[&fixed, options, &NO_TIMEOUTS].concat());
        if !link.replay(&capture, &["--pps", "20000"]) {
            // Shorter than a header or longer than the link takes.
            eprintln!("tcpreplay cannot send all of {capture}");
            recording.interrupt().balanced(0);
            continue;
        }
        equal(&recording.end().balanced(0), &expected);
        compared += 1;
        packets_compared += packets;
    }
    assert!(compared > 0 || !are_here);
    eprintln!("{compared} captures of {packets_compared} packets replayed, no difference");
}
