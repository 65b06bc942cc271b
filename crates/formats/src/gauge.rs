// SPDX-License-Identifier: Apache-2.0
//! Progress of a sender, for other threads to read.

use std::sync::{Mutex, PoisonError};

/// What was sent to a collector up to a point in time, and what was lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendSnapshot {
    /// Flow records sent. Over UDP, the records of the last datagram count once another datagram
    /// was sent, or after a second without a refusal; on a connection, records count once they are
    /// known to have arrived.
    pub records_sent: u64,
    /// Flow records on a connection that are not known to have arrived yet.
    pub records_in_flight: u64,
    /// Flow records that could not be sent, including those that the format cannot hold.
    pub records_lost: u64,
    /// Messages sent.
    pub messages: u64,
    /// Octets of these messages.
    pub bytes: u64,
    /// Number of connections made; over UDP, number of addresses used so far.
    pub connections: u64,
    /// Whether the connection is up; over UDP, whether no datagram was refused lately.
    pub is_up: bool,
    /// Octets in the queue.
    pub queue_bytes: u64,
}

/// The latest [`SendSnapshot`] of a sender, replaced as a whole once per message.
#[derive(Debug, Default)]
pub struct SendGauge(Mutex<SendSnapshot>);

impl SendGauge {
    /// The latest snapshot.
    #[must_use]
    pub fn read(&self) -> SendSnapshot {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the snapshot.
    pub fn show(&self, snapshot: SendSnapshot) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }
}
