// SPDX-License-Identifier: Apache-2.0
//! `--engine rtl`: flow records by the simulated design for FPGAs.

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
        (&["--biflow"], "--biflow; leave it out"),
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

/// What it lacks, how to have it, and what works.
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
    use turboflow_testing::{Need, captures_folder, is_missing};

    use super::*;
    use crate::support::{project, rows};

    /// The flow records of a capture, as a file of CSV.
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

    /// Floods, a mix of everything, and a long stream. All other captures were compared once:
    /// `docs/fpga.md`.
    #[test]
    fn records_of_large_captures_are_those_of_the_software_engine() {
        if is_missing(&[Need::Captures]) {
            return;
        }
        let folder = captures_folder().unwrap().join("large");
        for name in [
            "StopDDoS__pkt.TCP.synflood.spoofed.pcap",
            "doriguzzi__CIC-DDoS-2019-SynFlood.pcap",
            "mix-dev-composite.pcap",
            "ndpi42__netflix.pcap",
        ] {
            let capture = folder.join(name).display().to_string();
            equals_software(&capture, &[&[]], &[&["--rtl-buckets", "16"]]);
        }
    }
}
