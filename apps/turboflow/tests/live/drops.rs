// SPDX-License-Identifier: Apache-2.0
//! Drops of a full ring are counted exactly.

use crate::link::{FAR, Link};
use crate::support::office;

#[test]
fn drops_of_a_tiny_ring_are_counted_exactly() {
    let Some(link) = Link::new() else { return };
    for readers in ["1", "2"] {
        let options = [
            "-w",
            "live.csv",
            "--ring-size",
            "64KiB",
            "--readers",
            readers,
        ];
        let recording = link.record(&[FAR], &options);
        // While the program is stopped, the ring fills up.
        recording.signal("STOP");
        assert!(link.replay(&office(), &["--topspeed"]));
        recording.signal("CONT");
        let ended = recording.interrupt().balanced(1);
        assert_eq!(ended.count("source_seen"), 13_035);
        assert!(ended.count("source_dropped") > 10_000);
        assert!(ended.count("packets_received") > 100);
        assert!(ended.said.contains("the kernel dropped"), "{}", ended.said);
        assert!(ended.said.contains("--ring-size"), "{}", ended.said);
    }
}
