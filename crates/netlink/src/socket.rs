// SPDX-License-Identifier: Apache-2.0
//! The socket: one request at a time, with its answer.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::netlink::{GENERIC, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto,
    socket_with,
};

use crate::message::{HEADER_BYTES, Request};

/// More bytes than any answer about one interface takes, and than the kernel puts into one
/// datagram.
const ANSWER_BYTES: usize = 64 << 10;

// From include/uapi/linux/netlink.h.
const ACK: u16 = 4;
const DUMP: u16 = 0x300;
const ERROR: u16 = 2;
const DONE: u16 = 3;

/// A socket for requests to the kernel, in the network namespace of the thread that opened it.
/// Queries need no privileges.
#[derive(Debug)]
pub struct Netlink {
    socket: OwnedFd,
    sequence: u32,
    answer: Vec<u8>,
}

impl Netlink {
    /// Opens a socket for queries and changes of interfaces (`man 7 rtnetlink`).
    ///
    /// # Errors
    /// If the process may not open such a socket, for example in a service without `AF_NETLINK`.
    pub fn route() -> io::Result<Self> {
        // NETLINK_ROUTE is protocol 0.
        Self::open(None)
    }

    /// Opens a socket for generic netlink.
    ///
    /// # Errors
    /// If the process may not open such a socket, for example in a service without `AF_NETLINK`.
    pub fn generic() -> io::Result<Self> {
        Self::open(Some(GENERIC))
    }

    fn open(protocol: Option<Protocol>) -> io::Result<Self> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            protocol,
        )?;
        Ok(Self {
            socket,
            sequence: 0,
            answer: vec![0; ANSWER_BYTES],
        })
    }

    /// Queries a single object. The answer begins with the header of the family.
    ///
    /// # Errors
    /// The kernel's error, such as `ENODEV`.
    pub fn ask(&mut self, request: Request) -> io::Result<Vec<u8>> {
        let mut answer = None;
        self.exchange(request, |part| {
            answer.get_or_insert_with(|| part.to_vec());
        })?;
        answer.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Queries all objects of a kind, and calls `take` with each answer.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn ask_all(&mut self, mut request: Request, take: impl FnMut(&[u8])) -> io::Result<()> {
        request.add_flags(DUMP);
        self.exchange(request, take)
    }

    /// Requests a change, and waits until the kernel has made it.
    ///
    /// # Errors
    /// The kernel's error, such as `EPERM`.
    pub fn order(&mut self, mut request: Request) -> io::Result<()> {
        request.add_flags(ACK);
        self.exchange(request, |_| {})
    }

    /// Sends a request and reads the complete answer.
    fn exchange(&mut self, request: Request, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = request.finish(self.sequence);
        let kernel = SocketAddrNetlink::new(0, 0);
        sendto(&self.socket, &request, SendFlags::empty(), &kernel)?;
        let is_single = u16::from_ne_bytes([request[6], request[7]]) & (ACK | DUMP) == 0;
        loop {
            let (length, _) = recv(&self.socket, &mut self.answer[..], RecvFlags::empty())?;
            let mut rest = &self.answer[..length];
            while let Some(message) = Message::first(rest) {
                rest = &rest[message.bytes..];
                if message.sequence != self.sequence {
                    continue;
                }
                match message.kind {
                    ERROR => return message.outcome(),
                    DONE => return Ok(()),
                    _ => take(message.inside),
                }
                if is_single {
                    return Ok(());
                }
            }
        }
    }
}

/// One message in a datagram.
struct Message<'a> {
    kind: u16,
    sequence: u32,
    inside: &'a [u8],
    /// Length including padding.
    bytes: usize,
}

impl<'a> Message<'a> {
    fn first(bytes: &'a [u8]) -> Option<Self> {
        let header = bytes.first_chunk::<HEADER_BYTES>()?;
        let number = |at: usize| {
            u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let length = number(0) as usize;
        Some(Self {
            kind: u16::from_ne_bytes([header[4], header[5]]),
            sequence: number(8),
            inside: bytes.get(HEADER_BYTES..length)?,
            bytes: length.next_multiple_of(4).min(bytes.len()),
        })
    }

    /// The result in a message of type [`ERROR`], in which 0 means success.
    fn outcome(&self) -> io::Result<()> {
        match self.inside.first_chunk().copied().map(i32::from_ne_bytes) {
            Some(0) => Ok(()),
            Some(number) => Err(io::Error::from_raw_os_error(number.saturating_neg())),
            None => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_datagram_are_told_apart() {
        let mut datagram = vec![20, 0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0];
        datagram.extend((-19_i32).to_ne_bytes());
        datagram.extend([17, 0, 0, 0, 16, 0, 2, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0xaa]);
        let first = Message::first(&datagram).unwrap();
        assert_eq!((first.kind, first.sequence, first.bytes), (2, 7, 20));
        assert_eq!(first.outcome().unwrap_err().raw_os_error(), Some(19));
        let second = Message::first(&datagram[first.bytes..]).unwrap();
        assert_eq!(
            (second.kind, second.inside, second.bytes),
            (16, &[0xaa][..], 17)
        );
        // A message that is cut off, or shorter than its header, ends the datagram.
        assert!(Message::first(&datagram[..19]).is_none());
        datagram[0] = 15;
        assert!(Message::first(&datagram).is_none());
    }
}
