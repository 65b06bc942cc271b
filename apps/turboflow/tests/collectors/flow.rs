// SPDX-License-Identifier: Apache-2.0
//! The flow fields that all formats have in common, and runs of the program that export flows.

use std::net::IpAddr;
use std::path::Path;

use turboflow_testing::{Need, is_missing_in_part};

use crate::support::{Folder, project, turboflow};

/// A flow with times in ms since 1970.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Flow {
    pub(crate) addresses: [IpAddr; 2],
    pub(crate) ports: [u64; 2],
    pub(crate) protocol: u64,
    pub(crate) first_ms: u64,
    pub(crate) last_ms: u64,
    pub(crate) packets: u64,
    pub(crate) octets: u64,
    pub(crate) tcp_flags: u64,
    /// End reason; 0 if the format or collector has none.
    pub(crate) end_reason: u64,
}

/// The flows that a collector decoded, sorted, and its complaints.
pub(crate) struct Got {
    pub(crate) flows: Vec<Flow>,
    pub(crate) complaints: Vec<String>,
}

/// A collector that listens on a UDP port.
pub(crate) trait Collector: Sized {
    /// Starts a collector; `None` if the test is skipped without it.
    fn start(port: u16) -> Option<Self>;

    /// Ends the collector: at once, or with `all` after it has read everything.
    fn end(self, all: bool) -> Got;

    /// Options that the exporter needs for this collector.
    fn our_options(_scheme: &str) -> &'static [&'static str] {
        &[]
    }
}

/// The formats that can be exported over UDP.
pub(crate) const OVER_UDP: [&str; 3] = ["ipfix+udp", "netflow9+udp", "netflow5+udp"];

/// Captures with IPv4 and IPv6, VLANs, ICMP, fragments, tunnels, unusual protocols, thousands of
/// flows, and years between packets.
const CAPTURES: [&str; 5] = [
    "samples/office.pcap",
    "samples/two-links.pcapng",
    "../shared/captures/vlan-mpls/wireshark__logistics_multicast.pcapng",
    "../shared/captures/icmp/CESNET__mixed.pcap",
    "../shared/captures/large/els0r__default.pcap",
];

/// The captures that exist. The project's own always do.
pub(crate) fn captures() -> Vec<String> {
    let (there, absent): (Vec<_>, Vec<_>) = CAPTURES
        .into_iter()
        .map(project)
        .partition(|path| Path::new(path).exists());
    assert!(there.len() >= 2, "{there:?}");
    if !is_missing_in_part(&[Need::Captures]) {
        assert!(absent.is_empty(), "{absent:?}");
    }
    there
}

/// Exports the flows of a capture. Returns those that the format can represent.
pub(crate) fn send(capture: &str, url: &str, options: &[&str]) -> Vec<Flow> {
    let folder = Folder::new();
    let csv = folder.file("flows.csv");
    let fixed = ["record", "-q", "-r", capture, "-w", &csv, "-w", url];
    let ran = turboflow(fixed.iter().chain(options).copied());
    let mut flows = of_csv(&folder.read("flows.csv"));
    let is_v4 = |flow: &Flow| flow.addresses[0].is_ipv4();
    let v4_only = url.starts_with("netflow5");
    // The only missing flows may be those that the format cannot represent.
    ran.exits(i32::from(v4_only && !flows.iter().all(is_v4)));
    flows.retain(|flow| !v4_only || is_v4(flow));
    flows.sort();
    flows
}

/// Like [`send`] for the project's capture, with a list after the default features. Also returns
/// the packets of all flows.
pub(crate) fn send_with_lists(url: &str) -> (Vec<Flow>, u64) {
    let folder = Folder::new();
    let default = turboflow(["definition"]).exits(0).stdout;
    let list = "[[feature]]\nname = \"lengths\"\nop = \"list\"\nk = 5\nof = \"ip_length\"\n";
    let definition = folder.write("lists.toml", default + list);
    let options = ["--definition", &definition, "--export-rate", "20k"];
    let sent = send(&project("samples/office.pcap"), url, &options);
    let packets = sent.iter().map(|flow| flow.packets).sum();
    (sent, packets)
}

/// The flows of a CSV from TurboFlow, in the order of their export.
pub(crate) fn of_csv(csv: &str) -> Vec<Flow> {
    let flow = |line: &str| -> Flow {
        let fields: Vec<_> = line.split(',').collect();
        let number = |index: usize| fields[index].parse::<u64>().unwrap();
        Flow {
            addresses: [0, 1].map(|index| fields[index].parse().unwrap()),
            ports: [2, 3].map(number),
            protocol: number(4),
            packets: number(5),
            octets: number(6),
            first_ms: number(7) / 1_000_000,
            last_ms: number(8) / 1_000_000,
            tcp_flags: number(9),
            end_reason: number(fields.len() - 1),
        }
    };
    csv.lines().skip(1).map(flow).collect()
}

/// The flows as a format or collector shows them: with `eight_flags` it has only eight TCP flags,
/// and without `end_reasons` it has no end reasons.
pub(crate) fn as_shown(flows: Vec<Flow>, eight_flags: bool, end_reasons: bool) -> Vec<Flow> {
    let shown = |flow: Flow| Flow {
        tcp_flags: flow.tcp_flags & if eight_flags { 0xff } else { u64::MAX },
        end_reason: if end_reasons { flow.end_reason } else { 0 },
        ..flow
    };
    let mut flows: Vec<_> = flows.into_iter().map(shown).collect();
    flows.sort();
    flows
}

/// The number of a protocol that a collector shows by name.
pub(crate) fn protocol_of(name: &str) -> u64 {
    let numbers = [
        ("hopopt", 0),
        ("icmp", 1),
        ("igmp", 2),
        ("ipencap", 4),
        ("ipv4", 4),
        ("tcp", 6),
        ("udp", 17),
        ("ipv6", 41),
        ("ipv6-frag", 44),
        ("gre", 47),
        ("esp", 50),
        ("ah", 51),
        ("ipv6-icmp", 58),
        ("eigrp", 88),
        ("ospf", 89),
        ("ospfigp", 89),
        ("pim", 103),
        ("vrrp", 112),
        ("l2tp", 115),
        ("sctp", 132),
        ("udplite", 136),
    ];
    let name = name.to_lowercase();
    let named = numbers.iter().find(|(known, _)| *known == name);
    named.map_or_else(
        || name.parse().unwrap_or_else(|_| panic!("protocol {name}")),
        |(_, number)| *number,
    )
}

/// Asserts that both have equal flows, and shows the first difference.
#[track_caller]
pub(crate) fn equal(got: &[Flow], sent: &[Flow], what: &str) {
    let differ = |(got, sent): &(&Flow, &Flow)| got != sent;
    if let Some((got, sent)) = got.iter().zip(sent).find(differ) {
        panic!("{what}: got\n{got:?}, sent\n{sent:?}");
    }
    assert_eq!(got.len(), sent.len(), "{what}: flows");
}
