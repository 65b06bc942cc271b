// SPDX-License-Identifier: Apache-2.0
//! Messages to collectors over UDP, TCP and TLS.
//!
//! A writer encodes on the thread that gives it records and puts [`Unit`]s in a bounded queue; a
//! thread of its own sends them, waits where it must (pacing, a collector that is away or does not
//! read), and counts what could not be sent. Nobody who meters ever waits for a socket.

mod back_off;
mod error;
mod link;
mod pace;
mod pending;
mod queue;
mod sender;
mod stream;
mod target;
mod tls;

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use turboflow_record::{Column, FlowBatch};

use turboflow_formats::wire::{
    Encode, Refresh, STREAM_MESSAGE_BYTES, Session, Unit, WireOptions, encoder,
};
use turboflow_formats::{ExportError, FlowWriter, SendGauge, WriteSummary};

pub use error::TransportError;
use link::Link;
use queue::Queue;
use sender::{Sender, Sent};
pub use target::{Carrier, Target};
pub use tls::{Tls, TlsFiles, TlsPart};

/// What time it is, from outside: this crate reads no clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Milliseconds since 1970: export times.
    pub wall_ms: fn() -> u64,
    /// Time since some start, which never runs backwards: waiting.
    pub monotonic: fn() -> Duration,
}

/// The addresses of a host's name, with a port; it may take its time.
pub type Resolve = fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

/// What happens to a connection.
#[derive(Debug)]
pub enum SendEvent<'a> {
    /// It could not be made, or it broke, or a datagram was refused, for that reason; it is tried
    /// again.
    Lost(&'a io::Error),
    /// It takes records again.
    Back,
}

/// Who is told what happens to the connection to a collector, by its name, on the thread that sends.
pub type ObserveSending = fn(&str, &SendEvent<'_>);

/// How messages are sent.
#[derive(Clone, Debug)]
pub struct SendOptions {
    /// Flow records a second at most. `None`: as fast as they come.
    pub rate: Option<u64>,
    /// How long until templates (UDP) and statistics are sent again.
    pub template_interval: Duration,
    /// How long a writer waits for room in a queue that does not move before records are lost.
    /// Zero for live capture, where waiting would lose packets.
    pub patience: Duration,
    /// How long the end waits for a collector that takes nothing.
    pub linger: Duration,
    /// How long the end may take at most, though the collector takes records, slowly or at the
    /// rate. `None`: as long as it needs.
    pub deadline: Option<Duration>,
    /// Octets that wait in the queue at most.
    pub queue_bytes: usize,
    /// The clock.
    pub clock: Clock,
    /// Where names are looked up. Default: the system.
    pub resolve: Resolve,
    /// Whom to trust over TLS, and who we are. `None`: whom the system trusts, and nobody.
    pub tls: Option<Tls>,
    /// Told of connections that are lost, once each, and of those that are back.
    pub observe: ObserveSending,
}

impl SendOptions {
    /// No pacing, templates every 30 s, 5 s of patience and of linger, 8 MiB of queue.
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

/// A [`FlowWriter`] that sends to a collector.
struct NetworkWriter {
    place: String,
    encoder: Box<dyn Encode>,
    queue: Arc<Queue>,
    thread: Option<JoinHandle<Sent>>,
    patience: Duration,
    is_datagrams: bool,
    gauge: Arc<SendGauge>,
    /// Records that the format cannot hold, as far as the sender knows of them.
    unexportable: u64,
}

/// Whether `target` can be sent records of that schema at all, without asking anybody.
///
/// # Errors
/// [`ExportError::Encode`], within [`TransportError::Format`], where the format cannot hold them.
pub fn check(target: &Target, schema: &[Column], wire: &WireOptions) -> Result<(), TransportError> {
    let place = target.to_string();
    encoder(target.protocol, schema, &carried(target, wire), &place)?;
    Ok(())
}

/// Over a stream messages are as long as they may be.
fn carried(target: &Target, wire: &WireOptions) -> WireOptions {
    WireOptions {
        message_bytes: match target.carrier {
            Carrier::Udp => wire.message_bytes,
            Carrier::Tcp | Carrier::Tls => STREAM_MESSAGE_BYTES,
        },
        ..wire.clone()
    }
}

/// A writer to the collector at `target`.
///
/// A collector over TCP or TLS may be away: it is tried again, and templates are sent on every connection.
///
/// # Errors
/// [`TransportError::Tls`] where the system trusts nobody and no other list is given,
/// [`TransportError::Target`] where the host is unknown or no socket can be made,
/// [`ExportError::Encode`], within [`TransportError::Format`], where the format cannot hold records of that schema.
pub fn send_to(
    target: &Target,
    schema: &[Column],
    wire: &WireOptions,
    options: &SendOptions,
) -> Result<Box<dyn FlowWriter>, TransportError> {
    let place = target.to_string();
    let wire = carried(target, wire);
    let refresh = match target.carrier {
        Carrier::Udp => Refresh::DATAGRAMS,
        Carrier::Tcp | Carrier::Tls => Refresh::STREAM,
    };
    let encoder = encoder(target.protocol, schema, &wire, &place)?;
    let interval_ms = u64::try_from(options.template_interval.as_millis()).unwrap_or(u64::MAX);
    let refresh = Refresh {
        interval_ms: Some(interval_ms),
        ..refresh
    };
    let link = Link::new(target, options)?;
    let queue = Arc::new(Queue::new(options.queue_bytes));
    let session = Session::new(target.protocol, &wire, refresh);
    let gauge = Arc::new(SendGauge::default());
    let sender = Sender::new(
        session,
        link,
        Arc::clone(&queue),
        Arc::clone(&gauge),
        options,
    );
    let thread = std::thread::Builder::new()
        .name("turboflow-send".to_owned())
        .spawn(move || sender.run())
        .map_err(|error| TransportError::Target {
            given: place.clone(),
            reason: error.to_string(),
        })?;
    Ok(Box::new(NetworkWriter {
        place,
        encoder,
        queue,
        thread: Some(thread),
        // A paced sender takes its time for every message, and does not stand still.
        patience: match options.patience {
            Duration::ZERO => Duration::ZERO,
            patience => patience + pace::longest_wait(options.rate),
        },
        is_datagrams: target.carrier == Carrier::Udp,
        gauge,
        unexportable: 0,
    }))
}

impl NetworkWriter {
    fn flush(&mut self) {
        let Self {
            encoder,
            queue,
            patience,
            ..
        } = self;
        encoder.flush(&mut |unit: Unit| queue.push(unit, *patience));
        let unexportable = encoder.unexportable().total();
        queue.lose(unexportable - self.unexportable);
        self.unexportable = unexportable;
    }
}

impl FlowWriter for NetworkWriter {
    fn write(&mut self, batch: &FlowBatch) -> Result<(), ExportError> {
        let Self {
            encoder,
            queue,
            patience,
            ..
        } = self;
        encoder.encode(batch, &mut |unit| queue.push(unit, *patience));
        // A record never waits for the next batch, which may be long in coming.
        self.flush();
        Ok(())
    }

    fn is_failing(&self) -> bool {
        self.queue.is_stuck() || (self.is_datagrams && !self.gauge.read().is_up)
    }

    fn sending(&self) -> Option<Arc<SendGauge>> {
        Some(Arc::clone(&self.gauge))
    }

    fn finish(mut self: Box<Self>) -> Result<WriteSummary, ExportError> {
        self.flush();
        let unexportable = self.encoder.unexportable();
        self.queue.close();
        let Some(thread) = self.thread.take() else {
            return Ok(WriteSummary::default());
        };
        let sent = match thread.join() {
            Ok(sent) => sent,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let (records, bytes) = (sent.counters.flows, sent.counters.bytes);
        let lost = sent.counters.flows_not_sent - unexportable.total();
        if lost == 0 && unexportable.total() == 0 {
            return Ok(WriteSummary { records, bytes });
        }
        Err(ExportError::NotSent {
            place: self.place.clone(),
            records,
            bytes,
            lost,
            unexportable,
            source: sent.failure.filter(|_| lost > 0),
        })
    }
}

impl Drop for NetworkWriter {
    fn drop(&mut self) {
        // A run that fails before its end leaves no thread behind that waits for more.
        self.queue.abandon();
    }
}
