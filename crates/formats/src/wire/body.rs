// SPDX-License-Identifier: Apache-2.0
//! Sets of data records that fill up to a message.

use super::DataRecords;

/// Octets of a set's header: its id and its length.
pub(super) const SET_HEADER_BYTES: usize = 4;

/// A body under way.
pub(super) struct Body {
    data: DataRecords,
    /// Octets it may have.
    limit_bytes: usize,
    /// Sets end on multiples of this (RFC 3954, section 5.3: 4).
    align_bytes: usize,
    /// The set under way: its id and where its header is.
    set: Option<(u16, usize)>,
}

/// A place in a body to return to.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    length: usize,
    set: Option<(u16, usize)>,
}

impl Body {
    pub(super) fn new(limit_bytes: usize, align_bytes: usize) -> Self {
        Self {
            data: DataRecords::default(),
            // A set may grow by its padding when it is closed.
            limit_bytes: limit_bytes - (align_bytes - 1),
            align_bytes,
            set: None,
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.data.records == 0
    }

    pub(super) const fn fits(&self) -> bool {
        self.data.bytes.len() <= self.limit_bytes
    }

    pub(super) const fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// Where octets of a record go, once [`Body::open`] has begun it.
    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.data.bytes
    }

    /// What the body holds, to be counted.
    pub(super) fn tally(&mut self) -> &mut DataRecords {
        &mut self.data
    }

    /// Begins a record of a set, and the set where another one was under way.
    pub(super) fn open(&mut self, id: u16) -> Mark {
        let mark = Mark {
            length: self.data.bytes.len(),
            set: self.set,
        };
        if self.set.is_none_or(|(open, _)| open != id) {
            self.close_set();
            self.set = Some((id, self.data.bytes.len()));
            self.data.bytes.extend_from_slice(&id.to_be_bytes());
            self.data.bytes.extend_from_slice(&[0, 0]);
        }
        mark
    }

    /// Forgets what was begun at `mark`.
    pub(super) fn roll_back(&mut self, mark: Mark) {
        self.data.bytes.truncate(mark.length);
        self.set = mark.set;
    }

    /// Takes the body and begins another.
    pub(super) fn take(&mut self) -> DataRecords {
        self.close_set();
        std::mem::take(&mut self.data)
    }

    /// Ends the set under way: the next record begins another one.
    pub(super) fn close_set(&mut self) {
        let Some((_, start)) = self.set.take() else {
            return;
        };
        let bytes = &mut self.data.bytes;
        let padded = start + (bytes.len() - start).next_multiple_of(self.align_bytes);
        bytes.resize(padded, 0);
        // A body has at most the length of a message, which 16 bits hold.
        let length = (padded - start) as u16;
        bytes[start + 2..start + SET_HEADER_BYTES].copy_from_slice(&length.to_be_bytes());
    }
}
