// SPDX-License-Identifier: Apache-2.0
//! DPDK's software pipeline in a child process.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command};

use crate::{Port, StreamPort};

/// A pipeline in a child process. It ends with this.
pub struct SwxPort {
    /// Before the child: without it, the child ends.
    port: Option<StreamPort>,
    child: Child,
}

impl SwxPort {
    /// Starts `runner`, the program `turboflow-swx`, with a compiled program.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(runner: &Path, spec: &str) -> io::Result<Self> {
        let (here, there) = UnixStream::pair()?;
        let child = Command::new(runner).stdin(OwnedFd::from(there)).spawn()?;
        let mut port = StreamPort::new("swx".to_owned(), here)?;
        port.send(&[spec.as_bytes()]);
        Ok(Self {
            port: Some(port),
            child,
        })
    }

    fn port(&mut self) -> &mut StreamPort {
        self.port.as_mut().expect("it is there until it is dropped")
    }
}

impl Port for SwxPort {
    fn name(&self) -> &str {
        "swx"
    }

    fn send(&mut self, parts: &[&[u8]]) {
        self.port().send(parts);
    }

    fn exchange(&mut self, wait: bool, take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        self.port().exchange(wait, take)
    }
}

impl Drop for SwxPort {
    fn drop(&mut self) {
        self.port = None;
        // Its frames are answered: nothing depends on how it ends.
        let _ = self.child.wait();
    }
}
