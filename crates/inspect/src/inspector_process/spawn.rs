// SPDX-License-Identifier: Apache-2.0
//! The meter's end of the connection to the process that inspects.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::CHILD_NAME;
use crate::message::{Answer, MAX_ANSWER_BYTES, split};

/// Bytes read at once.
const READ_BYTES: usize = 1 << 16;
/// Size of the kernel's buffer between the two processes, if the kernel allows it.
const SOCKET_BYTES: usize = 1 << 20;

/// A running process, and the bytes that are in transit. The process is killed when this is
/// dropped.
pub(crate) struct Child {
    process: std::process::Child,
    socket: UnixStream,
    received: Vec<u8>,
    chunk: Box<[u8]>,
}

/// The result of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// Everything that was available has been read.
    All,
    /// The process has ended, or sent something that is not a message.
    Ended,
}

impl Child {
    /// Starts `program` as the process that inspects.
    pub(crate) fn start(program: &Path) -> io::Result<Self> {
        let (here, there) = UnixStream::pair()?;
        // A smaller buffer only costs more system calls.
        let _ = rustix::net::sockopt::set_socket_send_buffer_size(&here, SOCKET_BYTES);
        let mut command = Command::new(program);
        command.arg0(CHILD_NAME).env_clear();
        // Keeps the search path for a library that is not the system's.
        if let Some(path) = std::env::var_os("LD_LIBRARY_PATH") {
            command.env("LD_LIBRARY_PATH", path);
        }
        command.stdin(OwnedFd::from(there));
        // The library prints messages; those that hostile packets cause must not reach anyone.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn()?;
        here.set_nonblocking(true)?;
        Ok(Self {
            process,
            socket: here,
            received: Vec::new(),
            chunk: vec![0; READ_BYTES].into(),
        })
    }

    /// The id of the process.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Writes as much as the socket accepts, and returns the number of bytes.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.socket.write(bytes) {
                Ok(count) => return Ok(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads what is available, and calls `take` with each message.
    pub(crate) fn receive(&mut self, mut take: impl FnMut(Answer)) -> Received {
        loop {
            let count = match self.socket.read(&mut self.chunk) {
                Ok(0) => return Received::Ended,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Received::All,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return Received::Ended,
            };
            self.received.extend_from_slice(&self.chunk[..count]);
            let mut rest = &self.received[..];
            loop {
                match split(rest, MAX_ANSWER_BYTES) {
                    Ok(Some((message, behind))) => {
                        let Some(answer) = Answer::read(message) else {
                            return Received::Ended;
                        };
                        take(answer);
                        rest = behind;
                    }
                    Ok(None) => break,
                    Err(()) => return Received::Ended,
                }
            }
            let done = self.received.len() - rest.len();
            self.received.drain(..done);
        }
    }

    /// Waits until there is something to read or, if `to_send`, room to write. Returns false if the
    /// timeout passed first.
    pub(crate) fn wait(&self, to_send: bool, seconds: u32) -> io::Result<bool> {
        let mut events = PollFlags::IN;
        if to_send {
            events |= PollFlags::OUT;
        }
        let timeout = Timespec {
            tv_sec: seconds.into(),
            tv_nsec: 0,
        };
        let mut polled = [PollFd::new(&self.socket, events)];
        match poll(&mut polled, Some(&timeout)) {
            Ok(count) => Ok(count > 0),
            Err(rustix::io::Errno::INTR) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // It does not matter how the process ends.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
