// SPDX-License-Identifier: Apache-2.0
//! Sending: refused datagrams, collectors that come and go, names that change their address.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

#[path = "../../formats/tests/support/mod.rs"]
mod support;

use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use netflow_parser::variable_versions::ipfix::FlowSetBody;
use netflow_parser::{NetflowPacket, NetflowParser};
use support::{default_batch, default_options, default_schema};
use turboflow_formats::wire::WireOptions;
use turboflow_formats::{ExportError, FlowWriter, SendSnapshot};
use turboflow_testing::{PATIENCE, free_port, until};
use turboflow_transport::{Clock, SendEvent, SendOptions, Target, send_to};

const LINE: &str = "192.0.2.1 192.0.2.2 1 2 6 1 40 1 2 2 40 40 64 64 0 4";
/// A record of 59 octets, because its TCP flags take two. A message of at most 65,535 octets holds
/// 1,110 such records and has 65,510 octets, which is more than a datagram can hold.
const WIDE: &str = "192.0.2.1 192.0.2.2 1 2 6 1 40 1 2 258 40 40 64 64 0 4";
#[allow(clippy::disallowed_methods, reason = "senders wait for time to pass")]
fn monotonic() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

fn options() -> SendOptions {
    let wall_ms = || 1_700_000_000_000 + monotonic().as_millis() as u64;
    SendOptions::new(Clock { wall_ms, monotonic })
}

fn wire() -> WireOptions {
    default_options().wire
}

fn writer(target: &str, wire: &WireOptions, options: &SendOptions) -> Box<dyn FlowWriter> {
    let target: Target = target.parse().unwrap();
    send_to(&target, &default_schema(), wire, options).unwrap()
}

fn send(writer: &mut Box<dyn FlowWriter>, flows: usize) {
    send_lines(writer, LINE, flows);
}

fn send_lines(writer: &mut Box<dyn FlowWriter>, line: &str, flows: usize) {
    writer.write(&default_batch(&vec![line; flows])).unwrap();
}

/// Flow records lost, as reported at the end of an output.
fn lost(writer: Box<dyn FlowWriter>) -> u64 {
    match writer.finish() {
        Ok(_) => 0,
        Err(ExportError::NotSent { lost, .. }) => lost,
        Err(error) => panic!("{error}"),
    }
}

/// A UDP collector that checks sequence numbers and counts flow records.
struct Collector {
    socket: UdpSocket,
    parser: NetflowParser,
    /// The expected sequence number of the next message.
    sequence: Option<u32>,
    flows: u64,
}

impl Collector {
    fn listen(address: impl std::net::ToSocketAddrs) -> Self {
        let socket = UdpSocket::bind(address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self {
            socket,
            parser: NetflowParser::default(),
            sequence: None,
            flows: 0,
        }
    }

    fn port(&self) -> u16 {
        self.socket.local_addr().unwrap().port()
    }

    /// Receives messages, with no gap allowed, until it has this many flow records.
    #[track_caller]
    fn take(&mut self, flows: u64) {
        let mut datagram = vec![0; 1 << 16];
        while self.flows < flows {
            let length = self.socket.recv(&mut datagram).unwrap();
            self.message(&datagram[..length]);
        }
        assert_eq!(self.flows, flows);
    }

    /// Reads the messages of a connection.
    #[track_caller]
    fn stream(&mut self, mut rest: &[u8]) {
        while !rest.is_empty() {
            let length = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
            self.message(&rest[..length]);
            rest = &rest[length..];
        }
    }

    #[track_caller]
    fn message(&mut self, bytes: &[u8]) {
        let parsed = self.parser.parse_bytes(bytes);
        assert!(parsed.error.is_none(), "{:?}", parsed.error);
        let [NetflowPacket::IPFix(packet)] = &parsed.packets[..] else {
            panic!("{:?}", parsed.packets)
        };
        let sequence = packet.header.sequence_number;
        assert_eq!(sequence, self.sequence.unwrap_or(sequence), "a gap");
        let mut records = 0;
        for set in &packet.flowsets {
            match &set.body {
                FlowSetBody::Data(data) => {
                    records += data.fields.len();
                    self.flows += data.fields.len() as u64;
                }
                FlowSetBody::OptionsData(data) => records += data.fields.len(),
                FlowSetBody::NoTemplate(_) => panic!("data before its template"),
                _ => {}
            }
        }
        self.sequence = Some(sequence + records as u32);
    }
}

#[test]
fn a_datagram_that_the_system_refuses_leaves_no_gap() {
    let mut collector = Collector::listen("127.0.0.1:0");
    let url = format!("ipfix+udp://127.0.0.1:{}", collector.port());
    // The message limit exceeds the payload of a UDP datagram (65,507), so the system refuses full
    // messages.
    let wire = WireOptions {
        message_bytes: 65_535,
        ..wire()
    };
    let mut writer = writer(&url, &wire, &options());
    send_lines(&mut writer, WIDE, 1);
    collector.take(1);
    // Two full messages, and the rest.
    send_lines(&mut writer, WIDE, 2_500);
    send_lines(&mut writer, WIDE, 1);
    // Templates may come first: they are repeated in case they were lost with the refused messages.
    let mut datagram = vec![0; 1 << 16];
    while collector.flows == 1 {
        let length = collector.socket.recv(&mut datagram).unwrap();
        collector.message(&datagram[..length]);
    }
    let rest = collector.flows - 1;
    assert_eq!(rest, 2_500 - 2 * 1_110);
    collector.take(collector.flows + 1);
    assert_eq!(lost(writer), 2_500 - rest);
}

#[test]
fn a_returning_collector_gets_templates_soon_and_sees_no_gap() {
    let port = free_port();
    let mut writer = writer(
        &format!("ipfix+udp://127.0.0.1:{port}"),
        &wire(),
        &options(),
    );
    let gauge = writer.sending().unwrap();
    // No collector listens: every datagram is refused.
    for sent in 0..10 {
        send(&mut writer, 1);
        until("the earlier ones are lost", || {
            gauge.read().records_lost >= sent
        });
    }
    until("all of them are lost", || gauge.read().records_lost == 10);
    let mut collector = Collector::listen(("127.0.0.1", port));
    let listening = &collector.socket;
    listening.set_nonblocking(true).unwrap();
    let (mut datagram, mut first) = (vec![0; 1 << 16], 0);
    // Data before the templates cannot be decoded. The templates are sent within about a second.
    let mut readable = 0;
    until("templates come", || {
        first = listening.recv(&mut datagram).unwrap_or(0);
        let is_templates = first > 0 && datagram[16..18] == [0, 2];
        if first == 0 {
            send(&mut writer, 1);
            readable += 1;
        } else if !is_templates {
            readable -= 1;
        }
        is_templates
    });
    listening.set_nonblocking(false).unwrap();
    collector.message(&datagram[..first]);
    send(&mut writer, 20);
    collector.take(readable + 20);
    // Exactly the refused records are lost: the others were sent before the templates.
    assert_eq!(lost(writer), 10);
}

#[test]
fn a_refused_last_datagram_is_counted_although_nothing_follows_it() {
    let port = free_port();
    let url = format!("ipfix+udp://127.0.0.1:{port}");
    let options = SendOptions {
        observe: |_, event| TOLD.lock().unwrap().push(matches!(event, SendEvent::Back)),
        ..options()
    };
    let mut writer = writer(&url, &wire(), &options);
    let gauge = writer.sending().unwrap();
    let until = |is_so: &dyn Fn(&SendSnapshot) -> bool| {
        until("the gauge shows it", || {
            // Records that may still be refused do not count as sent, so that the counter never
            // decreases.
            assert!(gauge.read().records_lost >= 3 || gauge.read().records_sent == 0);
            is_so(&gauge.read())
        });
    };
    send(&mut writer, 3);
    until(&|now| (now.records_sent, now.records_lost, now.is_up) == (0, 3, false));
    // The return of the collector is noticed although no record is sent.
    let mut collector = Collector::listen(("127.0.0.1", port));
    until(&|now| now.is_up);
    send(&mut writer, 2);
    collector.take(2);
    let told = || TOLD.lock().unwrap().clone();
    until(&|_| told().len() > 1);
    assert_eq!(told(), [false, true], "reported away once, then back once");
    assert_eq!(lost(writer), 3);
}

/// For each event reported for a collector: whether the collector is back.
static TOLD: Mutex<Vec<bool>> = Mutex::new(Vec::new());

#[test]
fn reconnecting_to_a_collector_that_closes_at_once_backs_off() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ipfix+tcp://{}", listener.local_addr().unwrap());
    let mut writer = writer(&url, &wire(), &options());
    static STOP: AtomicBool = AtomicBool::new(false);
    let accepting = std::thread::spawn(move || {
        let mut accepted = Vec::new();
        while accepted.len() < 4 {
            let connection = listener.accept().unwrap();
            accepted.push(monotonic());
            drop(connection);
        }
        // The fifth connection stays open and is read.
        let (mut stream, _) = listener.accept().unwrap();
        STOP.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        (accepted, all)
    });
    let mut given = 0;
    until("the fifth connection is made", || {
        send(&mut writer, 1);
        given += 1;
        STOP.load(Ordering::Relaxed)
    });
    let lost = lost(writer);
    let (accepted, all) = accepting.join().unwrap();
    let mut collector = Collector::listen("127.0.0.1:0");
    collector.stream(&all);
    assert_eq!(
        collector.flows + lost,
        given,
        "none counts as sent that was not read"
    );
    // The sender reads its clock before the connection is closed, so the next attempts come at
    // least 250 ms, 500 ms and 1 s later.
    for (index, wait_ms) in [250, 500, 1_000].into_iter().enumerate() {
        let waited = accepted[index + 1] - accepted[index];
        assert!(waited >= Duration::from_millis(wait_ms), "{accepted:?}");
    }
    assert_eq!(all[16..18], [0, 2], "templates first");
    assert_eq!(all[8..12], [0; 4], "a new session counts from 0");
}

#[test]
fn a_collector_that_reads_again_gets_every_record_not_counted_as_lost() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ipfix+tcp://{}", listener.local_addr().unwrap());
    let options = SendOptions {
        patience: Duration::from_millis(20),
        linger: PATIENCE,
        queue_bytes: 256 << 10,
        ..options()
    };
    let mut writer = writer(&url, &wire(), &options);
    let (mut stream, _) = listener.accept().unwrap();
    let gauge = writer.sending().unwrap();
    let mut given = 0;
    // A sender that gets no processor for longer than its patience also loses records, and
    // recovers.
    while gauge.read().records_lost < 2_000 || !writer.is_failing() {
        assert!(given < 4_000_000, "what is written now is not lost");
        send(&mut writer, 2_000);
        given += 2_000;
    }
    assert!(gauge.read().is_up);
    let reading = std::thread::spawn(move || {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        all
    });
    while writer.is_failing() {
        send(&mut writer, 1);
        given += 1;
    }
    let lost = lost(writer);
    let told = gauge.read();
    assert_eq!(told.records_lost, lost);
    assert_eq!(told.records_sent + lost, given as u64);
    assert_eq!(told.connections, 1);
    // Records that were lost before they were sent leave no gap in the sequence numbers.
    let mut collector = Collector::listen("127.0.0.1:0");
    collector.stream(&reading.join().unwrap());
    assert_eq!(collector.flows, told.records_sent);
}

/// Seconds by which the clock of the sender in the next test is ahead.
static LATER_S: AtomicU64 = AtomicU64::new(0);

fn later() -> Duration {
    monotonic() + Duration::from_secs(LATER_S.load(Ordering::Relaxed))
}

#[test]
fn a_collector_that_reads_nothing_has_nothing_however_long_it_takes() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ipfix+tcp://{}", listener.local_addr().unwrap());
    let options = SendOptions::new(Clock {
        wall_ms: || 1_700_000_000_000 + later().as_millis() as u64,
        monotonic: later,
    });
    let mut writer = writer(&url, &wire(), &options);
    let (stream, _) = listener.accept().unwrap();
    drop(listener);
    let gauge = writer.sending().unwrap();
    // Slow enough for the receive buffer to accept all records.
    let (mut given, mut sent) = (0, 0);
    for _ in 0..10 {
        send(&mut writer, 100);
        given += 100;
        until("they are on the connection", || {
            let now = gauge.read();
            sent = sent.max(now.records_sent);
            LATER_S.fetch_add(1, Ordering::Relaxed);
            now.records_in_flight == given
        });
        LATER_S.fetch_add(60, Ordering::Relaxed);
    }
    assert_eq!(sent, 0);
    // The collector has unread octets, so the system resets the connection.
    drop(stream);
    assert_eq!(lost(writer), given);
    let told = gauge.read();
    assert_eq!((told.records_sent, told.records_lost), (0, given));
    assert_eq!(told.records_in_flight, 0);
}

/// The address that the name resolves to, the number of lookups, and the current time.
static ADDRESS: Mutex<Option<SocketAddr>> = Mutex::new(None);
static LOOKUPS: AtomicU64 = AtomicU64::new(0);
static NOW_MS: AtomicU64 = AtomicU64::new(0);

fn look_up(host: &str, _port: u16) -> io::Result<Vec<SocketAddr>> {
    assert_eq!(host, "collector.example");
    LOOKUPS.fetch_add(1, Ordering::Relaxed);
    Ok(ADDRESS.lock().unwrap().iter().copied().collect())
}

#[test]
fn a_changed_address_is_followed_while_records_are_sent() {
    let mut first = Collector::listen("127.0.0.1:0");
    let mut second = Collector::listen("127.0.0.1:0");
    let lead_to = |collector: &Collector| {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, collector.port()));
        *ADDRESS.lock().unwrap() = Some(address);
    };
    lead_to(&first);
    let now_ms = || NOW_MS.load(Ordering::Relaxed);
    let options = SendOptions {
        resolve: look_up,
        ..SendOptions::new(Clock {
            wall_ms: || 1_700_000_000_000 + NOW_MS.load(Ordering::Relaxed),
            monotonic: || Duration::from_millis(NOW_MS.load(Ordering::Relaxed)),
        })
    };
    // Templates get 20 ms before data: the clock has to advance, but not as far as the next lookup.
    let ticking = std::thread::spawn(|| {
        let pause = UdpSocket::bind("127.0.0.1:0").unwrap();
        let ms = Some(Duration::from_millis(1));
        pause.set_read_timeout(ms).unwrap();
        while NOW_MS.fetch_add(1, Ordering::Relaxed) < 1_000_000 {
            assert!(pause.recv(&mut [0]).is_err());
        }
    });
    let mut writer = writer("ipfix+udp://collector.example:1", &wire(), &options);
    send(&mut writer, 1);
    first.take(1);
    lead_to(&second);
    send(&mut writer, 1);
    first.take(2);
    assert_eq!(LOOKUPS.load(Ordering::Relaxed), 1, "{} ms", now_ms());
    NOW_MS.fetch_add(30_000, Ordering::Relaxed);
    let listening = &second.socket;
    listening.set_nonblocking(true).unwrap();
    let (mut datagram, mut length) = (vec![0; 1 << 16], 0);
    until("the name is followed", || {
        send(&mut writer, 1);
        length = listening.recv(&mut datagram).unwrap_or(0);
        length > 0
    });
    listening.set_nonblocking(false).unwrap();
    assert_eq!(datagram[16..18], [0, 2], "templates first");
    second.message(&datagram[..length]);
    send(&mut writer, 1);
    second.take(2);
    assert_eq!(LOOKUPS.load(Ordering::Relaxed), 2, "{} ms", now_ms());
    NOW_MS.store(2_000_000, Ordering::Relaxed);
    ticking.join().unwrap();
    assert_eq!(lost(writer), 0);
}
