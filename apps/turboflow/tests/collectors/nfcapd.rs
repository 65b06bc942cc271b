// SPDX-License-Identifier: Apache-2.0
//! nfcapd, the collector of nfdump.

use std::process::Command;

use turboflow_testing::{Need, is_missing};

use crate::daemon::Daemon;
use crate::flow::{Collector, Flow, Got, OVER_UDP, as_shown, captures, equal, send};
use crate::support::{Folder, Ran, finish, free_port};

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
        // records. nfcapd 1.7.1 does not count options, and reports a gap after each.
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

/// A flow in nfdump's raw text.
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
