// SPDX-License-Identifier: Apache-2.0
//! Sends messages: over connections, which are made, lost and made again, and in datagrams.

use std::io;
use std::time::Duration;

use super::super::SendEvent;
use super::super::queue::Lost;
use super::super::stream::{Progress, is_closed};
use super::{LONGEST_WAIT, Sender};
use turboflow_formats::wire::Message;

/// Time to wait for a connection before the clock is checked.
const DIAL_PAUSE: Duration = Duration::from_millis(20);
/// Pause after a socket accepted nothing more.
const SOCKET_PAUSE: Duration = Duration::from_millis(2);
/// Maximum attempts to send a datagram that the system refuses because of an earlier one.
const ATTEMPTS: usize = 3;

impl Sender {
    /// Connects before there is anything to send, so that a wrong address or certificate is
    /// reported at once; and notices a connection that has ended.
    pub(super) fn maintain_connection(&mut self) {
        if !self.link.is_stream() {
            return;
        }
        self.look_at_acknowledged();
        if let Err(error) = self.link.listen() {
            self.disconnect(error);
        }
        let now = (self.clock.monotonic)();
        if !self.link.is_up() && !self.is_ending && self.back_off.left(now, false).is_zero() {
            self.try_connection();
        }
    }

    fn try_connection(&mut self) {
        self.session.restart();
        match self.dial() {
            Ok(()) => {
                self.back_off.connected((self.clock.monotonic)());
                self.connections += 1;
            }
            Err(error) => self.disconnect(error),
        }
    }

    /// Connects if there is no connection. False when it is time to give up.
    pub(super) fn connect(&mut self) -> bool {
        while !self.link.is_up() {
            if self.gave_up || !self.back_off() {
                return false;
            }
            self.try_connection();
        }
        true
    }

    /// Waits until the next attempt is due. False when it is time to give up.
    fn back_off(&mut self) -> bool {
        loop {
            if self.is_time_up() {
                return false;
            }
            let now = (self.clock.monotonic)();
            let left = self.back_off.left(now, self.is_ending);
            if left.is_zero() {
                return true;
            }
            self.queue.pause(left.min(LONGEST_WAIT));
            self.count_lost();
        }
    }

    fn dial(&mut self) -> io::Result<()> {
        self.link.dial()?;
        loop {
            if let Some(outcome) = self.link.dialled(DIAL_PAUSE) {
                return outcome;
            }
            self.count_lost();
            if self.is_time_up() {
                return Err(io::Error::other("the collector does not answer"));
            }
        }
    }

    fn disconnect(&mut self, error: io::Error) {
        self.lose_in_flight(is_closed(&error));
        self.link.disconnect();
        self.back_off.failed((self.clock.monotonic)());
        self.report_lost(error);
    }

    /// Records what the collector's system has acknowledged.
    fn look_at_acknowledged(&mut self) {
        if let Some(stream) = self.link.stream() {
            let (acknowledged, unread) = (stream.acknowledged(), stream.unread_octets());
            self.in_flight.acknowledge(acknowledged, unread);
        }
    }

    /// The connection is over. Counts the records not known to have arrived as lost: if they were
    /// sent again, a collector might count them twice.
    fn lose_in_flight(&mut self, is_in_order: bool) {
        self.look_at_acknowledged();
        if is_in_order {
            self.in_flight.closed_in_order();
        }
        let lost = self.in_flight.lose();
        self.session
            .recount_lost(lost.flows, lost.packets, lost.octets);
    }

    /// Ends the connection, and waits until the collector has closed its side: only then is it
    /// known that the collector has read everything.
    pub(super) fn end_connection(&mut self) {
        self.progress_at = (self.clock.monotonic)();
        let mut acknowledged = 0;
        let mut is_ended = false;
        let outcome = loop {
            let Some(stream) = self.link.stream() else {
                return;
            };
            let heard = stream.end_once(&mut is_ended);
            let now = stream.acknowledged();
            let is_whole = now == stream.position();
            match heard {
                Ok(true) if is_whole => break Ok(()),
                Ok(_) => {}
                Err(error) => break Err(error),
            }
            if now != acknowledged {
                (acknowledged, self.progress_at) = (now, (self.clock.monotonic)());
            }
            if self.is_time_up() {
                break Err(io::Error::other(
                    "the collector did not close the connection after the last record, so it may \
                     not have read everything",
                ));
            }
            self.queue.pause(SOCKET_PAUSE);
        };
        self.lose_in_flight(outcome.is_ok());
        self.failure = outcome.err().or(self.failure.take());
        self.link.disconnect();
    }

    /// Reports once that the collector is away.
    fn report_lost(&mut self, error: io::Error) {
        if !self.is_reported_lost {
            self.is_reported_lost = true;
            (self.observe)(&self.place, &SendEvent::Lost(&error));
        }
        self.failure = Some(error);
    }

    /// Reports that the collector is back, if it was reported away.
    pub(super) fn report_back(&mut self) {
        if std::mem::take(&mut self.is_reported_lost) {
            (self.observe)(&self.place, &SendEvent::Back);
        }
    }

    /// Starts the shutdown timers when the end is requested.
    pub(super) fn notice_end(&mut self) {
        if !self.is_ending {
            self.progress_at = (self.clock.monotonic)();
            self.is_ending = self.queue.is_closed();
            let now = (self.clock.monotonic)();
            self.ends_by = self
                .deadline
                .filter(|_| self.is_ending)
                .map(|left| now + left);
        }
    }

    /// Whether the deadline of the shutdown has passed, even if records are still being sent.
    pub(super) fn is_past_deadline(&self) -> bool {
        self.ends_by.is_some_and(|by| (self.clock.monotonic)() > by)
    }

    /// Whether the end was requested and nothing was sent for too long.
    fn is_time_up(&mut self) -> bool {
        self.notice_end();
        let silence = (self.clock.monotonic)().saturating_sub(self.progress_at);
        silence > self.linger || self.is_past_deadline()
    }

    /// Sends messages; false if the connection broke and all of them must be sent again.
    pub(super) fn send_all(&mut self, messages: Vec<Message>) -> bool {
        messages.into_iter().all(|message| {
            if self.link.is_stream() {
                self.send_on_stream(message)
            } else {
                self.send_datagram(message);
                true
            }
        })
    }

    fn send_on_stream(&mut self, mut message: Message) -> bool {
        self.session.number(&mut message);
        let mut sent = 0;
        loop {
            let progress = match self.link.send(&message.bytes[sent..]) {
                Ok(progress) => progress,
                Err(error) => {
                    self.disconnect(error);
                    return false;
                }
            };
            if !matches!(progress, Progress::Partial(0)) && message.flows > 0 {
                self.note_progress();
            }
            let Progress::Partial(count) = progress else {
                self.session.count_sent(&message);
                self.note_in_flight(&message);
                return true;
            };
            sent += count;
            if self.is_time_up() {
                self.disconnect(io::Error::other("the collector does not read"));
                self.gave_up = true;
                return false;
            }
            self.queue.pause(SOCKET_PAUSE);
            self.count_lost();
        }
    }

    fn note_in_flight(&mut self, message: &Message) {
        if let Some(stream) = self.link.stream() {
            let records = Lost {
                flows: message.flows,
                packets: message.packets,
                octets: message.octets,
            };
            self.in_flight.add(records, stream.position());
        }
        self.look_at_acknowledged();
    }

    /// Records that messages were sent. A collector that accepts connections and closes them at
    /// once makes no progress.
    fn note_progress(&mut self) {
        let now = (self.clock.monotonic)();
        if self.back_off.sent(now) {
            self.progress_at = now;
            self.report_back();
        }
    }

    fn send_datagram(&mut self, mut message: Message) {
        self.session.number(&mut message);
        let mut outcome = self.link.send(&message.bytes);
        self.was_refused = false;
        for _ in 1..ATTEMPTS {
            match outcome {
                // A connected socket reports here that an earlier datagram was refused. That
                // datagram was sent and used its sequence number; this one has not been sent yet.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    self.refused(error);
                    outcome = self.link.send(&message.bytes);
                }
                _ => break,
            }
        }
        match outcome {
            Ok(_) => {
                self.session.count_sent(&message);
                self.last = message;
            }
            // The datagram was not sent, so the next message gets its sequence number. If it
            // contained templates, the collector has not learnt them, so they are sent again.
            Err(error) => {
                self.session
                    .count_lost(message.flows, message.packets, message.octets);
                self.away(error);
            }
        }
        self.progress_at = (self.clock.monotonic)();
    }

    /// Checks whether the last datagram was refused. Without further sends, nothing else reports
    /// it.
    pub(super) fn notice_refusal(&mut self) -> bool {
        let error = self.link.take_error();
        let is_refused = error.is_some();
        if let Some(error) = error {
            self.refused(error);
        }
        is_refused
    }

    /// The last datagram was refused. A collector that starts listening there later has no
    /// templates.
    fn refused(&mut self, error: io::Error) {
        self.lose_last();
        self.away(error);
    }

    /// Datagrams do not arrive at present, so templates are sent again soon.
    fn away(&mut self, error: io::Error) {
        self.report_lost(error);
        self.is_refused = true;
        self.was_refused = true;
        self.refused_at = (self.clock.monotonic)();
    }

    pub(super) fn lose_last(&mut self) {
        let last = std::mem::take(&mut self.last);
        self.session
            .recount_lost(last.flows, last.packets, last.octets);
    }
}
