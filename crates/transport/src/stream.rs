// SPDX-License-Identifier: Apache-2.0
//! A connection to a collector, over plain TCP or TLS.
//!
//! Positions on a connection count the octets that its socket has accepted.

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
    /// This many octets; the socket accepts no more at present.
    Partial(usize),
}

/// A connection.
pub(super) enum Stream {
    Tcp(Counted),
    Tls(Box<TlsStream>),
}

/// A socket that counts the octets that it accepts.
pub(super) struct Counted {
    pub(super) tcp: TcpStream,
    accepted: u64,
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
                Ok(Self::Tcp(Counted::new(stream)))
            }
            Some(peer) => Ok(Self::Tls(Box::new(TlsStream::begin(stream, peer, clock)?))),
        }
    }

    /// Checks whether the collector has closed the connection. Collectors send nothing, and without
    /// this check the first message after the close would be lost unnoticed.
    pub(super) fn listen(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => match hear(&mut stream.tcp)? {
                Heard::End => Err(closed()),
                Heard::Octets | Heard::Nothing => Ok(()),
            },
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

    /// Ends this side of the connection unless `is_ended`, and returns whether the collector has
    /// closed its side.
    pub(super) fn end_once(&mut self, is_ended: &mut bool) -> io::Result<bool> {
        if !*is_ended {
            *is_ended = self.end()?;
        }
        Ok(*is_ended && self.has_ended()?)
    }

    /// Ends this side of the connection. Returns false if the socket accepts no more at present.
    fn end(&mut self) -> io::Result<bool> {
        match self {
            Self::Tcp(stream) => stream.end().map(|()| true),
            Self::Tls(stream) => stream.end(),
        }
    }

    /// Whether the collector has closed its side, after [`Stream::end`]. Until then, reads whatever
    /// it sends: closing a socket with unread octets makes the system reset the connection, and the
    /// collector may then lose what it has not read.
    fn has_ended(&mut self) -> io::Result<bool> {
        let tcp = &mut self.socket_mut().tcp;
        if let Some(error) = tcp.take_error()? {
            return Err(error);
        }
        loop {
            match hear(tcp)? {
                Heard::End => return Ok(true),
                Heard::Nothing => return Ok(false),
                Heard::Octets => {}
            }
        }
    }

    /// The position after everything the socket has accepted.
    pub(super) fn position(&self) -> u64 {
        self.socket().accepted
    }

    /// The position up to which the other system has acknowledged everything.
    pub(super) fn acknowledged(&self) -> u64 {
        let Counted { tcp, accepted } = self.socket();
        accepted.saturating_sub(unacknowledged(tcp))
    }

    /// Upper bound on the acknowledged octets that the collector has not read yet.
    pub(super) fn unread_octets(&self) -> u64 {
        buffer_octets(&self.socket().tcp)
    }

    fn socket(&self) -> &Counted {
        match self {
            Self::Tcp(stream) => stream,
            Self::Tls(stream) => stream.socket(),
        }
    }

    fn socket_mut(&mut self) -> &mut Counted {
        match self {
            Self::Tcp(stream) => stream,
            Self::Tls(stream) => stream.socket_mut(),
        }
    }
}

impl Counted {
    pub(super) const fn new(tcp: TcpStream) -> Self {
        Self { tcp, accepted: 0 }
    }

    pub(super) fn end(&mut self) -> io::Result<()> {
        self.tcp.shutdown(Shutdown::Write)?;
        // The end of the stream has a sequence number of its own, which is acknowledged like an
        // octet.
        self.accepted += 1;
        Ok(())
    }
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.tcp.write(bytes)?;
        self.accepted += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tcp.flush()
    }
}

/// Octets that the socket has accepted but that the other system has not acknowledged, including
/// those that have not been sent yet.
#[cfg(target_os = "linux")]
fn unacknowledged(tcp: &TcpStream) -> u64 {
    use std::os::fd::AsRawFd;

    let mut octets: libc::c_int = 0;
    // SAFETY: SIOCOUTQ, which has the number of TIOCOUTQ, writes one int (`man 7 tcp`), and the
    // descriptor is open as long as `tcp` is borrowed.
    let code = unsafe { libc::ioctl(tcp.as_raw_fd(), libc::TIOCOUTQ, &raw mut octets) };
    match code {
        0 => u64::try_from(octets).unwrap_or(0),
        // If nothing is known, nothing counts as acknowledged.
        _ => u64::MAX,
    }
}

/// Here nothing is known, so nothing counts as acknowledged.
#[cfg(not(target_os = "linux"))]
const fn unacknowledged(_tcp: &TcpStream) -> u64 {
    u64::MAX
}

/// Size of the receive buffer that any Linux may have without a raised limit (`net.ipv4.tcp_rmem`:
/// 6 MiB until Linux 6.14; 8 MiB is the next power of two). A collector's system may have a smaller
/// buffer, but does not report that.
const LEAST_BUFFER_BYTES: u64 = 8 << 20;

/// Upper bound on the size of the other system's receive buffer, in octets.
///
/// It is derived from the window scale: a system chooses the scale when the connection begins, so
/// that a window of 16 bits can describe the largest buffer that it will ever use
/// (`tcp_select_initial_window` of Linux).
#[cfg(target_os = "linux")]
fn buffer_octets(tcp: &TcpStream) -> u64 {
    use std::os::fd::AsRawFd;

    // The seventh octet of `struct tcp_info` (`linux/tcp.h`) has two fields of four bits: the scale
    // of the windows that the other system sends, and that of ours.
    const SCALES: usize = 6;
    const SHIFT: u32 = if cfg!(target_endian = "big") { 4 } else { 0 };
    let mut info = [0_u8; SCALES + 2];
    let mut length = info.len() as libc::socklen_t;
    // SAFETY: the system writes at most `length` octets into `info`, and the new length, and the
    // descriptor is open as long as `tcp` is borrowed.
    let code = unsafe {
        libc::getsockopt(
            tcp.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    match code {
        0 if length as usize > SCALES => most_octets(info[SCALES] >> SHIFT & 0xf),
        // If nothing is known, nothing counts as read.
        _ => u64::MAX,
    }
}

/// Here nothing is known, so nothing counts as read.
#[cfg(not(target_os = "linux"))]
const fn buffer_octets(_tcp: &TcpStream) -> u64 {
    u64::MAX
}

/// The size in octets of the largest buffer that a system with this window scale can have.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "Linux tells it"))]
fn most_octets(window_scale: u8) -> u64 {
    (0x1_0000 << window_scale).max(LEAST_BUFFER_BYTES)
}

/// What was received from a collector.
enum Heard {
    /// The collector has closed its side.
    End,
    /// Octets, which are ignored because collectors have nothing to say.
    Octets,
    Nothing,
}

fn hear(tcp: &mut TcpStream) -> io::Result<Heard> {
    match tcp.read(&mut [0; 256]) {
        Ok(0) => Ok(Heard::End),
        Ok(_) => Ok(Heard::Octets),
        Err(error) if is_not_yet(&error) => Ok(Heard::Nothing),
        Err(error) => Err(error),
    }
}

fn send(stream: &mut Counted, bytes: &[u8]) -> io::Result<Progress> {
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

/// The error that says that the collector has closed its side in good order.
pub(super) fn closed() -> io::Error {
    let words = "the collector closed the connection";
    io::Error::new(io::ErrorKind::UnexpectedEof, words)
}

/// Whether an error is [`closed`].
pub(super) fn is_closed(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::UnexpectedEof
}

pub(super) fn is_not_yet(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn the_window_scale_bounds_the_buffer_of_the_other_system() {
        // The scales that Linux uses for limits of 6 MiB, 32 MiB and 64 MiB.
        assert_eq!(most_octets(7), 8 << 20);
        assert_eq!(most_octets(10), 64 << 20);
        assert_eq!(most_octets(11), 128 << 20);
        assert_eq!(most_octets(0), LEAST_BUFFER_BYTES, "it has no scale");

        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let tcp = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let limits = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem").unwrap();
        let limit: u64 = limits.split_whitespace().last().unwrap().parse().unwrap();
        let bound = buffer_octets(&tcp);
        assert!(bound >= limit && bound <= 1 << 30, "{bound}, {limit}");
    }
}
