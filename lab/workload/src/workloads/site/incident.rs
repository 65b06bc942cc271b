// SPDX-License-Identifier: Apache-2.0
//! The incidents of the day: a port scan, an exfiltration, and a line that loses packets.

use std::net::Ipv4Addr;

use super::conversation::{Answer, Conversation, SERVERS, UPLOAD_IP_BYTES};
use super::{DAY_NS, SECOND_NS};
use crate::random::mix;
use crate::traffic::Endpoints;

const MINUTE_NS: u64 = 60 * SECOND_NS;
/// First number of the incidents' conversations, above those of all others.
const FIRST_NUMBER: u64 = 1 << 62;

/// Start of the scan, in ns after midnight: 10:12.
pub const SCAN_START_NS: u64 = (10 * 60 + 12) * MINUTE_NS;
/// The scanning host.
pub const SCAN_FROM: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 77);
const SCAN_HOSTS: u32 = 100;
const SCAN_PORTS: [u16; 20] = [
    21, 22, 23, 25, 53, 80, 110, 135, 139, 143, 389, 443, 445, 993, 1_433, 3_306, 3_389, 5_900,
    8_080, 8_443,
];
/// Number of connections that it tries.
pub const SCAN_PROBES: u32 = SCAN_HOSTS * SCAN_PORTS.len() as u32;
const SCAN_GAP_NS: u64 = SECOND_NS / 20;

/// Start of the exfiltration, in ns after midnight: 13:31.
pub const EXFILTRATION_START_NS: u64 = (13 * 60 + 31) * MINUTE_NS;
/// Its approximate end, in ns after midnight: 14:05.
pub const EXFILTRATION_END_NS: u64 = (14 * 60 + 5) * MINUTE_NS;
/// The server whose files are stolen.
pub const EXFILTRATION_FROM: Ipv4Addr = Ipv4Addr::new(10, 20, 16, 45);
/// Their destination.
pub const EXFILTRATION_TO: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 23);
const EXFILTRATION_PACKETS: u32 = 150_000;

/// Start of the packet loss, in ns after midnight: 16:10.
pub const LOSS_START_NS: u64 = (16 * 60 + 10) * MINUTE_NS;
/// Its end, in ns after midnight: 16:50.
pub const LOSS_END_NS: u64 = (16 * 60 + 50) * MINUTE_NS;
/// Percentage of packets that the line to the branch loses in either direction.
pub const LOSS_PERCENT: u64 = 4;

/// The conversations of scan and exfiltration, with their start times in ns.
pub(super) fn conversations(start_ns: u64) -> Vec<(u64, Conversation)> {
    let mut planned = Vec::new();
    for probe in 0..SCAN_PROBES {
        let host = 1 + probe % SCAN_HOSTS;
        let port = SCAN_PORTS[(probe / SCAN_HOSTS) as usize];
        let ends = Endpoints {
            source: SCAN_FROM.to_bits(),
            destination: SERVERS + host,
            source_port: 40_000 + (probe % 20_000) as u16,
            destination_port: port,
        };
        let at_ns = start_ns + SCAN_START_NS + u64::from(probe) * SCAN_GAP_NS;
        let number = FIRST_NUMBER + u64::from(probe);
        planned.push((at_ns, Conversation::probe(number, ends, answer(host, port))));
    }
    let ends = Endpoints {
        source: EXFILTRATION_FROM.to_bits(),
        destination: EXFILTRATION_TO.to_bits(),
        source_port: 51_515,
        destination_port: 443,
    };
    let lasts_ns = EXFILTRATION_END_NS - EXFILTRATION_START_NS;
    let number = FIRST_NUMBER + u64::from(SCAN_PROBES);
    let upload = Conversation::upload(number, ends, EXFILTRATION_PACKETS, lasts_ns);
    planned.push((start_ns + EXFILTRATION_START_NS, upload));
    planned
}

/// How the company's network answers a probe.
fn answer(host: u32, port: u16) -> Answer {
    let open: &[u16] = match host {
        25 => &[25, 993],
        45 => &[445],
        53 => &[53],
        80 => &[443, 8_443],
        _ => return Answer::None,
    };
    if open.contains(&port) {
        Answer::Open
    } else {
        Answer::Reset
    }
}

/// Approximate flows, packets and IP bytes that the incidents add to each second of the day.
pub(super) fn of_a_second() -> (f64, f64, f64) {
    let seconds = (DAY_NS / SECOND_NS) as f64;
    // Hosts that exist answer on every port.
    let answers = 4 * SCAN_PORTS.len() as u32;
    let packets = f64::from(SCAN_PROBES + answers + EXFILTRATION_PACKETS);
    let bytes = f64::from(EXFILTRATION_PACKETS) * f64::from(UPLOAD_IP_BYTES);
    let flows = f64::from(SCAN_PROBES + answers + 2);
    (flows / seconds, packets / seconds, bytes / seconds)
}

/// Whether the line loses a packet; `offset_ns` is the time after midnight.
pub(super) fn loses(offset_ns: u64, number: u64, step: u32) -> bool {
    (LOSS_START_NS..LOSS_END_NS).contains(&offset_ns)
        && mix(number ^ u64::from(step) << 40) % 100 < LOSS_PERCENT
}
