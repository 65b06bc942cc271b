// SPDX-License-Identifier: Apache-2.0
//! `--unparsed-to`: unparsed frames are written as they were sent.

use std::fs;

use turboflow_capture::CaptureFile;
use turboflow_packet::{Frame, Parser, ParserConfig};

use crate::kernel::XDP;
use crate::link::{FAR, Link, NEAR};
use crate::support::{Folder, office, pcap_header, pcap_packet, turboflow, udp_frame};

/// The frames of a capture for which `take` is true, without their times.
fn frames_of(path: &str, take: impl Fn(&Frame<'_>) -> bool) -> Vec<Vec<u8>> {
    let mut file = CaptureFile::open(path.as_ref()).unwrap();
    let mut frames = Vec::new();
    while let Some(batch) = file.next_batch(256).unwrap() {
        let wanted = batch.frames().iter().filter(|frame| take(frame));
        frames.extend(wanted.map(|frame| frame.bytes.to_vec()));
    }
    frames
}

fn is_no_packet(frame: &Frame<'_>) -> bool {
    Parser::new(ParserConfig::default()).parse(frame).is_err()
}

/// A capture of packets and, between them, frames without a flow, of many reasons and lengths.
fn strange_capture() -> Vec<u8> {
    let header = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    let strange: [&[u8]; 6] = [
        // Unknown ethertype; ARP; LLDP; LLC; truncated after tags.
        &[0x12, 0x34, 1, 2, 3, 4],
        &[0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1],
        &[0x88, 0xcc, 2, 7, 4],
        &[0x00, 0x04, 0x42, 0x42, 0x03, 0x00],
        &[0x81, 0x00, 0, 1, 0x81, 0x00, 0, 2, 0x99, 0x99],
        // IPv4 with a header length below the minimum.
        &[0x08, 0x00, 0x44, 0, 0, 20],
    ];
    let mut bytes = pcap_header(1);
    for (number, body) in strange.iter().enumerate() {
        let mut frame = [&header[..], body].concat();
        frame.resize(60 + 7 * number, number as u8);
        bytes.extend(pcap_packet(number as u64, &frame));
        bytes.extend(pcap_packet(number as u64, &udp_frame(number as u16)));
    }
    // The longest frame that the link can carry.
    let jumbo = [&header[..], &[0x12, 0x34], &[0xab; 8_986]].concat();
    bytes.extend(pcap_packet(9, &jumbo));
    bytes
}

#[test]
fn unparsed_frames_are_in_the_file_as_they_were_sent() {
    let Some(link) = Link::for_xdp() else { return };
    let folder = Folder::new();
    let strange = folder.write("strange.pcap", strange_capture());
    for capture in [strange, office()] {
        let expected = frames_of(&capture, is_no_packet);
        assert!(expected.len() >= 7);
        let options = [&["-w", "live.csv", "--unparsed-to", "un.pcap"], &XDP[..]].concat();
        let recording = link.record(&[FAR], &options);
        assert!(link.replay(&capture, &["--pps", "10000"]));
        let ended = recording.interrupt().balanced(0);
        let written = frames_of(&ended.folder.file("un.pcap"), |frame| {
            frame.wire_length_bytes as usize == frame.bytes.len()
        });
        assert!(
            written == expected,
            "{} of {}",
            written.len(),
            expected.len()
        );
        assert_eq!(ended.ledger["unparsed"]["frames"], expected.len());
        assert!(ended.said.contains("un.pcap has"), "{}", ended.said);
    }
}

/// Times are those of arrival, and truncated frames keep their original length.
#[test]
fn frames_are_cut_at_the_snap_length() {
    let Some(link) = Link::for_xdp() else { return };
    let folder = Folder::new();
    let strange = folder.write("strange.pcap", strange_capture());
    let options = "-w live.csv --unparsed-to un.pcap --snap-length 64 --table row-lock";
    let options: Vec<&str> = options.split(' ').chain(XDP).collect();
    let recording = link.record(&[FAR], &options);
    assert!(link.replay(&strange, &["--pps", "10000"]));
    let ended = recording.interrupt().balanced(0);
    let kept = frames_of(&ended.folder.file("un.pcap"), |frame| {
        // A plausible arrival time: after this test was written, and for decades to come.
        (1_700_000_000..4_000_000_000).contains(&(frame.timestamp_ns / 1_000_000_000))
    });
    let whole = frames_of(&strange, is_no_packet);
    assert_eq!(kept.len(), whole.len());
    for (kept, whole) in kept.iter().zip(&whole) {
        assert_eq!(kept[..], whole[..whole.len().min(64)]);
    }
    let lengths = |path: &str| {
        let mut file = CaptureFile::open(path.as_ref()).unwrap();
        let batch = file.next_batch(256).unwrap().unwrap();
        let frames = batch.frames().iter().filter(|frame| is_no_packet(frame));
        frames
            .map(|frame| frame.wire_length_bytes)
            .collect::<Vec<_>>()
    };
    assert_eq!(lengths(&ended.folder.file("un.pcap")), lengths(&strange));
}

/// More frames than the ring holds, while the program is stopped: drops are counted, and the
/// records are complete.
#[test]
fn dropped_unparsed_frames_are_counted_and_cost_no_record() {
    let Some(link) = Link::for_xdp() else { return };
    let folder = Folder::new();
    let mut flood = pcap_header(1);
    let frame = [
        &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x12, 0x34][..],
        &[0; 1_000],
    ]
    .concat();
    for number in 0..2_000 {
        flood.extend(pcap_packet(number, &frame));
        flood.extend(pcap_packet(number, &udp_frame(7)));
    }
    let flood = folder.write("flood.pcap", flood);
    let options = [&["-w", "live.csv", "--unparsed-to", "un.pcap"], &XDP[..]].concat();
    let recording = link.record(&[FAR], &options);
    recording.signal("STOP");
    assert!(link.replay(&flood, &["--topspeed"]));
    recording.signal("CONT");
    let ended = recording.interrupt().balanced(1);
    let count = |name: &str| ended.ledger["unparsed"][name].as_u64().unwrap();
    let (written, lost) = (count("frames"), count("frames_lost"));
    assert_eq!(written + lost, 2_000);
    assert!((900..1_100).contains(&written), "{written}: a MiB's worth");
    assert_eq!(ended.count("packets_non_ip"), 2_000);
    assert_eq!(ended.count("packets_recorded"), 2_000);
    assert_eq!(ended.count("source_dropped"), 0);
    let file = fs::metadata(ended.folder.file("un.pcap")).unwrap().len();
    assert_eq!(file, 24 + written * (16 + 1_014));
    assert!(
        ended
            .said
            .contains("arrived too fast for the engine to hand over"),
        "{}",
        ended.said
    );
}

#[test]
fn unparsed_to_needs_the_xdp_engine() {
    for source in [["-r", &office()], ["-i", NEAR]] {
        let args = [
            "record",
            "-w",
            "-",
            "--format",
            "csv",
            "--unparsed-to",
            "un.pcap",
        ];
        let ran = turboflow(args.iter().copied().chain(source)).exits(2);
        assert!(ran.stderr.contains("--unparsed-to"), "{}", ran.stderr);
    }
}
