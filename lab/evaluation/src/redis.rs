// SPDX-License-Identifier: Apache-2.0
//! A Redis server for as long as it is needed, where one is installed.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A server of our own; it ends with this value.
pub(crate) struct Server {
    process: Child,
    pub(crate) address: String,
}

impl Server {
    /// Starts one that keeps nothing on the disk; `None` where it is not installed or does not
    /// answer.
    pub(crate) fn start() -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .ok()?
            .port();
        let process = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &port.to_string()])
            .args(["--save", "", "--appendonly", "no"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let server = Self {
            process,
            address: format!("127.0.0.1:{port}"),
        };
        server.answers().then_some(server)
    }

    fn answers(&self) -> bool {
        (0..100).any(|_| {
            let connected = TcpStream::connect(&self.address).is_ok();
            if !connected {
                wait(Duration::from_millis(50));
            }
            connected
        })
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a server takes a moment to start"
)]
fn wait(time: Duration) {
    std::thread::sleep(time);
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; there is nobody to tell.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
