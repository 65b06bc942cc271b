// SPDX-License-Identifier: Apache-2.0
//! nfcapd, the collector of nfdump.

use std::process::Command;

use turboflow_testing::{Need, free_port, is_missing};

use crate::daemon::Daemon;
use crate::flow::{
    Collector, Flow, Got, OVER_UDP, as_shown, captures, equal, of_csv, send, send_with_lists,
};
use crate::support::{Folder, Ran, command, finish, pcap_header, pcap_packet};

/// A listening nfcapd.
pub(crate) struct Nfcapd(pub(crate) Daemon);

impl Collector for Nfcapd {
    fn start(port: u16) -> Option<Self> {
        if is_missing(&[Need::Tool("nfcapd")]) {
            return None;
        }
        let folder = Folder::new();
        let mut command = Command::new("nfcapd");
        command.arg("-w").arg(folder.path()).args(["-t", "3600"]);
        command.args(["-b", "127.0.0.1", "-p", &port.to_string()]);
        // A burst waits in the socket while other tests have the processor.
        command.args(["-B", "4194304"]);
        Some(Self(Daemon::start(&mut command, folder, port)))
    }

    fn end(self, all: bool) -> Got {
        if all {
            self.0.wait_until_handled();
        }
        let folder = self.0.end("TERM");
        let names = folder.names();
        let file = names.iter().find(|name| name.starts_with("nfcapd."));
        let file = folder.file(file.unwrap());
        let raw = nfdump(&["-q", "-6", "-N", "-r", &file, "-o", "raw"]);
        let mut flows: Vec<_> = raw.split("Flow Record:").skip(1).map(flow).collect();
        flows.sort();
        let about = nfdump(&["-I", "-r", &file]);
        let sequence = about
            .lines()
            .filter(|line| line.contains("Sequence failures"));
        let complaints = sequence.filter(|line| !line.ends_with(" 0"));
        Got {
            flows,
            complaints: complaints.map(str::to_owned).collect(),
        }
    }

    fn our_options(scheme: &str) -> &'static [&'static str] {
        // By RFC 7011, section 3.1, sequence numbers count all data records, including options
        // records. nfcapd 1.7.1 does not count options records, and reports a gap after each.
        match scheme {
            "ipfix+udp" => &["--no-export-options"],
            _ => &[],
        }
    }
}

fn nfdump(args: &[&str]) -> String {
    let Ran { code, stdout, .. } = finish(Command::new("nfdump").args(args));
    assert_eq!(code, Some(0), "{args:?}");
    stdout
}

/// A flow from nfdump's raw text.
fn flow(record: &str) -> Flow {
    let text = |name: &str| {
        let mut lines = record.lines();
        let line = lines.find(|line| line.trim_start().starts_with(name));
        let value = line.and_then(|line| line.split_once('='));
        let value = value.and_then(|(_, value)| value.split_whitespace().next());
        value.unwrap_or("0").to_owned()
    };
    let number = |name: &str| -> u64 {
        let text = text(name);
        match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
            None => text.parse().unwrap(),
        }
    };
    Flow {
        addresses: ["src addr", "dst addr"].map(|name| text(name).parse().unwrap()),
        ports: ["src port", "dst port"].map(number),
        protocol: number("proto"),
        packets: number("in packets"),
        octets: number("in bytes"),
        first_ms: number("first "),
        last_ms: number("last "),
        tcp_flags: number("tcp flags"),
        end_reason: number("end reason"),
    }
}

/// A capture of 300 TCP packets, each a flow of its own, with these flags. Flags of more than 8
/// bits need another template.
fn tcp_capture(flags: u16) -> Vec<u8> {
    let mut bytes = pcap_header(1);
    for index in 0..300_u16 {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00];
        frame.extend([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0]);
        frame.extend([192, 0, 2, 1, 198, 51, 100, 2]);
        frame.extend((10_000 + index).to_be_bytes());
        frame.extend([1, 187, 0, 0, 0, 1, 0, 0, 0, 0]);
        frame.extend((0x5000 | flags).to_be_bytes());
        frame.extend([0xff, 0xff, 0, 0, 0, 0]);
        frame.resize(60, 0);
        let time = 1_700_000_000_000_000 + u64::from(index) * 1_000;
        bytes.extend(pcap_packet(time, &frame));
    }
    bytes
}

/// Like two containers of one host: both are process 1, and both send from one address.
#[test]
fn two_exporters_that_are_process_1_at_one_address_are_told_apart() {
    if is_missing(&[Need::Root, Need::Tool("unshare")]) {
        return;
    }
    for scheme in OVER_UDP {
        let Some(nfcapd) = Nfcapd::start(free_port()) else {
            return;
        };
        let folder = Folder::new();
        let url = format!("{scheme}://127.0.0.1:{}", nfcapd.0.port);
        let exporters = [("syn", 0x002), ("nonce", 0x102)].map(|(name, flags)| {
            let capture = folder.write(&format!("{name}.pcap"), tcp_capture(flags));
            let csv = folder.file(&format!("{name}.csv"));
            let run = command(["record", "-q", "-r", &capture, "-w", &csv, "-w", &url]);
            let mut apart = Command::new("unshare");
            apart.args(["--pid", "--fork", "--mount-proc"]);
            apart.arg(run.get_program()).args(run.get_args());
            apart.args(["--export-rate", "300"]);
            apart.args(Nfcapd::our_options(scheme));
            std::thread::spawn(move || finish(&mut apart))
        });
        for exporter in exporters {
            exporter.join().unwrap().exits(0);
        }
        let sent = ["syn.csv", "nonce.csv"].map(|name| of_csv(&folder.read(name)));
        let got = nfcapd.end(true);
        assert!(got.complaints.is_empty(), "{scheme}: {:?}", got.complaints);
        let sent = as_shown(sent.concat(), true, scheme == "ipfix+udp");
        assert_eq!(sent.len(), 600);
        equal(&got.flows, &sent, scheme);
    }
}

#[test]
fn nfcapd_passes_over_lists() {
    let Some(nfcapd) = Nfcapd::start(free_port()) else {
        return;
    };
    let (sent, _) = send_with_lists(&format!("ipfix+udp://127.0.0.1:{}", nfcapd.0.port));
    let got = nfcapd.end(true);
    assert!(got.complaints.is_empty(), "{:?}", got.complaints);
    equal(&got.flows, &as_shown(sent, true, true), "lists");
}

#[test]
fn nfcapd_decodes_every_flow() {
    for capture in captures() {
        for scheme in OVER_UDP {
            let Some(nfcapd) = Nfcapd::start(free_port()) else {
                return;
            };
            let url = format!("{scheme}://127.0.0.1:{}", nfcapd.0.port);
            let sent = send(&capture, &url, &["--export-rate", "20k"]);
            let (got, what) = (nfcapd.end(true), format!("{scheme} of {capture}"));
            assert!(got.complaints.is_empty(), "{what}: {:?}", got.complaints);
            equal(
                &got.flows,
                &as_shown(sent, true, scheme == "ipfix+udp"),
                &what,
            );
        }
    }
}
