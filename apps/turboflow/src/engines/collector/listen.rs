// SPDX-License-Identifier: Apache-2.0
//! The sockets that receive from exporters. No call blocks, and the resources that one exporter can
//! occupy are bounded.

mod complaints;
mod connection;
mod place;

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::time::SystemTime;

use anyhow::bail;
use turboflow_engine::OwnCount;
use turboflow_engine_collector::{
    MAX_MESSAGE_BYTES, Message, MessageSource, Polled, Sender, StreamError, TakeMessage,
};
use turboflow_transport::{Carrier, Target};

use super::tls::Identity;
use crate::log::say;
use complaints::Complaints;
use connection::{Connection, Octets, Over};
use place::Place;

/// Maximum datagrams of a socket, or reads of a connection, before it is the turn of the others.
const MOST_AT_ONCE: usize = 64;
/// Octets to request for the kernel's receive buffer of each UDP socket, because exporters send in
/// bursts.
const SOCKET_BYTES: usize = 16 << 20;
/// Maximum open connections. Each has a buffer of 256 KiB.
const MOST_CONNECTIONS: usize = 256;
/// Maximum connections from one address, so that no exporter can keep all others out.
const MOST_OF_ADDRESS: usize = 64;
/// Maximum connections in a TLS handshake. Beyond it the oldest has to go: a genuine handshake
/// takes only a few round trips.
const MOST_HANDSHAKES: usize = 64;
/// Maximum connections of one address in a TLS handshake.
const MOST_HANDSHAKES_OF_ADDRESS: usize = 16;
/// Maximum connections accepted from a listener before the sockets are read again, because each may
/// cost a handshake.
const ACCEPTED_AT_ONCE: usize = 4;

/// A listening socket.
struct Listener {
    socket: TcpListener,
    is_tls: bool,
}

/// All sockets of a run.
pub(super) struct Listeners {
    name: String,
    datagrams: Vec<UdpSocket>,
    listeners: Vec<Listener>,
    connections: Vec<Connection>,
    /// The certificate for connections over TLS.
    identity: Identity,
    /// Number of connections so far, which numbers their sessions.
    sessions: u64,
    /// Since when it listens, in nanoseconds since 1970.
    since_ns: u64,
    buffer: Box<[u8]>,
    complaints: Complaints,
}

impl Listeners {
    /// Checks addresses without opening a socket. Returns whether any of them is for TLS.
    pub(super) fn check(texts: &[String]) -> anyhow::Result<bool> {
        let mut has_tls = false;
        for (index, text) in texts.iter().enumerate() {
            if texts[..index].contains(text) {
                bail!("{text} is named twice: leave one out");
            }
            has_tls |= Place::parse(text)?.carrier == Carrier::Tls;
        }
        Ok(has_tls)
    }

    /// Refuses outputs that come back to these addresses.
    pub(super) fn check_outputs<'a>(
        texts: &[String],
        outputs: impl Iterator<Item = &'a Path>,
    ) -> anyhow::Result<()> {
        for output in outputs {
            // Wrong addresses are reported with the other errors of outputs.
            let Some(Ok(target)) = output.to_str().map(str::parse::<Target>) else {
                continue;
            };
            for text in texts {
                if Place::parse(text)?.receives(&target) {
                    bail!(
                        "{target} is where this run itself listens ({text}): it would receive its \
                         own records; send to another address or port"
                    );
                }
            }
        }
        Ok(())
    }

    /// Opens all sockets, or none. Logs the addresses to which exporters can send.
    pub(super) fn open(
        texts: &[String],
        identity: Identity,
        is_quiet: bool,
    ) -> anyhow::Result<Self> {
        let mut listeners = Self {
            name: texts.join(","),
            datagrams: Vec::new(),
            listeners: Vec::new(),
            connections: Vec::new(),
            identity,
            sessions: 0,
            since_ns: now_ns(),
            buffer: vec![0; MAX_MESSAGE_BYTES].into(),
            complaints: Complaints::default(),
        };
        for text in texts {
            let place = Place::parse(text)?;
            let port = place.address.port();
            let bound = listeners.add(place);
            let bound = bound.map_err(|error| {
                let advice = advice(&error, port);
                anyhow::Error::new(error).context(format!("cannot listen at {text}{advice}"))
            })?;
            if !is_quiet {
                say!(Info Serving, address = bound.to_string(); "exporters can send to {bound} ({text})");
            }
        }
        Ok(listeners)
    }

    fn add(&mut self, place: Place) -> io::Result<SocketAddr> {
        if place.carrier == Carrier::Udp {
            let socket = bind_or_v4(place.address, UdpSocket::bind)?;
            socket.set_nonblocking(true)?;
            widen(&socket);
            let bound = socket.local_addr()?;
            self.datagrams.push(socket);
            return Ok(bound);
        }
        let socket = bind_or_v4(place.address, TcpListener::bind)?;
        socket.set_nonblocking(true)?;
        let bound = socket.local_addr()?;
        let is_tls = place.carrier == Carrier::Tls;
        self.listeners.push(Listener { socket, is_tls });
        Ok(bound)
    }

    /// Accepts waiting connections, a few at a time and within the limits. Returns whether there
    /// may be more.
    fn accept(&mut self, now_ns: u64, ended: &mut Vec<Sender>) -> bool {
        let mut has_more = false;
        for place in 0..self.listeners.len() {
            for at in 1..=ACCEPTED_AT_ONCE {
                let (stream, address) = match self.listeners[place].socket.accept() {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        self.count_refusal(now_ns, &error);
                        break;
                    }
                };
                self.admit(stream, address, self.listeners[place].is_tls, now_ns, ended);
                has_more |= at == ACCEPTED_AT_ONCE;
            }
        }
        has_more
    }

    /// Counts a connection that could not be accepted because of a system error.
    fn count_refusal(&mut self, now_ns: u64, error: &io::Error) {
        use ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, WouldBlock};
        // No failure of this socket: nothing is waiting, or the exporter has already gone.
        let is_none = [WouldBlock, Interrupted, ConnectionAborted, ConnectionReset];
        if !is_none.contains(&error.kind()) {
            self.complaints.accepts_failed += 1;
            let what = format!("could not be accepted: {error}");
            self.complaints.say(now_ns, None, what);
        }
    }

    fn admit(
        &mut self,
        stream: TcpStream,
        address: SocketAddr,
        is_tls: bool,
        now_ns: u64,
        ended: &mut Vec<Sender>,
    ) {
        let host = host_of(address);
        if is_tls {
            self.make_room(host, now_ns, ended);
        }
        let of_host = self.connections.iter().filter(|its| its.is_of(host));
        let of_host = of_host.count();
        if of_host >= MOST_OF_ADDRESS || self.connections.len() >= MOST_CONNECTIONS {
            self.complaints.connections_refused += 1;
            let what = match of_host {
                MOST_OF_ADDRESS.. => format!("was refused: {of_host} of its connections are open"),
                _ => format!("was refused: {MOST_CONNECTIONS} exporters are connected"),
            };
            self.complaints.say(now_ns, Some(address), what);
            return;
        }
        let octets = stream.set_nonblocking(true).and_then(|()| match is_tls {
            true => Ok(Octets::Tls(Box::new(self.identity.accept(stream)?))),
            false => Ok(Octets::Tcp(stream)),
        });
        let octets = match octets {
            Ok(octets) => octets,
            Err(error) => {
                self.complaints.handshakes_failed += 1;
                let what =
                    format!("was disconnected, because its connection cannot be used: {error}");
                self.complaints.say(now_ns, Some(address), what);
                return;
            }
        };
        self.sessions += 1;
        let sender = Sender {
            address: Some(address),
            session: self.sessions,
        };
        self.connections.push(Connection::new(sender, octets));
    }

    /// Drops the oldest TLS handshake: of this host if it has too many, or of all hosts if there
    /// are too many.
    fn make_room(&mut self, host: IpAddr, now_ns: u64, ended: &mut Vec<Sender>) {
        let half_open = || self.connections.iter().filter(|its| its.is_half_open());
        let of_host = half_open().filter(|its| its.is_of(host)).count();
        let is_host_full = of_host >= MOST_HANDSHAKES_OF_ADDRESS;
        if !is_host_full && half_open().count() < MOST_HANDSHAKES {
            return;
        }
        // Connections are in order of arrival.
        let goes = |its: &Connection| its.is_half_open() && (!is_host_full || its.is_of(host));
        if let Some(oldest) = self.connections.iter().position(goes) {
            let sender = self.connections.remove(oldest).sender;
            self.complaints.handshakes_failed += 1;
            let what = "was disconnected in its TLS handshake: too many handshakes are in progress";
            self.complaints.say(now_ns, sender.address, what);
            ended.push(sender);
        }
    }

    /// Reads the waiting datagrams. Returns whether there were any.
    fn read_datagrams(&mut self, now_ns: u64, take: &mut TakeMessage<'_>) -> bool {
        let mut had_any = false;
        for socket in &self.datagrams {
            for _ in 0..MOST_AT_ONCE {
                // Other errors than "would block" concern earlier datagrams.
                let Ok((length, address)) = socket.recv_from(&mut self.buffer) else {
                    break;
                };
                had_any = true;
                let taken = take(&Message {
                    from: Sender {
                        address: Some(address),
                        session: 0,
                    },
                    is_datagram: true,
                    received_ns: Some(now_ns),
                    bytes: &self.buffer[..length],
                });
                if let Err(refused) = taken {
                    let what = format!("sent a message that was refused: {refused}");
                    self.complaints.say_of_datagram(now_ns, address, what);
                }
            }
        }
        had_any
    }

    /// Logs why a connection is over, unless it ended properly.
    fn complain(complaints: &mut Complaints, now_ns: u64, sender: Sender, over: Over) {
        let what = match over {
            Over::Ended => return,
            Over::Cut => {
                complaints.messages_cut += 1;
                "ended its connection in the middle of a message: its records are lost".to_owned()
            }
            Over::NoHandshake(why) => {
                complaints.handshakes_failed += 1;
                format!("was disconnected in its TLS handshake: {why}")
            }
            Over::Refused(why) => format!("was disconnected: {why}"),
        };
        complaints.say(now_ns, sender.address, what);
    }
}

/// The address to which limits per host apply. An IPv6 host may use any address of its /64 network.
fn host_of(address: SocketAddr) -> IpAddr {
    match address.ip().to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
        ip @ IpAddr::V4(_) => ip,
    }
}

/// How to mend an address that cannot be bound.
fn advice(error: &io::Error, port: u16) -> &'static str {
    match error.kind() {
        ErrorKind::AddrInUse => " (a program uses this port: stop it, or choose another)",
        ErrorKind::AddrNotAvailable => " (no interface has this address: `ip address` lists them)",
        ErrorKind::PermissionDenied if port < 1024 => " (ports below 1024 need root)",
        _ => "",
    }
}

/// Enlarges the kernel's receive buffer of a socket as far as permitted: with CAP_NET_ADMIN beyond
/// `net.core.rmem_max`. A smaller buffer is not an error.
fn widen(socket: &UdpSocket) {
    #[cfg(target_os = "linux")]
    if rustix::net::sockopt::set_socket_recv_buffer_size_force(socket, SOCKET_BYTES).is_ok() {
        return;
    }
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size(socket, SOCKET_BYTES);
}

/// Binds an address. On a machine without IPv6, the unspecified address becomes that of IPv4.
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

    fn since_ns(&self) -> Option<u64> {
        Some(self.since_ns)
    }

    fn poll(
        &mut self,
        take: &mut TakeMessage<'_>,
        ended: &mut Vec<Sender>,
    ) -> Result<Polled, StreamError> {
        let now_ns = now_ns();
        let mut had_any = self.accept(now_ns, ended);
        had_any |= self.read_datagrams(now_ns, take);
        let complaints = &mut self.complaints;
        complaints.pass(now_ns);
        self.connections.retain_mut(|connection| {
            let Some(over) = connection.read(now_ns, &mut had_any, take) else {
                return true;
            };
            ended.push(connection.sender);
            Self::complain(complaints, now_ns, connection.sender, over);
            false
        });
        Ok(Polled {
            had_any,
            is_over: false,
            now_ns: Some(now_ns),
        })
    }

    fn own_counts(&self) -> Vec<OwnCount> {
        let count = |name, about, is_gauge, count| OwnCount {
            name,
            about,
            is_gauge,
            count,
        };
        let connections = self.connections.len() as u64;
        vec![
            count(
                "engine_collector_connections",
                "connections of exporters",
                true,
                connections,
            ),
            count(
                "engine_collector_connections_refused",
                "connections beyond the limits, which were refused",
                false,
                self.complaints.connections_refused,
            ),
            count(
                "engine_collector_handshakes_failed",
                "TLS handshakes that failed: bad certificate, no TLS, or too slow",
                false,
                self.complaints.handshakes_failed,
            ),
            count(
                "engine_collector_accepts_failed",
                "connections that the system could not accept",
                false,
                self.complaints.accepts_failed,
            ),
            count(
                "engine_collector_messages_cut",
                "connections that ended in the middle of a message",
                false,
                self.complaints.messages_cut,
            ),
        ]
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

#[cfg(test)]
mod tests;
