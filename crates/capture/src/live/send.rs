// SPDX-License-Identifier: Apache-2.0
//! Frames of a generator, out of an interface.

use std::ffi::c_int;
use std::io::{self, IoSlice};
use std::os::fd::AsRawFd;

use turboflow_packet::Frame;

use super::socket::{self, MESSAGES_AT_ONCE, PacketSocket};

/// How long a full interface is waited for, in ms, before the caller is asked again.
const WAIT_MS: c_int = 100;

/// Why frames cannot be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// A system call failed that does not fail for a reason of the user's.
    #[error("interface {name}: {what}: {source}")]
    Io {
        /// The interface.
        name: String,
        /// What was being done.
        what: &'static str,
        /// What the kernel says.
        source: io::Error,
    },
    /// Frames of Ethernet go out of Ethernet and loopback only.
    #[error(
        "interface {name} is of hardware type {number}; generated frames are Ethernet's: send \
         them out of an Ethernet or loopback interface"
    )]
    NotEthernet {
        /// The interface.
        name: String,
        /// The kernel's number of the type (ARPHRD).
        number: u16,
    },
    /// There is no such interface.
    #[error("there is no interface {name}; there are: {present}")]
    NotFound {
        /// The name.
        name: String,
        /// The names of those there are.
        present: String,
    },
    /// The program may not open packet sockets.
    #[error(
        "nothing may be sent out of interface {name}: run as root, or give the program the right \
         once, with `sudo setcap cap_net_raw=ep $(command -v turboflow)`"
    )]
    PermissionDenied {
        /// The interface.
        name: String,
    },
    /// A frame exceeds the interface's largest packet.
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

/// An interface that frames are sent out of.
#[derive(Debug)]
pub struct Sender {
    name: String,
    socket: PacketSocket,
    waits: u64,
}

impl Sender {
    /// Opens an interface to send.
    ///
    /// # Errors
    /// Where there is no such interface, it is not Ethernet, or nothing may be sent out of it.
    pub fn open(name: &str) -> Result<Self, SendError> {
        let io = |what| {
            move |source| SendError::Io {
                name: name.to_owned(),
                what,
                source,
            }
        };
        let found = socket::kernel_name(name)
            .and_then(|kernel_name| Some((socket::index_of(&kernel_name)?, kernel_name)));
        let Some((index, kernel_name)) = found else {
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
        // Past the queues of traffic control, which cost much of the time; where that is not to
        // be had, through them.
        let _ = socket.set(libc::PACKET_QDISC_BYPASS, 1 as c_int);
        Ok(Self {
            name: name.to_owned(),
            socket,
            waits: 0,
        })
    }

    /// Sends frames, from the first on; returns how many of them went. Where the interface takes
    /// none at the moment, it is waited for, not much longer than a tenth of a second.
    ///
    /// # Errors
    /// When the interface is down or gone, or a frame is too long for it.
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

    /// How often the interface took nothing and was waited for.
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
