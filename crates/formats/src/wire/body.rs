// SPDX-License-Identifier: Apache-2.0
//! A message body: sets of data records, up to the limit of a message.

use super::DataRecords;

/// Octets of a set's header: its id and its length.
pub(super) const SET_HEADER_BYTES: usize = 4;

/// The body being filled.
pub(super) struct Body {
    data: DataRecords,
    /// Limit in octets.
    limit_bytes: usize,
    /// Sets are padded to a multiple of this (4 in NetFlow v9: RFC 3954, section 5.3).
    align_bytes: usize,
    /// The open set: its id and the offset of its header.
    set: Option<(u16, usize)>,
}

/// A position in a body, for rolling back.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    length: usize,
    set: Option<(u16, usize)>,
}

impl Body {
    pub(super) fn new(limit_bytes: usize, align_bytes: usize) -> Self {
        Self {
            data: DataRecords::default(),
            // Closing a set may add padding.
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

    /// The buffer for a record's octets, after [`Body::open`].
    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.data.bytes
    }

    /// The counters of the body.
    pub(super) fn tally(&mut self) -> &mut DataRecords {
        &mut self.data
    }

    /// Starts a record of set `id`; starts a new set if a different one is open.
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

    /// Removes everything since `mark`.
    pub(super) fn roll_back(&mut self, mark: Mark) {
        self.data.bytes.truncate(mark.length);
        self.set = mark.set;
    }

    /// Takes the body and starts a new one.
    pub(super) fn take(&mut self) -> DataRecords {
        self.close_set();
        std::mem::take(&mut self.data)
    }

    /// Closes the open set: the next record starts a new one.
    pub(super) fn close_set(&mut self) {
        let Some((_, start)) = self.set.take() else {
            return;
        };
        let bytes = &mut self.data.bytes;
        let padded = start + (bytes.len() - start).next_multiple_of(self.align_bytes);
        bytes.resize(padded, 0);
        // A body is no longer than a message, whose length has 16 bits.
        let length = (padded - start) as u16;
        bytes[start + 2..start + SET_HEADER_BYTES].copy_from_slice(&length.to_be_bytes());
    }
}
