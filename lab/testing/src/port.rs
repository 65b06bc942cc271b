// SPDX-License-Identifier: Apache-2.0
//! Ports on which a test's server can start again.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicU16, Ordering};

/// A free UDP port that nothing else gets: each is given once, and the system gives none of them to
/// sockets that ask for any port. A collector can be restarted on it.
#[must_use]
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + (std::process::id() % 8_000) as u16;
    loop {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed) % 4_000;
        if UdpSocket::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
