// SPDX-License-Identifier: Apache-2.0
//! Captures, and flows that are counted along with an inspection.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use turboflow_capture::CaptureFile;
use turboflow_inspect::{FlowKey, InspectConfig, InspectCounters, Inspection, TextSink, Verdict};
use turboflow_packet::{Frame, LinkType, Parser, ParserConfig};
use turboflow_record::{FiveTuple, Packet};
use turboflow_testing::{Need, captures_folder};

/// What every test here requires.
pub(crate) const LIBRARY: Need<'static> = Need::Library("libndpi", cfg!(feature = "dpi"));

/// A table of texts that keeps all of them.
#[derive(Default)]
pub(crate) struct Texts {
    all: Mutex<Vec<String>>,
}

impl TextSink for &Texts {
    fn intern(&self, text: &[u8]) -> u64 {
        let mut all = self.all.lock().unwrap();
        all.push(String::from_utf8_lossy(text).into_owned());
        all.len() as u64
    }
}

impl Texts {
    pub(crate) fn text(&self, handle: Option<u64>) -> Option<String> {
        let all = self.all.lock().unwrap();
        handle.map(|handle| all[handle as usize - 1].clone())
    }
}

/// A configuration for files, with the inspector of this crate.
pub(crate) fn config() -> InspectConfig {
    InspectConfig {
        is_lossless: true,
        program: Some(env!("CARGO_BIN_EXE_turboflow-inspector").into()),
        ..InspectConfig::default()
    }
}

/// All captures below a folder of the real captures, sorted.
pub(crate) fn captures(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![captures_folder().unwrap().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let ending = path.extension().and_then(|it| it.to_str());
            match ending {
                _ if path.is_dir() => folders.push(path),
                Some("pcap" | "pcapng") => found.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    assert!(!found.is_empty());
    found
}

/// Calls `take` with each packet of a capture, its frame, and its IP packet if that can be
/// inspected.
pub(crate) fn each_packet(
    path: &Path,
    config: ParserConfig,
    mut take: impl FnMut(&Packet, &Frame<'_>, Option<&[u8]>),
) {
    each_frame(path, config, |_, packet, frame, datagram| {
        take(packet, frame, datagram)
    });
}

/// Like [`each_packet`], with the number of the frame in the file, counted from 1.
pub(crate) fn each_frame(
    path: &Path,
    config: ParserConfig,
    mut take: impl FnMut(u64, &Packet, &Frame<'_>, Option<&[u8]>),
) {
    let mut file = CaptureFile::open(path).unwrap();
    let mut parser = Parser::new(config);
    let mut number = 0;
    // The last record of some captures is truncated.
    while let Ok(Some(batch)) = file.next_batch(256) {
        for frame in batch.frames() {
            number += 1;
            if let Ok(packet) = parser.parse(frame) {
                take(number, &packet, frame, parser.ip_datagram(frame));
            }
        }
    }
}

/// The totals of a flow, counted along with the inspection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) flows: u64,
}

/// The result of inspecting a capture.
pub(crate) struct Inspected {
    pub(crate) flows: Vec<(FiveTuple, Totals, Option<Verdict>)>,
    pub(crate) counters: InspectCounters,
    pub(crate) names: BTreeMap<u32, String>,
    pub(crate) packets: u64,
}

/// Inspects the packets of a capture for which `takes` returns true, then asks for every flow.
pub(crate) fn inspect(
    path: &Path,
    parser: ParserConfig,
    config: InspectConfig,
    texts: &Texts,
    takes: impl Fn(&Packet, Option<&[u8]>) -> bool,
) -> Inspected {
    let mut inspection = Inspection::start(config, texts).unwrap();
    let mut order = Vec::new();
    let mut flows: HashMap<FlowKey, (FiveTuple, Totals)> = HashMap::new();
    let (mut packets, mut last_ns) = (0, 0);
    each_packet(path, parser, |packet, frame, datagram| {
        if !takes(packet, datagram) {
            return;
        }
        let (key, _) = FlowKey::of(&packet.tuple);
        let (_, totals) = flows.entry(key).or_insert_with(|| {
            order.push(key);
            (
                packet.tuple,
                Totals {
                    flows: 1,
                    ..Totals::default()
                },
            )
        });
        totals.packets += 1;
        totals.bytes += frame.bytes.len() as u64;
        packets += 1;
        last_ns = packet.timestamp_ns.max(last_ns);
        inspection.offer(packet, || datagram);
    });
    inspection.wait_until_caught_up(last_ns);
    let verdicts = inspection.verdicts();
    let mut locked = verdicts.lock();
    let flows = order.iter().map(|key| {
        let (tuple, totals) = flows[key];
        (tuple, totals, locked.get(&tuple, last_ns).copied())
    });
    let flows = flows.collect();
    drop(locked);
    inspection.finish(last_ns);
    let names = inspection.names();
    let names = names.applications.iter();
    Inspected {
        flows,
        counters: inspection.counters(),
        names: names
            .map(|(number, name, _)| (*number, name.clone()))
            .collect(),
        packets,
    }
}

/// An IPv4 UDP packet with this payload, as [`Packet`] and as datagram.
pub(crate) fn udp(ports: (u16, u16), payload: &[u8], time_ns: u64) -> (Packet, Vec<u8>) {
    let mut datagram = vec![0x45, 0];
    datagram.extend((28 + payload.len() as u16).to_be_bytes());
    datagram.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    datagram.extend(ports.0.to_be_bytes());
    datagram.extend(ports.1.to_be_bytes());
    datagram.extend((8 + payload.len() as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(payload);
    (packet_of(&datagram, time_ns), datagram)
}

/// The packet of a datagram.
pub(crate) fn packet_of(datagram: &[u8], time_ns: u64) -> Packet {
    let frame = Frame {
        bytes: datagram,
        wire_length_bytes: datagram.len() as u32,
        timestamp_ns: time_ns,
        interface: 0,
        link_type: LinkType::Raw,
    };
    Parser::new(ParserConfig::default()).parse(&frame).unwrap()
}
