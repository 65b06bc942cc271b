// SPDX-License-Identifier: Apache-2.0
//! Sends messages to collectors over UDP, TCP and TLS: flow records, and the microflow records of a
//! probe. Also receives octets over TLS as a collector ([`TlsServer`]).
//!
//! A writer encodes records on the thread that passes them in, and puts [`Unit`]s in a bounded
//! queue. A separate thread sends them, waits if necessary (for pacing, or for a collector that is
//! away or does not read), and counts what could not be sent. The metering threads never wait for a
//! socket.

mod accept;
mod back_off;
mod error;
mod in_flight;
mod link;
mod microflows;
mod options;
mod pace;
mod pending;
mod queue;
mod sender;
mod session;
mod stream;
mod target;
mod tls;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use turboflow_record::{Column, FlowBatch};

use turboflow_formats::wire::{
    self, Encode, Protocol, Refresh, STREAM_MESSAGE_BYTES, Unit, WireOptions, encoder,
};
use turboflow_formats::{ExportError, FlowWriter, Passed, SendGauge, WriteSummary};

pub use accept::{ServerFiles, TlsReceiver, TlsServer};
pub use error::TransportError;
use link::Link;
pub use microflows::Microflows;
use microflows::{ProbeSession, RecordEncoder};
pub use options::{Clock, ObserveSending, Resolve, SendEvent, SendOptions};
use queue::Queue;
use sender::{Sender, Sent};
use session::Session;
pub use target::{Carrier, Content, Target};
pub use tls::{Tls, TlsFiles, TlsPart};

/// A [`FlowWriter`] that sends to a collector.
struct NetworkWriter {
    place: String,
    encoder: Box<dyn Encode>,
    queue: Arc<Queue>,
    thread: Option<JoinHandle<Sent>>,
    patience: Duration,
    is_datagrams: bool,
    gauge: Arc<SendGauge>,
    /// Records that the format cannot hold and that have already been passed to the sender's count.
    unexportable: u64,
    /// Records that were discarded before they reached this writer, for messages that report them.
    overrun: Arc<AtomicU64>,
    /// All records up to this time have reached this writer; in nanoseconds since 1970.
    complete_ns: u64,
}

/// Checks whether `target` can take records of that schema, without contacting the collector.
///
/// # Errors
/// [`ExportError::Encode`], within [`TransportError::Format`], if the format cannot hold them.
pub fn check(target: &Target, schema: &[Column], wire: &WireOptions) -> Result<(), TransportError> {
    let place = target.to_string();
    encoder(protocol_of(target)?, schema, &carried(target, wire), &place)?;
    Ok(())
}

/// The protocol of flow records.
fn protocol_of(target: &Target) -> Result<Protocol, TransportError> {
    match target.content {
        Content::Flows(protocol) => Ok(protocol),
        Content::Microflows => Err(TransportError::Target {
            given: target.to_string(),
            reason: "it is for the microflow records of a probe, not for flow records".to_owned(),
        }),
    }
}

/// The options for this target: over a stream, messages have the maximum length.
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
/// A collector over TCP or TLS may be away: connecting is retried, and every new connection starts
/// with the templates.
///
/// # Errors
/// [`TransportError::Tls`] if the system has no trust roots and no file of them is given,
/// [`TransportError::Target`] if the host is unknown or no socket can be created,
/// [`ExportError::Encode`], within [`TransportError::Format`], if the format cannot hold records of
/// that schema.
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
    let protocol = protocol_of(target)?;
    let encoder = encoder(protocol, schema, &wire, &place)?;
    let interval_ms = u64::try_from(options.template_interval.as_millis()).unwrap_or(u64::MAX);
    let refresh = Refresh {
        interval_ms: Some(interval_ms),
        ..refresh
    };
    let session = wire::Session::new(protocol, &wire, refresh);
    start(target, encoder, Box::new(session), Arc::default(), options)
}

/// A writer of the microflow records of a probe, in columns of words
/// ([`WordColumns`](turboflow_engine::wire::WordColumns)), to the collector at `target`.
///
/// # Errors
/// As [`send_to`], except those about formats.
pub fn send_microflows(
    target: &Target,
    records: &Microflows,
    options: &SendOptions,
) -> Result<Box<dyn FlowWriter>, TransportError> {
    let message_bytes = match target.carrier {
        Carrier::Udp => records.message_bytes,
        Carrier::Tcp | Carrier::Tls => STREAM_MESSAGE_BYTES,
    };
    let encoder = Box::new(RecordEncoder::new(records, message_bytes));
    let overrun = Arc::default();
    let session = ProbeSession::new(records, Arc::clone(&overrun));
    start(target, encoder, Box::new(session), overrun, options)
}

/// Starts the sending thread.
fn start(
    target: &Target,
    encoder: Box<dyn Encode>,
    session: Box<dyn Session>,
    overrun: Arc<AtomicU64>,
    options: &SendOptions,
) -> Result<Box<dyn FlowWriter>, TransportError> {
    let place = target.to_string();
    let link = Link::new(target, options)?;
    let queue = Arc::new(Queue::new(options.queue_bytes));
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
        // A paced sender waits before each message, which does not count as a lack of progress.
        patience: match options.patience {
            Duration::ZERO => Duration::ZERO,
            patience => patience + pace::longest_wait(options.rate),
        },
        is_datagrams: target.carrier == Carrier::Udp,
        gauge,
        unexportable: 0,
        overrun,
        complete_ns: 0,
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
        // A record must not wait for the next batch, which may come much later.
        self.flush();
        Ok(())
    }

    fn pass(&mut self, passed: Passed) -> Result<(), ExportError> {
        self.overrun
            .store(passed.records_overrun, Ordering::Relaxed);
        if passed.watermark_ns > self.complete_ns {
            self.complete_ns = passed.watermark_ns;
            self.queue
                .push(Unit::Complete(passed.watermark_ns), self.patience);
        }
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
        // If a run fails early, the sender thread must not keep waiting for units.
        self.queue.abandon();
    }
}
