// SPDX-License-Identifier: Apache-2.0
//! Ports on which a test's server can start again.

use std::fs::{File, OpenOptions};
use std::net::UdpSocket;
use std::sync::Mutex;

/// Ports that the system does not assign to sockets that ask for any port.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// A free UDP port that no one else gets: each is returned only once, and the system does not
/// assign it to sockets that ask for any port. So a test's server can be restarted on it.
///
/// Tests of several processes run at the same time. A process owns a port while it holds the lock
/// on the port's file in the folder for temporary files. The system releases the lock when the
/// process ends.
///
/// # Panics
/// If all ports are taken.
#[must_use]
pub fn free_port() -> u16 {
    /// The locks of this process, and the port to try next.
    static HELD: Mutex<(Vec<File>, u16)> = Mutex::new((Vec::new(), 0));
    let mut held = HELD
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let (locks, next) = &mut *held;
    let count = PORTS.end - PORTS.start;
    let first = (std::process::id() % u32::from(count)) as u16;
    while *next < count {
        let port = PORTS.start + (first + *next) % count;
        *next += 1;
        if let Some(lock) = locked(port)
            && UdpSocket::bind(("127.0.0.1", port)).is_ok()
        {
            locks.push(lock);
            return port;
        }
    }
    panic!("all ports from {} to {} are taken", PORTS.start, PORTS.end);
}

/// Locks the file of a port; `None` if another process holds the lock, or the file belongs to
/// another user.
fn locked(port: u16) -> Option<File> {
    let path = std::env::temp_dir().join(format!("turboflow-test-port-{port}"));
    let mut options = OpenOptions::new();
    let file = options.create(true).append(true).open(path).ok()?;
    file.try_lock().is_ok().then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_given_once_and_is_locked_for_other_processes() {
        let ports: Vec<u16> = (0..20).map(|_| free_port()).collect();
        let mut different = ports.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), ports.len(), "{ports:?}");
        // A lock belongs to the open file, so opening the file again is like opening it in another
        // process.
        assert!(ports.iter().all(|&port| locked(port).is_none()));
    }
}
