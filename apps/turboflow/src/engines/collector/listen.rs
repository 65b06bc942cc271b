// SPDX-License-Identifier: Apache-2.0
//! Sockets that exporters send to. Nothing here blocks, and what one exporter can hold is bounded.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::SystemTime;

use anyhow::{Context, bail};
use turboflow_engine_collector::{
    MAX_MESSAGE_BYTES, Message, MessageSource, MessageStream, NextMessage, Polled, Sender,
    StreamError,
};

use crate::log::say;

/// Datagrams of a socket, or reads of a connection, before the others have their turn.
const MOST_AT_ONCE: usize = 64;
/// Octets that the kernel may hold of each UDP socket: exporters send in bursts.
const SOCKET_BYTES: usize = 16 << 20;
/// Connections at a time. Each has a buffer of 256 KiB.
const MOST_CONNECTIONS: usize = 256;

/// A protocol and an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Udp(SocketAddr),
    Tcp(SocketAddr),
}

/// All sockets of a run.
pub(super) struct Listeners {
    name: String,
    datagrams: Vec<UdpSocket>,
    listeners: Vec<TcpListener>,
    connections: Vec<Connection>,
    /// Connections so far, which numbers them.
    sessions: u64,
    buffer: Box<[u8]>,
}

struct Connection {
    sender: Sender,
    stream: TcpStream,
    messages: MessageStream,
}

impl Place {
    fn parse(text: &str) -> anyhow::Result<Self> {
        let (scheme, address) = text.split_once("://").unwrap_or(("", text));
        let is_udp = match scheme {
            "udp" => true,
            "tcp" => false,
            _ => bail!("{text}: exporters send to udp://[HOST]:PORT or tcp://[HOST]:PORT"),
        };
        // Dual-stack sockets take IPv4, too.
        let address = match address.strip_prefix(':') {
            Some(port) => format!("[::]:{port}"),
            None => address.to_owned(),
        };
        let found = address.to_socket_addrs();
        let mut found = found.with_context(|| format!("{text}: there is no such address"))?;
        let Some(address) = found.next() else {
            bail!("{text}: there is no such address");
        };
        Ok(match is_udp {
            true => Self::Udp(address),
            false => Self::Tcp(address),
        })
    }
}

impl Listeners {
    /// Checks addresses without opening a socket.
    pub(super) fn check(texts: &[String]) -> anyhow::Result<()> {
        texts
            .iter()
            .try_for_each(|text| Place::parse(text).map(drop))
    }

    /// Opens all sockets, or none, and says where exporters can send to.
    pub(super) fn open(texts: &[String], is_quiet: bool) -> anyhow::Result<Self> {
        let mut listeners = Self {
            name: texts.join(","),
            datagrams: Vec::new(),
            listeners: Vec::new(),
            connections: Vec::new(),
            sessions: 0,
            buffer: vec![0; MAX_MESSAGE_BYTES].into(),
        };
        for text in texts {
            let bound = listeners.add(Place::parse(text)?);
            let bound = bound.with_context(|| {
                format!(
                    "cannot listen at {text}: is another collector running, or the port below \
                         1024?"
                )
            })?;
            if !is_quiet {
                say!(Info Serving, address = bound.to_string(); "exporters can send to {bound} ({text})");
            }
        }
        Ok(listeners)
    }

    fn add(&mut self, place: Place) -> io::Result<SocketAddr> {
        match place {
            Place::Udp(address) => {
                let socket = bind_or_v4(address, UdpSocket::bind)?;
                socket.set_nonblocking(true)?;
                widen(&socket);
                let bound = socket.local_addr()?;
                self.datagrams.push(socket);
                Ok(bound)
            }
            Place::Tcp(address) => {
                let listener = bind_or_v4(address, TcpListener::bind)?;
                listener.set_nonblocking(true)?;
                let bound = listener.local_addr()?;
                self.listeners.push(listener);
                Ok(bound)
            }
        }
    }

    /// Accepts exporters that connect, as many as have room.
    fn accept(&mut self) {
        for listener in &self.listeners {
            // An exporter that has gone already is no error of this socket.
            while let Ok((stream, address)) = listener.accept() {
                if self.connections.len() >= MOST_CONNECTIONS {
                    say!(Warning EngineShort; "{address} was refused: {MOST_CONNECTIONS} exporters \
                         are connected");
                    continue;
                }
                if stream.set_nonblocking(true).is_err() {
                    continue;
                }
                self.sessions += 1;
                let sender = Sender {
                    address: Some(address),
                    session: self.sessions,
                };
                self.connections.push(Connection {
                    sender,
                    stream,
                    messages: MessageStream::default(),
                });
            }
        }
    }
}

/// Makes the kernel's buffer of a socket as large as it may be: root may exceed
/// `net.core.rmem_max`. A smaller one is no error.
fn widen(socket: &UdpSocket) {
    #[cfg(target_os = "linux")]
    if rustix::net::sockopt::set_socket_recv_buffer_size_force(socket, SOCKET_BYTES).is_ok() {
        return;
    }
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size(socket, SOCKET_BYTES);
}

/// Binds an address, or all of IPv4 on a machine without IPv6.
fn bind_or_v4<S>(address: SocketAddr, bind: impl Fn(SocketAddr) -> io::Result<S>) -> io::Result<S> {
    match bind(address) {
        Err(error) if error.kind() == ErrorKind::Unsupported && address.ip().is_unspecified() => {
            bind(SocketAddr::from(([0, 0, 0, 0], address.port())))
        }
        bound => bound,
    }
}

impl MessageSource for Listeners {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn poll(
        &mut self,
        take: &mut dyn FnMut(&Message<'_>),
        ended: &mut Vec<Sender>,
    ) -> Result<Polled, StreamError> {
        self.accept();
        let now_ns = now_ns();
        let mut had_any = false;
        for socket in &self.datagrams {
            for _ in 0..MOST_AT_ONCE {
                // What an earlier answer of ours met is no error of this datagram.
                let Ok((length, address)) = socket.recv_from(&mut self.buffer) else {
                    break;
                };
                had_any = true;
                take(&Message {
                    from: Sender {
                        address: Some(address),
                        session: 0,
                    },
                    is_datagram: true,
                    received_ns: Some(now_ns),
                    bytes: &self.buffer[..length],
                });
            }
        }
        self.connections.retain_mut(|connection| {
            let goes_on = connection.read(now_ns, &mut had_any, take);
            if !goes_on {
                ended.push(connection.sender);
            }
            goes_on
        });
        Ok(Polled {
            had_any,
            is_over: false,
            now_ns: Some(now_ns),
        })
    }
}

impl Connection {
    /// Reads what is there. False if the connection is over.
    fn read(
        &mut self,
        now_ns: u64,
        had_any: &mut bool,
        take: &mut dyn FnMut(&Message<'_>),
    ) -> bool {
        for _ in 0..MOST_AT_ONCE {
            match self.messages.message() {
                NextMessage::Whole(bytes) => {
                    *had_any = true;
                    take(&Message {
                        from: self.sender,
                        is_datagram: false,
                        received_ns: Some(now_ns),
                        bytes,
                    });
                }
                NextMessage::Broken => {
                    let address = self
                        .sender
                        .address
                        .map_or_else(String::new, |it| it.to_string());
                    say!(Warning EngineShort; "{address} was disconnected: what it sends is no IPFIX");
                    return false;
                }
                NextMessage::More => match self.messages.fill(&mut self.stream) {
                    Ok(0) => return false,
                    Ok(_) => {}
                    Err(error) => return error.kind() == ErrorKind::WouldBlock,
                },
            }
        }
        true
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "records are judged by when they come"
)]
fn now_ns() -> u64 {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since_1970.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}
