// SPDX-License-Identifier: Apache-2.0
//! Sends alerts to receivers.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::Value;
use turboflow_alert::{Alert, alertmanager, json, syslog};

/// Time limit of a POST, from connecting to the answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where alerts go.
pub(super) enum Receiver {
    Webhook { host: String, path: String },
    Alertmanager { host: String },
    Syslog { host: String },
}

impl Receiver {
    /// Parses `--to`.
    pub(super) fn parse(url: &str) -> anyhow::Result<Self> {
        let forms = "write http://HOST:PORT/PATH, alertmanager+http://HOST:PORT or \
                     syslog+udp://HOST:PORT";
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let has_port = host
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        if host.contains('@') || (!has_port && url.contains('@')) {
            // The URL is not shown: it may hold a password.
            bail!("a URL of --to has a user or a password before @, which cannot be sent: {forms}");
        }
        let is_plain = !url.contains(|c: char| c.is_whitespace() || c.is_control());
        if !has_port || !is_plain {
            bail!("{url:?}: {forms}");
        }
        let host = host.to_owned();
        match scheme {
            "http" => Ok(Self::Webhook {
                host,
                path: format!("/{path}"),
            }),
            "alertmanager+http" if path.is_empty() => Ok(Self::Alertmanager { host }),
            "syslog+udp" if path.is_empty() => Ok(Self::Syslog { host }),
            _ => bail!("{url:?}: {forms}"),
        }
    }

    pub(super) fn host(&self) -> &str {
        match self {
            Self::Webhook { host, .. } | Self::Alertmanager { host } | Self::Syslog { host } => {
                host
            }
        }
    }

    pub(super) fn send(&self, alerts: &[Alert]) -> anyhow::Result<()> {
        let to: Vec<SocketAddr> = self.host().to_socket_addrs()?.collect();
        let (path, body) = match self {
            Self::Webhook { path, .. } => {
                let all: Value = alerts.iter().map(json).collect();
                (&**path, all)
            }
            Self::Alertmanager { .. } => ("/api/v2/alerts", alertmanager(alerts)),
            Self::Syslog { .. } => {
                let messages: Vec<String> = alerts.iter().map(syslog).collect();
                return Ok(send_datagrams(&to, &messages)?);
            }
        };
        let host = self.host();
        let line = post(&to, host, path, &body.to_string(), Deadline::in_(PATIENCE))?;
        let status = line.split(' ').nth(1).unwrap_or_default();
        match status.len() == 3 && status.starts_with('2') {
            true => Ok(()),
            false => bail!("the answer was {line:?}"),
        }
    }
}

/// The time by which a receiver must have finished.
#[derive(Clone, Copy)]
struct Deadline(Instant);

#[allow(clippy::disallowed_methods, reason = "a receiver has a limited time")]
impl Deadline {
    fn in_(time: Duration) -> Self {
        Self(Instant::now() + time)
    }

    /// The remaining time, never 0.
    fn left(self) -> io::Result<Duration> {
        let left = self.0.saturating_duration_since(Instant::now());
        match left.is_zero() {
            true => Err(too_late()),
            false => Ok(left),
        }
    }
}

fn too_late() -> io::Error {
    let words = format!("it took longer than {} s", PATIENCE.as_secs());
    io::Error::new(ErrorKind::TimedOut, words)
}

/// A connection whose reads and writes share one deadline.
struct Timed {
    stream: TcpStream,
    deadline: Deadline,
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.deadline.left()?;
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(buffer).map_err(in_time)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.deadline.left()?;
        self.stream.set_write_timeout(Some(left))?;
        self.stream.write(bytes).map_err(in_time)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Normalises timeouts: the system reports an expired socket timeout as `EAGAIN`.
fn in_time(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => too_late(),
        _ => error,
    }
}

fn no_such_host() -> io::Error {
    io::Error::new(ErrorKind::NotFound, "there is no such host")
}

/// Connects to the first address that accepts. The remaining time is divided evenly among the
/// addresses not yet tried.
fn connect(to: &[SocketAddr], deadline: Deadline) -> io::Result<TcpStream> {
    let mut refused = no_such_host();
    for (index, address) in to.iter().enumerate() {
        let waiting = u32::try_from(to.len() - index).unwrap_or(u32::MAX);
        let part = (deadline.left()? / waiting).max(Duration::from_millis(1));
        match TcpStream::connect_timeout(address, part) {
            Ok(stream) => return Ok(stream),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// Posts JSON (RFC 9112). Returns the status line of the answer: "HTTP/1.1 200 OK".
fn post(
    to: &[SocketAddr],
    host: &str,
    path: &str,
    body: &str,
    deadline: Deadline,
) -> anyhow::Result<String> {
    let stream = connect(to, deadline)?;
    let mut stream = Timed { stream, deadline };
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    let mut line = Vec::new();
    BufReader::new(stream.take(4096))
        .read_until(b'\n', &mut line)
        .context("no answer")?;
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}

/// Sends each message as a datagram, to the first address that does not visibly refuse them.
fn send_datagrams(to: &[SocketAddr], messages: &[String]) -> io::Result<()> {
    let mut refused = no_such_host();
    for address in to {
        match send_datagrams_to(*address, messages) {
            Ok(()) => return Ok(()),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// Connects the socket, so that the kernel reports an ICMP refusal at the next call.
fn send_datagrams_to(to: SocketAddr, messages: &[String]) -> io::Result<()> {
    let any: SocketAddr = match to {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(to)?;
    for message in messages {
        socket.send(message.as_bytes())?;
    }
    // A refusal of the last message may have arrived already.
    socket.take_error()?.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    /// An address with no listener.
    fn deserted() -> SocketAddr {
        listener().1
    }

    #[test]
    fn all_addresses_of_a_host_are_tried() {
        let (_listener, address) = listener();
        assert!(connect(&[deserted()], Deadline::in_(LONG)).is_err());
        let stream = connect(&[deserted(), address], Deadline::in_(LONG)).unwrap();
        assert_eq!(stream.peer_addr().unwrap(), address);
        let none = connect(&[], Deadline::in_(LONG)).unwrap_err();
        assert_eq!(none.to_string(), "there is no such host");
    }

    #[test]
    fn a_receiver_does_not_gain_time_by_taking_and_answering_a_little() {
        let (listener, address) = listener();
        let answer = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\n").unwrap();
            stream
        });
        let stream = TcpStream::connect(address).unwrap();
        // The answer has arrived, but the deadline has passed.
        let _open = answer.join().unwrap();
        stream.peek(&mut [0]).unwrap();
        let deadline = Deadline::in_(Duration::ZERO);
        let mut late = Timed { stream, deadline };
        for error in [late.read(&mut [0; 8]), late.write(b"more")] {
            let error = error.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut);
            assert_eq!(error.to_string(), "it took longer than 5 s");
        }
        let mut timely = Timed {
            deadline: Deadline::in_(LONG),
            ..late
        };
        assert_eq!(timely.read(&mut [0; 8]).unwrap(), 8);
    }

    #[test]
    fn datagrams_go_where_they_are_not_refused() {
        let messages = vec!["alert".to_owned(); 100];
        let closed = UdpSocket::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let refused = send_datagrams(&[closed], &messages).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        let open = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = open.local_addr().unwrap();
        send_datagrams(&[closed, address], &messages).unwrap();
        let mut message = [0; 16];
        assert_eq!(open.recv(&mut message).unwrap(), 5);
        assert_eq!(&message[..5], b"alert");
    }

    #[test]
    fn a_password_is_refused_and_not_shown() {
        for url in [
            "http://user:secret@host:80/",
            "http://user:secret@host/",
            "syslog+udp://secret@host:514",
            "user:secret@host:80",
            "http://user:sec/secret@host:80/",
        ] {
            let error = Receiver::parse(url).err().unwrap().to_string();
            assert!(error.contains("before @"), "{error}");
            assert!(!error.contains("sec"), "{error}");
        }
        assert!(Receiver::parse("http://host:80/a@b").is_ok());
    }
}
