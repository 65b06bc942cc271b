// SPDX-License-Identifier: Apache-2.0
//! A socket that stores what it receives, for decoders that cannot listen.

use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::thread::{JoinHandle, spawn};

/// Listens to one exporter.
pub(crate) struct Sink {
    pub(crate) port: u16,
    got: JoinHandle<Vec<Vec<u8>>>,
    is_stream: bool,
}

impl Sink {
    pub(crate) fn udp() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let got = spawn(move || {
            let (mut datagrams, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
            loop {
                let length = socket.recv(&mut buffer).unwrap();
                if length == 0 {
                    return datagrams;
                }
                datagrams.push(buffer[..length].to_vec());
            }
        });
        Self {
            port,
            got,
            is_stream: false,
        }
    }

    pub(crate) fn tcp() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let got = spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut parts, mut buffer) = (Vec::new(), vec![0; 8 << 10]);
            loop {
                let length = stream.read(&mut buffer).unwrap();
                if length == 0 {
                    return parts;
                }
                parts.push(buffer[..length].to_vec());
            }
        });
        Self {
            port,
            got,
            is_stream: true,
        }
    }

    /// Returns what it received: datagrams, or parts of a stream.
    pub(crate) fn end(self) -> Vec<Vec<u8>> {
        if !self.is_stream {
            // Loopback does not reorder, so this empty datagram arrives last.
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.send_to(&[], ("127.0.0.1", self.port)).unwrap();
        }
        self.got.join().unwrap()
    }
}
