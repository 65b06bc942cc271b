// SPDX-License-Identifier: Apache-2.0
//! The encoding of counters, and the number of each counter.

use turboflow_record::Rejected;

use super::{WireError, u16_at, u64_at};
use crate::EngineCounters;

/// Size of an entry before its reason, in bytes.
const ENTRY_BYTES: usize = 12;
/// The numbers of the counters of rejected frames, which have one entry per reason.
const REJECTED_PACKETS: u16 = 64;
const REJECTED_BYTES: u16 = 65;
/// The number of the entry that tells how many counter messages preceded this one.
const TOLD_BEFORE: u16 = 66;
/// The number of the entry that tells when the engine started.
const STARTED: u16 = 67;

/// The entries of a message of counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entries {
    pub(crate) counters: EngineCounters,
    /// How many counter messages preceded this one.
    pub(crate) told_before: u64,
    /// When the engine started, in nanoseconds since 1970; 0 if unknown.
    pub(crate) started_ns: u64,
}

/// The counters without a reason. The first has number 1.
fn plain(counters: &mut EngineCounters) -> [&mut u64; 15] {
    let evicted = &mut counters.evicted;
    [
        &mut counters.packets_received,
        &mut counters.bytes_received,
        &mut counters.packets_metered,
        &mut counters.bytes_metered,
        &mut evicted.collision,
        &mut evicted.age,
        &mut evicted.cut,
        &mut evicted.flush,
        &mut evicted.bypass,
        &mut counters.microflows_dropped,
        &mut counters.packets_dropped,
        &mut counters.bytes_dropped,
        &mut counters.microflows_unnamed,
        &mut counters.packets_longer_than_frame,
        &mut counters.source_dropped,
    ]
}

/// Appends an entry for everything that is not 0.
pub(crate) fn put(entries: &Entries, to: &mut Vec<u8>) {
    entry(TOLD_BEFORE, "", entries.told_before, to);
    entry(STARTED, "", entries.started_ns, to);
    let mut counters = entries.counters;
    for (place, value) in plain(&mut counters).into_iter().enumerate() {
        entry(place as u16 + 1, "", *value, to);
    }
    for reason in Rejected::ALL {
        let at = reason.index();
        entry(
            REJECTED_PACKETS,
            reason.name(),
            counters.rejected_packets[at],
            to,
        );
        entry(
            REJECTED_BYTES,
            reason.name(),
            counters.rejected_bytes[at],
            to,
        );
    }
}

fn entry(counter: u16, reason: &str, value: u64, to: &mut Vec<u8>) {
    if value == 0 {
        return;
    }
    to.extend(counter.to_be_bytes());
    to.extend((reason.len() as u16).to_be_bytes());
    to.extend(value.to_be_bytes());
    to.extend(reason.bytes());
    to.resize(to.len() + padding(reason.len()), 0);
}

const fn padding(bytes: usize) -> usize {
    bytes.next_multiple_of(4) - bytes
}

/// Parses the entries of a body.
///
/// # Errors
/// If an entry exceeds the body, or a counter or reason is unknown.
pub(crate) fn read(mut body: &[u8]) -> Result<Entries, WireError> {
    let mut entries = Entries::default();
    let counters = &mut entries.counters;
    while !body.is_empty() {
        let (reason_bytes, available) = match body.len() {
            0..ENTRY_BYTES => (0, body.len()),
            length => (usize::from(u16_at(body, 2)), length),
        };
        let needed = ENTRY_BYTES + reason_bytes + padding(reason_bytes);
        let Some((entry, rest)) = body.split_at_checked(needed) else {
            return Err(WireError::Truncated { needed, available });
        };
        let (counter, value) = (u16_at(entry, 0), u64_at(entry, 4));
        let reason = &entry[ENTRY_BYTES..ENTRY_BYTES + reason_bytes];
        let unknown = WireError::Counter { number: counter };
        let is_named = |of: &Rejected| of.name().as_bytes() == reason;
        let of_reason = || Rejected::ALL.into_iter().find(is_named);
        match counter {
            REJECTED_PACKETS => {
                let reason = of_reason().ok_or(WireError::Reason)?;
                counters.rejected_packets[reason.index()] = value;
            }
            REJECTED_BYTES => {
                let reason = of_reason().ok_or(WireError::Reason)?;
                counters.rejected_bytes[reason.index()] = value;
            }
            TOLD_BEFORE => entries.told_before = value,
            STARTED => entries.started_ns = value,
            _ => {
                let place = usize::from(counter).checked_sub(1).ok_or(unknown)?;
                let unknown = WireError::Counter { number: counter };
                let mut all = plain(counters);
                **all.get_mut(place).ok_or(unknown)? = value;
            }
        }
        body = rest;
    }
    Ok(entries)
}
