// SPDX-License-Identifier: Apache-2.0
//! Records that were sent to collectors, and records that were lost: metrics, ledger and the
//! options records that a collector receives agree.

use std::net::UdpSocket;
use std::thread::JoinHandle;

use serde_json::Value;

use crate::link::{Ended, Link};
use crate::service::page;
use crate::support::{Folder, office};

/// Flows of many packets cannot be exported, because their lists exceed a short message.
const DEFINITION: &str = "\
[key]
fields = [\"source_address\", \"destination_address\", \"source_port\", \"destination_port\", \"protocol\"]
[[feature]]
name = \"packets\"
op = \"count\"
[[feature]]
name = \"lengths\"
op = \"list\"
of = \"ip_length\"
k = 256
";
const HERE: &str = "ipfix+udp://127.0.0.1:4739";
const NOBODY: &str = "ipfix+udp://127.0.0.1:9";

/// The statistics in options records.
#[derive(Debug, Default, PartialEq, Eq)]
struct Statistics {
    messages: u64,
    records: u64,
    bytes: u64,
    not_sent: u64,
}

impl Statistics {
    /// Reads the statistics of a message if it contains any (sets 257 and 258).
    fn read(&mut self, message: &[u8]) {
        let two = |at: usize| usize::from(u16::from_be_bytes([message[at], message[at + 1]]));
        let eight = |at: usize| u64::from_be_bytes(message[at..at + 8].try_into().unwrap());
        let mut at = 16;
        while at < message.len() {
            match two(at) {
                257 => {
                    self.messages = eight(at + 12);
                    self.records = eight(at + 20);
                    self.bytes = eight(at + 28);
                }
                258 => self.not_sent = eight(at + 8),
                _ => {}
            }
            at += two(at + 2);
        }
    }
}

/// A collector that sums messages and octets and keeps the last statistics. An empty datagram ends
/// it.
fn collect(socket: UdpSocket) -> JoinHandle<(u64, u64, Statistics)> {
    std::thread::spawn(move || {
        let (mut told, mut datagram) = (Statistics::default(), [0; 2_048]);
        let (mut messages, mut bytes) = (0, 0);
        loop {
            let length = socket.recv(&mut datagram).unwrap();
            if length == 0 {
                return (messages, bytes, told);
            }
            told.read(&datagram[..length]);
            messages += 1;
            bytes += length as u64;
        }
    })
}

/// A metric of an output.
pub(crate) fn metric(page: &str, name: &str, output: &str) -> u64 {
    let sample = format!("turboflow_{name}{{output=\"{output}\"}} ");
    let value = page.lines().find_map(|line| line.strip_prefix(&sample));
    let value = value.unwrap_or_else(|| panic!("no {sample} in {page}"));
    value.parse().unwrap()
}

/// The sum of all samples of a metric.
pub(crate) fn sum(page: &str, name: &str) -> u64 {
    let name = format!("turboflow_{name}");
    let samples = page.lines().filter(|line| line.starts_with(&name));
    let values = samples.map(|line| line.rsplit(' ').next().unwrap());
    values.map(|value| value.parse::<u64>().unwrap()).sum()
}

/// A counter of an output in the ledger.
pub(crate) fn of_output(ended: &Ended, output: &str, name: &str) -> u64 {
    let outputs = ended.ledger["outputs"].as_array().unwrap();
    let is_it = |found: &&Value| found["name"] == output;
    let found = outputs.iter().find(is_it).unwrap();
    found[name].as_u64().unwrap()
}

#[test]
fn metrics_ledger_and_options_agree() {
    let Some(link) = Link::new() else { return };
    let socket = link.open(|| UdpSocket::bind("127.0.0.1:4739").unwrap());
    let end = link.open(|| UdpSocket::bind("127.0.0.1:0").unwrap());
    let collector = collect(socket);
    let folder = Folder::new();
    folder.write("many.toml", DEFINITION);
    folder.write(
        "turboflow.toml",
        format!(
            "interface = [\"vb\"]\nwrite = [\"{HERE}\", \"{NOBODY}\"]\nledger = \"ledger.json\"\n\
             definition = \"many.toml\"\nidle-timeout = \"1s\"\nactive-timeout = \"none\"\n\
             export-mtu = 512\n"
        ),
    );
    let running = link.start(folder, &["run", "--config", "turboflow.toml"], &[]);
    assert!(link.replay(&office(), &["--pps", "10000"]));
    // Wait until all flows have ended, and no record is on its way to a collector.
    let last = loop {
        let page = page(&link, "/metrics");
        let given = metric(&page, "output_records_total", HERE);
        let lost = metric(&page, "collector_records_lost_total", HERE);
        let sent = metric(&page, "collector_records_sent_total", HERE);
        // The last message to the missing collector counts as sent until the network reports an
        // error.
        let none_sent = metric(&page, "collector_records_sent_total", NOBODY) == 0;
        let at_rest = page.contains("\nturboflow_packets_received_total 13035\n")
            && page.contains("\nturboflow_flows_resident 0\n")
            && none_sent;
        // Ended records may still be in the queues of the outputs.
        let exported = sum(&page, "flows_exported_total{");
        let known = sum(&page, "records_written_total") + sum(&page, "records_dropped_total");
        let all_known = given == sent + lost && known == 2 * given;
        if at_rest && given == exported && all_known && lost > 0 && sent > 100 {
            break page;
        }
    };
    running.signal("TERM");
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{}", ended.said);
    end.send_to(&[], "127.0.0.1:4739").unwrap();
    let (messages, bytes, told) = collector.join().unwrap();
    let of_page = |name: &str, output| metric(&last, &format!("collector_{name}"), output);
    for (on_page, in_ledger, in_options) in [
        ("records_sent_total", "records", told.records),
        ("records_lost_total", "records_dropped", told.not_sent),
        ("bytes_total", "bytes", told.bytes),
    ] {
        assert_eq!(of_page(on_page, HERE), in_options, "{on_page}");
        if on_page != "bytes_total" {
            assert_eq!(of_output(&ended, HERE, in_ledger), in_options, "{on_page}");
        }
    }
    // The last statistics cannot count their own message.
    assert_eq!(of_page("messages_total", HERE), told.messages);
    assert_eq!(messages, told.messages + 1);
    assert_eq!(of_output(&ended, HERE, "bytes"), bytes);
    assert_eq!(of_page("up", HERE), 1);
    assert_eq!(of_page("queue_bytes", HERE), 0);
    // No record is too long for the other output, but it has no collector.
    assert_eq!(
        of_output(&ended, NOBODY, "records"),
        0,
        "{:#}",
        ended.ledger
    );
    let total = ended.ledger["flows_exported"].as_object().unwrap();
    let exported: u64 = total.values().map(|value| value.as_u64().unwrap()).sum();
    let lost = exported + told.not_sent;
    assert_eq!(ended.count("records_dropped"), lost);
    for name in ["records_written", "records_dropped"] {
        let on_page = sum(&last, &format!("{name}_total"));
        assert_eq!(on_page, ended.count(name), "{name}");
    }
    assert_eq!(ended.count("records_written"), told.records);
    assert_eq!(told.records + told.not_sent, exported);
}
