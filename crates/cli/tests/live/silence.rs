// SPDX-License-Identifier: Apache-2.0
//! Idle flows leave a silent link on time, without a packet to push them.

use std::time::{Duration, Instant};

use crate::link::{FAR, Link};
use crate::support::office;

/// Idle timeout 1 s, a cell of the clock 1 s, the lag of a live source 0.1 s; and what a busy
/// machine adds.
const ON_TIME: Duration = Duration::from_millis(2_100 + 2_000);
const PACKETS: u64 = 100;

#[test]
#[allow(clippy::disallowed_methods, reason = "the test is about time")]
fn idle_flows_leave_without_a_packet() {
    let Some(link) = Link::new() else { return };
    for threads in ["1", "2"] {
        let options = [
            "-w",
            "-",
            "--format",
            "csv",
            "--idle-timeout",
            "1s",
            "--linger",
            "none",
            "--threads",
            threads,
        ];
        let recording = link.record(&[FAR], &options);
        let header = recording.stdout.recv_timeout(ON_TIME).unwrap();
        let at = |name: &str| header.split(',').position(|column| column == name).unwrap();
        let limit = PACKETS.to_string();
        assert!(link.replay(&office(), &["--pps", "10000", "--limit", &limit]));
        let sent = Instant::now();
        // Six of the first hundred packets are no IP.
        let mut packets = 0;
        while packets < PACKETS - 6 {
            let left = ON_TIME.saturating_sub(sent.elapsed());
            let Ok(line) = recording.stdout.recv_timeout(left) else {
                panic!("{packets} packets were in records on time");
            };
            let cells: Vec<&str> = line.split(',').collect();
            assert_eq!(cells[at("end_reason")], "1", "{line}");
            packets += cells[at("packets")].parse::<u64>().unwrap();
        }
        let ended = recording.interrupt().balanced(0);
        assert_eq!(ended.count("packets_recorded"), packets);
        assert_eq!(ended.count("packets_received"), PACKETS);
    }
}
