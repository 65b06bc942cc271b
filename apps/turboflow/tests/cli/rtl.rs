// SPDX-License-Identifier: Apache-2.0
//! `--engine rtl`: flow records of the simulated FPGA design.

use crate::support::{Folder, office, turboflow};

#[test]
fn says_what_a_slot_has_no_room_for() {
    let folder = Folder::new();
    let sizes = folder.write(
        "sizes.toml",
        "[[feature]]\nname = \"packets\"\nop = \"count\"\n\
         [[feature]]\nname = \"sizes\"\nop = \"list\"\nof = \"ip_length\"\nk = 5\n",
    );
    let window = folder.write(
        "window.toml",
        "[[feature]]\nname = \"window\"\nop = \"max\"\nof = \"tcp_window\"\n",
    );
    let addresses = folder.write(
        "addresses.toml",
        "[key]\nfields = [\"source_address\"]\n\
         [[feature]]\nname = \"packets\"\nop = \"count\"\n",
    );
    let office = office();
    let rtl = ["record", "-q", "--engine", "rtl"];
    let of_office = [&rtl[..], &["-r", &office]].concat();
    for (args, words) in [
        (&["--definition", &sizes][..], "feature `sizes`: a slot"),
        (&["--definition", &window], "tcp_window"),
        (&["--definition", &addresses], "the 5-tuple"),
        (&["--biflow"], "does not support --biflow; leave it out"),
        (
            &["--definition", &sizes, "--biflow"],
            "does not support --biflow; leave it out",
        ),
        (&["--microflow-slots", "100"], "--microflow-slots"),
        (&["--decapsulate"], "does not support --decapsulate"),
        (&["--rtl-stages", "3"], "a power of two from 1 to 4, not 3"),
        (&["--rtl-buckets", "1024"], "a power of two from 1 to 512"),
    ] {
        turboflow([&of_office[..], args].concat())
            .exits(2)
            .says(&[words]);
    }
    let says = "engine `rtl` meters captures: add --read FILE";
    turboflow(rtl).exits(2).says(&[says]);
    turboflow([&rtl[..], &["-i", "lo"]].concat())
        .exits(2)
        .says(&[says, "leave out"]);
    turboflow(["record", "-q", "-r", &office, "--rtl-stages", "2"])
        .exits(2)
        .says(&["is for engine `rtl`: add --engine rtl"]);
}

/// The error says what is missing, how to get it, and which engine works instead.
#[cfg(not(feature = "rtl"))]
#[test]
fn a_program_without_it_says_what_to_install() {
    turboflow(["record", "-q", "--engine", "rtl", "-r", &office()])
        .exits(2)
        .says(&[
            "built without engine `rtl`",
            "apt-get install verilator",
            "--engine software works",
        ]);
}

#[cfg(feature = "rtl")]
mod simulated {
    use std::fs;
    use std::path::{Path, PathBuf};

    use turboflow_capture::CaptureFile;
    use turboflow_engine_rtl::{
        Arrival, Build, GivenFrame, HostPacket, LineConfig, Pace, Shell, Step, VerilatedCard,
        VerilatedMeter,
    };
    use turboflow_merge::{KeyHasher, MicroflowRecord};
    use turboflow_packet::{Parser, ParserConfig};
    use turboflow_record::Family;
    use turboflow_testing::{Need, captures_folder, is_missing};

    use super::*;
    use crate::support::{pcap_header, pcap_packet, project, rows};

    /// The flow records of a capture, as CSV.
    fn records(capture: &str, args: &[&str]) -> String {
        let all = [
            "record", "-q", "-r", capture, "-w", "-", "--format", "csv", "--seed", "7",
        ];
        turboflow([&all[..], args].concat()).exits(0).stdout
    }

    fn equals_software(capture: &str, setups: &[&[&str]], sizes: &[&[&str]]) {
        for setup in setups {
            let expected = rows(&records(capture, setup));
            assert!(!expected.is_empty(), "{capture}");
            for size in sizes {
                let rtl = [*setup, &["--engine", "rtl"][..], size].concat();
                let found = rows(&records(capture, &rtl));
                assert!(found == expected, "{capture} differs with {rtl:?}");
            }
        }
    }

    #[test]
    fn records_are_those_of_the_software_engine() {
        let setups: [&[&str]; 3] = [
            &[],
            &["--idle-timeout", "500ms", "--linger", "0"],
            &["--linger", "none", "--threads", "2"],
        ];
        let sizes: [&[&str]; 3] = [
            &[],
            &["--rtl-stages", "1", "--rtl-buckets", "1"],
            &["--rtl-stages", "2", "--rtl-buckets", "4"],
        ];
        equals_software(&office(), &setups, &sizes);
        equals_software(&project("samples/two-links.pcapng"), &setups, &sizes);
    }

    /// Finds the captures in a folder, by the extensions that the collections use. Includes
    /// malformed and empty ones.
    fn find(folder: &Path, captures: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let ending = path.extension().and_then(|ending| ending.to_str());
            match ending {
                _ if path.is_dir() => find(&path, captures),
                Some("pcap" | "pcapng" | "cap" | "trace" | "tcpdump") => captures.push(path),
                _ => {}
            }
        }
    }

    /// Compares flow records, messages and exit codes, also for malformed captures. Rows are
    /// sorted, because flows that end together have no fixed order: at the end of a cell, records
    /// leave a table in the order of its slots, which differ in the line and with the seed of the
    /// hash.
    #[test]
    fn every_capture_is_metered_as_by_the_software_engine() {
        if is_missing(&[Need::Captures]) {
            return;
        }
        let mut captures = Vec::new();
        find(&captures_folder().unwrap(), &mut captures);
        captures.sort();
        assert!(captures.len() > 430, "{} captures", captures.len());
        // Few slots, so that records are displaced: one stage, or four.
        let sizes = [["1", "2"], ["4", "2"]];
        for (capture, [stages, buckets]) in captures.iter().zip(sizes.into_iter().cycle()) {
            let capture = capture.display().to_string();
            let rtl = [
                "--engine",
                "rtl",
                "--rtl-stages",
                stages,
                "--rtl-buckets",
                buckets,
            ];
            let [expected, found] = [&[][..], &rtl].map(|engine| {
                let all = ["record", "-q", "-r", &capture, "-w", "-", "--format", "csv"];
                let ran = turboflow([&all[..], engine].concat());
                (rows(&ran.stdout), ran.stderr, ran.code)
            });
            assert!(found == expected, "{capture}, {stages} x {buckets}");
        }
    }

    fn arrival<const K: usize>(record: &MicroflowRecord<K, 0>) -> Arrival {
        Arrival::of_record(&record.key, &record.base)
    }

    /// The output of a card's meter, written to files unchanged, merges into the flow records of
    /// the software engine.
    #[test]
    fn messages_of_a_card_are_merged_by_engine_records() {
        const CELL_NS: u64 = 100_000_000;
        let folder = Folder::new();
        for capture in [office(), project("samples/two-links.pcapng")] {
            let mut file = CaptureFile::open(Path::new(&capture)).unwrap();
            let mut parser = Parser::new(ParserConfig::default());
            let families = [Build::METER_V4, Build::METER_V6];
            let mut meters = families.map(|build| {
                let config = LineConfig::new(build, build.size(), KeyHasher::new(3));
                (
                    VerilatedMeter::new(&config, build.key_bits, 200),
                    Vec::new(),
                )
            });
            let mut cell_ns = 0;
            while let Ok(Some(batch)) = file.next_batch(1_024) {
                for packet in batch.frames().iter().flat_map(|frame| parser.parse(frame)) {
                    let starts_ns = packet.timestamp_ns / CELL_NS * CELL_NS;
                    if starts_ns > cell_ns {
                        cell_ns = starts_ns;
                        for (meter, bytes) in &mut meters {
                            meter.give(&[Step::Cell(cell_ns)], bytes);
                        }
                    }
                    let (family, arrival) = match packet.tuple.family() {
                        Family::V4 => (0, arrival(&MicroflowRecord::of_v4(&packet))),
                        Family::V6 => (1, arrival(&MicroflowRecord::of_v6(&packet))),
                    };
                    let (meter, bytes) = &mut meters[family];
                    meter.give(&[Step::Packet(arrival)], bytes);
                }
            }
            let files = meters.map(|(mut meter, mut bytes)| {
                meter.end(cell_ns + CELL_NS, &mut bytes);
                folder.write(&format!("{}.records", bytes.len()), &bytes)
            });
            let merge = ["record", "-q", "--engine", "records", "--records-from"];
            let to = ["-w", "-", "--format", "csv"];
            let args = [&merge[..], &[&files[0], &files[1]], &to].concat();
            let merged = turboflow(args).exits(0).stdout;
            assert_eq!(rows(&merged), rows(&records(&capture, &[])));
        }
    }

    /// The output of a card inside a shell, written to files unchanged. Frames enter at the card's
    /// port; frames that reach the host whole are metered in the same run.
    #[test]
    fn frames_that_pass_a_shell_become_the_records_of_the_software_engine() {
        const ENGINE_ID: u8 = 100;
        const LENGTH_OF_ID: usize = 20;
        const ETHERNET: u32 = 1;
        let folder = Folder::new();
        // A card has shorter cells, and flows may end with a cell, which is another end reason.
        let uncut = [
            "--active-timeout",
            "none",
            "--idle-timeout",
            "none",
            "--linger",
            "none",
        ];
        let cases = [
            "dccp",
            "destination_options6",
            "fragments4_in_order",
            "fragments6_after_options",
            "ah6",
            "llc_snap",
            "mpls_two",
            "pppoe",
        ]
        .map(|case| project(&format!("samples/cases/{case}.pcap")));
        let mut captures_with_whole = 0;
        for capture in cases.into_iter().chain([office()]) {
            let mut file = CaptureFile::open(Path::new(&capture)).unwrap();
            let mut frames = Vec::new();
            while let Ok(Some(batch)) = file.next_batch(1_024) {
                frames.extend(batch.frames().iter().map(|frame| GivenFrame {
                    bytes: frame.bytes.to_vec(),
                    time_ns: frame.timestamp_ns,
                    ..GivenFrame::default()
                }));
            }
            let end_ns = frames.iter().map(|frame| frame.time_ns).max().unwrap() + 1;
            for shell in [Shell::OpenNic, Shell::Corundum] {
                let mut card = VerilatedCard::new(shell, 3, ENGINE_ID.into());
                let pace = Pace {
                    given_of_256: 40,
                    ready_of_256: 256,
                };
                card.arrive(&frames, pace);
                card.end(end_ns);
                let mut families = [Vec::new(), Vec::new()];
                let nothing = pcap_header(ETHERNET);
                let mut whole = nothing.clone();
                for packet in card.said() {
                    match packet {
                        HostPacket::Message(bytes) => {
                            let family = bytes[LENGTH_OF_ID - 1] - ENGINE_ID;
                            families[usize::from(family)].extend(bytes);
                        }
                        HostPacket::Whole { frame, .. } => {
                            whole.extend(pcap_packet(frame.time_ns / 1_000, &frame.bytes));
                        }
                    }
                }
                assert_eq!(card.counters().packets_dropped, 0);
                captures_with_whole += usize::from(whole != nothing);
                let whole = folder.write(&format!("{shell:?}.pcap"), whole);
                let files = families.map(|bytes| {
                    folder.write(&format!("{shell:?}{}.records", bytes.len()), &bytes)
                });
                let merge = ["record", "-q", "--engine", "records", "--records-from"];
                let to = ["-w", "-", "--format", "csv"];
                let from = [&files[0], &files[1], "--frames-from", &whole];
                let args = [&merge[..], &from, &to, &uncut].concat();
                let merged = turboflow(args).exits(0).stdout;
                let of = format!("{capture}, {shell:?}");
                assert_eq!(rows(&merged), rows(&records(&capture, &uncut)), "{of}");
            }
        }
        assert!(captures_with_whole >= 8, "{captures_with_whole}");
    }
}
