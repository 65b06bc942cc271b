// SPDX-License-Identifier: Apache-2.0
//! tshark, the dissector of Wireshark, which checks every octet and tracks sequence numbers. It
//! decodes files, and what a socket received over UDP and TCP.

use std::process::Command;

use turboflow_testing::{Need, is_missing};

use crate::flow::{Flow, OVER_UDP, as_shown, captures, equal, send};
use crate::sink::Sink;
use crate::support::{Folder, finish, office, pcap_header, pcap_packet, turboflow};

/// Raw IP: LINKTYPE_RAW.
const RAW_IP: u32 = 101;
/// The collector's port, which tshark is told to decode as IPFIX or NetFlow.
const PORT: u16 = 4_739;
const UDP: u8 = 17;
const TCP: u8 = 6;

/// Dissects what a sink received over UDP.
fn of_datagrams(datagrams: &[Vec<u8>]) -> Dissected {
    let mut capture = pcap_header(RAW_IP);
    for datagram in datagrams {
        let mut segment = ports();
        segment.extend((8 + datagram.len() as u16).to_be_bytes());
        segment.extend([0; 2]);
        segment.extend(datagram);
        capture.extend(pcap_packet(0, &ip(UDP, &segment)));
    }
    Dissected::of_capture(&capture, "udp")
}

/// Dissects what a sink received over TCP.
fn of_stream(parts: &[Vec<u8>]) -> Dissected {
    let (mut capture, mut sequence) = (pcap_header(RAW_IP), 1_u32);
    for part in parts {
        let mut segment = ports();
        segment.extend(sequence.to_be_bytes());
        // Acknowledgement number, 20 octets of header, ACK and PSH, a window.
        segment.extend([0, 0, 0, 1, 0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0]);
        segment.extend(part);
        capture.extend(pcap_packet(0, &ip(TCP, &segment)));
        sequence += part.len() as u32;
    }
    Dissected::of_capture(&capture, "tcp")
}

/// Fixed ports, because tshark takes some ephemeral ports for traceroute.
fn ports() -> Vec<u8> {
    [50_000_u16.to_be_bytes(), PORT.to_be_bytes()].concat()
}

fn ip(protocol: u8, segment: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((20 + segment.len() as u16).to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, protocol, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
    packet.extend(segment);
    packet
}

/// The flows and complaints that tshark finds in messages.
struct Dissected {
    flows: Vec<Flow>,
    complaints: Vec<String>,
}

/// The fields that tshark shows of a flow record, without the prefix `cflow.` of their names.
#[derive(Default)]
struct Fields(Vec<(String, String, String)>);

impl Fields {
    fn shown(&self, names: [&str; 2]) -> Option<&str> {
        let fields = self.0.iter();
        let mut named = fields.filter(|(name, ..)| names.contains(&name.as_str()));
        named.next().map(|(_, show, _)| show.as_str())
    }

    /// A number from its octets, independent of how it is shown; 0 if absent.
    fn number(&self, name: &str) -> u64 {
        let field = self.0.iter().find(|(field, ..)| field == name);
        field.map_or(0, |(.., octets)| u64::from_str_radix(octets, 16).unwrap())
    }

    /// The flow of these fields; `None` for other kinds of records.
    fn flow(&self, message: &Fields) -> Option<Flow> {
        let source = self.shown(["srcaddr", "srcaddrv6"])?;
        let destination = self.shown(["dstaddr", "dstaddrv6"])?;
        let ms = |absolute: &str, relative: &str| match self.number(absolute) {
            0 => {
                let sent_ms =
                    message.number("unix_secs") * 1_000 + message.number("unix_nsecs") / 1_000_000;
                sent_ms - (message.number("sysuptime") - self.number(relative))
            }
            ms => ms,
        };
        Some(Flow {
            addresses: [source, destination].map(|address| address.parse().unwrap()),
            ports: ["srcport", "dstport"].map(|name| self.number(name)),
            protocol: self.number("protocol"),
            packets: self.number("packets"),
            octets: self.number("octets"),
            first_ms: ms("abstimestart", "timestart"),
            last_ms: ms("abstimeend", "timeend"),
            tcp_flags: self.number("tcpflags"),
            end_reason: self.number("flow_end_reason"),
        })
    }
}

impl Dissected {
    /// Dissects messages in packets of one protocol.
    fn of_capture(capture: &[u8], carrier: &str) -> Self {
        let folder = Folder::new();
        let capture = folder.write("got.pcap", capture);
        let as_cflow = format!("{carrier}.port=={PORT},cflow");
        Self::of(&["-r", &capture, "-d", &as_cflow])
    }

    /// Parses tshark's PDML, which has one field per line.
    fn of(args: &[&str]) -> Self {
        let read = finish(Command::new("tshark").args(args).args(["-T", "pdml"]));
        assert_eq!(read.code, Some(0), "{}", read.stderr);
        let (mut flows, mut complaints) = (Vec::new(), Vec::new());
        let (mut message, mut record) = (Fields::default(), None::<Fields>);
        for line in read.stdout.lines() {
            let of = |name: &str| attribute(line, name).unwrap_or_default().to_owned();
            let (name, show) = (of("name"), of("show"));
            let is_record =
                name.is_empty() && (show.starts_with("Flow ") || show.starts_with("pdu "));
            let ends = is_record || line.contains("</packet>") || name == "cflow.version";
            if ends {
                flows.extend(record.take().and_then(|record| record.flow(&message)));
            }
            if name == "cflow.version" {
                message = Fields::default();
            }
            if is_record {
                record = Some(Fields::default());
            } else if let Some(field) = name.strip_prefix("cflow.") {
                let fields = record.as_mut().unwrap_or(&mut message);
                fields.0.push((field.to_owned(), show, of("value")));
            } else if name.starts_with("_ws.expert") || name == "_ws.malformed" {
                complaints.push(line.trim().to_owned());
            }
        }
        flows.sort();
        Self { flows, complaints }
    }
}

fn attribute<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!(" {name}=\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

#[test]
fn tshark_decodes_every_flow_over_udp() {
    for capture in captures() {
        for scheme in OVER_UDP {
            if is_missing(&[Need::Tool("tshark")]) {
                return;
            }
            let sink = Sink::udp();
            let url = format!("{scheme}://127.0.0.1:{}", sink.port);
            let sent = send(&capture, &url, &["--export-rate", "20k"]);
            let sent = as_shown(sent, scheme != "ipfix+udp", scheme != "netflow5+udp");
            let (got, what) = (of_datagrams(&sink.end()), format!("{scheme} of {capture}"));
            assert!(got.complaints.is_empty(), "{what}: {:#?}", got.complaints);
            equal(&got.flows, &sent, &what);
        }
    }
}

#[test]
fn tshark_decodes_every_flow_over_tcp() {
    for capture in captures() {
        if is_missing(&[Need::Tool("tshark")]) {
            return;
        }
        let sink = Sink::tcp();
        let url = format!("ipfix+tcp://127.0.0.1:{}", sink.port);
        let sent = send(&capture, &url, &[]);
        let got = of_stream(&sink.end());
        assert!(
            got.complaints.is_empty(),
            "{capture}: {:#?}",
            got.complaints
        );
        equal(&got.flows, &sent, &capture);
    }
}

#[test]
fn tshark_reads_ipfix_files_without_a_complaint() {
    if is_missing(&[Need::Tool("tshark")]) {
        return;
    }
    let folder = Folder::new();
    let definition = folder.write(
        "rich.toml",
        "[key]\nfields = [\"source_address\", \"destination_address\", \"protocol\", \"vlan\"]\n\
         [[feature]]\nname = \"packets\"\nop = \"count\"\n\
         [[feature]]\nname = \"window\"\nop = \"max\"\nof = \"tcp_window\"\n\
         [[feature]]\nname = \"lengths\"\nop = \"list\"\nof = \"ip_length\"\nk = 20\n",
    );
    let capture = office();
    let plain = ["--export-time", "ns"];
    let rich = ["--definition", &definition];
    for (name, options) in [("plain.ipfix", plain), ("rich.ipfix", rich)] {
        let file = folder.file(name);
        let fixed = ["record", "-q", "-r", &capture, "-w", &file];
        turboflow(fixed.iter().chain(&options).copied()).exits(0);
        let read = Dissected::of(&["-r", &file]);
        assert!(read.complaints.is_empty(), "{name}: {:#?}", read.complaints);
        assert!(read.flows.len() > 100, "{name}: {}", read.flows.len());
    }
}
