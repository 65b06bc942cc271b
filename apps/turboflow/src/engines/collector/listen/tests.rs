// SPDX-License-Identifier: Apache-2.0
//! Tests of the limits per host.

use super::*;

/// The error number for a process without free file descriptors.
const EMFILE: i32 = 24;

/// Listeners over TCP and TLS, with connections that send nothing.
struct Listening {
    listeners: Listeners,
    held: Vec<TcpStream>,
    ended: Vec<Sender>,
}

impl Listening {
    fn new() -> Self {
        let at = ["tcp://127.0.0.1:0".to_owned()];
        Self {
            listeners: Listeners::open(&at, Identity::default(), true).unwrap(),
            held: Vec::new(),
            ended: Vec::new(),
        }
    }

    fn connect(&mut self, from: &str, is_tls: bool) {
        let socket = &self.listeners.listeners[0].socket;
        let at = socket.local_addr().unwrap();
        self.held.push(TcpStream::connect(at).unwrap());
        socket.set_nonblocking(false).unwrap();
        let (stream, _) = socket.accept().unwrap();
        let address = from.parse().unwrap();
        self.listeners
            .admit(stream, address, is_tls, 0, &mut self.ended);
    }

    fn of(&self, from: &str) -> usize {
        let host = host_of(from.parse().unwrap());
        let all = self.listeners.connections.iter();
        all.filter(|its| its.is_of(host)).count()
    }
}

#[test]
fn one_host_cannot_hold_all_connections() {
    let mut listening = Listening::new();
    for port in 1..=90 {
        listening.connect(&format!("192.0.2.1:{port}"), false);
        listening.connect(&format!("[2001:db8::{port:x}]:1"), false);
    }
    assert_eq!(listening.of("192.0.2.1:9"), MOST_OF_ADDRESS);
    // An IPv4-mapped address counts as IPv4, and all hosts of an IPv6 network count as one.
    assert_eq!(listening.of("[::ffff:192.0.2.1]:9"), MOST_OF_ADDRESS);
    assert_eq!(listening.of("[2001:db8::ffff]:9"), MOST_OF_ADDRESS);
    listening.connect("192.0.2.2:1", false);
    listening.connect("[2001:db8:0:1::1]:1", false);
    assert_eq!(
        listening.listeners.connections.len(),
        2 * MOST_OF_ADDRESS + 2
    );
    let refused = listening.listeners.complaints.connections_refused;
    assert_eq!(refused, 2 * (90 - MOST_OF_ADDRESS as u64));
}

#[test]
fn connections_that_cannot_begin_tls_are_counted() {
    let mut listening = Listening::new();
    // This fails, because no certificate has been read.
    listening.connect("192.0.2.1:1", true);
    assert_eq!(listening.listeners.complaints.handshakes_failed, 1);
    assert_eq!(listening.of("192.0.2.1:1"), 0);
    let refusal = io::Error::from_raw_os_error(EMFILE);
    listening.listeners.count_refusal(0, &refusal);
    let gone = io::Error::from(ErrorKind::WouldBlock);
    listening.listeners.count_refusal(0, &gone);
    assert_eq!(listening.listeners.complaints.accepts_failed, 1);
}
