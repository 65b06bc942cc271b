// SPDX-License-Identifier: Apache-2.0
//! `--reassemble-flows`, and how long fragments are held.

use crate::support::{Folder, pcap_header, pcap_packet, rows, turboflow, udp_frame};

const LATER: [u8; 2] = [0x00, 0x03];
const WHOLE: [u8; 2] = [0x00, 0x00];

/// A capture of packets of equal size, each given by its second, flow number, and flags and offset.
fn capture(packets: &[(u64, u16, [u8; 2])]) -> Vec<u8> {
    let mut bytes = pcap_header(1);
    for (second, flow, fragment) in packets {
        let mut frame = udp_frame(*flow);
        // Each flow has its own IP identification.
        frame[18..20].copy_from_slice(&flow.to_be_bytes());
        frame[20..22].copy_from_slice(fragment);
        bytes.extend(pcap_packet(
            1_700_000_000_000_000 + second * 1_000_000,
            &frame,
        ));
    }
    bytes
}

/// Packets and end reason of every flow record, and how often the clock was set back.
fn metered(packets: &[(u64, u16, [u8; 2])], options: &[&str]) -> (Vec<(String, String)>, u64) {
    let folder = Folder::new();
    let read = folder.file("made.pcap");
    std::fs::write(&read, capture(packets)).unwrap();
    let ledger = folder.file("l.json");
    let fixed = [
        "record",
        "-q",
        "-r",
        &read,
        "-w",
        "-",
        "--format",
        "csv",
        "--ledger",
        &ledger,
        "--reassemble-flows",
    ];
    let ran = turboflow(fixed.iter().chain(options)).exits(0);
    let ledger: serde_json::Value = serde_json::from_str(&folder.read("l.json")).unwrap();
    let records = rows(&ran.stdout).into_iter().map(|row| {
        let fields: Vec<&str> = row.split(',').collect();
        (fields[5].to_owned(), fields[15].to_owned())
    });
    (records.collect(), ledger["clock_steps"].as_u64().unwrap())
}

/// A long flow, and many fragments whose first fragment never comes.
#[test]
fn orphaned_fragments_are_late_and_do_not_set_the_clock_back() {
    let mut packets = Vec::new();
    for second in 0..90 {
        packets.push((second, 1, WHOLE));
        if second % 5 == 0 {
            packets.push((second, 100 + second as u16, LATER));
        }
    }
    for threads in ["1", "2"] {
        for idle in ["7s", "30s", "none"] {
            let (records, clock_steps) =
                metered(&packets, &["--threads", threads, "--idle-timeout", idle]);
            assert_eq!(clock_steps, 0, "{idle}");
            let of_flow = records.iter().filter(|(packets, _)| packets == "90");
            assert_eq!(of_flow.count(), 1, "{idle}: {records:?}");
        }
    }
}

#[test]
fn a_fragment_with_an_old_timestamp_sets_the_clock_back() {
    let packets = [(2_000, 1, WHOLE), (1_000, 2, LATER), (1_001, 1, WHOLE)];
    let (records, clock_steps) = metered(&packets, &[]);
    assert_eq!(clock_steps, 1);
    assert_eq!(records.len(), 3, "{records:?}");
}
