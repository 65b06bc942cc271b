// SPDX-License-Identifier: Apache-2.0
//! How a sender stands, for others to read while it sends.

use std::sync::{Mutex, PoisonError};

/// What a collector was sent, and what not, up to one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendSnapshot {
    /// Flow records that left; those of the last datagram once another has left, or a second has passed
    /// without a refusal.
    pub records_sent: u64,
    /// Flow records that could not be sent, those that the format cannot hold included.
    pub records_lost: u64,
    /// Messages that left.
    pub messages: u64,
    /// Their octets.
    pub bytes: u64,
    /// Connections made; over UDP, addresses sent to.
    pub connections: u64,
    /// Whether there is a connection; over UDP, whether nothing said lately that nobody is there.
    pub is_up: bool,
    /// Octets that wait in the queue.
    pub queue_bytes: u64,
}

/// Where a sender says how it stands: all of it at once, once a message.
#[derive(Debug, Default)]
pub struct SendGauge(Mutex<SendSnapshot>);

impl SendGauge {
    /// What it said last.
    #[must_use]
    pub fn read(&self) -> SendSnapshot {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces what it says.
    pub fn show(&self, snapshot: SendSnapshot) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }
}
