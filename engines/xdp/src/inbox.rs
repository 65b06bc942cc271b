// SPDX-License-Identifier: Apache-2.0
//! Receives records from the ring's reader, and sorts them by table half and ticket.

use std::collections::HashMap;

use turboflow_engine::{MicroflowBatch, PlainRows, RecordShape};
use turboflow_record::{WORDS_V4, WORDS_V6};

use crate::layout::{HALF_AT, record_word, words};

/// Size of `struct ticket` in `bpf/layout.h`.
const TICKET_BYTES: usize = 8;
const V4_BYTES: usize = 8 * PlainRows::<WORDS_V4>::WORDS;
const V6_BYTES: usize = 8 * PlainRows::<WORDS_V6>::WORDS;
/// Offset of the byte of a row that holds the half of its table.
const HALF_BYTE_AT: usize = 8 * HALF_AT + 3;

/// Records of the ring that have not been taken yet.
pub(crate) struct Inbox {
    /// The half whose records are due. Records of the other half belong to packets after the turn.
    half: u64,
    due: MicroflowBatch,
    later: MicroflowBatch,
    tickets: Option<Tickets>,
    /// The shape of a plan's records.
    shape: Option<RecordShape>,
    /// Items of the ring that are not records.
    foreign: u64,
}

/// Puts the records of one slot in order. With a shared table, CPUs may write to the ring in
/// another order than they evicted rows. A missing number arrives at the latest when its program
/// ends.
struct Tickets {
    /// The next number, by slot.
    next: Vec<u32>,
    /// Records that arrived before their predecessors, by slot and number.
    early: HashMap<(u32, u32), Vec<u8>>,
}

impl Inbox {
    /// `shared_slots` is the number of slots, if CPUs share a table.
    pub(crate) fn new(shared_slots: Option<u32>, shape: Option<RecordShape>) -> Self {
        let tickets = shared_slots.map(|slots| Tickets {
            next: vec![0; slots as usize],
            early: HashMap::new(),
        });
        Self {
            half: 0,
            due: MicroflowBatch::default(),
            later: MicroflowBatch::default(),
            tickets,
            shape,
            foreign: 0,
        }
    }

    /// Receives an item of the ring. Most items are plain IPv4 records of the due half, and take
    /// the inlined path.
    #[inline(always)]
    pub(crate) fn receive(&mut self, item: &[u8]) {
        if self.tickets.is_none()
            && self.shape.is_none()
            && let Ok(row) = <&[u8; V4_BYTES]>::try_from(item)
            && u64::from(row[HALF_BYTE_AT]) == self.half
        {
            self.due.plain_v4.push(|at| word(row, at));
        } else {
            self.receive_any(item);
        }
    }

    #[inline(never)]
    fn receive_any(&mut self, item: &[u8]) {
        if self.tickets.is_some() {
            self.receive_with_ticket(item);
        } else {
            self.keep(item);
        }
    }

    fn receive_with_ticket(&mut self, item: &[u8]) {
        let ticket = item.len().checked_sub(TICKET_BYTES);
        let Some((row, ticket)) = ticket.map(|at| item.split_at(at)) else {
            self.foreign += 1;
            return;
        };
        let ticket = words(ticket).next().unwrap_or_default();
        let (slot, number) = (ticket as u32, (ticket >> 32) as u32);
        let Some(tickets) = &mut self.tickets else {
            return;
        };
        let Some(next) = tickets.next.get(slot as usize).copied() else {
            self.foreign += 1;
            return;
        };
        if number != next {
            tickets.early.insert((slot, number), row.to_vec());
            return;
        }
        self.keep(row);
        self.keep_early_ones(slot, next.wrapping_add(1));
    }

    /// Keeps the early records of a slot whose turn has come.
    fn keep_early_ones(&mut self, slot: u32, mut next: u32) {
        while let Some(row) = self
            .tickets
            .as_mut()
            .filter(|tickets| !tickets.early.is_empty())
            .and_then(|tickets| tickets.early.remove(&(slot, next)))
        {
            self.keep(&row);
            next = next.wrapping_add(1);
        }
        if let Some(tickets) = &mut self.tickets {
            tickets.next[slot as usize] = next;
        }
    }

    fn keep(&mut self, row: &[u8]) {
        let half = row.get(HALF_BYTE_AT).copied().unwrap_or_default();
        let batch = match u64::from(half) == self.half {
            true => &mut self.due,
            false => &mut self.later,
        };
        if let Some(shape) = self.shape {
            let words = words(row).enumerate();
            let words = words.map(|(at, word)| record_word(at, word));
            self.foreign += u64::from(!batch.push_row(words, shape));
            return;
        }
        if let Ok(row) = <&[u8; V4_BYTES]>::try_from(row) {
            batch.plain_v4.push(|at| word(row, at));
        } else if let Ok(row) = <&[u8; V6_BYTES]>::try_from(row) {
            batch.plain_v6.push(|at| word(row, at));
        } else {
            self.foreign += 1;
        }
    }

    /// Moves the due records to the end of `batch`.
    pub(crate) fn take_due(&mut self, batch: &mut MicroflowBatch) {
        batch.append(&mut self.due);
    }

    /// The rows of the due half have been taken too: from now on, the records of the other half are
    /// due.
    pub(crate) fn turn(&mut self) {
        self.half = 1 - self.half;
        self.due.append(&mut self.later);
    }

    /// Whether a record is missing before one that has arrived.
    pub(crate) fn waits_for_tickets(&self) -> bool {
        let tickets = self.tickets.as_ref();
        tickets.is_some_and(|tickets| !tickets.early.is_empty())
    }

    /// Number of records.
    pub(crate) fn len(&self) -> usize {
        let early = self.tickets.as_ref();
        self.due.len() + self.later.len() + early.map_or(0, |tickets| tickets.early.len())
    }

    /// Number of items that were not records.
    pub(crate) const fn foreign(&self) -> u64 {
        self.foreign
    }
}

/// A word of a row whose length is a constant, so that the index needs no check.
#[inline(always)]
fn word<const BYTES: usize>(row: &[u8; BYTES], at: usize) -> u64 {
    let (words, _) = row.as_chunks::<8>();
    record_word(at, u64::from_ne_bytes(words[at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An item of the ring with a record of `packets` packets.
    fn evicted(packets: u64, half: u64, ticket: Option<(u32, u32)>) -> Vec<u8> {
        let mut row = [0; PlainRows::<WORDS_V4>::WORDS];
        row[0] = packets;
        row[HALF_AT] = half << 24;
        let ticket = ticket.map(|(slot, number)| u64::from(slot) | u64::from(number) << 32);
        let words = row.into_iter().chain(ticket);
        words.flat_map(u64::to_ne_bytes).collect()
    }

    fn due(inbox: &mut Inbox) -> Vec<u64> {
        let mut batch = MicroflowBatch::default();
        inbox.take_due(&mut batch);
        batch.v4::<0>().map(|record| record.base.packets).collect()
    }

    #[test]
    fn what_comes_from_the_new_half_waits_for_the_old_one() {
        let mut inbox = Inbox::new(None, None);
        for (packets, half) in [(1, 0), (2, 1), (3, 0), (4, 1)] {
            inbox.receive(&evicted(packets, half, None));
        }
        assert_eq!(due(&mut inbox), [1, 3]);
        inbox.turn();
        inbox.receive(&evicted(5, 1, None));
        assert_eq!(due(&mut inbox), [2, 4, 5]);
        assert_eq!(inbox.len(), 0);
    }

    #[test]
    fn tickets_put_the_records_of_a_slot_in_order() {
        let mut inbox = Inbox::new(Some(2), None);
        for (packets, slot, number) in [(1, 0, 0), (4, 1, 2), (3, 1, 1), (2, 0, 1), (5, 1, 0)] {
            inbox.receive(&evicted(packets, 0, Some((slot, number))));
        }
        assert_eq!(due(&mut inbox), [1, 2, 5, 3, 4]);
        assert_eq!((inbox.len(), inbox.foreign()), (0, 0));
    }

    #[test]
    fn tickets_go_round() {
        let mut inbox = Inbox::new(Some(1), None);
        inbox.tickets.as_mut().expect("has").next[0] = u32::MAX;
        inbox.receive(&evicted(2, 0, Some((0, 0))));
        inbox.receive(&evicted(1, 0, Some((0, u32::MAX))));
        assert_eq!(due(&mut inbox), [1, 2]);
    }

    #[test]
    fn what_is_no_record_is_counted() {
        let mut inbox = Inbox::new(None, None);
        inbox.receive(&[0; 63]);
        let mut shared = Inbox::new(Some(1), None);
        shared.receive(&[0; 7]);
        shared.receive(&evicted(1, 0, Some((1, 0))));
        assert_eq!((inbox.foreign(), shared.foreign()), (1, 2));
    }
}
