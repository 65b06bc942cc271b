// SPDX-License-Identifier: Apache-2.0
//! What a sender of messages needs in addition to the encoder: counters that other threads update,
//! sequence numbers, and the sums of a message.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::record::KeyForm;
use super::{HEADER_BYTES, Header, Kind, WireError, u64_at};
use crate::{EngineCounters, RecordShape};

/// The counters that a sender reports, shared by the threads that count and those that send.
#[derive(Debug, Default)]
pub struct SenderCounters(Mutex<Told>);

#[derive(Debug, Default)]
struct Told {
    counters: EngineCounters,
    is_final: bool,
}

impl SenderCounters {
    /// The counters so far.
    #[must_use]
    pub fn get(&self) -> EngineCounters {
        self.lock().counters
    }

    /// Updates the counters. Has no effect after [`finish`](Self::finish).
    pub fn set(&self, counters: EngineCounters) {
        let mut told = self.lock();
        if !told.is_final {
            told.counters = counters;
        }
    }

    /// Sets the final counters.
    pub fn finish(&self, counters: EngineCounters) {
        *self.lock() = Told {
            counters,
            is_final: true,
        };
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the records of a message add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageSums {
    /// Records.
    pub records: u32,
    /// Their packets.
    pub packets: u64,
    /// Their bytes, according to the IP headers.
    pub bytes: u64,
}

/// The sums of a message's records, which have this shape. All are 0 for a message of counters.
///
/// # Errors
/// If the bytes are not a message.
pub fn sums(message: &[u8], shape: RecordShape) -> Result<MessageSums, WireError> {
    let form = match Header::of(message)?.kind {
        Kind::RecordsV4 => KeyForm::V4,
        Kind::RecordsV6 => KeyForm::V6,
        Kind::RecordsWide => KeyForm::Wide,
        Kind::Counters | Kind::End => return Ok(MessageSums::default()),
    };
    let mut sums = MessageSums::default();
    for record in message[HEADER_BYTES..].chunks_exact(form.bytes(shape)) {
        sums.records += 1;
        sums.packets = sums.packets.saturating_add(u64_at(record, 0));
        sums.bytes = sums.bytes.saturating_add(u64_at(record, 8));
    }
    Ok(sums)
}

/// Replaces the sequence number of a message: how many records were sent before it. A sender that
/// loses messages before they are sent renumbers those that it does send.
pub fn number(message: &mut [u8], sequence: u32) {
    message[20..24].copy_from_slice(&sequence.to_be_bytes());
}
