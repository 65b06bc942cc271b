// SPDX-License-Identifier: Apache-2.0
//! Real captures, replayed: the records of the file, one by one. They are no part of the project
//! (licences differ); where they are not beside the checkout the test is skipped.

use std::fs;
use std::path::{Path, PathBuf};

use turboflow_capture::CaptureFile;
use turboflow_packet::LinkType;
use turboflow_testing::{Need, captures_folder, is_missing};

use crate::exact::{NO_TIMEOUTS, equal, of_file};
use crate::link::{FAR, Link};
use crate::support::{Folder, pcap_header, pcap_packet};

/// Of larger ones there are few, and no other headers in them.
const MOST_BYTES: u64 = 1 << 20;
/// What a link takes: a whole Ethernet header, and no more than its ends were set to.
const FRAME_BYTES: std::ops::RangeInclusive<usize> = 14..=65_535;

/// What the captures of a folder have for a link: one capture, as tcpreplay takes it.
#[derive(Default)]
struct Together {
    captures: u64,
    frames: Vec<u8>,
    count: u64,
    /// Captures that no file reader of ours reads to the end, those too large, frames of other links, frames that no link takes.
    broken: u64,
    large: u64,
    of_other_links: u64,
    unsendable: u64,
}

impl Together {
    fn of(folder: &Path) -> Self {
        let mut together = Self::default();
        let mut paths: Vec<PathBuf> = files_below(folder);
        paths.sort();
        for path in paths {
            if fs::metadata(&path).unwrap().len() > MOST_BYTES {
                together.large += 1;
                continue;
            }
            // What is no capture is not counted: notes lie beside them.
            if let Ok(file) = CaptureFile::open(&path) {
                together.add(file);
            }
        }
        together
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

/// Replays all of them to a program with these options, folder by folder.
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
        let together = Together::of(&folder);
        eprintln!(
            "{}: {} frames of {} captures; left out: {} captures too large, what follows in {} broken ones, {} frames of other links, \
             {} that none takes",
            folder.display(),
            together.count,
            together.captures,
            together.large,
            together.broken,
            together.of_other_links,
            together.unsendable
        );
        if together.count == 0 {
            continue;
        }
        let files = Folder::new();
        let capture = files.write("all.pcap", [pcap_header(1), together.frames].concat());
        let (count, expected) = of_file(&capture, &[]);
        assert_eq!(count, together.count);
        let wanted = count.to_string();
        let fixed = ["-w", "live.csv", "--packets", &wanted];
        let recording = link.record(&[FAR], &[&fixed, options, &NO_TIMEOUTS].concat());
        assert!(
            link.replay(&capture, &["--pps", "20000"]),
            "{}",
            folder.display()
        );
        equal(&recording.end().balanced(0), &expected);
        captures += together.captures;
        packets += count;
    }
    assert!(captures > 300, "{captures}");
    eprintln!("{captures} captures of {packets} packets replayed, no difference");
}
