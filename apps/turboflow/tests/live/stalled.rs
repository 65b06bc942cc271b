// SPDX-License-Identifier: Apache-2.0
//! A collector over TCP stops reading until its queue is full: metering goes on, and dropped
//! records are counted. When it reads again, it gets complete messages with consecutive sequence
//! numbers.

use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use rustix::net::sockopt::set_socket_recv_buffer_size;

use turboflow_testing::until;

use crate::agreement::{metric, of_output, sum};
use crate::link::{Link, NEAR};
use crate::reader::Reader;
use crate::service::page;
use crate::support::{Folder, rows, udp_capture};

const HERE: &str = "ipfix+tcp://127.0.0.1:4739";
/// Flows of a capture that is sent repeatedly, each time as new flows.
const FLOWS: u16 = 60_000;
const PACKETS_PER_SECOND: &str = "12000";
/// Records that must be dropped before the collector reads again. Then the maximum number of
/// packets sent to get there: the queue to a collector holds about 140,000 records.
const LOST: u64 = 10_000;
const MOST_PACKETS: u64 = 1_000_000;
const CONFIG: &str = "interface = [\"vb\"]\nwrite = [\"ipfix+tcp://127.0.0.1:4739\", \"whole.csv\"]\n\
                      ledger = \"ledger.json\"\nidle-timeout = \"1s\"\n";

/// Uses the smallest possible socket buffers, so that few records fill them.
fn listen(link: &Link) -> TcpListener {
    for name in ["tcp_rmem", "tcp_wmem"] {
        link.shell(&format!(
            "echo 4096 16384 16384 > /proc/sys/net/ipv4/{name}"
        ));
    }
    link.open(|| {
        let listener = TcpListener::bind("127.0.0.1:4739").unwrap();
        set_socket_recv_buffer_size(&listener, 16 << 10).unwrap();
        listener
    })
}

/// Reads to the end, and publishes the number of flows so far.
fn read_on(mut reader: Reader, mut stream: TcpStream, seen: &Arc<AtomicU64>) -> JoinHandle<Reader> {
    let seen = Arc::clone(seen);
    std::thread::spawn(move || {
        loop {
            let before = reader.messages;
            reader.read(&mut stream, before + 1);
            seen.store(reader.flows, Ordering::Relaxed);
            if reader.messages == before {
                return reader;
            }
        }
    })
}

#[test]
fn a_collector_that_stops_reading_loses_only_what_its_queue_cannot_hold() {
    let Some(link) = Link::new() else { return };
    let listener = listen(&link);
    let folder = Folder::new();
    let capture = folder.write("flows.pcap", udp_capture(FLOWS));
    folder.write("turboflow.toml", CONFIG);
    let running = link.start(folder, &["run", "--config", "turboflow.toml"], &[]);
    let endless = ["--pps", PACKETS_PER_SECOND, "--loop", "0"];
    let mut sending = link.inside("tcpreplay");
    sending.args(["-q", "-i", NEAR]).args(endless);
    let mut sending = sending.arg(&capture).stdout(Stdio::null()).spawn().unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    let mut reader = Reader::default();
    reader.read(&mut stream, 10);
    let of_page = |name: &str| {
        let page = page(&link, "/metrics");
        let sent = metric(&page, "collector_records_sent_total", HERE);
        (sum(&page, name), sent)
    };
    let (mut received, _) = of_page("packets_received_total");
    // Metering continues while the collector does not read.
    while of_page("collector_records_lost_total").0 < LOST {
        until("packets are metered", || {
            let (now, _) = of_page("packets_received_total");
            std::mem::replace(&mut received, now) < now
        });
        assert!(received < MOST_PACKETS, "no record was dropped");
    }
    assert!(page(&link, "/healthz").contains("failed"));
    sending.kill().unwrap();
    sending.wait().unwrap();
    let seen = Arc::new(AtomicU64::new(0));
    let reading = read_on(reader, stream, &seen);
    let mut lost = 0;
    until("all that was metered is sent, in flight or lost", || {
        let page = page(&link, "/metrics");
        let of = |name: &str| metric(&page, name, HERE);
        let sent = of("collector_records_sent_total") + of("collector_records_in_flight");
        lost = of("collector_records_lost_total");
        sum(&page, "flows_resident") == 0 && of("output_records_total") == sent + lost
    });
    assert!(page(&link, "/healthz").ends_with("\r\n\r\nok\n"));
    let before = seen.load(Ordering::Relaxed);
    assert!(link.replay(&capture, &["--pps", "10000", "--limit", "1000"]));
    until("new flows have come", || {
        seen.load(Ordering::Relaxed) >= before + 1_000
    });
    running.signal("TERM");
    let ended = running.end().balanced(1);
    let reader = reading.join().unwrap();
    assert_eq!(reader.first_set, 2, "templates first");
    assert_eq!(of_output(&ended, HERE, "records"), reader.flows);
    assert_eq!(of_output(&ended, HERE, "records_dropped"), lost);
    let exported = rows(&ended.folder.read("whole.csv")).len() as u64;
    assert_eq!(reader.flows + lost, exported);
    assert_eq!(exported, ended.count("packets_received"));
    assert_eq!(ended.count("source_dropped"), 0);
}
