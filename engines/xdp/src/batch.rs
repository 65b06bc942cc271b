// SPDX-License-Identifier: Apache-2.0
//! Microflow records on their way to the aggregator.

use turboflow_record::{MicroflowRecord, WORDS_V4, WORDS_V6};

use crate::layout::{ROW_BYTES, V4_BYTES, record};

/// Records that the kernel handed over, in the order in which each CPU evicted them.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Of IPv4 flows.
    pub v4: Vec<MicroflowRecord<WORDS_V4, 0>>,
    /// Of IPv6 flows.
    pub v6: Vec<MicroflowRecord<WORDS_V6, 0>>,
}

impl Batch {
    /// How many records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets the records, keeps the memory.
    pub fn clear(&mut self) {
        self.v4.clear();
        self.v6.clear();
    }

    /// Appends what the ring carried; false where its size is that of no record.
    #[cfg_attr(
        not(feature = "kernel"),
        allow(dead_code, reason = "only a kernel has a ring")
    )]
    pub(crate) fn push_evicted(&mut self, bytes: &[u8]) -> bool {
        match bytes.len() {
            V4_BYTES => self.v4.extend(record(bytes)),
            ROW_BYTES => self.v6.extend(record(bytes)),
            _ => return false,
        }
        true
    }

    /// Appends the flow that a row of the table holds, if it holds one; whether it does.
    #[cfg_attr(
        not(feature = "kernel"),
        allow(dead_code, reason = "only a kernel has a table")
    )]
    pub(crate) fn push_row(&mut self, bytes: &[u8]) -> bool {
        let Some(row) = record::<WORDS_V6>(bytes).filter(|row| row.base.packets > 0) else {
            return false;
        };
        if row.key[WORDS_V6 - 1] != 0 {
            self.v6.push(row);
        } else {
            self.v4.push(MicroflowRecord {
                key: [row.key[0], row.key[1]],
                base: row.base,
                state: [],
            });
        }
        true
    }
}
