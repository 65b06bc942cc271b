// SPDX-License-Identifier: Apache-2.0
//! How messages are sent: options, clocks, and the events of a connection.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use crate::Tls;

/// The clocks, which are passed in because this crate reads no clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Milliseconds since 1970, for export times.
    pub wall_ms: fn() -> u64,
    /// Monotonic time since an arbitrary start, for timeouts.
    pub monotonic: fn() -> Duration,
}

/// Resolves a host name, with a port, to addresses. It may block.
pub type Resolve = fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

/// A change of a connection's state.
#[derive(Debug)]
pub enum SendEvent<'a> {
    /// The connection could not be made or broke, or a datagram was refused, for the given reason.
    /// Sending is retried.
    Lost(&'a io::Error),
    /// The collector accepts records again.
    Back,
}

/// Called with the collector's name on every [`SendEvent`], on the sending thread.
pub type ObserveSending = fn(&str, &SendEvent<'_>);

/// How messages are sent.
#[derive(Clone, Debug)]
pub struct SendOptions {
    /// Maximum flow records per second. `None`: no limit.
    pub rate: Option<u64>,
    /// Interval at which templates (UDP) and statistics are repeated.
    pub template_interval: Duration,
    /// How long a writer waits while the queue is full and the sender makes no progress, before it
    /// drops records. Zero for live capture, where waiting would lose packets.
    pub patience: Duration,
    /// How long shutdown waits for a collector that accepts nothing.
    pub linger: Duration,
    /// Upper bound on the duration of the shutdown, even if the collector still accepts records,
    /// slowly or at the rate limit. `None`: no bound.
    pub deadline: Option<Duration>,
    /// Maximum size of the queue in octets.
    pub queue_bytes: usize,
    /// The clocks.
    pub clock: Clock,
    /// Resolves host names. Default: the system's resolver.
    pub resolve: Resolve,
    /// TLS trust roots and client identity. `None`: system roots, no client certificate.
    pub tls: Option<Tls>,
    /// Called once when a connection is lost, and once when it is back.
    pub observe: ObserveSending,
}

impl SendOptions {
    /// No pacing, templates every 30 s, 5 s of patience and of linger, a queue of 8 MiB.
    #[must_use]
    pub const fn new(clock: Clock) -> Self {
        Self {
            rate: None,
            template_interval: Duration::from_secs(30),
            patience: Duration::from_secs(5),
            linger: Duration::from_secs(5),
            deadline: None,
            queue_bytes: 8 << 20,
            clock,
            resolve: |host, port| Ok((host, port).to_socket_addrs()?.collect()),
            tls: None,
            observe: |_, _| {},
        }
    }
}
