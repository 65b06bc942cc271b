// SPDX-License-Identifier: Apache-2.0
//! Sends generated frames through an interface.

use std::ffi::c_int;
use std::io::{self, IoSlice};
use std::os::fd::AsRawFd;

use turboflow_packet::Frame;

use super::names;
use super::socket::{self, MESSAGES_AT_ONCE, PacketSocket};

/// How long to wait for an interface that accepts no frames before returning to the caller, in ms.
const WAIT_MS: c_int = 100;

/// Why frames cannot be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// A system call failed for a reason that is not the user's.
    #[error("interface {name}: {what}: {source}")]
    Io {
        /// The interface.
        name: String,
        /// What was attempted.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// The interface is neither Ethernet nor loopback.
    #[error(
        "interface {name} is of hardware type {number}; generated frames are Ethernet's: send \
         them out of an Ethernet or loopback interface"
    )]
    NotEthernet {
        /// The interface.
        name: String,
        /// The kernel's number for the type (ARPHRD).
        number: u16,
    },
    /// There is no such interface.
    #[error("there is no interface {name}; there are: {present}")]
    NotFound {
        /// The name.
        name: String,
        /// The names of existing interfaces.
        present: String,
    },
    /// The program lacks permission to open packet sockets.
    #[error(
        "nothing may be sent out of interface {name}: run as root, or give the program the right \
         once, with `sudo setcap cap_net_raw=ep $(command -v turboflow)`"
    )]
    PermissionDenied {
        /// The interface.
        name: String,
    },
    /// A frame exceeds the interface's MTU.
    #[error(
        "a frame of {frame_bytes} bytes is too long for interface {name}: raise its MTU with \
         `ip link set {name} mtu {}`, or ask for smaller frames",
        frame_bytes - 14
    )]
    TooLong {
        /// The interface.
        name: String,
        /// Length of the frame.
        frame_bytes: usize,
    },
}

/// An interface through which frames are sent.
#[derive(Debug)]
pub struct Sender {
    name: String,
    socket: PacketSocket,
    waits: u64,
}

impl Sender {
    /// Opens an interface for sending.
    ///
    /// # Errors
    /// If there is no such interface, it is not Ethernet, or permission is denied.
    pub fn open(name: &str) -> Result<Self, SendError> {
        let io = |what| {
            move |source| SendError::Io {
                name: name.to_owned(),
                what,
                source,
            }
        };
        let Some((kernel_name, index)) = names::find(name) else {
            return Err(SendError::NotFound {
                name: name.to_owned(),
                present: socket::names().join(", "),
            });
        };
        let socket = PacketSocket::open().map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => SendError::PermissionDenied {
                name: name.to_owned(),
            },
            _ => io("no packet socket")(error),
        })?;
        let number = socket
            .hardware_type(&kernel_name)
            .map_err(io("its kind is not known"))?;
        if !matches!(number, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK) {
            return Err(SendError::NotEthernet {
                name: name.to_owned(),
                number,
            });
        }
        socket.bind_to_send(index).map_err(io("cannot be bound"))?;
        // Bypasses the queues of traffic control, which cost much time, if the kernel supports
        // that.
        let _ = socket.set(libc::PACKET_QDISC_BYPASS, 1 as c_int);
        Ok(Self {
            name: name.to_owned(),
            socket,
            waits: 0,
        })
    }

    /// Sends frames and returns how many were sent, counted from the first. If the interface
    /// accepts none, waits for about a tenth of a second at most.
    ///
    /// # Errors
    /// If the interface is down or gone, or a frame is too long for it.
    pub fn send(&mut self, frames: &[Frame<'_>]) -> Result<usize, SendError> {
        let Some(first) = frames.first() else {
            return Ok(0);
        };
        let mut parts = [IoSlice::new(&[]); MESSAGES_AT_ONCE];
        for (part, frame) in parts.iter_mut().zip(frames) {
            *part = IoSlice::new(frame.bytes);
        }
        let count = frames.len().min(MESSAGES_AT_ONCE);
        let error = match self.socket.send(&parts[..count]) {
            Ok(sent) => return Ok(sent),
            Err(error) => error,
        };
        match error.raw_os_error() {
            Some(libc::EINTR) => Ok(0),
            Some(libc::EAGAIN | libc::ENOBUFS) => {
                self.waits += 1;
                self.wait().map(|()| 0)
            }
            Some(libc::EMSGSIZE) => Err(SendError::TooLong {
                name: self.name.clone(),
                frame_bytes: first.bytes.len(),
            }),
            _ => Err(self.failed("nothing can be sent", error)),
        }
    }

    /// How many times the interface accepted no frame and was waited for.
    #[must_use]
    pub const fn waits(&self) -> u64 {
        self.waits
    }

    fn wait(&self) -> Result<(), SendError> {
        let mut entry = [libc::pollfd {
            fd: self.socket.as_raw_fd(),
            events: libc::POLLOUT,
            revents: 0,
        }];
        socket::wait(&mut entry, WAIT_MS)
            .map_err(|error| self.failed("cannot be waited for", error))
    }

    fn failed(&self, what: &'static str, source: io::Error) -> SendError {
        SendError::Io {
            name: self.name.clone(),
            what,
            source,
        }
    }
}
