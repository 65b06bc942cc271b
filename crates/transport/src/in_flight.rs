// SPDX-License-Identifier: Apache-2.0
//! Records on a connection that the collector may or may not have received.
//!
//! A socket accepts octets long before the collector reads them, and TCP only reports that the
//! other system has acknowledged them. An acknowledged octet may still wait in the collector's
//! receive buffer, for any length of time, and a reset discards that buffer. There are only two
//! proofs that octets were read: so many later octets were acknowledged that the collector's buffer
//! cannot hold both, or the collector ended the connection in good order.

use std::collections::VecDeque;

use super::queue::Lost;

/// Messages on a connection that are not known to have been read, oldest first.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    messages: VecDeque<Pending>,
    flows: u64,
    /// The position up to which everything was acknowledged.
    acknowledged: u64,
}

#[derive(Debug)]
struct Pending {
    /// Position on the connection where the message ends.
    end: u64,
    records: Lost,
}

impl InFlight {
    /// Adds the records of a message that ends at this position of the connection.
    pub(super) fn add(&mut self, records: Lost, end: u64) {
        if records.flows > 0 {
            self.flows += records.flows;
            self.messages.push_back(Pending { end, records });
        }
    }

    /// The other system has acknowledged everything up to `position`, of which at most
    /// `unread_octets` may still wait in its buffer. Removes the messages that must have been read.
    pub(super) fn acknowledge(&mut self, position: u64, unread_octets: u64) {
        self.acknowledged = position;
        self.forget_until(position.saturating_sub(unread_octets));
    }

    /// The collector has closed its side in good order. A system that discards unread octets at the
    /// end of a connection resets the connection instead, so everything acknowledged was read.
    pub(super) fn closed_in_order(&mut self) {
        self.forget_until(self.acknowledged);
    }

    fn forget_until(&mut self, position: u64) {
        while self.messages.front().is_some_and(|it| it.end <= position) {
            if let Some(oldest) = self.messages.pop_front() {
                self.flows -= oldest.records.flows;
            }
        }
    }

    /// The connection is over: removes and returns everything that is not known to have been read.
    pub(super) fn lose(&mut self) -> Lost {
        let mut lost = Lost::default();
        for pending in self.messages.drain(..) {
            lost.merge(pending.records);
        }
        *self = Self::default();
        lost
    }

    /// Flow records that are not known to have been read.
    pub(super) const fn flows(&self) -> u64 {
        self.flows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Consecutive messages of 100 octets and one record each.
    fn sent(count: u64) -> InFlight {
        let one = Lost {
            flows: 1,
            ..Lost::default()
        };
        let mut in_flight = InFlight::default();
        (1..=count).for_each(|index| in_flight.add(one, index * 100));
        in_flight
    }

    #[test]
    fn what_a_buffer_may_hold_is_not_known_to_have_arrived() {
        let mut in_flight = sent(10);
        // Repeated acknowledgements change nothing.
        for _ in 0..1_000 {
            in_flight.acknowledge(1_000, 1_000);
            assert_eq!(in_flight.flows(), 10);
        }
        in_flight.acknowledge(1_000, 701);
        assert_eq!(in_flight.flows(), 8, "the third may have been read in part");
        assert_eq!(in_flight.lose().flows, 8);
        assert_eq!((in_flight.flows(), in_flight.lose().flows), (0, 0));
    }

    #[test]
    fn where_nothing_is_known_of_the_buffer_nothing_arrives() {
        let mut in_flight = sent(10);
        in_flight.acknowledge(1_000, u64::MAX);
        assert_eq!(in_flight.lose().flows, 10);
    }

    #[test]
    fn a_collector_that_closes_in_order_has_read_what_it_acknowledged() {
        let mut in_flight = sent(10);
        in_flight.acknowledge(799, 1_000);
        in_flight.closed_in_order();
        assert_eq!(in_flight.lose().flows, 3);
    }
}
