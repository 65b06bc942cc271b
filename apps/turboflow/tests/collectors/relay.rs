// SPDX-License-Identifier: Apache-2.0
//! A relay between exporter and collector that loses the first datagrams.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{JoinHandle, spawn};

pub(crate) struct Relay {
    pub(crate) port: u16,
    seen: Arc<AtomicUsize>,
    thread: JoinHandle<()>,
}

impl Relay {
    /// Drops the first `lost` datagrams, and forwards all others to a port of this host.
    pub(crate) fn start(to: u16, lost: usize) -> Self {
        let near = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = near.local_addr().unwrap().port();
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        let seen = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&seen);
        let thread = spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            loop {
                let length = near.recv(&mut buffer).unwrap();
                if length == 0 {
                    return;
                }
                if count.fetch_add(1, Ordering::Relaxed) >= lost {
                    // A collector that is being restarted may not be listening.
                    let _ = far.send_to(&buffer[..length], ("127.0.0.1", to));
                }
            }
        });
        Self { port, seen, thread }
    }

    /// Number of datagrams received.
    pub(crate) fn seen(&self) -> usize {
        self.seen.load(Ordering::Relaxed)
    }

    /// Ends the relay after it has forwarded everything.
    pub(crate) fn end(self) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.send_to(&[], ("127.0.0.1", self.port)).unwrap();
        self.thread.join().unwrap();
    }
}
