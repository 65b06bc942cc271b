// SPDX-License-Identifier: Apache-2.0
//! The sending thread: one collector, one session.

mod delivery;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::back_off::BackOff;
use super::in_flight::InFlight;
use super::link::Link;
use super::pace::Pace;
use super::queue::{Queue, Taken};
use super::session::Session;
use super::{Clock, ObserveSending, SendOptions};
use turboflow_formats::wire::{Message, SessionCounters, Unit};
use turboflow_formats::{SendGauge, SendSnapshot};

/// Time allowed for the network to refuse the last datagrams.
const REFUSAL_PAUSE: Duration = Duration::from_millis(10);
/// Pause between new templates and the data that follows in another datagram. A collector that
/// decodes on several threads would otherwise sometimes see the data first (goflow2 2.2.6 does).
const TEMPLATE_PAUSE: Duration = Duration::from_millis(20);
/// Minimum wait for units while there is no connection.
const SHORTEST_WAIT: Duration = Duration::from_millis(10);
/// Maximum wait for units, so that the clock is checked regularly.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Interval at which names of UDP collectors are looked up.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(30);
/// Interval at which templates are sent to a collector that is away, so that a restarted collector
/// gets them soon.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(1);
/// A UDP collector that was away counts as back after this long without a refusal.
const RETURN_INTERVAL: Duration = Duration::from_secs(3);

/// Totals of a sender.
pub(super) struct Sent {
    pub(super) counters: SessionCounters,
    /// The last error.
    pub(super) failure: Option<io::Error>,
}

pub(super) struct Sender {
    session: Box<dyn Session>,
    link: Link,
    queue: Arc<Queue>,
    gauge: Arc<SendGauge>,
    pace: Pace,
    clock: Clock,
    linger: Duration,
    deadline: Option<Duration>,
    /// Deadline of the shutdown, regardless of what is still queued.
    ends_by: Option<Duration>,
    observe: ObserveSending,
    /// The collector's name.
    place: String,
    /// Whether the loss of the connection was reported.
    is_reported_lost: bool,
    back_off: BackOff,
    /// When a message was last sent, or the end was requested.
    progress_at: Duration,
    /// Whether this thread has seen the request to end.
    is_ending: bool,
    looked_up_at: Duration,
    /// Whether a datagram was refused since templates were last sent.
    is_refused: bool,
    /// When a datagram was last refused.
    refused_at: Duration,
    /// When templates were last sent because of a refusal.
    renewed_at: Duration,
    /// Whether the last datagram with a known outcome was refused.
    was_refused: bool,
    connections: u64,
    /// The end was requested and the collector accepted nothing: there are no further attempts.
    gave_up: bool,
    /// The last datagram, which the network may still refuse.
    last: Message,
    /// Records on the connection that may not have arrived yet.
    in_flight: InFlight,
    failure: Option<io::Error>,
}

impl Sender {
    pub(super) fn new(
        session: Box<dyn Session>,
        link: Link,
        queue: Arc<Queue>,
        gauge: Arc<SendGauge>,
        options: &SendOptions,
    ) -> Self {
        let sender = Self {
            session,
            queue,
            gauge,
            pace: Pace::new(options.rate),
            clock: options.clock,
            linger: options.linger,
            deadline: options.deadline,
            ends_by: None,
            observe: options.observe,
            place: link.place(),
            is_reported_lost: false,
            back_off: BackOff::default(),
            progress_at: Duration::ZERO,
            is_ending: false,
            looked_up_at: (options.clock.monotonic)(),
            connections: u64::from(!link.is_stream()),
            is_refused: false,
            refused_at: Duration::ZERO,
            was_refused: false,
            renewed_at: Duration::ZERO,
            gave_up: false,
            last: Message::default(),
            in_flight: InFlight::default(),
            failure: None,
            link,
        };
        sender.show();
        sender
    }

    /// Sends until the queue is closed and empty, or the sender gives up.
    pub(super) fn run(mut self) -> Sent {
        self.maintain_connection();
        loop {
            let taken = self.queue.take(self.time_to_wait());
            self.count_lost();
            self.notice_end();
            self.follow_collector();
            match taken {
                Taken::Unit(unit) => self.unit(&unit),
                Taken::Nothing => self.tick(),
                Taken::Closed => break,
            }
            self.show();
        }
        self.finish();
        self.show();
        Sent {
            counters: *self.session.counters(),
            failure: self.failure,
        }
    }

    fn time_to_wait(&self) -> Duration {
        let now_ms = (self.clock.wall_ms)();
        if !self.link.is_up() {
            let left = self.back_off.left((self.clock.monotonic)(), false);
            return left.clamp(SHORTEST_WAIT, LONGEST_WAIT);
        }
        match self.session.due_ms() {
            // Nothing is due before the first record.
            Some(due_ms) if due_ms > 0 => {
                Duration::from_millis(due_ms.saturating_sub(now_ms)).min(LONGEST_WAIT)
            }
            _ => LONGEST_WAIT,
        }
    }

    /// Sends the templates and options that are due while no records arrive, and maintains the
    /// connection.
    fn tick(&mut self) {
        self.maintain_connection();
        let is_refused = self.notice_refusal();
        self.was_refused = is_refused;
        self.last = Message::default();
        if !self.link.is_up() || !self.may_be_due() {
            return;
        }
        let mut messages = Vec::new();
        self.session.tick((self.clock.wall_ms)(), &mut |message| {
            messages.push(message)
        });
        self.send_all(messages);
        // The outcome of the messages just sent is not known yet.
        self.was_refused |= is_refused;
    }

    /// Whether anything may be sent without a record: never before the first record, nor at the
    /// start of a connection. Over UDP, templates are sent even to a collector that was away, to
    /// detect its return.
    fn may_be_due(&self) -> bool {
        match self.session.due_ms() {
            None => false,
            Some(0) => !self.link.is_stream() && self.session.counters().messages > 0,
            Some(_) => true,
        }
    }

    /// Looks up a UDP collector's name at intervals, and follows it to a new address. A new address
    /// gets the templates at once; a collector that was away gets them soon.
    fn follow_collector(&mut self) {
        let now = (self.clock.monotonic)();
        if now.saturating_sub(self.looked_up_at) >= LOOKUP_INTERVAL {
            self.looked_up_at = now;
            self.link.look_up();
        }
        if self.link.follow_name() {
            self.session.announce_anew();
            self.last = Message::default();
            self.connections += 1;
        }
        if !self.link.is_stream() && now.saturating_sub(self.refused_at) >= RETURN_INTERVAL {
            self.report_back();
        }
        if self.is_refused && now.saturating_sub(self.renewed_at) >= RENEWAL_INTERVAL {
            self.is_refused = false;
            self.renewed_at = now;
            self.session.announce_anew();
        }
    }

    fn unit(&mut self, unit: &Unit) {
        self.notice_end();
        if self.is_past_deadline() {
            self.gave_up = true;
            self.lose(unit);
            return;
        }
        if let Unit::Data(data) = unit {
            let wait = self.pace.wait(data.flows, (self.clock.monotonic)());
            if !wait.is_zero() {
                self.wait_in_full(wait);
            }
        }
        loop {
            if !self.connect() {
                self.lose(unit);
                return;
            }
            let mut messages = Vec::new();
            let now_ms = (self.clock.wall_ms)();
            let begins = self.session.due_ms() == Some(0);
            self.session
                .unit(unit, now_ms, &mut |message| messages.push(message));
            let is_data = matches!(unit, Unit::Data(_));
            if !self.link.is_stream() && (begins || matches!(unit, Unit::Template(_))) {
                self.send_ahead(&mut messages);
            }
            // A lost template or application name is sent again at the start of the next
            // connection.
            if self.send_all(messages) || !is_data {
                return;
            }
            // A new connection has room in its socket buffers whether or not the collector reads:
            // the records would wrongly count as sent.
            if self.gave_up {
                self.lose(unit);
                return;
            }
        }
    }

    /// Sends the templates that precede the first data, and gives the collector time to learn them.
    fn send_ahead(&mut self, messages: &mut Vec<Message>) {
        let data = messages.iter().position(|message| message.flows > 0);
        let data = messages.split_off(data.unwrap_or(messages.len()));
        let templates = std::mem::replace(messages, data);
        if !templates.is_empty() {
            self.send_all(templates);
            self.wait_in_full(TEMPLATE_PAUSE);
        }
    }

    /// Waits the whole time, even if the queue is closed meanwhile. This wait does not count as a
    /// delay of the collector.
    fn wait_in_full(&mut self, wait: Duration) {
        self.progress_at += wait;
        let until = (self.clock.monotonic)() + wait;
        loop {
            let now = (self.clock.monotonic)();
            self.notice_end();
            if now >= until || self.is_past_deadline() {
                break;
            }
            self.queue.pause(until - now);
        }
    }

    fn lose(&mut self, unit: &Unit) {
        if let Unit::Data(data) = unit {
            self.session
                .count_lost(u64::from(data.flows), data.packets, data.octets);
        }
        self.queue.give_up();
        self.count_lost();
    }

    /// Adds the records dropped by the queue.
    fn count_lost(&mut self) {
        let lost = self.queue.take_lost();
        if lost.flows > 0 {
            self.session
                .count_lost(lost.flows, lost.packets, lost.octets);
        }
        self.show();
    }

    /// Updates the gauge.
    fn show(&self) {
        let counters = self.session.counters();
        self.gauge.show(SendSnapshot {
            // The last datagram may still be refused, and a connection may be reset. Leaving out
            // records not known to have arrived ensures that the count never decreases.
            records_sent: counters.flows - self.last.flows - self.in_flight.flows(),
            records_in_flight: self.in_flight.flows(),
            records_lost: counters.flows_not_sent,
            messages: counters.messages,
            bytes: counters.bytes,
            connections: self.connections,
            is_up: self.link.is_up() && !self.was_refused,
            queue_bytes: self.queue.bytes() as u64,
        });
    }

    fn finish(&mut self) {
        self.count_lost();
        if self.link.is_up() {
            if !self.link.is_stream() {
                self.queue.pause(REFUSAL_PAUSE);
                if let Some(error) = self.link.take_error() {
                    self.lose_last();
                    self.failure = Some(error);
                }
                self.last = Message::default();
            }
            let mut messages = Vec::new();
            self.session.finish((self.clock.wall_ms)(), &mut |message| {
                messages.push(message)
            });
            self.send_all(messages);
        }
        self.end_connection();
    }
}
