// SPDX-License-Identifier: Apache-2.0
//! A dashboard on loopback, and a client that sends raw bytes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use turboflow_dashboard::{Limits, Options, Server};
use turboflow_query::EnrichmentFiles;

/// A dashboard that runs until it is dropped.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    _runtime: tokio::runtime::Runtime,
}

/// Options for a dashboard of these files.
pub(crate) fn options(given: &[PathBuf]) -> Options {
    Options {
        given: given.to_vec(),
        ledgers: Vec::new(),
        live: None,
        listen: "127.0.0.1:0".parse().unwrap(),
        names: Vec::new(),
        token: None,
        enrichment: EnrichmentFiles::default(),
        limits: Limits::default(),
        first_snapshot: 1,
    }
}

/// Starts a dashboard.
pub(crate) fn started(options: Options) -> Running {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let server = runtime.block_on(Server::bind(options)).unwrap();
    let address = server.address();
    runtime.spawn(server.run());
    Running {
        address,
        _runtime: runtime,
    }
}

/// A response: its status, head and body.
pub(crate) struct Said {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Said {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// Time limit for a response, far above what one takes.
const PATIENCE: Duration = Duration::from_secs(60);

impl Running {
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends these bytes and reads until the server closes. `None` if it closes without a response.
    pub(crate) fn send(&self, bytes: &[u8]) -> Option<Said> {
        let mut stream = self.connect();
        // The server may respond and close before it has received everything.
        let _ = stream.write_all(bytes);
        said(&mut stream)
    }

    /// A request of the page.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> Said {
        let host = self.address;
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        self.send(request.as_bytes()).unwrap()
    }

    pub(crate) fn get(&self, path: &str) -> Said {
        self.ask("GET", path, "")
    }

    /// The answers to the questions of a page.
    pub(crate) fn panels(&self, request: &Value) -> Vec<Value> {
        let said = self.ask("POST", "/api/query", &request.to_string());
        assert_eq!(said.status, 200, "{}", String::from_utf8_lossy(&said.body));
        said.json()["panels"].as_array().unwrap().clone()
    }
}

/// Reads a response until the end of the stream.
pub(crate) fn said(stream: &mut TcpStream) -> Option<Said> {
    let mut bytes = Vec::new();
    // A reset after the response does not matter.
    let _ = stream.read_to_end(&mut bytes);
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let body = bytes[end + 4..].to_vec();
    Some(Said { status, head, body })
}

/// Records of a few hosts over a minute, in CSV: `count` records, all different.
pub(crate) fn records(path: &Path, count: u64) {
    let mut text = "src_addr,dst_addr,src_port,dst_port,protocol,packets,bytes,first_ns,last_ns,\
                    tcp_flags,end_reason\n"
        .to_owned();
    for number in 0..count {
        let (host, peer, port) = (
            number % 7,
            number % 5,
            [443, 53, 80, 22][number as usize % 4],
        );
        let protocol = if port == 53 { 17 } else { 6 };
        let (packets, bytes) = (1 + number % 11, 60 + number * 37 % 5000);
        let first = 1_700_000_000_000_000_000 + number * 60_000_000_000 / count;
        let last = first + number % 13 * 500_000_000;
        text += &format!(
            "10.0.0.{host},192.0.2.{peer},{},{port},{protocol},{packets},{bytes},{first},{last},\
             {},{}\n",
            40_000 + number,
            number % 32,
            1 + number % 4
        );
    }
    std::fs::write(path, text).unwrap();
}
