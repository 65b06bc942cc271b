// SPDX-License-Identifier: Apache-2.0
//! A connection to a collector, over plain TCP or TLS.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use super::Clock;
use super::tls::{TlsPeer, TlsStream};

/// Timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// How much of a message was sent.
pub(super) enum Progress {
    /// All of it.
    Whole,
    /// This many octets; the socket takes no more for now.
    Partial(usize),
}

/// A connection.
pub(super) enum Stream {
    Tcp(TcpStream),
    Tls(Box<TlsStream>),
}

impl Stream {
    /// Connects to the first address that answers.
    pub(super) fn dial(
        addresses: &[SocketAddr],
        tls: Option<&TlsPeer>,
        clock: &Clock,
    ) -> io::Result<Self> {
        let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in addresses {
            let dialled = TcpStream::connect_timeout(address, CONNECT_TIMEOUT);
            match dialled.and_then(|stream| Self::begin(stream, tls, clock)) {
                Ok(stream) => return Ok(stream),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    fn begin(stream: TcpStream, tls: Option<&TlsPeer>, clock: &Clock) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        match tls {
            None => {
                stream.set_nonblocking(true)?;
                Ok(Self::Tcp(stream))
            }
            Some(peer) => Ok(Self::Tls(Box::new(TlsStream::begin(stream, peer, clock)?))),
        }
    }

    /// Checks whether the collector has closed the connection. Collectors send nothing, and without
    /// this check the first message after the close would be lost.
    pub(super) fn listen(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => listen(stream),
            Self::Tls(stream) => stream.listen(),
        }
    }

    /// Sends the rest of a message. It is an error if the collector has closed its side.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<Progress> {
        self.listen()?;
        match self {
            Self::Tcp(stream) => send(stream, bytes),
            Self::Tls(stream) => stream.send(bytes),
        }
    }

    /// Closes a connection so that everything sent arrives.
    pub(super) fn close(&mut self) {
        // The other side may already have closed.
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Self::Tls(stream) => stream.close(),
        };
    }
}

fn listen(stream: &mut TcpStream) -> io::Result<()> {
    match stream.read(&mut [0; 256]) {
        Ok(0) => Err(closed()),
        Err(error) if !is_not_yet(&error) => Err(error),
        _ => Ok(()),
    }
}

fn send(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<Progress> {
    let mut sent = 0;
    while sent < bytes.len() {
        match stream.write(&bytes[sent..]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => sent += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if is_not_yet(&error) => return Ok(Progress::Partial(sent)),
            Err(error) => return Err(error),
        }
    }
    Ok(Progress::Whole)
}

pub(super) fn closed() -> io::Error {
    io::Error::other("the collector closed the connection")
}

pub(super) fn is_not_yet(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
