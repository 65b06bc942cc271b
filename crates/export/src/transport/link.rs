// SPDX-License-Identifier: Apache-2.0
//! A socket to a collector, and what to do with what it says.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use super::pending::Pending;
use super::{Carrier, Resolve, Target};
use crate::ExportError;

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// The way to a collector.
pub(super) struct Link {
    target: Target,
    resolve: Resolve,
    socket: Socket,
    /// Addresses that are being looked up.
    lookup: Option<Pending<Vec<SocketAddr>>>,
    /// A connection that is being made.
    dialling: Option<Pending<TcpStream>>,
}

enum Socket {
    Udp {
        socket: UdpSocket,
        address: SocketAddr,
    },
    Tcp(TcpStream),
    /// A connection that is to be made.
    Away,
}

/// How far a message came.
pub(super) enum Progress {
    /// All of it left.
    Whole,
    /// So many octets left; the socket takes no more for now.
    Partial(usize),
}

impl Link {
    /// Resolves the host, so that a wrong name is known before anything starts. A connection is
    /// made later.
    pub(super) fn new(target: &Target, resolve: Resolve) -> Result<Self, ExportError> {
        let refused = |error: io::Error| ExportError::Target {
            given: target.to_string(),
            reason: error.to_string(),
        };
        let addresses = addresses(target, resolve).map_err(refused)?;
        let socket = match target.carrier {
            Carrier::Udp => open_udp(&addresses).map_err(refused)?,
            Carrier::Tcp => Socket::Away,
        };
        Ok(Self {
            target: target.clone(),
            resolve,
            socket,
            lookup: None,
            dialling: None,
        })
    }

    pub(super) const fn is_up(&self) -> bool {
        !matches!(self.socket, Socket::Away)
    }

    pub(super) const fn is_stream(&self) -> bool {
        matches!(self.target.carrier, Carrier::Tcp)
    }

    /// Begins to make the connection; the name is resolved anew each time.
    pub(super) fn dial(&mut self) -> io::Result<()> {
        let (target, resolve) = (self.target.clone(), self.resolve);
        self.dialling = Some(Pending::start(move || dial(&target, resolve))?);
        Ok(())
    }

    /// What became of it; `None` where it is not there yet, after `timeout`.
    pub(super) fn dialled(&mut self, timeout: Duration) -> Option<io::Result<()>> {
        let outcome = self.dialling.as_ref()?.outcome(timeout)?;
        self.dialling = None;
        Some(outcome.map(|stream| self.socket = Socket::Tcp(stream)))
    }

    pub(super) fn disconnect(&mut self) {
        self.socket = Socket::Away;
        self.dialling = None;
    }

    /// Begins to look up the name again (UDP; TCP does so when it connects).
    pub(super) fn look_up(&mut self) {
        let is_name = self.target.host.parse::<IpAddr>().is_err();
        if !self.is_stream() && is_name && self.lookup.is_none() {
            let (target, resolve) = (self.target.clone(), self.resolve);
            // Where there can be no thread now there may be one next time.
            self.lookup = Pending::start(move || addresses(&target, resolve)).ok();
        }
    }

    /// Follows a name that leads elsewhere now, once that is known. True where it did.
    pub(super) fn follow_name(&mut self) -> bool {
        let found = self.lookup.as_ref();
        let Some(found) = found.and_then(|lookup| lookup.outcome(Duration::ZERO)) else {
            return false;
        };
        self.lookup = None;
        // A name server that is away for a while changes nothing.
        if let Socket::Udp { address, .. } = &self.socket
            && let Ok(addresses) = found
            && !addresses.contains(address)
            && let Ok(socket) = open_udp(&addresses)
        {
            self.socket = socket;
            return true;
        }
        false
    }

    /// Sends what is left of a message. A collector that closed its side is an error.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<Progress> {
        match &mut self.socket {
            Socket::Udp { socket, .. } => socket.send(bytes).map(|_| Progress::Whole),
            Socket::Tcp(stream) => send_stream(stream, bytes),
            Socket::Away => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// What the network said of datagrams sent before.
    pub(super) fn take_error(&self) -> Option<io::Error> {
        match &self.socket {
            Socket::Udp { socket, .. } => socket.take_error().ok().flatten(),
            _ => None,
        }
    }

    /// Ends a connection so that all that was sent arrives.
    pub(super) fn close(&self) {
        if let Socket::Tcp(stream) = &self.socket {
            // The other side may have gone already.
            let _ = stream.shutdown(Shutdown::Write);
        }
    }
}

fn addresses(target: &Target, resolve: Resolve) -> io::Result<Vec<SocketAddr>> {
    let addresses = resolve(&target.host, target.port)?;
    if addresses.is_empty() {
        return Err(io::Error::other("its name has no address"));
    }
    Ok(addresses)
}

fn dial(target: &Target, resolve: Resolve) -> io::Result<TcpStream> {
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses(target, resolve)? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => {
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn open_udp(addresses: &[SocketAddr]) -> io::Result<Socket> {
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        let any: SocketAddr = match address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let opened = UdpSocket::bind(any).and_then(|socket| {
            socket.connect(address)?;
            Ok(socket)
        });
        match opened {
            Ok(socket) => {
                let address = *address;
                return Ok(Socket::Udp { socket, address });
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn send_stream(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<Progress> {
    // Collectors say nothing: what can be read is the end of the connection. Without a look, the
    // first message after it would be lost.
    let mut said = [0; 256];
    match stream.read(&mut said) {
        Ok(0) => return Err(io::Error::other("the collector closed the connection")),
        Err(error) if is_not_yet(&error) => {}
        Ok(_) => {}
        Err(error) => return Err(error),
    }
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

fn is_not_yet(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
