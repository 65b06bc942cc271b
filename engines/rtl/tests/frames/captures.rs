// SPDX-License-Identifier: Apache-2.0
//! Every Ethernet frame of every capture: the parser's description equals that of `crates/packet`,
//! or the host gets the frame whole.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use turboflow_capture::CaptureFile;
use turboflow_engine_rtl::{Damage, GivenFrame, Handed, Pace, VerilatedParser};
use turboflow_packet::{LinkType, Parser, ParserConfig};
use turboflow_testing::{Need, captures_folder, is_missing};

use crate::parser::{captured, difference};

/// The captures of a folder.
pub(crate) fn find(folder: &Path, captures: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let ending = path.extension().and_then(|ending| ending.to_str());
        match ending {
            _ if path.is_dir() => find(&path, captures),
            Some("pcap" | "pcapng" | "cap" | "trace") => captures.push(path),
            _ => {}
        }
    }
    captures.sort();
}

/// The Ethernet frames of a capture, as far as they were captured.
pub(crate) fn frames(path: &Path) -> Vec<GivenFrame> {
    let mut frames = Vec::new();
    // Damaged captures end early, or cannot be opened.
    let Ok(mut file) = CaptureFile::open(path) else {
        return frames;
    };
    while let Ok(Some(batch)) = file.next_batch(1_024) {
        let ethernet = batch
            .frames()
            .iter()
            .filter(|frame| frame.link_type == LinkType::Ethernet && !frame.bytes.is_empty());
        frames.extend(ethernet.map(|frame| GivenFrame {
            bytes: frame.bytes.to_vec(),
            time_ns: frame.timestamp_ns,
            damage: Damage::None,
        }));
    }
    frames
}

#[test]
fn every_capture_is_parsed_as_by_the_software() {
    if is_missing(&[Need::Captures]) {
        return;
    }
    let mut captures = Vec::new();
    find(&captures_folder().unwrap(), &mut captures);
    assert!(captures.len() > 400);
    let mut parser = VerilatedParser::new(1, 0);
    // For each reason: number of frames, and of those in which the software finds a packet.
    let mut handed: BTreeMap<Handed, (u64, u64)> = BTreeMap::new();
    let (mut packets, mut all_frames) = (0_u64, 0_u64);
    for capture in captures {
        let frames = frames(&capture);
        let said = parser.parse(&frames, Pace::FULL);
        let found = difference(&frames, &said);
        assert_eq!(found, None, "{}", capture.display());
        let mut software = Parser::new(ParserConfig::default());
        for (frame, (verdict, ..)) in frames.iter().zip(&said) {
            all_frames += 1;
            match verdict {
                Ok(_) => packets += 1,
                Err(reason) => {
                    let of = handed.entry(*reason).or_default();
                    of.0 += 1;
                    of.1 += u64::from(software.parse(&captured(frame)).is_ok());
                }
            }
        }
    }
    eprintln!("{packets} packets of {all_frames} frames; handed over: {handed:?}");
    assert!(all_frames > 100_000);
    // Of the packets that the software meters, the card leaves MPLS, PPPoE and the like, and few
    // others.
    let left = |of: &[Handed]| -> u64 {
        of.iter()
            .filter_map(|of| handed.get(of))
            .map(|of| of.1)
            .sum()
    };
    assert!(25 * left(&Handed::ALL) < packets);
    assert!(1_000 * (left(&Handed::ALL) - left(&[Handed::EtherType])) < packets);
}
