// SPDX-License-Identifier: Apache-2.0
//! A running collector: its addresses, its pages, and its end.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};

use turboflow_testing::{Talk, until};

use crate::support::{Folder, command, signal};

/// A lag longer than the age of any capture, so that all records wait until the end.
pub(crate) const FOR_EVER: &str = "20000d";

pub(crate) struct Collecting {
    child: Child,
    pub(crate) talk: Talk,
    pub(crate) folder: Folder,
}

/// The results of a collector that has ended.
pub(crate) struct Collected {
    pub(crate) code: Option<i32>,
    pub(crate) said: String,
    pub(crate) folder: Folder,
}

impl Collecting {
    /// Starts the program in a folder.
    pub(crate) fn start(command: &mut Command, folder: Folder) -> Self {
        let mut child = command
            .current_dir(folder.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            talk: Talk::of(child.stderr.take().unwrap()),
            child,
            folder,
        }
    }

    /// Starts `turboflow collect` at these addresses. Records wait until the end. It writes
    /// `flows.csv` and `ledger.json`.
    pub(crate) fn at(listen: &str, more: &[&str]) -> Self {
        let args = ["collect", "--listen", listen, "--collector-lag", FOR_EVER];
        let to = ["-w", "flows.csv", "--ledger", "ledger.json"];
        let all = args.iter().chain(&to).chain(more);
        Self::start(&mut command(all), Folder::new())
    }

    /// The next address that exporters can send to.
    pub(crate) fn address(&mut self) -> SocketAddr {
        self.next_behind("exporters can send to ", ' ')
    }

    /// The address of the metrics and health pages.
    pub(crate) fn pages(&mut self) -> SocketAddr {
        self.next_behind("metrics at http://", '/')
    }

    fn next_behind(&mut self, words: &str, end: char) -> SocketAddr {
        self.talk.wait_for(words);
        let (_, rest) = self.talk.said().rsplit_once(words).unwrap();
        let (address, _) = rest.split_once(end).unwrap();
        address.parse().unwrap()
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// Ends it with a signal. Everything received by then is processed.
    pub(crate) fn end(mut self, name: &str) -> Collected {
        self.signal(name);
        let said = self.talk.rest().to_owned();
        let code = self.child.wait().unwrap().code();
        Collected {
            code,
            said,
            folder: std::mem::replace(&mut self.folder, Folder::new()),
        }
    }
}

impl Drop for Collecting {
    fn drop(&mut self) {
        // After a failed test it may still run. Otherwise it has exited, and the error is ignored.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Collected {
    pub(crate) fn ledger(&self) -> serde_json::Value {
        serde_json::from_str(&self.folder.read("ledger.json")).unwrap()
    }
}

/// Sends datagrams to a collector, a few at a time, so that its socket drops none.
pub(crate) fn send(to: SocketAddr, messages: &[Vec<u8>]) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for some in messages.chunks(32) {
        for message in some {
            socket.send_to(message, to).unwrap();
        }
        until("they are read", || waiting(to.port()) == 0);
    }
}

/// Octets in the receive buffer of a UDP socket (/proc/net/udp).
fn waiting(port: u16) -> u64 {
    let table = fs::read_to_string("/proc/net/udp").unwrap();
    let mut sockets = table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let its = u16::from_str_radix(fields[1].split_once(':')?.1, 16).ok()?;
        let waiting = u64::from_str_radix(fields[4].split_once(':')?.1, 16).ok()?;
        (its == port).then_some(waiting)
    });
    sockets.next().unwrap()
}

/// A page, without its header.
pub(crate) fn page(at: SocketAddr, path: &str) -> String {
    let mut asking = TcpStream::connect(at).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\n\r\n");
    asking.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    asking.read_to_string(&mut reply).unwrap();
    reply.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// The value of a metric without labels.
pub(crate) fn metric(at: SocketAddr, name: &str) -> u64 {
    let page = page(at, "/metrics");
    let name = format!("turboflow_{name} ");
    let value = page.lines().find_map(|line| line.strip_prefix(&name));
    value
        .unwrap_or_else(|| panic!("no {name}in {page}"))
        .parse()
        .unwrap()
}
