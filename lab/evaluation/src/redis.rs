// SPDX-License-Identifier: Apache-2.0
//! Starts a temporary Redis server, if Redis is installed.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A server process, which is killed on drop.
pub(crate) struct Server {
    process: Child,
    pub(crate) address: String,
}

impl Server {
    /// Starts a server without persistence. `None` if Redis is not installed or does not answer.
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
        // The server may have exited already, and an error here could not be reported.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
