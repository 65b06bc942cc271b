// SPDX-License-Identifier: Apache-2.0
//! What a sender needs of a session: it turns units into messages, and learns what became of them.
//! For IPFIX and NetFlow, that is `turboflow_formats::wire::Session`, which counts their sequence
//! numbers.

use turboflow_formats::wire::{self, Message, SessionCounters, Unit};

/// Turns units into messages. A message gets its sequence number when it is sent, so that messages
/// that are never sent leave no gap.
pub(super) trait Session: Send {
    /// A new connection begins.
    fn restart(&mut self);
    /// The receiver may have restarted or been replaced, so templates are sent again.
    fn announce_anew(&mut self);
    /// Fills in the sequence number of a message, just before it is sent.
    fn number(&self, message: &mut Message);
    /// Advances the sequence number by a message that was sent, and counts the message.
    fn count_sent(&mut self, message: &Message);
    /// Counts as lost records that were counted as sent.
    fn recount_lost(&mut self, flows: u64, packets: u64, octets: u64);
    fn count_lost(&mut self, flows: u64, packets: u64, octets: u64);
    fn counters(&self) -> &SessionCounters;
    /// When [`Session::tick`] has something to send, in milliseconds since 1970; `None` if never.
    fn due_ms(&self) -> Option<u64>;
    /// Sends what is due when no units arrive.
    fn tick(&mut self, now_ms: u64, send: &mut dyn FnMut(Message));
    fn unit(&mut self, unit: &Unit, now_ms: u64, send: &mut dyn FnMut(Message));
    /// Sends the last message.
    fn finish(&mut self, now_ms: u64, send: &mut dyn FnMut(Message));
}

impl Session for wire::Session {
    fn restart(&mut self) {
        Self::restart(self);
    }

    fn announce_anew(&mut self) {
        Self::announce_anew(self);
    }

    fn number(&self, message: &mut Message) {
        Self::number(self, message);
    }

    fn count_sent(&mut self, message: &Message) {
        Self::count_sent(self, message);
    }

    fn recount_lost(&mut self, flows: u64, packets: u64, octets: u64) {
        Self::recount_lost(self, flows, packets, octets);
    }

    fn count_lost(&mut self, flows: u64, packets: u64, octets: u64) {
        Self::count_lost(self, flows, packets, octets);
    }

    fn counters(&self) -> &SessionCounters {
        Self::counters(self)
    }

    fn due_ms(&self) -> Option<u64> {
        Self::due_ms(self)
    }

    fn tick(&mut self, now_ms: u64, send: &mut dyn FnMut(Message)) {
        Self::tick(self, now_ms, send);
    }

    fn unit(&mut self, unit: &Unit, now_ms: u64, send: &mut dyn FnMut(Message)) {
        Self::unit(self, unit, now_ms, send);
    }

    fn finish(&mut self, now_ms: u64, send: &mut dyn FnMut(Message)) {
        Self::finish(self, now_ms, send);
    }
}
