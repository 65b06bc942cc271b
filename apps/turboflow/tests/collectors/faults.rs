// SPDX-License-Identifier: Apache-2.0
//! Restarted collectors and exporters, and lost templates: no collector sees a sequence error, and
//! each decodes everything after the next templates.

use turboflow_testing::{free_port, until};

use crate::flow::{Collector, Flow, Got, OVER_UDP, equal, of_csv, send};
use crate::goflow2::Goflow2;
use crate::nfacctd::Nfacctd;
use crate::nfcapd::Nfcapd;
use crate::relay::Relay;
use crate::support::{Folder, command, finish, office, udp_capture};

const SCHEMES: [&str; 2] = ["ipfix+udp", "netflow9+udp"];
/// Seconds of flows, a thousand per second, with templates every second.
const SHORT_S: u16 = 3;
const LONG_S: u16 = 9;
const OPTIONS: [&str; 4] = ["--export-rate", "1000", "--template-interval", "1s"];

/// Sends flows through a relay that loses the first datagrams to a collector's port, and calls
/// `meanwhile` during the transfer. Returns the flows in the order in which they were sent.
fn send_through<C: Collector>(
    scheme: &str,
    seconds: u16,
    to: u16,
    lost: usize,
    meanwhile: impl FnOnce(&Relay),
) -> Vec<Flow> {
    let (relay, folder) = (Relay::start(to, lost), Folder::new());
    let capture = folder.write("c.pcap", udp_capture(1_000 * seconds));
    let (csv, url) = (
        folder.file("flows.csv"),
        format!("{scheme}://127.0.0.1:{}", relay.port),
    );
    let mut run = command(["record", "-q", "-r", &capture, "-w", &csv, "-w", &url]);
    run.args(OPTIONS).args(C::our_options(scheme));
    let exporter = std::thread::spawn(move || finish(&mut run));
    meanwhile(&relay);
    exporter.join().unwrap().exits(0);
    relay.end();
    of_csv(&folder.read("flows.csv"))
}

/// Whether a complaint is expected from a collector that lacked templates for the first `unread`
/// flows.
fn is_of_templates(line: &str, unread: usize) -> bool {
    // nfacctd cannot count records that it cannot decode. A few of them are options.
    let counted = line.split_once("but received '").map(|(_, rest)| rest);
    let counted = counted.and_then(|rest| rest.split('\'').next()?.parse::<usize>().ok());
    let words = ["template", "muting", "goflow2_flow_decoder_error_total"];
    counted.is_some_and(|sequence| sequence <= unread + 30)
        || words.iter().any(|word| line.contains(word))
}

/// Checks that a collector without templates at first decoded every flow from some point on, and
/// complained only about missing templates.
#[track_caller]
fn reads_to_the_end(got: &Got, sent: &[Flow], what: &str) {
    assert!(
        !got.flows.is_empty(),
        "{what}: nothing arrived: {:#?}",
        got.complaints
    );
    assert!(got.flows.len() < sent.len(), "{what}: no flow was lost");
    let unread = sent.len() - got.flows.len();
    let others = got.complaints.iter();
    let others: Vec<_> = others
        .filter(|line| !is_of_templates(line, unread))
        .collect();
    assert!(others.is_empty(), "{what}: {others:#?}");
    same_keys(&got.flows, &sent[unread..], what);
}

/// Compares only the keys, because some collectors show times with less precision. Other tests
/// cover the times.
#[track_caller]
fn same_keys(got: &[Flow], sent: &[Flow], what: &str) {
    let [got, sent] = [got, sent].map(|flows| {
        let mut flows = flows.to_vec();
        for flow in &mut flows {
            (flow.first_ms, flow.last_ms, flow.end_reason) = (0, 0, 0);
        }
        flows.sort();
        flows
    });
    equal(&got, &sent, what);
}

fn announcements_repeated<C: Collector>(what: &str) {
    for scheme in SCHEMES {
        let port = free_port();
        let Some(collector) = C::start(port) else {
            return;
        };
        let sent = send_through::<C>(scheme, SHORT_S, port, 0, |_| ());
        let (got, what) = (collector.end(true), format!("{what}, {scheme}"));
        assert!(got.complaints.is_empty(), "{what}: {:#?}", got.complaints);
        same_keys(&got.flows, &sent, &what);
    }
}

fn templates_lost<C: Collector>(what: &str) {
    for scheme in SCHEMES {
        let port = free_port();
        let Some(collector) = C::start(port) else {
            return;
        };
        // The first datagram has the first template, the second one all others.
        let sent = send_through::<C>(scheme, SHORT_S, port, 4, |_| ());
        let what = format!("{what}, {scheme}");
        reads_to_the_end(&collector.end(true), &sent, &what);
    }
}

fn collector_restarted<C: Collector>(what: &str) {
    for scheme in SCHEMES {
        let port = free_port();
        let Some(first) = C::start(port) else {
            return;
        };
        let (mut before, mut second) = (None, None);
        let sent = send_through::<C>(scheme, LONG_S, port, 0, |relay| {
            until("flows have come", || relay.seen() > 20);
            before = Some(first.end(false));
            second = C::start(port);
        });
        let (before, what) = (before.unwrap(), format!("{what}, {scheme}"));
        assert!(
            before.complaints.is_empty(),
            "{what}: {:#?}",
            before.complaints
        );
        reads_to_the_end(&second.unwrap().end(true), &sent, &what);
    }
}

fn exporter_restarted<C: Collector>(what: &str) {
    for scheme in OVER_UDP {
        let port = free_port();
        let Some(collector) = C::start(port) else {
            return;
        };
        let url = format!("{scheme}://127.0.0.1:{port}");
        let packets = |flows: &[Flow]| flows.iter().map(|flow| flow.packets).sum::<u64>();
        let mut sent = 0;
        for _ in 0..3 {
            sent += packets(&send(&office(), &url, &["--export-rate", "20k"]));
        }
        let got = collector.end(true);
        assert!(
            got.complaints.is_empty(),
            "{what}, {scheme}: {:#?}",
            got.complaints
        );
        assert_eq!(packets(&got.flows), sent, "{what}, {scheme}");
    }
}

#[test]
fn repeated_templates_disturb_no_collector() {
    announcements_repeated::<Nfcapd>("nfcapd");
    announcements_repeated::<Goflow2>("goflow2");
    announcements_repeated::<Nfacctd>("nfacctd");
}

#[test]
fn nfcapd_resumes_with_the_next_templates() {
    templates_lost::<Nfcapd>("nfcapd");
}

#[test]
fn goflow2_resumes_with_the_next_templates() {
    templates_lost::<Goflow2>("goflow2");
}

#[test]
fn nfacctd_resumes_with_the_next_templates() {
    templates_lost::<Nfacctd>("nfacctd");
}

#[test]
fn a_restarted_nfcapd_resumes_with_the_next_templates() {
    collector_restarted::<Nfcapd>("nfcapd");
}

#[test]
fn a_restarted_goflow2_resumes_with_the_next_templates() {
    collector_restarted::<Goflow2>("goflow2");
}

#[test]
fn a_restarted_nfacctd_resumes_with_the_next_templates() {
    collector_restarted::<Nfacctd>("nfacctd");
}

#[test]
fn a_restarted_exporter_causes_no_sequence_error_in_nfcapd() {
    exporter_restarted::<Nfcapd>("nfcapd");
}

#[test]
fn a_restarted_exporter_causes_no_error_in_goflow2() {
    exporter_restarted::<Goflow2>("goflow2");
}

#[test]
fn a_restarted_exporter_causes_no_sequence_error_in_nfacctd() {
    exporter_restarted::<Nfacctd>("nfacctd");
}
