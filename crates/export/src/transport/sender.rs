// SPDX-License-Identifier: Apache-2.0
//! The thread that sends: one collector, one session.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::link::{Link, Progress};
use super::pace::Pace;
use super::queue::{Queue, Taken};
use super::{Clock, SendOptions};
use crate::wire::{Message, Session, SessionCounters, Unit};

/// Time between attempts to connect: doubled from the first to the last.
const FIRST_BACK_OFF: Duration = Duration::from_millis(250);
const LAST_BACK_OFF: Duration = Duration::from_secs(30);
/// How long to leave a socket alone that takes no more.
const SOCKET_PAUSE: Duration = Duration::from_millis(2);
/// How long the network has to refuse the last datagrams.
const REFUSAL_PAUSE: Duration = Duration::from_millis(10);
/// How long new templates get before data follows in a datagram: a collector that decodes on
/// several threads would else see the data first, now and then (goflow2 2.2.6 does).
const TEMPLATE_PAUSE: Duration = Duration::from_millis(20);
/// How long to wait for units at most, so that the clock is looked at.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// What a sender did.
pub(super) struct Sent {
    pub(super) counters: SessionCounters,
    /// The last thing that went wrong.
    pub(super) failure: Option<io::Error>,
}

pub(super) struct Sender {
    session: Session,
    link: Link,
    queue: Arc<Queue>,
    pace: Pace,
    clock: Clock,
    linger: Duration,
    back_off: Duration,
    /// When something last left, or the end was asked for.
    progress_at: Duration,
    /// The end was asked for and the collector took nothing: nothing is tried any more.
    gave_up: bool,
    /// The last datagram, which the network may yet refuse.
    last: Message,
    failure: Option<io::Error>,
}

impl Sender {
    pub(super) fn new(
        session: Session,
        link: Link,
        queue: Arc<Queue>,
        options: &SendOptions,
    ) -> Self {
        Self {
            session,
            link,
            queue,
            pace: Pace::new(options.rate),
            clock: options.clock,
            linger: options.linger,
            back_off: FIRST_BACK_OFF,
            progress_at: Duration::ZERO,
            gave_up: false,
            last: Message::default(),
            failure: None,
        }
    }

    /// Sends until the queue is closed and empty, or nothing moves any more.
    pub(super) fn run(mut self) -> Sent {
        loop {
            let taken = self.queue.take(self.time_to_wait());
            self.count_lost();
            match taken {
                Taken::Unit(unit) => self.unit(&unit),
                Taken::Nothing => self.tick(),
                Taken::Closed => break,
            }
        }
        self.finish();
        Sent {
            counters: *self.session.counters(),
            failure: self.failure,
        }
    }

    fn time_to_wait(&self) -> Duration {
        let now_ms = (self.clock.wall_ms)();
        match self.session.due_ms() {
            // Nothing is due before the first record.
            Some(due_ms) if due_ms > 0 => {
                Duration::from_millis(due_ms.saturating_sub(now_ms)).min(LONGEST_WAIT)
            }
            _ => LONGEST_WAIT,
        }
    }

    /// Sends what is due while no records come.
    fn tick(&mut self) {
        if self.session.due_ms().is_none_or(|due_ms| due_ms == 0) || !self.link.is_up() {
            return;
        }
        let mut messages = Vec::new();
        self.session.tick((self.clock.wall_ms)(), &mut |message| {
            messages.push(message)
        });
        if !messages.is_empty() {
            self.link.follow_name();
            self.send_all(messages);
        }
    }

    fn unit(&mut self, unit: &Unit) {
        self.progress_at = (self.clock.monotonic)();
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
            if !self.link.is_stream() && (begins || matches!(unit, Unit::Template(_))) {
                self.send_ahead(&mut messages);
            }
            // A template that did not arrive is among those that the next connection begins with.
            if self.send_all(messages) || matches!(unit, Unit::Template(_)) {
                return;
            }
            // A new connection has room in its buffers whether or not anybody reads them: what
            // went there would count as sent.
            if self.gave_up {
                self.lose(unit);
                return;
            }
        }
    }

    /// Sends the templates that stand before the first data, and gives them time to be learnt.
    fn send_ahead(&mut self, messages: &mut Vec<Message>) {
        let data = messages.iter().position(|message| message.flows > 0);
        let data = messages.split_off(data.unwrap_or(messages.len()));
        let templates = std::mem::replace(messages, data);
        if !templates.is_empty() {
            self.send_all(templates);
            self.wait_in_full(TEMPLATE_PAUSE);
        }
    }

    /// Waits for pacing, also while the queue is being closed.
    fn wait_in_full(&mut self, wait: Duration) {
        let until = (self.clock.monotonic)() + wait;
        loop {
            let now = (self.clock.monotonic)();
            if now >= until {
                break;
            }
            self.queue.pause(until - now);
        }
        self.progress_at = (self.clock.monotonic)();
    }

    /// Makes the connection where there is none. False when it is time to give up.
    fn connect(&mut self) -> bool {
        while !self.link.is_up() {
            if self.gave_up {
                return false;
            }
            self.session.restart();
            match self.link.connect() {
                Ok(()) => self.back_off = FIRST_BACK_OFF,
                Err(error) => {
                    self.failure = Some(error);
                    if self.is_time_up() {
                        return false;
                    }
                    self.queue.pause(self.back_off);
                    self.count_lost();
                    self.back_off = (self.back_off * 2).min(LAST_BACK_OFF);
                }
            }
        }
        true
    }

    /// Whether the end was asked for and nothing left for too long.
    fn is_time_up(&mut self) -> bool {
        let now = (self.clock.monotonic)();
        if !self.queue.is_closed() {
            self.progress_at = now;
        }
        now - self.progress_at.min(now) > self.linger
    }

    /// Sends messages; false where the connection broke and all of them have to be sent again.
    fn send_all(&mut self, messages: Vec<Message>) -> bool {
        messages.into_iter().all(|message| {
            if self.link.is_stream() {
                self.send_on_stream(&message)
            } else {
                self.send_datagram(message);
                true
            }
        })
    }

    fn send_on_stream(&mut self, message: &Message) -> bool {
        let mut sent = 0;
        loop {
            match self.link.send(&message.bytes[sent..]) {
                Ok(Progress::Whole) => {
                    self.progress_at = (self.clock.monotonic)();
                    self.session.count_sent(message);
                    return true;
                }
                Ok(Progress::Partial(count)) => {
                    sent += count;
                    if count > 0 {
                        self.progress_at = (self.clock.monotonic)();
                    }
                    if self.is_time_up() {
                        self.failure = Some(io::Error::other("the collector does not read"));
                        self.gave_up = true;
                        self.link.disconnect();
                        return false;
                    }
                    self.queue.pause(SOCKET_PAUSE);
                    self.count_lost();
                }
                Err(error) => {
                    self.failure = Some(error);
                    self.link.disconnect();
                    return false;
                }
            }
        }
    }

    fn send_datagram(&mut self, message: Message) {
        let mut outcome = self.link.send(&message.bytes);
        if let Err(error) = &outcome
            && error.kind() == io::ErrorKind::ConnectionRefused
        {
            // It says that an earlier datagram found nobody; this one has not left yet.
            self.lose_last();
            self.failure = outcome.err();
            outcome = self.link.send(&message.bytes);
        }
        match outcome {
            Ok(_) => {
                self.session.count_sent(&message);
                self.last = message;
            }
            Err(error) => {
                self.session
                    .count_lost(message.flows, message.packets, message.octets);
                self.failure = Some(error);
            }
        }
        self.progress_at = (self.clock.monotonic)();
    }

    fn lose_last(&mut self) {
        let last = std::mem::take(&mut self.last);
        self.session
            .recount_lost(last.flows, last.packets, last.octets);
    }

    fn lose(&mut self, unit: &Unit) {
        if let Unit::Data(data) = unit {
            self.session
                .count_lost(u64::from(data.flows), data.packets, data.octets);
        }
        self.queue.give_up();
        self.count_lost();
    }

    /// Takes over what found no room in the queue.
    fn count_lost(&mut self) {
        let lost = self.queue.take_lost();
        if lost.flows > 0 {
            self.session
                .count_lost(lost.flows, lost.packets, lost.octets);
        }
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
            }
            let mut messages = Vec::new();
            self.session.finish((self.clock.wall_ms)(), &mut |message| {
                messages.push(message)
            });
            self.send_all(messages);
        }
        self.link.close();
    }
}
