// SPDX-License-Identifier: Apache-2.0
//! DPDK's software pipeline in a child process.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command};

use crate::Port;
use crate::frame_stream::FrameStream;

/// A pipeline in a child process, which ends when this is dropped.
pub struct SwxPort {
    /// Closing this ends the child.
    stream: FrameStream,
    child: Child,
}

impl SwxPort {
    /// Starts `runner`, the program `turboflow-swx`, with a compiled program.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn start(runner: &Path, spec: &str) -> io::Result<Self> {
        let (here, there) = UnixStream::pair()?;
        let child = Command::new(runner).stdin(OwnedFd::from(there)).spawn()?;
        let mut stream = FrameStream::new(here)?;
        stream.send(&[spec.as_bytes()]);
        Ok(Self { stream, child })
    }
}

impl Port for SwxPort {
    fn name(&self) -> &str {
        "swx"
    }

    fn send(&mut self, parts: &[&[u8]]) {
        self.stream.send(parts);
    }

    fn exchange(&mut self, wait: bool, take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        let is_ended = |error: &io::Error| {
            matches!(
                error.kind(),
                ErrorKind::BrokenPipe | ErrorKind::ConnectionReset
            )
        };
        match self.stream.exchange(wait, take) {
            Ok(true) => return Ok(true),
            Err(error) if !is_ended(&error) => {
                // It may never end by itself.
                let _ = self.child.kill();
                return Err(error);
            }
            _ => {}
        }
        // The child has closed its socket. It may hang; if it has ended, killing it has no effect.
        // It says itself why it ends, unless a signal ends it.
        let _ = self.child.kill();
        let status = self.child.wait()?;
        match status.signal() {
            Some(_) => Err(io::Error::other(format!(
                "the pipeline was ended by {status}"
            ))),
            None => Ok(false),
        }
    }
}

impl Drop for SwxPort {
    fn drop(&mut self) {
        // All requests are answered, so it does not matter how the child ends.
        let _ = self.stream.close();
        let _ = self.child.wait();
    }
}
