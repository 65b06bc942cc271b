// SPDX-License-Identifier: Apache-2.0
//! A collector's address and the socket to it, if there is one.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use super::pending::Pending;
use super::stream::{Progress, Stream};
use super::tls::{Tls, TlsFiles, TlsPeer};
use super::{Carrier, Clock, Resolve, SendOptions, Target};
use crate::TransportError;

/// The address of a collector, and the socket to it.
pub(super) struct Link {
    target: Target,
    resolve: Resolve,
    clock: Clock,
    tls: Option<TlsPeer>,
    socket: Socket,
    /// A name lookup in progress.
    lookup: Option<Pending<Vec<SocketAddr>>>,
    /// A connection attempt in progress.
    dialling: Option<Pending<Stream>>,
}

enum Socket {
    Udp {
        socket: UdpSocket,
        address: SocketAddr,
    },
    Stream(Stream),
    /// There is no connection yet.
    Away,
}

impl Link {
    /// Resolves the host, so that a wrong name is reported before anything starts. The connection
    /// is made later.
    pub(super) fn new(target: &Target, options: &SendOptions) -> Result<Self, TransportError> {
        let refused = |error: io::Error| TransportError::Target {
            given: target.to_string(),
            reason: error.to_string(),
        };
        let tls = match (target.carrier, &options.tls) {
            (Carrier::Tls, Some(tls)) => Some(tls.clone()),
            (Carrier::Tls, None) => Some(Tls::new(&TlsFiles::default(), options.clock)?),
            _ => None,
        };
        let tls = tls.map(|tls| TlsPeer::new(tls, &target.host)).transpose();
        let tls = tls.map_err(refused)?;
        let addresses = addresses(target, options.resolve).map_err(refused)?;
        let socket = match target.carrier {
            Carrier::Udp => open_udp(&addresses).map_err(refused)?,
            Carrier::Tcp | Carrier::Tls => Socket::Away,
        };
        Ok(Self {
            target: target.clone(),
            resolve: options.resolve,
            clock: options.clock,
            tls,
            socket,
            lookup: None,
            dialling: None,
        })
    }

    /// The collector's name, for messages.
    pub(super) fn place(&self) -> String {
        self.target.to_string()
    }

    pub(super) const fn is_up(&self) -> bool {
        !matches!(self.socket, Socket::Away)
    }

    pub(super) const fn is_stream(&self) -> bool {
        matches!(self.target.carrier, Carrier::Tcp | Carrier::Tls)
    }

    /// Starts a connection attempt, which resolves the name again.
    pub(super) fn dial(&mut self) -> io::Result<()> {
        let (target, resolve) = (self.target.clone(), self.resolve);
        let (tls, clock) = (self.tls.clone(), self.clock);
        let dial = move || Stream::dial(&addresses(&target, resolve)?, tls.as_ref(), &clock);
        self.dialling = Some(Pending::start(dial)?);
        Ok(())
    }

    /// The outcome of the attempt; `None` if it is still in progress after `timeout`.
    pub(super) fn dialled(&mut self, timeout: Duration) -> Option<io::Result<()>> {
        let outcome = self.dialling.as_ref()?.outcome(timeout)?;
        self.dialling = None;
        Some(outcome.map(|stream| self.socket = Socket::Stream(stream)))
    }

    pub(super) fn disconnect(&mut self) {
        self.socket = Socket::Away;
        self.dialling = None;
    }

    /// Starts a new lookup of the name (UDP only; each connection attempt does a lookup of its
    /// own).
    pub(super) fn look_up(&mut self) {
        let is_name = self.target.host.parse::<IpAddr>().is_err();
        if !self.is_stream() && is_name && self.lookup.is_none() {
            let (target, resolve) = (self.target.clone(), self.resolve);
            // If no thread can be started now, the next lookup tries again.
            self.lookup = Pending::start(move || addresses(&target, resolve)).ok();
        }
    }

    /// Switches to a new address when the lookup has found one. Returns whether the address
    /// changed.
    pub(super) fn follow_name(&mut self) -> bool {
        let found = self.lookup.as_ref();
        let Some(found) = found.and_then(|lookup| lookup.outcome(Duration::ZERO)) else {
            return false;
        };
        self.lookup = None;
        // A failed lookup keeps the address, because the name server may only be away for a while.
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

    /// Checks whether the collector has closed the connection.
    pub(super) fn listen(&mut self) -> io::Result<()> {
        match &mut self.socket {
            Socket::Stream(stream) => stream.listen(),
            _ => Ok(()),
        }
    }

    /// Sends the rest of a message.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<Progress> {
        match &mut self.socket {
            Socket::Udp { socket, .. } => socket.send(bytes).map(|_| Progress::Whole),
            Socket::Stream(stream) => stream.send(bytes),
            Socket::Away => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// The pending error of the socket, which an earlier datagram caused.
    pub(super) fn take_error(&self) -> Option<io::Error> {
        match &self.socket {
            Socket::Udp { socket, .. } => socket.take_error().ok().flatten(),
            _ => None,
        }
    }

    /// The connection, if there is one.
    pub(super) const fn stream(&mut self) -> Option<&mut Stream> {
        match &mut self.socket {
            Socket::Stream(stream) => Some(stream),
            _ => None,
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
