// SPDX-License-Identifier: Apache-2.0
//! Replays real captures, and compares each record with those of the files. The captures are not
//! part of the project (licences differ), and without them the tests are skipped.

use std::fs;
use std::path::{Path, PathBuf};

use turboflow_capture::CaptureFile;
use turboflow_packet::LinkType;
use turboflow_testing::{Need, captures_folder, is_missing};

use crate::exact::{NO_TIMEOUTS, equal, of_file};
use crate::link::{FAR, Link};
use crate::support::{Folder, pcap_header, pcap_packet};

/// Few captures are larger, and they have no other headers.
const MOST_BYTES: u64 = 1 << 20;
/// Frame lengths that a link can send: at least an Ethernet header, at most the MTU of its ends.
const FRAME_BYTES: std::ops::RangeInclusive<usize> = 14..=65_535;

/// The sendable frames of a folder's captures, as one capture for tcpreplay.
#[derive(Default)]
struct SendableFrames {
    captures: u64,
    frames: Vec<u8>,
    count: u64,
    /// Captures that the file reader cannot read to the end. The counters below are for captures
    /// that are too large, frames of other link types, and frames that a link cannot send.
    broken: u64,
    large: u64,
    of_other_links: u64,
    unsendable: u64,
}

impl SendableFrames {
    fn of(folder: &Path) -> Self {
        let mut sendable = Self::default();
        let mut paths: Vec<PathBuf> = files_below(folder);
        paths.sort();
        for path in paths {
            if fs::metadata(&path).unwrap().len() > MOST_BYTES {
                sendable.large += 1;
                continue;
            }
            // Other files, such as notes, are not counted.
            if let Ok(file) = CaptureFile::open(&path) {
                sendable.add(file);
            }
        }
        sendable
    }

    fn add(&mut self, mut file: CaptureFile) {
        let before = self.count;
        loop {
            let batch = match file.next_batch(256) {
                Ok(Some(batch)) => batch,
                Ok(None) => break,
                Err(_) => {
                    self.broken += 1;
                    break;
                }
            };
            for frame in batch.frames() {
                if frame.link_type != LinkType::Ethernet {
                    self.of_other_links += 1;
                } else if !FRAME_BYTES.contains(&frame.bytes.len()) {
                    self.unsendable += 1;
                } else {
                    self.count += 1;
                    self.frames.extend(pcap_packet(self.count, frame.bytes));
                }
            }
        }
        self.captures += u64::from(self.count > before);
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let of_entry = |path: PathBuf| match path.is_dir() {
        true => files_below(&path),
        false => vec![path],
    };
    entries.flat_map(|entry| of_entry(entry.path())).collect()
}

#[test]
fn real_captures_give_the_records_of_their_files() {
    let Some(link) = Link::new() else { return };
    replayed(&link, &["--readers", "1"]);
}

#[test]
fn several_readers_give_the_records_of_one() {
    let Some(link) = Link::new() else { return };
    replayed(&link, &["--readers", "3"]);
}

/// Replays them folder by folder to a program with these options.
pub(crate) fn replayed(link: &Link, options: &[&str]) {
    if is_missing(&[Need::Captures]) {
        return;
    }
    let folders = fs::read_dir(captures_folder().unwrap()).unwrap();
    let folders = folders.flatten().map(|entry| entry.path());
    let mut folders: Vec<PathBuf> = folders.filter(|path| path.is_dir()).collect();
    folders.sort();
    let (mut captures, mut packets) = (0, 0);
    for folder in folders {
        let sendable = SendableFrames::of(&folder);
        eprintln!(
            "{}: {} frames of {} captures; left out: {} captures too large, what follows in {} broken ones, {} frames of other links, \
             {} that none takes",
            folder.display(),
            sendable.count,
            sendable.captures,
            sendable.large,
            sendable.broken,
            sendable.of_other_links,
            sendable.unsendable
        );
        if sendable.count == 0 {
            continue;
        }
        let files = Folder::new();
        let capture = files.write("all.pcap", [pcap_header(1), sendable.frames].concat());
        let (count, expected) = of_file(&capture, &[]);
        assert_eq!(count, sendable.count);
        let wanted = count.to_string();
        let fixed = ["-w", "live.csv", "--packets", &wanted];
        let recording = link.record(&[FAR], &[&fixed, options, &NO_TIMEOUTS].concat());
        assert!(
            link.replay(&capture, &["--pps", "20000"]),
            "{}",
            folder.display()
        );
        equal(&recording.end().balanced(0), &expected);
        captures += sendable.captures;
        packets += count;
    }
    assert!(captures > 300, "{captures}");
    eprintln!("{captures} captures of {packets} packets replayed, no difference");
}
